#include "study/sweep_store.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.hpp"

namespace tw {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The view makes a long table of all outputs: SELECT value FROM outputs WHERE point = 3 AND name = 'step.time_s'.
constexpr const char* kSchema = R"(
CREATE TABLE study(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE identity(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE points(point INTEGER PRIMARY KEY, seed INTEGER, status TEXT, exit_code INTEGER, error TEXT,
  inputs TEXT, result TEXT);
CREATE VIEW outputs AS SELECT points.point AS point, substr(t.fullkey, 3) AS name, t.atom AS value
  FROM points, json_tree(points.result) AS t WHERE t.atom IS NOT NULL;
)";

constexpr size_t kMostStoredPoints = 1000000;  // of a study

template <class Work>
auto guarded(const std::string& path, const Work& work) {
  const auto damaged = [&] { return InputError({{path, "", "is damaged", "sweep --overwrite begins anew"}}); };
  try {
    return work();
  } catch (const json::exception&) {
    throw damaged();
  } catch (const std::logic_error&) {  // a number that is none
    throw damaged();
  } catch (const SQLite::Exception& e) {
    const int code = e.getErrorCode();
    const auto says = [&](const char* what) { return std::strstr(e.what(), what) != nullptr; };
    if (says("malformed") || says("no such")) throw damaged();
    std::string what = fmt::format("cannot be written ({})", e.what()), allowed;
    if (code == SQLite::OK || says("not a database"))
      what = "holds no results of a sweep", allowed = "another folder, or remove the file";
    else if (says("full") || says("I/O"))
      allowed = "finished points are kept; make room and go on with --resume";
    throw InputError({{path, "", what, allowed}});
  }
}

std::string text_at(SQLite::Statement& row, int column) {
  const SQLite::Column cell = row.getColumn(column);
  return std::string(cell.getText(), static_cast<size_t>(cell.getBytes()));
}

std::string inputs_json(const std::map<std::string, std::string>& values) {
  json out = json::object();
  for (const auto& [pointer, text] : values) out[pointer] = json::parse(text, nullptr, false);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : path_((fs::path(folder) / "sweep.lock").string()) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (int attempt = 0; attempt < 100; ++attempt) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw InputError({{folder, "", fmt::format("cannot be written ({})", std::strerror(errno)), ""}});
    // Such a lock is of this process alone: children do not inherit it, so none of them can outlast us with it.
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    if (::fcntl(fd_, F_SETLK, &wanted) != 0) {
      const bool taken = errno == EACCES || errno == EAGAIN;
      const std::string why = std::strerror(errno);
      ::close(fd_);
      throw InputError({{folder, "", taken ? "another trainwatt writes here" : "cannot be locked (" + why + ")",
                         taken ? "wait for it, or name another folder" : ""}});
    }
    // Whoever held it before may have removed the file between our opening and our locking.
    struct stat here {
    }, there{};
    if (::fstat(fd_, &here) == 0 && ::stat(path_.c_str(), &there) == 0 && here.st_ino == there.st_ino) return;
    ::close(fd_);
  }
  throw InputError({{folder, "", "cannot be locked", "name another folder"}});
}

FolderLock::~FolderLock() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

std::string SweepStore::file_in(const std::string& folder) {
  return (fs::path(folder) / "sweep.sqlite").string();
}

SweepStore::SweepStore(const std::string& folder) : SweepStore(file_in(folder), OpenFile{}) {}

SweepStore::SweepStore(const std::string& file, OpenFile) : path_(file) {
  guarded(path_, [&] {
    db_ = std::make_unique<SQLite::Database>(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 10000);
    // With a log beside the file a commit costs no wait for the disk, and neither a kill nor a loss of power harms it.
    db_->exec("PRAGMA synchronous=NORMAL");
    SQLite::Statement(*db_, "PRAGMA journal_mode=WAL").executeStep();
    if (!db_->tableExists("study")) {
      SQLite::Transaction t(*db_);
      db_->exec(kSchema);
      t.commit();
    }
  });
}

SweepStore::~SweepStore() = default;
SweepStore::SweepStore(SweepStore&&) noexcept = default;

StoredStudy SweepStore::about() const {
  return guarded(path_, [&] {
    StoredStudy s;
    SQLite::Statement identity(*db_, "SELECT name, value FROM identity");
    while (identity.executeStep()) s.identity[text_at(identity, 0)] = text_at(identity, 1);
    SQLite::Statement study(*db_, "SELECT key, value FROM study");
    while (study.executeStep()) {
      const std::string key = text_at(study, 0), value = text_at(study, 1);
      if (key == "study") s.canonical = value;
      if (key == "columns") s.columns = json::parse(value).get<std::vector<std::string>>();
      if (key == "points") s.points = std::stoull(value);
      if (s.points > kMostStoredPoints) throw std::out_of_range("points");
      if (key == "shard") s.shard = value;
    }
    return s;
  });
}

void SweepStore::begin(const StoredStudy& study) {
  guarded(path_, [&] {
    SQLite::Transaction t(*db_);
    db_->exec("DELETE FROM points; DELETE FROM identity; DELETE FROM study");
    SQLite::Statement pair(*db_, "INSERT INTO identity VALUES(?,?)");
    for (const auto& [name, value] : study.identity) {
      pair.bind(1, name), pair.bind(2, value);
      pair.exec();
      pair.reset();
    }
    SQLite::Statement key(*db_, "INSERT INTO study VALUES(?,?)");
    for (const auto& [name, value] : {std::pair<std::string, std::string>{"study", study.canonical},
                                      {"columns", json(study.columns).dump()},
                                      {"points", std::to_string(study.points)},
                                      {"shard", study.shard}}) {
      key.bind(1, name), key.bind(2, value);
      key.exec();
      key.reset();
    }
    t.commit();
  });
}

void SweepStore::add(const std::vector<StudyRow>& rows) {
  guarded(path_, [&] {
    SQLite::Transaction t(*db_);
    SQLite::Statement insert(*db_, "INSERT OR REPLACE INTO points VALUES(?,?,?,?,?,?,?)");
    for (const StudyRow& r : rows) {
      insert.bind(1, static_cast<int64_t>(r.point)), insert.bind(2, static_cast<int64_t>(r.seed));
      insert.bind(3, r.status), insert.bind(4, r.code), insert.bind(5, r.error), insert.bind(6, inputs_json(r.values));
      if (r.result.empty())
        insert.bind(7);
      else
        insert.bind(7, r.result);
      insert.exec();
      insert.reset();
    }
    t.commit();
  });
}

size_t SweepStore::rows() const {
  return guarded(path_, [&] {
    SQLite::Statement count(*db_, "SELECT COUNT(*) FROM points");
    count.executeStep();
    return static_cast<size_t>(count.getColumn(0).getInt64());
  });
}

std::vector<bool> SweepStore::finished(size_t points) const {
  return guarded(path_, [&] {
    std::vector<bool> list(points, false);
    SQLite::Statement rows(*db_, "SELECT point FROM points WHERE exit_code NOT IN (1, 4)");
    while (rows.executeStep()) {
      const auto point = static_cast<size_t>(rows.getColumn(0).getInt64());
      if (point < points) list[point] = true;
    }
    return list;
  });
}

void SweepStore::each(const std::function<void(const StudyRow&)>& take) const {
  guarded(path_, [&] {
    SQLite::Statement rows(*db_,
                           "SELECT point, seed, status, exit_code, error, inputs, result FROM points ORDER BY point");
    while (rows.executeStep()) {
      StudyRow r;
      r.point = static_cast<size_t>(rows.getColumn(0).getInt64());
      r.seed = static_cast<uint64_t>(rows.getColumn(1).getInt64());
      r.status = text_at(rows, 2), r.code = rows.getColumn(3).getInt(), r.error = text_at(rows, 4);
      const json inputs = json::parse(text_at(rows, 5));
      for (const auto& [pointer, value] : inputs.items()) r.values[pointer] = value.dump();
      if (!rows.isColumnNull(6)) r.result = text_at(rows, 6);
      if ((r.status == "done" || r.status == "stopped") && r.result.rfind('{', 0) != 0)
        throw std::out_of_range("result");
      take(r);
    }
  });
}

void SweepStore::close() {
  guarded(path_, [&] {
    SQLite::Statement(*db_, "PRAGMA journal_mode=DELETE").executeStep();
    db_.reset();
  });
}

}  // namespace tw
