#include "study/sweep_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/files.hpp"
#include "core/text.hpp"
#include "network/preload.hpp"
#include "network/process.hpp"
#include "study/compare.hpp"
#include "study/simulate.hpp"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// Rows that need no simulation are written so many at a time.
constexpr size_t kBatch = 1000;
constexpr double kSnapshot_s = 10;

// "scenario: /plan/gbs is 64, was 128" for the first few of what is not the same.
std::string changes(const std::map<std::string, std::string>& was, const std::map<std::string, std::string>& is) {
  std::vector<std::string> list;
  std::map<std::string, std::string> all = was;
  all.insert(is.begin(), is.end());
  for (const auto& entry : all) {
    const std::string& name = entry.first;
    const auto a = was.find(name), b = is.find(name);
    if (a != was.end() && b != is.end() && a->second == b->second) continue;
    if (name != "scenario" || a == was.end() || b == is.end()) {
      const bool brief = a != was.end() && b != is.end() && a->second.size() + b->second.size() < 80;
      list.push_back(brief ? fmt::format("{} is {}, was {}", name, b->second, a->second) : name + " changed");
      continue;
    }
    for (const Difference& d : differences({flat_json(a->second), flat_json(b->second)})) {
      std::string pointer = "/" + d.path;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      list.push_back(
          fmt::format("{} is {}, was {}", pointer, d.values[1].value_or("absent"), d.values[0].value_or("absent")));
    }
  }
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, list.size()); ++i) text += (i ? "; " : "") + printable(list[i], 200);
  if (list.size() > 3) text += fmt::format("; and {} more", list.size() - 3);
  return text;
}

std::vector<std::string> overrides_of(const LoadedStudy& study, const StudyPoint& point) {
  std::vector<std::string> set = study.study.set;
  for (const auto& [pointer, value] : point.values)
    if (pointer != "seed") set.push_back(pointer + "=" + value);
  return set;
}

// A result that comes from a child, and whether its runs reached their target.
constexpr char kFinished = '+', kStopped = '-';

StudyRow row_of(const LoadedStudy& study, size_t index, ChildResult&& r) {
  StudyPoint point = study.point(index);
  StudyRow row{index, point.seed, std::move(point.values), "done", static_cast<int>(r.code), r.error, r.value};
  if (r.error.empty()) {
    if (row.result.front() == kStopped)
      row.status = "stopped", row.error = "the run stopped before its target: it has no time to train";
    row.result.erase(0, 1);
    return row;
  }
  const auto skips = [&](StudySkip what) {
    return std::find(study.study.skip.begin(), study.study.skip.end(), what) != study.study.skip.end();
  };
  const bool skipped = (r.code == ExitCode::bad_input && skips(StudySkip::refused)) ||
                       (r.code == ExitCode::does_not_fit && skips(StudySkip::does_not_fit));
  row.status = skipped ? "skipped" : "failed";
  row.result.clear();
  return row;
}

SweepTotals totals_of(const SweepStore& store, size_t points, size_t before) {
  SweepTotals t;
  t.points = points, t.before = before;
  int worst = 0;
  store.each([&](const StudyRow& r) {
    worst = std::max(worst, r.code);
    if (r.status == "done")
      ++t.done;
    else if (r.status == "stopped")
      ++t.stopped;
    else if (r.status == "skipped")
      ++t.skipped;
    else if (r.code == 2 || r.code == 3)
      ++t.refused;
    else
      ++t.broken;
  });
  t.code = t.broken > 0 || (t.done + t.stopped == 0 && t.refused > 0) ? worst : 0;
  return t;
}

// Opens the store for this study, or refuses to; notes the points that need no simulation and returns the others.
// `own`: points of this shard.
std::vector<size_t> points_to_do(const LoadedStudy& study, const std::string& folder, const SweepOptions& options,
                                 size_t& own) {
  StoredStudy mine{study.identity, study.canonical, study.columns(), study.points(),
                   options.shards > 1 ? fmt::format("{}/{}", options.shard, options.shards) : ""};
  std::vector<size_t> todo;
  std::error_code ignored;
  if (options.overwrite)  // also what cannot be read any more
    for (const char* beside : {"", "-wal", "-shm"}) fs::remove(SweepStore::file_in(folder) + beside, ignored);
  SweepStore store(folder);
  const StoredStudy there = store.about();
  const auto refuse = [&](const std::string& what, const std::string& allowed) {
    store.close();
    throw InputError({{folder, "", what, allowed}});
  };
  if (!there.empty()) {
    const std::string differs = changes(there.identity, mine.identity);
    if (!differs.empty())
      refuse("holds results of another study: " + differs, "another folder, or --overwrite to begin anew");
    if (!options.resume)
      refuse(fmt::format("holds results of this study ({} of {} points)", store.rows(), there.points),
             "--resume to go on, --overwrite to begin anew, or another folder");
    // A merged or whole folder may be completed by any shard; a shard only by itself.
    if (!there.shard.empty() && there.shard != mine.shard)
      refuse(fmt::format("holds shard {}, not {}", there.shard, mine.shard.empty() ? "all points" : mine.shard),
             "the same --shard");
  }
  if (there.empty()) store.begin(mine);
  const std::vector<bool> finished = store.finished(mine.points);
  std::vector<StudyRow> left;
  for (size_t i = options.shard - 1; i < mine.points; i += options.shards) {
    ++own;
    if (finished[i]) continue;
    StudyPoint point = study.point(i);
    const std::string why = left_out(study, point);
    if (why.empty()) {
      todo.push_back(i);
      continue;
    }
    left.push_back({i, point.seed, std::move(point.values), "skipped", 0, why, ""});
    if (left.size() == kBatch) store.add(std::exchange(left, {}));
  }
  if (!left.empty()) store.add(left);
  store.close();  // no child may inherit it
  return todo;
}

}  // namespace

void parse_shard(const std::string& text, size_t& shard, size_t& shards, Faults& faults) {
  const auto slash = text.find('/');
  const auto whole = [](const std::string& t) {
    return !t.empty() && t.size() < 7 && t.find_first_not_of("0123456789") == std::string::npos ? std::stoull(t) : 0;
  };
  shard = whole(text.substr(0, slash));
  shards = slash == std::string::npos ? 0 : whole(text.substr(slash + 1));
  if (shard < 1 || shards < shard)
    faults.add({"--shard", "", fmt::format("\"{}\" is no part of a whole", printable(text, 40)),
                "i/n with i from 1 to n, such as 2/8"});
}

SweepTotals run_sweep(const LoadedStudy& study, const std::string& folder, const SweepOptions& options) {
  size_t own = 0;
  const std::vector<size_t> todo = points_to_do(study, folder, options, own);
  const size_t before = own - todo.size();
  std::optional<SweepStore> store;
  Clock::time_point shown = Clock::now();
  double every_s = kSnapshot_s;
  size_t done = 0;
  const auto work = [&](size_t k) {
    const StudyPoint point = study.point(todo[k]);
    Faults faults;
    if (study.of_hall()) {
      const LoadedHall hall = load_hall(study.scenario_file, overrides_of(study, point), faults);
      faults.throw_if_any();
      return kFinished + options.hall_json(simulate_hall(hall, {point.seed, std::max(1, study.study.runs), 1, 0}, {}));
    }
    const LoadedScenario scenario = load_scenario(study.scenario_file, overrides_of(study, point), faults);
    faults.throw_if_any();
    const Result r = simulate(scenario, {point.seed, study.study.runs, study.study.level});
    return (r.series_of_runs.finished < r.series_of_runs.count ? kStopped : kFinished) + options.to_json(r);
  };
  const auto taken = [&](size_t k, ChildResult&& r) {
    if (!store) store.emplace(folder);
    if (r.code != ExitCode::interrupted) store->add({row_of(study, todo[k], std::move(r))});
    ++done;
    const std::chrono::duration<double> since = Clock::now() - shown;
    if (!options.snapshot || since.count() < every_s || done == todo.size()) return;
    const auto begin = Clock::now();
    options.snapshot(*store);
    shown = Clock::now();
    every_s = std::max(kSnapshot_s, 20 * std::chrono::duration<double>(shown - begin).count());
  };
  const auto prepare = [&] {  // what all points have in common
    network::preload_engine();
    Faults theirs;
    load_scenario(study.scenario_file, study.study.set, theirs);
  };
  const auto told = [&](size_t finished, size_t all) {
    if (options.progress) options.progress(finished, all, before);
  };
  if (!todo.empty())
    stream_from_children(todo.size(), prepare, work, taken, {options.jobs, options.deadline_s, {}, told});
  if (!store) store.emplace(folder);
  const SweepTotals totals = totals_of(*store, own, before);
  store->close();
  return totals;
}

size_t merge_sweeps(const std::vector<std::string>& folders, const std::string& folder, bool overwrite) {
  Faults faults;
  std::error_code ignored;
  for (const std::string& from : folders) {
    if (!fs::is_regular_file(SweepStore::file_in(from), ignored))
      faults.add({from, "", "holds no sweep.sqlite", "folders that trainwatt sweep wrote"});
    else if (fs::equivalent(from, folder, ignored))
      faults.add({from, "", "is the folder to write as well", "another -o"});
  }
  faults.throw_if_any();
  StoredStudy whole = SweepStore(folders.front()).about();
  for (const std::string& from : folders) {
    const StoredStudy part = SweepStore(from).about();
    if (part.empty()) faults.add({from, "", "holds no study yet", ""});
    const std::string differs = part.empty() ? "" : changes(whole.identity, part.identity);
    if (!differs.empty())
      faults.add({from, "", fmt::format("is of another study than {}: {}", folders.front(), differs), ""});
  }
  faults.throw_if_any();
  whole.shard.clear();
  const std::string target = SweepStore::file_in(folder);
  if (!overwrite && fs::exists(target, ignored) && !SweepStore(folder).about().empty())
    throw InputError({{folder, "", "holds results already", "--overwrite to begin anew, or another folder"}});
  // What is there stays until the whole can take its place.
  OutputFile file(target);
  SweepStore out(file.partial(), SweepStore::OpenFile{});
  out.begin(whole);
  std::vector<std::string> hashes(whole.points);  // of the rows so far
  std::vector<StudyRow> batch;
  for (const std::string& from : folders) {
    SweepStore(from).each([&](const StudyRow& r) {
      if (r.point >= whole.points) return;
      if (!r.result.empty() && !nlohmann::json::accept(r.result))
        throw InputError({{from, fmt::format("point {}", r.point), "its result is damaged", "leave the folder out"}});
      const std::string hash = sha256_hex(r.status + "\n" + r.error + "\n" + r.result);
      std::string& known = hashes[r.point];
      if (!known.empty() && known != hash)
        throw InputError({{from, fmt::format("point {}", r.point), "differs from the same point in another folder",
                           "leave one of them out"}});
      if (!known.empty()) return;
      known = hash;
      batch.push_back(r);
      if (batch.size() == kBatch) out.add(std::exchange(batch, {}));
    });
  }
  out.add(batch);
  out.close();
  for (const char* beside : {"-wal", "-shm"}) fs::remove(target + beside, ignored);
  file.commit();
  return static_cast<size_t>(std::count(hashes.begin(), hashes.end(), ""));
}

}  // namespace tw
