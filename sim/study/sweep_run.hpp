// Runs a study into a folder: on all cores, resumable, in shards.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/hall_study.hpp"
#include "study/result.hpp"
#include "study/sweep.hpp"
#include "study/sweep_store.hpp"

namespace tw {

struct SweepOptions {
  int jobs = 1;
  double deadline_s = 0;         // of one point
  size_t shard = 1, shards = 1;  // this one takes every point whose index is shard - 1 modulo shards
  bool resume = false;           // go on with what the folder holds; a folder without results begins anew
  bool overwrite = false;        // forget what it holds
  std::function<std::string(const Result&)> to_json;        // what is kept of a result; called in the children
  std::function<std::string(const HallAnswer&)> hall_json;  // of a study of halls
  std::function<void(size_t done, size_t all, size_t before)> progress;  // `before`: finished by an earlier run
  std::function<void(const SweepStore&)> snapshot;                       // now and then, to show what there is
};

struct SweepTotals {
  size_t points = 0, before = 0;  // of this shard; finished by an earlier run
  size_t done = 0, stopped = 0, skipped = 0, refused = 0, broken = 0;
  int code = 0;  // see below
};

// Every point in a forked child, each written as it comes. The folder has to be locked. Throws InputError when it holds
// results of another study (saying what differs), or of this one without `resume` or `overwrite`.
// The code is 0 when the study is complete, also with points that are refused or do not fit: their rows say why. It is
// the highest of the points' codes when a process broke (1, 4), or when not one point could be simulated.
SweepTotals run_sweep(const LoadedStudy& study, const std::string& folder, const SweepOptions& options);

// The shards in `folders` as one, in `folder`, which has to be locked. They have to be of the same study; a point in
// several of them has to be the same in all. Returns how many points of the study are still missing.
size_t merge_sweeps(const std::vector<std::string>& folders, const std::string& folder, bool overwrite);

// "2/8"
void parse_shard(const std::string& text, size_t& shard, size_t& shards, Faults& faults);

}  // namespace tw
