// Files read and written, and how many faults are told.
#include "core/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/units.hpp"

namespace fs = std::filesystem;
using namespace tw;

namespace {

struct Place {
  fs::path path = fs::temp_directory_path() / ("trainwatt_files_" + std::to_string(::getpid()));
  Place() { fs::create_directories(path); }
  ~Place() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a link keeps pointing at its file, a device stays a device, a folder is refused") {
  const Place p;
  write_file(p / "real", "old");
  fs::create_symlink(p / "real", p / "link");
  write_file(p / "link", "new");
  CHECK(fs::is_symlink(p / "link"));
  CHECK(read_file(p / "real") == "new");
  write_file("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_AS(write_file("/dev/full", "x"), InputError);
  fs::create_directory(p / "folder");
  CHECK_THROWS_AS(write_file(p / "folder", "x"), InputError);
  CHECK(entries(p.path) == 3);
}

TEST_CASE("a file that is not finished leaves the old one, and nothing beside it") {
  const Place p;
  write_file(p / "a", "old");
  {
    OutputFile file(p / "a");
    file.write("half");
    CHECK(entries(p.path) == 2);
  }
  CHECK(read_file(p / "a") == "old");
  CHECK(entries(p.path) == 1);
  OutputFile file(p / "a");
  file.write("half");
  remove_partial_files();
  CHECK(entries(p.path) == 1);
  CHECK_THROWS_AS(file.commit(), InputError);
}

TEST_CASE("a pipe is read to its end, again when asked again, and not waited for without end") {
  const Place p;
  ::mkfifo((p / "pipe").c_str(), 0600);
  std::thread writer([&] {
    const int fd = ::open((p / "pipe").c_str(), O_WRONLY);
    (void)!::write(fd, "{}", 2);
    ::close(fd);
  });
  CHECK(read_file(p / "pipe") == "{}");
  writer.join();
  CHECK(read_file(p / "pipe") == "{}");
  CHECK(find_input_file(p / "pipe", "") == p / "pipe");
  ::mkfifo((p / "silent").c_str(), 0600);
  CHECK_THROWS_AS(read_file(p / "silent"), InputError);
}

TEST_CASE("a file beyond any input is refused before it is read") {
  const Place p;
  write_file(p / "sparse", "");
  fs::resize_file(p / "sparse", uintmax_t{6} << 30);
  CHECK_THROWS_AS(read_file(p / "sparse"), InputError);
}

TEST_CASE("faults beyond some hundred are counted") {
  Faults faults;
  for (int i = 0; i < 100000; ++i) faults.add({"f", "/" + std::to_string(i), "is wrong", ""});
  CHECK(faults.size() == 100000);
  const std::string text = InputError(faults.list()).what();
  CHECK(text.size() < 100000);
  CHECK(text.find("and 99800 more faults") != std::string::npos);
  Faults outer;
  for (const Fault& f : faults.list()) outer.add(f);
  CHECK(InputError(outer.list()).what() == text);
}

TEST_CASE("quantities beyond what there is are refused with what is allowed") {
  for (const char* text : {"1e30 s", "1e-300 s", "1e12 s"}) {
    const std::string problem = parse_quantity(text, DimensionOf<Time>::info).problem;
    INFO(text);
    CHECK(problem.find("allowed: 1e-15 to 1e+11 s") != std::string::npos);
  }
  CHECK(parse_quantity("0 s", DimensionOf<Time>::info).problem.empty());
  CHECK(!parse_quantity("1e300 B", DimensionOf<Bytes>::info).problem.empty());
  CHECK(!parse_quantity("-1e40 W", DimensionOf<Power>::info).problem.empty());
}
