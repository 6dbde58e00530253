#include "mlperf/imported_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "power/meter.hpp"

namespace tw {
namespace {

using Maybe = std::optional<double>;

struct Block {
  Maybe from, to, throughput;  // samples; samples a second of its timer
  int64_t start_ms = 0, stop_ms = 0;
};
struct Interval {
  Maybe at;  // samples
  int64_t start_ms = 0, stop_ms = 0;
};

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
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
    fingerprint_.add(e.key.data(), e.key.size());
    fingerprint_.add(e.time_ms);
    if (e.time_ms < latest_ms_ - 1000 && latest_ms_ != 0 && !backward_) {
      backward_ = true;
      find(e.line, "backward_stamp",
           fmt::format("the clock goes back by {:.3f} s", static_cast<double>(latest_ms_ - e.time_ms) / 1000));
    }
    latest_ms_ = std::max(latest_ms_, e.time_ms);
    if (!header(e)) progress(e);
  }

  void finish() {
    run_.fingerprint = fingerprint_.value();
    if (run_.start_ms != 0 && run_.stop_ms != 0) {
      if (run_.stop_ms > run_.start_ms)
        run_.run_s = static_cast<double>(run_.stop_ms - run_.start_ms) / 1000;
      else
        find(0, "wrong_stop", "run_stop is not after run_start");
    }
    if (init_ms_ != 0 && run_.start_ms != 0) run_.init_s = static_cast<double>(run_.start_ms - init_ms_) / 1000;
    run_.samples = stop_samples_ ? stop_samples_ : last_samples_;
    if (run_.samples && run_.global_batch_size && *run_.global_batch_size > 0)
      run_.steps = *run_.samples / *run_.global_batch_size;
    evaluations();
    steps();
  }

 private:
  void find(size_t line, const char* kind, std::string what) {
    findings_.push_back({run_.file, line, kind, std::move(what)});
  }

  // Keys that describe the run. False: something else.
  bool header(const MllogEvent& e) {
    const auto text = [&](std::string& to) {
      if (to.empty()) to = e.value.text;
      return true;
    };
    const auto number = [&](Maybe& to) {
      if (!to) to = e.value.number;
      return true;
    };
    if (e.key == "submission_benchmark") return text(run_.benchmark);
    if (e.key == "submission_division") return text(run_.division);
    if (e.key == "submission_org") return text(run_.organisation);
    if (e.key == "submission_platform") return text(run_.platform);
    if (e.key == "seed") return number(run_.seed);
    if (e.key == "global_batch_size") return number(run_.global_batch_size);
    if (e.key == "gradient_accumulation_steps") return number(run_.gradient_accumulation);
    if (e.key == "opt_base_learning_rate") return number(run_.learning_rate);
    if (e.key == "train_samples") return number(run_.train_samples);
    if (e.key == "eval_samples") return number(run_.eval_samples);
    if (e.key == "max_sequence_length") return number(run_.sequence);
    return false;
  }

  void progress(const MllogEvent& e) {
    const Maybe at = samples_at(e);
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
      stop_samples_ = at;
      if (!run_.accuracy) run_.accuracy = e.value.number;
    } else if (run_.start_ms == 0 || run_.stop_ms != 0) {
      return;
    } else if (e.key == "block_start") {
      blocks_.push_back({at, std::nullopt, std::nullopt, e.time_ms, 0});
    } else if (e.key == "block_stop") {
      if (blocks_.empty() || blocks_.back().stop_ms != 0) return;
      blocks_.back().to = at;
      blocks_.back().stop_ms = e.time_ms;
    } else if (e.key == "tracked_stats") {
      if (blocks_.empty()) return;
      if (const Maybe t = e.number("throughput"); t && *t > 0) blocks_.back().throughput = t;
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
    } else if (e.key == "eval_accuracy") {
      run_.accuracy = e.value.number;
    }
    if (at && e.key != "run_stop" && *at >= last_samples_.value_or(0)) last_samples_ = at;
  }

  void repeated(const MllogEvent& e) {
    if (repeated_) return;
    repeated_ = true;
    find(e.line, "repeated_event", e.key + " is logged again; the first counts");
  }

  // How far training has come. epoch_num holds samples for bert and 3D U-Net, tokens for gpt3, epochs else; SSD logs
  // the steps of an epoch as train_samples.
  Maybe samples_at(const MllogEvent& e) {
    if (const Maybe samples = e.number("samples_count")) {
      run_.samples_from = "samples_count";
      return samples;
    }
    const Maybe epoch = e.number("epoch_num");
    if (!epoch) return std::nullopt;
    const std::string& b = run_.benchmark;
    if (b == "bert" || b == "unet3d") {
      run_.samples_from = "epoch_num, in samples";
      return epoch;
    }
    if (b == "gpt3") {
      if (!run_.sequence || *run_.sequence <= 0) return std::nullopt;
      run_.samples_from = "epoch_num, in tokens";
      return *epoch / *run_.sequence;
    }
    if (!run_.train_samples) return std::nullopt;
    run_.samples_from = "epoch_num x train_samples";
    return *epoch * *run_.train_samples * (b == "ssd" ? run_.global_batch_size.value_or(1) : 1);
  }

  void evaluations() {
    std::vector<double> lengths, blocking;
    for (const Interval& i : evals_) {
      if (i.stop_ms == 0) continue;
      lengths.push_back(static_cast<double>(i.stop_ms - i.start_ms) / 1000);
      run_.evaluation_times.emplace_back(static_cast<double>(i.start_ms - run_.start_ms) / 1000,
                                         static_cast<double>(i.stop_ms - run_.start_ms) / 1000);
      const auto next =
          std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.start_ms >= i.start_ms; });
      const int64_t end = next != blocks_.end() ? next->start_ms : run_.stop_ms;
      if (!blocks_.empty() && end >= i.start_ms) blocking.push_back(static_cast<double>(end - i.start_ms) / 1000);
    }
    run_.evaluations = static_cast<int>(lengths.size());
    if (lengths.empty()) return;
    run_.eval_first_s = lengths.front();
    run_.eval_s = mean(lengths);
    if (!blocking.empty()) run_.eval_blocking_s = mean(blocking);
  }

  // The best source there is: the timer of a block, else the wall time of epochs, else that between evaluations.
  void steps() {
    const double gbs = run_.global_batch_size.value_or(0);
    if (gbs <= 0) return;
    std::vector<double> all;
    const size_t timed = static_cast<size_t>(
        std::count_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.throughput.has_value(); }));
    if (timed > 1) {
      run_.step_source = "block_timer";
      for (const Block& b : blocks_)
        if (b.throughput) all.push_back(gbs / *b.throughput);
    } else if (epochs_.size() > 1 && run_.train_samples) {
      const double per_epoch = run_.benchmark == "ssd" ? *run_.train_samples : *run_.train_samples / gbs;
      for (const Interval& i : epochs_)
        if (i.stop_ms > i.start_ms && per_epoch > 0)
          all.push_back(static_cast<double>(i.stop_ms - i.start_ms) / 1000 / per_epoch);
      run_.step_source = "epoch_wall";
    } else {
      int64_t from_ms = run_.start_ms;
      double from = 0;
      for (const Interval& i : evals_) {
        if (!i.at || i.stop_ms == 0) continue;
        if (*i.at > from) all.push_back(static_cast<double>(i.start_ms - from_ms) / 1000 * gbs / (*i.at - from));
        from_ms = i.stop_ms;
        from = *i.at;
      }
      run_.step_source = "interval_between_evals";
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

  void first_block(double first_step_s, double gbs) {
    if (blocks_.empty()) {
      if (run_.step_source == "interval_between_evals" && !evals_.empty() && evals_.front().at)
        run_.first_step_overhead_s = (first_step_s - *run_.step_s_p50) * *evals_.front().at / gbs;
      return;
    }
    const Block& b = blocks_.front();
    if (b.throughput && b.from && b.to && b.stop_ms != 0) {
      const double samples = *b.to - *b.from;
      run_.first_step_overhead_s = samples / gbs * (first_step_s - *run_.step_s_p50);
      run_.first_gap_s = static_cast<double>(b.stop_ms - b.start_ms) / 1000 - samples / *b.throughput;
    } else if (b.start_ms > run_.start_ms) {
      run_.first_gap_s = static_cast<double>(b.start_ms - run_.start_ms) / 1000;
    }
  }

  ImportedRun& run_;
  std::vector<LogFinding>& findings_;
  Fingerprint fingerprint_;
  std::vector<Block> blocks_;
  std::vector<Interval> epochs_, evals_;
  Maybe stop_samples_, last_samples_;
  int64_t init_ms_ = 0, latest_ms_ = 0;
  bool over_ = false, backward_ = false, repeated_ = false;
};

}  // namespace

void Fingerprint::add(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 1099511628211ULL;
}

void add_findings(const LogScan& scan, const std::string& file, std::vector<LogFinding>& findings) {
  for (const LogFault& f : scan.faults)
    findings.push_back(
        {file, f.line, f.kind, f.count > 1 ? fmt::format("{} ({} such lines)", f.what, f.count) : f.what});
}

ImportedRun read_run(const std::string& path, const std::string& file, std::vector<LogFinding>& findings) {
  ImportedRun run;
  run.file = file;
  run.id = std::filesystem::path(file).stem().string();
  RunReader reader(run, findings);
  const LogScan scan = read_mllog(path, [&](const MllogEvent& e) { reader.take(e); });
  reader.finish();
  add_findings(scan, file, findings);
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
