#include "mlperf/imported_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "mlperf/compliance.hpp"
#include "mlperf/progress.hpp"
#include "power/meter.hpp"
#include "run/benchmark.hpp"

namespace tw {
namespace {

using Maybe = std::optional<double>;

constexpr size_t kMostFindings = 50;             // of one file
constexpr double kLongestRun_s = 366 * 86400.0;  // a log that spans more has wrong stamps

struct Block {
  Mark from, to;
  Maybe throughput;  // samples a second of its timer
  int64_t start_ms = 0, stop_ms = 0;
};
struct Interval {
  Mark at;
  int64_t start_ms = 0, stop_ms = 0;
};

struct Passed {
  int64_t time_ms = 0;
  Mark at;
  bool evaluated = false;  // eval_accuracy
};

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

double seconds(int64_t from_ms, int64_t to_ms) {
  return static_cast<double>(to_ms - from_ms) / 1000;
}

class RunReader {
 public:
  RunReader(ImportedRun& run, std::vector<LogFinding>& findings) : run_(run), findings_(findings) {}

  void take(const MllogEvent& e) {
    if (over_) return;
    if (run_.start_ms != 0 && e.key == "init_start") {
      over_ = true;
      return find(e.line, "mixed_runs", "another run begins here; only the first is read");
    }
    fingerprint_.add(e.key);
    fingerprint_.add(e.time_ms);
    compliance_.take(e);
    if (!header(e)) progress(e);
  }

  void finish() {
    run_.fingerprint = fingerprint_.value();
    benchmark_ = find_benchmark(run_.benchmark);
    times();
    if (run_.start_ms == 0) return;
    if (run_.stop_ms != 0) only_the_run();
    const Mark last = latest();
    units_ = Progress(run_, benchmark_, most(), logged_throughput());
    run_.samples = units_.samples(last);
    if (run_.samples) run_.samples_from = units_.source(last);
    if (run_.samples) check_samples();
    if (run_.samples && run_.global_batch_size) run_.steps = *run_.samples / *run_.global_batch_size;
    evaluations();
    steps();
    if (!run_.finished() || run_.status != "success") return;  // those count as failed anyway
    run_.not_compliant = compliance_.broken_rule(run_.division, benchmark_);
    if (!run_.not_compliant.empty())
      find(0, "not_compliant", run_.not_compliant + "; the summarizer counts such a run as failed");
  }

 private:
  void find(size_t line, const char* kind, std::string what) {
    if (++found_ > kMostFindings) return;
    findings_.push_back({run_.file, line, kind, std::move(what)});
  }

  // The number of a line; absent where there is none, or, with a finding, where it is no such number.
  Maybe possible(const MllogEvent& e, double least, double most) {
    if (!e.value.number || (*e.value.number >= least && *e.value.number <= most)) return e.value.number;
    find(e.line, "impossible_value", fmt::format("{} is {:g}; left out", e.key, *e.value.number));
    return std::nullopt;
  }

  // Keys that describe the run. False: something else.
  bool header(const MllogEvent& e) {
    const auto text = [&](std::string& to) {
      if (to.empty()) to = e.value.text;
      return true;
    };
    const auto within = [&](Maybe& to, double least, double most) {
      if (!to) to = possible(e, least, most);
      return true;
    };
    const auto count = [&](Maybe& to) { return within(to, 1, 1e15); };  // what a computer holds lies below that
    if (e.key == "submission_benchmark") return text(run_.benchmark);
    if (e.key == "submission_division") return text(run_.division);
    if (e.key == "submission_org") return text(run_.organisation);
    if (e.key == "submission_platform") return text(run_.platform);
    if (e.key == "seed") return within(run_.seed, -0x1p64, 0x1p64);
    if (e.key == "opt_base_learning_rate") return within(run_.learning_rate, 0, 1e6);
    if (e.key == "global_batch_size") return count(run_.global_batch_size);
    if (e.key == "gradient_accumulation_steps") return count(run_.gradient_accumulation);
    if (e.key == "train_samples") return count(run_.train_samples);
    if (e.key == "eval_samples") return count(run_.eval_samples);
    if (e.key == "max_sequence_length") return count(run_.sequence);
    return false;
  }

  void progress(const MllogEvent& e) {
    Mark at = mark_of(e);
    if (at.known() && !(std::abs(at.value) < 1e15)) {
      find(e.line, "impossible_value", fmt::format("{} stands at {:g}; left out", e.key, at.value));
      at = {};
    }
    if (e.key == "init_start") {
      if (init_ms_ == 0) init_ms_ = e.time_ms;
    } else if (e.key == "run_start") {
      if (run_.start_ms != 0) return repeated(e);
      run_.start_ms = e.time_ms;
    } else if (e.key == "run_stop") {
      if (run_.start_ms == 0) return find(e.line, "wrong_stop", "run_stop without run_start");
      if (run_.stop_ms != 0) return repeated(e);
      run_.stop_ms = e.time_ms;
      run_.status = e.text("status");
      stop_at_ = at;
      if (const Maybe reached = possible(e, -1e15, 1e15)) run_.accuracy = reached;
      return;
    } else if (run_.start_ms == 0) {
      return;
    } else if (e.key == "block_start") {
      blocks_.push_back({at, {}, std::nullopt, e.time_ms, 0});
    } else if (e.key == "block_stop") {
      if (blocks_.empty() || blocks_.back().stop_ms != 0) return;
      blocks_.back().to = at;
      blocks_.back().stop_ms = e.time_ms;
    } else if (e.key == "tracked_stats") {
      const Maybe t = e.number("throughput");
      if (!t || !inside(e.time_ms)) return;
      if (!(*t > 1e-6 && *t < 1e12)) {
        if (*t != 0) find(e.line, "impossible_value", fmt::format("a throughput of {:g} samples/s; left out", *t));
        return;
      }
      throughputs_.push_back(*t);
      if (!blocks_.empty()) blocks_.back().throughput = t;
    } else if (e.key == "epoch_start") {
      epochs_.push_back({at, e.time_ms, 0});
    } else if (e.key == "epoch_stop") {
      if (!epochs_.empty() && epochs_.back().stop_ms == 0) epochs_.back().stop_ms = e.time_ms;
    } else if (e.key == "eval_start") {
      evals_.push_back({at, e.time_ms, 0});
    } else if (e.key == "eval_stop") {
      // Evaluations may overlap (on nodes of their own): by their position, else the oldest.
      const auto waits = [](const Interval& i) { return i.stop_ms == 0; };
      auto eval = std::find_if(evals_.begin(), evals_.end(), [&](const Interval& i) { return waits(i) && i.at == at; });
      if (eval == evals_.end()) eval = std::find_if(evals_.begin(), evals_.end(), waits);
      if (eval != evals_.end()) eval->stop_ms = e.time_ms;
    }
    if (at.known()) marks_.push_back({e.time_ms, at, e.key == "eval_accuracy"});
  }

  void repeated(const MllogEvent& e) {
    if (repeated_) return;
    repeated_ = true;
    find(e.line, "repeated_event", e.key + " is logged again; the first counts");
  }

  void times() {
    if (run_.start_ms != 0 && run_.stop_ms != 0) {
      const double run_s = seconds(run_.start_ms, run_.stop_ms);
      if (run_s > kLongestRun_s)
        find(0, "impossible_value", fmt::format("run_stop is {:.3g} years after run_start", run_s / kLongestRun_s));
      else if (run_s > 0)
        run_.run_s = run_s;
      else
        find(0, "wrong_stop", "run_stop is not after run_start");
    }
    if (init_ms_ == 0 || run_.start_ms == 0) return;
    const double init_s = seconds(init_ms_, run_.start_ms);
    if (init_s >= 0 && init_s < kLongestRun_s)
      run_.init_s = init_s;
    else
      find(0, "impossible_value", fmt::format("init_start is {:.3f} s before run_start; left out", init_s));
  }

  // Lines stand in the order in which processes wrote them: what happened after run_stop is told by its stamp.
  void only_the_run() {
    const auto after = [&](const auto& i) { return i.start_ms >= run_.stop_ms || i.start_ms < run_.start_ms; };
    blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), after), blocks_.end());
    epochs_.erase(std::remove_if(epochs_.begin(), epochs_.end(), after), epochs_.end());
    const size_t before = evals_.size();
    evals_.erase(std::remove_if(evals_.begin(), evals_.end(), after), evals_.end());
    offline_ = evals_.empty() && before > 0;
    // What is still at work when the run ends is no whole one.
    for (Block& b : blocks_)
      if (b.stop_ms > run_.stop_ms) b.stop_ms = 0;
    for (auto* intervals : {&epochs_, &evals_})
      for (Interval& i : *intervals)
        if (i.stop_ms > run_.stop_ms) i.stop_ms = 0;
    size_t swapped = 0;
    const auto turned = [&](auto& i) {
      if (i.stop_ms == 0 || i.stop_ms >= i.start_ms) return;
      i.stop_ms = 0;
      ++swapped;
    };
    for (Block& b : blocks_) turned(b);
    for (Interval& i : epochs_) turned(i);
    for (Interval& i : evals_) turned(i);
    if (swapped > 0) find(0, "impossible_value", fmt::format("{} intervals end before they begin; left out", swapped));
  }

  bool inside(int64_t time_ms) const { return run_.stop_ms == 0 || time_ms <= run_.stop_ms; }

  // Where the run met its target: what run_stop says, else its last evaluation (as the checker of convergence has it),
  // else the last position at all.
  Mark latest() const {
    if (stop_at_.known()) return stop_at_;
    for (const bool evaluated : {true, false}) {
      Mark mark;
      int64_t at_ms = INT64_MIN;
      for (const Passed& p : marks_)
        if (inside(p.time_ms) && p.time_ms >= at_ms && (p.evaluated || !evaluated)) mark = p.at, at_ms = p.time_ms;
      if (mark.known()) return mark;
    }
    return {};
  }

  std::array<double, 3> most() const {
    std::array<double, 3> most{};
    for (const Passed& p : marks_)
      if (inside(p.time_ms)) most[p.at.key] = std::max(most[p.at.key], p.at.value);
    if (stop_at_.known()) most[stop_at_.key] = std::max(most[stop_at_.key], stop_at_.value);
    return most;
  }

  // Samples that the logged throughput gives over the run without its evaluations.
  Maybe logged_throughput() const {
    if (throughputs_.empty() || !run_.run_s) return std::nullopt;
    double busy_s = *run_.run_s;
    for (const Interval& i : evals_)
      if (i.stop_ms != 0) busy_s -= seconds(i.start_ms, i.stop_ms);
    std::vector<double> sorted = throughputs_;
    std::sort(sorted.begin(), sorted.end());
    return quantile(sorted, 0.5) * std::max(busy_s, 0.1 * *run_.run_s);
  }

  void check_samples() {
    for (const std::string& doubt : units_.doubts(*run_.samples)) find(0, "unclear_samples", doubt);
    if (*run_.samples > 0 && *run_.samples < 1e15) return;
    find(0, "impossible_value", fmt::format("{:g} samples to the target; left out", *run_.samples));
    run_.samples.reset();
  }

  void evaluations() {
    std::vector<double> lengths, blocking;
    for (const Interval& i : evals_) {
      if (i.stop_ms == 0) continue;
      lengths.push_back(seconds(i.start_ms, i.stop_ms));
      run_.evaluation_times.emplace_back(seconds(run_.start_ms, i.start_ms), seconds(run_.start_ms, i.stop_ms));
      const auto next =
          std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.start_ms >= i.start_ms; });
      const int64_t end = next != blocks_.end() ? next->start_ms : run_.stop_ms;
      if (!blocks_.empty() && end >= i.start_ms) blocking.push_back(seconds(i.start_ms, end));
    }
    if (compliance_.last_accuracy()) run_.accuracy = compliance_.last_accuracy();
    run_.evaluations = static_cast<int>(lengths.size());
    if (lengths.empty()) return;
    run_.eval_first_s = lengths.front();
    run_.eval_s = mean(lengths);
    if (!blocking.empty()) run_.eval_blocking_s = mean(blocking);
  }

  // The best source there is: the timer of a block, its wall time where no evaluation lies in the run, else the wall
  // time of epochs, else that between evaluations.
  void steps() {
    const double gbs = run_.global_batch_size.value_or(0);
    if (gbs <= 0) return;
    std::vector<double> all;
    const auto timed =
        std::count_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.throughput.has_value(); });
    if (timed > 1) {
      run_.step_source = "block_timer";
      for (const Block& b : blocks_)
        if (b.throughput) all.push_back(gbs / *b.throughput);
    } else if (offline_ && blocks_.size() > 1) {
      run_.step_source = "block_wall";
      for (const Block& b : blocks_)
        if (const double samples = samples_of(b); b.stop_ms != 0 && samples > 0)
          all.push_back(seconds(b.start_ms, b.stop_ms) * gbs / samples);
    } else if (epochs_.size() > 1 && units_.epoch_samples()) {
      run_.step_source = "epoch_wall";
      // Where the last epoch is cut short by the end of the run, it counts for what it is.
      double left = run_.samples.value_or(1e300);
      for (const Interval& i : epochs_) {
        const double samples = std::min(left, *units_.epoch_samples());
        left -= samples;
        if (i.stop_ms > i.start_ms && samples >= gbs) all.push_back(seconds(i.start_ms, i.stop_ms) * gbs / samples);
      }
    } else {
      run_.step_source = "interval_between_evals";
      int64_t from_ms = run_.start_ms;
      double from = 0;
      for (const Interval& i : evals_) {
        const Maybe at = units_.samples(i.at);
        if (!at || i.stop_ms == 0) continue;
        if (*at > from && i.start_ms > from_ms) all.push_back(seconds(from_ms, i.start_ms) * gbs / (*at - from));
        from_ms = i.stop_ms;
        from = *at;
      }
    }
    if (all.size() < 2) {
      run_.step_source.clear();
      return;
    }
    std::vector<double> later(all.begin() + 1, all.end());
    run_.step_s = mean(later);
    std::sort(later.begin(), later.end());
    run_.step_s_p5 = quantile(later, 0.05);
    run_.step_s_p50 = quantile(later, 0.5);
    run_.step_s_p95 = quantile(later, 0.95);
    run_.step_observations = static_cast<int>(later.size());
    first_block(all.front(), gbs);
  }

  // From its begin to its end; since v5.1 some logs hold the samples of the block at both.
  double samples_of(const Block& b) const {
    const double from = units_.samples(b.from).value_or(0), to = units_.samples(b.to).value_or(0);
    return from == to ? to : to - from;
  }

  void first_block(double first_step_s, double gbs) {
    if (blocks_.empty()) {
      const Maybe at = evals_.empty() ? std::nullopt : units_.samples(evals_.front().at);
      if (run_.step_source == "interval_between_evals" && at)
        run_.first_step_overhead_s = (first_step_s - *run_.step_s_p50) * *at / gbs;
      return;
    }
    const Block& b = blocks_.front();
    const double samples = samples_of(b);
    if (b.throughput && samples > 0 && b.stop_ms != 0) {
      run_.first_step_overhead_s = samples / gbs * (first_step_s - *run_.step_s_p50);
      run_.first_gap_s = seconds(b.start_ms, b.stop_ms) - samples / *b.throughput;
    } else if (b.start_ms > run_.start_ms) {
      run_.first_gap_s = seconds(run_.start_ms, b.start_ms);
    }
  }

  ImportedRun& run_;
  std::vector<LogFinding>& findings_;
  const Benchmark* benchmark_ = nullptr;
  Progress units_;
  Fingerprint fingerprint_;
  std::vector<Block> blocks_;
  std::vector<Interval> epochs_, evals_;
  std::vector<Passed> marks_;
  std::vector<double> throughputs_;
  Compliance compliance_;
  Mark stop_at_;
  int64_t init_ms_ = 0;
  size_t found_ = 0;
  bool over_ = false, repeated_ = false, offline_ = false;
};

}  // namespace

ImportedRun read_run(const std::string& path, const std::string& file, std::vector<LogFinding>& findings) {
  ImportedRun run;
  run.file = file;
  run.id = std::filesystem::path(file).stem().string();
  RunReader reader(run, findings);
  const LogScan scan = read_mllog(path, file, findings, [&](const MllogEvent& e) { reader.take(e); });
  reader.finish();
  if (scan.events == 0) return run;
  if (run.start_ms == 0)
    findings.push_back({file, 0, "no_run", "has no run_start"});
  else if (run.stop_ms == 0)
    findings.push_back({file, scan.lines, "cut_off", "ends without run_stop; the run does not count"});
  else if (run.status != "success")
    findings.push_back({file, 0, "failed_run", fmt::format("its status is \"{}\", not \"success\"", run.status)});
  return run;
}

}  // namespace tw
