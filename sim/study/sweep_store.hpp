// Results of a study in one SQLite file, a row a point, safe against a kill at any moment; and who may write it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace SQLite {
class Database;
}

namespace tw {

struct StudyRow {
  size_t point = 0;
  uint64_t seed = 1;
  std::map<std::string, std::string> values;  // changing inputs by pointer, as JSON text
  std::string status;                         // done, stopped (a run that never reached its target), skipped or failed
  int code = 0;                               // exit code that a run of this point alone would have ended with
  std::string error;
  std::string result;  // JSON of a result, or empty
};

// What a file says about itself.
struct StoredStudy {
  std::map<std::string, std::string> identity;  // see LoadedStudy
  std::string canonical;
  std::vector<std::string> columns;
  size_t points = 0;  // of the whole study
  std::string shard;  // "2/8"; empty: all points
  bool empty() const { return identity.empty(); }
};

// Holds a folder for one process, also against other machines on a shared file system; a kill lets go of it. Creates
// the folder. Throws InputError when another process holds it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::string path_;
  int fd_ = -1;
};

// FOLDER/sweep.sqlite: tables study(key, value), identity(name, value) and points; view outputs(point, name, value).
// Every function throws InputError when the file cannot be read or written (a full disk): what was added before stays.
class SweepStore {
 public:
  explicit SweepStore(const std::string& folder);  // opens or creates
  struct OpenFile {};
  SweepStore(const std::string& file, OpenFile);
  ~SweepStore();
  SweepStore(SweepStore&&) noexcept;

  static std::string file_in(const std::string& folder);

  StoredStudy about() const;                    // empty in a new file
  void begin(const StoredStudy& study);         // forgets whatever was there
  void add(const std::vector<StudyRow>& rows);  // in one transaction; a row of the same point is replaced
  size_t rows() const;
  // Points that need not be simulated again: all but those whose process broke (exit codes 1 and 4).
  std::vector<bool> finished(size_t points) const;
  void each(const std::function<void(const StudyRow&)>& take) const;  // by rising point
  void close();                                                       // one file is left, without a log beside it

 private:
  std::string path_;
  std::unique_ptr<SQLite::Database> db_;
};

}  // namespace tw
