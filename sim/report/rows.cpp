#include "report/rows.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/csv_field.hpp"
#include "core/error.hpp"
#include "core/files.hpp"

namespace tw::report {
namespace {

using json = nlohmann::ordered_json;

bool list_of_objects(const json& j) {
  return j.is_array() && !j.empty() && j.front().is_object();
}

class Builder {
 public:
  void row(const json& object, const std::string& group = "") {
    cells_.emplace_back();
    if (!group.empty()) put("suite", json(group));
    add(object, "");
  }
  Rows finish() {
    for (auto& row : cells_) row.resize(rows_.columns.size());
    rows_.cells = std::move(cells_);
    return std::move(rows_);
  }

 private:
  void add(const json& j, const std::string& path) {
    if (j.is_object()) {
      for (const auto& [key, value] : j.items()) add(value, path.empty() ? key : path + "." + key);
    } else if (j.is_array()) {
      // Lists of objects and long lists are tables of their own, which a row cannot hold.
      if (list_of_objects(j) || j.size() > 16) return;
      for (size_t i = 0; i < j.size(); ++i) add(j[i], fmt::format("{}.{}", path, i));
    } else {
      put(path, j);
    }
  }
  void put(const std::string& column, const json& value) {
    const auto [at, added] = places_.emplace(column, rows_.columns.size());
    if (added) rows_.columns.push_back(column);
    auto& row = cells_.back();
    if (row.size() <= at->second) row.resize(at->second + 1);
    if (value.is_string())
      row[at->second] = {value.get<std::string>(), false};
    else if (!value.is_null())
      row[at->second] = {value.dump(), value.is_number()};
  }
  Rows rows_;
  std::vector<std::vector<Rows::Cell>> cells_;
  std::map<std::string, size_t> places_;
};

}  // namespace

Rows rows_of_json(const std::string& json_text) {
  const json j = json::parse(json_text);
  Builder b;
  if (j.is_array()) {
    for (const json& one : j) b.row(one);
    return b.finish();
  }
  if (j.contains("suites")) {
    for (const json& suite : j["suites"])
      for (const json& one : suite["rows"]) b.row(one, suite.value("name", ""));
    return b.finish();
  }
  for (const char* key : {"plans", "outputs", "rows", "runs", "points", "results"})
    if (j.contains(key) && list_of_objects(j[key])) {
      for (const json& one : j[key]) b.row(one);
      return b.finish();
    }
  b.row(j);
  return b.finish();
}

std::string rows_csv(const Rows& rows) {
  std::string out;
  const auto line = [&](size_t n, const auto& text) {
    for (size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + csv_field(text(i));
    out += "\n";
  };
  line(rows.columns.size(), [&](size_t i) { return rows.columns[i]; });
  for (const auto& row : rows.cells) line(row.size(), [&](size_t i) { return row[i].text; });
  return out;
}

void write_rows_sqlite(const std::string& path, const Rows& rows) {
  OutputFile file(path);
  if (!file.replaces())
    throw InputError({{path, "", "a database cannot be written to a pipe or a device", "a file name"}});
  try {
    SQLite::Database db(file.partial(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    const auto quoted = [](std::string name) {
      for (size_t at = 0; (at = name.find('"', at)) != std::string::npos; at += 2) name.insert(at, "\"");
      return "\"" + name + "\"";
    };
    std::string columns, places;
    for (size_t i = 0; i < rows.columns.size(); ++i) {
      const bool number = std::all_of(rows.cells.begin(), rows.cells.end(),
                                      [&](const auto& row) { return row[i].number || row[i].text.empty(); });
      columns += (i == 0 ? "" : ", ") + quoted(rows.columns[i]) + (number ? " REAL" : " TEXT");
      places += i == 0 ? "?" : ", ?";
    }
    SQLite::Transaction transaction(db);
    db.exec("CREATE TABLE rows (" + columns + ")");
    SQLite::Statement insert(db, "INSERT INTO rows VALUES (" + places + ")");
    for (const auto& row : rows.cells) {
      for (size_t i = 0; i < row.size(); ++i) {
        const int place = static_cast<int>(i) + 1;
        if (row[i].text.empty())
          insert.bind(place);
        else if (row[i].number)
          insert.bind(place, std::stod(row[i].text));
        else
          insert.bind(place, row[i].text);
      }
      insert.exec();
      insert.reset();
    }
    transaction.commit();
  } catch (const SQLite::Exception& e) {
    throw InputError({{path, "", fmt::format("cannot be written ({})", e.what()), ""}});
  }
  file.commit();
}

}  // namespace tw::report
