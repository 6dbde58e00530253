# What is installed: the program with its engine, data, manual and completion; the library with its headers; packages.
# The program finds its engine in ../lib/trainwatt and its data in ../share/trainwatt, seen from itself.
# What is packed is what was built; tests and benchmarks need not be.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Manual pages and completion come from the declarations of the commands.
set(manual ${CMAKE_BINARY_DIR}/manual)
add_custom_command(TARGET trainwatt POST_BUILD
  COMMAND trainwatt schema --man ${manual}/man --completion ${manual}/completion
  COMMENT "Manual pages and completion" VERBATIM)

install(TARGETS trainwatt RUNTIME DESTINATION bin)
install(TARGETS trainwatt_engine LIBRARY DESTINATION lib/trainwatt)
install(DIRECTORY models topologies scenarios schemas plots pages reference tools DESTINATION share/trainwatt)
install(DIRECTORY docs/ DESTINATION share/doc/trainwatt)
install(DIRECTORY examples DESTINATION share/doc/trainwatt)
install(FILES README.md CHANGELOG.md NOTICE DESTINATION share/doc/trainwatt)
install(FILES LICENSE DESTINATION share/doc/trainwatt RENAME copyright)
install(DIRECTORY ${manual}/man/ DESTINATION share/man/man1 FILES_MATCHING PATTERN "*.1")
install(FILES ${manual}/completion/trainwatt.bash DESTINATION share/bash-completion/completions RENAME trainwatt)
install(FILES ${manual}/completion/_trainwatt DESTINATION share/zsh/vendor-completions)

# The library: one target for those who use it, an archive a folder of sim/.
add_library(trainwatt_library INTERFACE)
set_target_properties(trainwatt_library PROPERTIES EXPORT_NAME trainwatt)
target_link_libraries(trainwatt_library INTERFACE tw_study)
target_compile_features(trainwatt_library INTERFACE cxx_std_20)
target_link_options(trainwatt_library INTERFACE -rdynamic)  # the engine module throws what the program catches
add_library(trainwatt::trainwatt ALIAS trainwatt_library)
set(archives tw_core tw_hardware tw_workload tw_topology tw_network tw_step tw_power tw_run tw_facility tw_hall tw_study)
install(TARGETS trainwatt_library ${archives} EXPORT trainwatt-targets ARCHIVE DESTINATION lib/trainwatt)
install(EXPORT trainwatt-targets NAMESPACE trainwatt:: DESTINATION lib/cmake/trainwatt)
install(DIRECTORY sim/ DESTINATION include/trainwatt FILES_MATCHING PATTERN "*.hpp" PATTERN cli EXCLUDE PATTERN report EXCLUDE PATTERN mlperf EXCLUDE)
configure_package_config_file(cmake/trainwatt-config.cmake.in ${CMAKE_BINARY_DIR}/trainwatt-config.cmake
  INSTALL_DESTINATION lib/cmake/trainwatt)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/trainwatt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/trainwatt-config.cmake ${CMAKE_BINARY_DIR}/trainwatt-config-version.cmake
  DESTINATION lib/cmake/trainwatt)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trainwatt)
set(CPACK_PACKAGE_CONTACT "TrainWatt developers <trainwatt@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, graphviz")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libboost-dev, nlohmann-json3-dev, libfmt-dev, libsqlitecpp-dev, nettle-dev")
include(CPack)
