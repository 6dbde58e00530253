// Files: inputs found by name, outputs written whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

// Folders that hold models/, topologies/, scenarios/, reference/: $TRAINWATT_DATA, then the folder the program was
// built from or installed with.
std::vector<std::string> data_folders();

// `name` as given, else beside the file `named_in`, else in a data folder. Paths come back as short as they were given.
std::optional<std::string> find_input_file(const std::string& name, const std::string& named_in);

// "did you mean ...?" among files of the same folder; empty when there is nothing near.
std::string suggest_file(const std::string& name);

// The whole file; throws InputError when it cannot be read, or holds more than any input of ours. A pipe is waited for
// a few seconds.
std::string read_file(const std::string& path);

// The one way in which files are written: beside the target, whose place they take when complete, so that a reader
// never sees half a file. Creates folders. A device or a pipe is written to and never replaced; a link keeps pointing
// at its file. Everything throws InputError (the place is the user's choice) when it cannot be done.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  bool replaces() const { return partial_ != target_; }    // a file, no device or pipe
  const std::string& partial() const { return partial_; }  // for libraries that write by themselves
  void write(std::string_view content);
  void commit();

 private:
  std::string path_, target_, partial_;
  int fd_ = -1;
  bool committed_ = false;
};
void write_file(const std::string& path, std::string_view content);

// Removes what is being written; for handlers of signals.
void remove_partial_files() noexcept;

std::string sha256_hex(std::string_view data);

}  // namespace tw
