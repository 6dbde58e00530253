#include "core/files.hpp"

#include <fmt/format.h>
#include <nettle/sha2.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tw {

namespace fs = std::filesystem;

std::vector<std::string> data_folders() {
  std::vector<std::string> folders;
  if (const char* chosen = std::getenv("TRAINWATT_DATA")) folders.emplace_back(chosen);
  // The tree that it was built from, or what was installed beside it.
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {fs::path(TW_SOURCE_DATA), program / "../share/trainwatt"})
    if (fs::exists(folder / "models", ignored)) folders.push_back(folder.lexically_normal().string());
  return folders;
}

std::optional<std::string> find_input_file(const std::string& name, const std::string& named_in) {
  std::error_code ignored;
  const auto usable = [&](const fs::path& p) { return fs::is_regular_file(p, ignored); };
  if (name.empty()) return std::nullopt;
  if (fs::path(name).is_absolute() || named_in.empty()) {
    if (usable(name)) return name;
  } else {
    const fs::path beside = fs::path(named_in).parent_path() / name;
    if (usable(beside)) return beside.lexically_normal().string();
  }
  for (const std::string& folder : data_folders()) {
    const fs::path there = fs::path(folder) / name;
    // As short as it was given, where that names the same file.
    if (usable(there)) return fs::equivalent(there, name, ignored) ? name : there.string();
  }
  if (usable(name)) return name;
  return std::nullopt;
}

std::string suggest_file(const std::string& name) {
  std::vector<std::string> known;
  const fs::path folder = fs::path(name).parent_path();
  std::vector<fs::path> places{folder.empty() ? fs::path(".") : folder};
  for (const std::string& data : data_folders()) places.push_back(fs::path(data) / folder);
  std::error_code ignored;
  for (const fs::path& place : places)
    for (const auto& entry : fs::directory_iterator(place, ignored))
      if (entry.path().extension() == ".json") known.push_back((folder / entry.path().filename()).string());
  return known.empty() ? "" : suggest(name, known, 8);
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw InputError({{path, "", "is a folder, not a file", ""}});
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({{path, "", fmt::format("cannot be read ({})", std::strerror(errno)), ""}});
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

namespace {
// An interruption waits until the partial file has its name or is gone.
class InterruptLater {
 public:
  InterruptLater() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
    sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~InterruptLater() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  InterruptLater(const InterruptLater&) = delete;
  InterruptLater& operator=(const InterruptLater&) = delete;

 private:
  sigset_t before_{};
};
}  // namespace

void write_file(const std::string& path, std::string_view content) {
  const auto refuse = [&](const std::string& why) {
    throw InputError({{path, "", fmt::format("cannot be written ({})", why), ""}});
  };
  std::error_code error;
  // A device or pipe is written to, never replaced; a link keeps pointing at its file.
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    if (fs::is_directory(path, error)) refuse("it is a folder");
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) refuse(std::strerror(errno));
    return;
  }
  const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : fs::path(path);
  if (target.empty()) refuse("its link leads nowhere");
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  const std::string partial = fmt::format("{}.{}.part", path, ::getpid());
  const InterruptLater hold;
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) {
      const std::string why = std::strerror(errno);
      fs::remove(partial, error);
      refuse(why);
    }
  }
  fs::rename(partial, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(partial, error);
    refuse(why);
  }
}

std::string sha256_hex(std::string_view data) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, data.size(), reinterpret_cast<const uint8_t*>(data.data()));
  std::array<uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&context, digest.size(), digest.data());
  std::string hex;
  for (const uint8_t byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace tw
