#include "cli/outputs.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "topology/fabric.hpp"

namespace tw::cli {

namespace fs = std::filesystem;

namespace {

// The nearest existing folder above (or at) `path`: that is where something is created first.
fs::path existing_parent(fs::path path) {
  std::error_code ignored;
  while (!path.empty() && !fs::exists(path, ignored)) {
    const fs::path up = path.parent_path();
    if (up == path) break;
    path = up;
  }
  return path.empty() ? fs::path(".") : path;
}

void check_parent(const std::string& option, const std::string& path, const fs::path& parent, Faults& faults) {
  std::error_code ignored;
  const fs::path nearest = existing_parent(parent);
  if (!fs::is_directory(nearest, ignored))
    faults.add({option, "", path + " cannot be written: " + nearest.string() + " is not a folder", ""});
  else if (::access(nearest.c_str(), W_OK) != 0)
    faults.add({option, "", path + " cannot be written: no permission in " + nearest.string(), ""});
}

}  // namespace

void check_output_folder(const std::string& option, const std::string& folder, Faults& faults) {
  if (folder == "-") return faults.add({option, "", "- is no folder", "a folder; --json - writes to stdout"});
  if (!folder.empty()) check_parent(option, folder, folder, faults);
}

void check_output_file(const std::string& option, const std::string& file, Faults& faults) {
  if (file.empty() || file == "-") return;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) return faults.add({option, "", file + " is a folder, not a file", ""});
  check_parent(option, file, fs::path(file).parent_path(), faults);
}

void write_output(const Console& console, const std::string& file, const std::string& text) {
  write_output(console, file, [&](const auto& write) { write(text); });
}

void write_output(const Console& console, const std::string& file, const Pieces& pieces) {
  if (file == "-") return pieces([&](std::string_view piece) { console.result(std::string(piece)); });
  OutputFile out(file);
  pieces([&](std::string_view piece) { out.write(piece); });
  out.commit();
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

int workers(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Cluster load_cluster(const std::string& file, const std::vector<std::string>& set, Faults& faults) {
  const Document document = Document::load(file, description<Cluster>().info(), set, faults);
  auto cluster = read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(cluster, ReadContext{&document, "", &faults, {}});
  return cluster;
}

}  // namespace tw::cli
