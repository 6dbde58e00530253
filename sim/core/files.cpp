#include "core/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tw {

namespace fs = std::filesystem;

std::vector<std::string> data_folders() {
  std::vector<std::string> folders;
  if (const char* chosen = std::getenv("TRAINWATT_DATA")) folders.emplace_back(chosen);
  // What was installed beside it, or the tree that it was built from.
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {program / "../share/trainwatt", fs::path(TW_SOURCE_DATA)})
    if (fs::exists(folder / "models", ignored)) folders.push_back(folder.lexically_normal().string());
  return folders;
}

std::optional<std::string> find_input_file(const std::string& name, const std::string& named_in) {
  std::error_code ignored;
  const auto usable = [&](const fs::path& p) { return fs::is_regular_file(p, ignored); };
  // What the command line names may come from another program.
  if (named_in.empty() && (fs::is_fifo(name, ignored) || fs::is_character_file(name, ignored))) return name;
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
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
      const std::string file = entry.path().filename().string();
      if (entry.path().extension() == ".json" && file != "CMakePresets.json") known.push_back((folder / file).string());
    }
  // A bare name that stands nowhere here: that of a shipped scenario or cluster, most likely.
  if (known.empty() && folder.empty())
    for (const std::string& data : data_folders())
      for (const char* kind : {"scenarios", "topologies"})
        for (const auto& entry : fs::directory_iterator(fs::path(data) / kind, ignored))
          if (entry.path().extension() == ".json") known.push_back((fs::path(kind) / entry.path().filename()).string());
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known.empty() ? "" : suggest(name, known, 8);
}

namespace {

constexpr double kMostBytes = 1 << 30;    // of an input: more is no input of ours, but would fill the memory
constexpr size_t kMostPiped = 256 << 20;  // of what comes from a pipe or a device
constexpr int kPipeWait_ms = 5000;

[[noreturn]] void refuse_read(const std::string& path, const std::string& why) {
  throw InputError({{path, "", fmt::format("cannot be read ({})", why), ""}});
}

// A pipe can be read once, an input may be asked for again: what came from it is kept.
std::string read_pipe(const std::string& path) {
  static std::map<std::string, std::string> known;
  if (const auto found = known.find(path); found != known.end()) return found->second;
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) refuse_read(path, std::strerror(errno));
  std::string text;
  std::array<char, 65536> buffer{};
  std::string problem;
  while (true) {
    pollfd one{fd, POLLIN, 0};
    const int ready = ::poll(&one, 1, kPipeWait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) problem = fmt::format("nothing arrived for {} s", kPipeWait_ms / 1000);
    if (ready <= 0) break;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) problem = std::strerror(errno);
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() <= kMostPiped) continue;
    problem = "it does not end";
    break;
  }
  ::close(fd);
  if (!problem.empty()) refuse_read(path, problem);
  return known[path] = text;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code error, ignored;  // a file that is yet to be made has no status
  const auto status = fs::status(path, ignored);
  if (fs::is_directory(status)) throw InputError({{path, "", "is a folder, not a file", ""}});
  if (fs::is_fifo(status) || fs::is_character_file(status)) return read_pipe(path);
  const double size = fs::is_regular_file(status) ? static_cast<double>(fs::file_size(path, error)) : 0;
  if (!error && size > kMostBytes) refuse_read(path, fmt::format("it holds {:.1f} GB, at most 1 are read", size / 1e9));
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse_read(path, std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

namespace {

constexpr int kMostLinks = 40;  // that lead to one another

// What a signal has to remove; a handler may read it at any time.
std::array<std::atomic<const char*>, 16> partial_files{};

// A partial file, and what SQLite keeps beside one. A handler of a signal may call it.
void unlink_partial(const char* name) noexcept {
  ::unlink(name);
  std::array<char, 4096> beside{};
  const size_t length = std::strlen(name);
  for (const char* ending : {"-wal", "-shm", "-journal"}) {
    if (length + std::strlen(ending) >= beside.size()) return;
    std::memcpy(beside.data(), name, length);
    std::memcpy(beside.data() + length, ending, std::strlen(ending) + 1);
    ::unlink(beside.data());
  }
}

[[noreturn]] void refuse_write(const std::string& path, const std::string& why) {
  throw InputError({{path, "", fmt::format("cannot be written ({})", why), ""}});
}

}  // namespace

void remove_partial_files() noexcept {
  for (const auto& path : partial_files)
    if (const char* name = path.load()) unlink_partial(name);
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  std::error_code error, ignored;  // a file that is yet to be made has no status
  const auto status = fs::status(path, ignored);
  if (fs::is_directory(status)) refuse_write(path, "it is a folder");
  target_ = path;
  // A link keeps pointing at its file, also at one that is yet to be made.
  for (int links = 0; fs::is_symlink(fs::symlink_status(target_, ignored)) && !error; ++links) {
    const fs::path next = fs::read_symlink(target_, error);
    target_ = links < kMostLinks ? (fs::path(target_).parent_path() / next).string() : "";
  }
  if (target_.empty() || error) refuse_write(path, "its link leads nowhere");
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device or a pipe is written to, never replaced
    partial_ = target_;
    return;
  }
  const fs::path folder = fs::path(target_).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  static int number = 0;
  partial_ = fmt::format("{}.{}.{}.part", target_, ::getpid(), number++);
  const auto same = [&](const std::atomic<const char*>& entry) { return entry.load() == nullptr; };
  const auto free = std::find_if(partial_files.begin(), partial_files.end(), same);
  if (free != partial_files.end()) free->store(partial_.c_str());
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_ && replaces()) unlink_partial(partial_.c_str());
  for (auto& entry : partial_files)
    if (entry.load() == partial_.c_str()) entry.store(nullptr);
}

void OutputFile::write(std::string_view content) {
  if (fd_ < 0) fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (replaces() ? O_TRUNC : 0), 0666);
  if (fd_ < 0) refuse_write(path_, std::strerror(errno));
  while (!content.empty()) {
    const ssize_t n = ::write(fd_, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_write(path_, std::strerror(errno));
    content.remove_prefix(static_cast<size_t>(n));
  }
}

void OutputFile::commit() {
  if (fd_ >= 0) {
    const int failed = ::close(fd_);
    fd_ = -1;
    if (failed != 0) refuse_write(path_, std::strerror(errno));
  }
  if (replaces() && ::rename(partial_.c_str(), target_.c_str()) != 0) refuse_write(path_, std::strerror(errno));
  committed_ = true;
}

void write_file(const std::string& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
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
