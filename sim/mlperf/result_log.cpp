#include "mlperf/result_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/sum.hpp"
#include "core/text.hpp"
#include "run/benchmark.hpp"

namespace tw::mlperf {
namespace {

using Figures = std::map<std::string, std::string>;

// A number as Python writes a float: the shortest text that reads back as the same value, never without a point.
std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string whole_text(double value) {
  return fmt::format("{}", std::llround(value));
}

// Replaces every $name.
std::string filled(const std::string& text, const Figures& figures) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      out += text[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && (text[end] == '_' || std::islower(static_cast<unsigned char>(text[end])) != 0)) ++end;
    out += figures.at(text.substr(i + 1, end - i - 1));
    i = end;
  }
  return out;
}

// Phases of training inside the run: blocks, corners of the samples, and evaluations in between.
class Reader {
 public:
  Reader(double gbs, RunProgress& out) : gbs_(gbs), out_(out) {}

  void read(const Phase& phase, double begin_s, double end_s) {
    if (phase.kind == PhaseKind::evaluation) {
      close_block(begin_s);
      // An evaluation may stand in several phases: a wait at its front, then its batches.
      if (evaluating_)
        out_.evaluations.back().end_s = end_s;
      else
        out_.evaluations.push_back({begin_s, end_s, samples_});
      evaluating_ = true;
      return;
    }
    evaluating_ = false;
    if (phase.steps == 0) {
      waited_s_ += end_s - begin_s;
      if (!open_) idle_begin_s_ = std::min(idle_begin_s_, begin_s);
      return;
    }
    open_block(begin_s);
    // Waits count when steps follow them: data loaders, not what comes before an evaluation.
    out_.blocks.back().timed_s += waited_s_ + end_s - begin_s;
    waited_s_ = 0;
    corner(begin_s);
    samples_ += phase.steps * gbs_;
    corner(end_s);
    out_.blocks.back().samples = samples_;
    out_.blocks.back().end_s = end_s;
  }

  // Ends the block at a moment, or where its last step ended.
  void close_block(double at_s) {
    if (open_) out_.blocks.back().end_s = at_s;
    open_ = false;
    waited_s_ = 0;
    idle_begin_s_ = 1e300;
  }

  double samples() const { return samples_; }

 private:
  void open_block(double begin_s) {
    if (open_) return;
    out_.blocks.push_back({std::min(begin_s, idle_begin_s_), begin_s, 0, samples_, samples_});
    open_ = true;
  }
  void corner(double time_s) {
    out_.time_s.push_back(time_s);
    out_.samples.push_back(samples_);
  }

  double gbs_, samples_ = 0, waited_s_ = 0, idle_begin_s_ = 1e300;
  bool open_ = false, evaluating_ = false;
  RunProgress& out_;
};

// Samples at which the run evaluates, as run/ decides: at the end of the step that reaches a mark.
double next_mark(const RunPlan& run, double gbs, double reached) {
  const double first = run.first_evaluation_at > 0 ? run.first_evaluation_at : run.evaluation_interval;
  double mark = first;
  if (reached + 1e-9 >= first)
    mark = first + (std::floor((reached + 1e-9 - first) / run.evaluation_interval) + 1) * run.evaluation_interval;
  return std::ceil(mark / gbs - 1e-9) * gbs;
}

// "( run_start null | "epoch_num": 0" as event, key, value and metadata.
struct LogLine {
  explicit LogLine(const std::string& text)
      : event(text[0] == '('   ? "INTERVAL_START"
              : text[0] == ')' ? "INTERVAL_END"
                               : "POINT_IN_TIME") {
    const size_t key_end = text.find(' ', 2), bar = text.find(" | ");
    key = text.substr(2, key_end - 2);
    value = text.substr(key_end + 1, bar == std::string::npos ? bar : bar - key_end - 1);
    if (bar != std::string::npos) metadata = text.substr(bar + 3);
  }
  std::string event, key, value, metadata;
};

struct Event {
  int64_t time_ms = 0;
  std::string text;
};

// Writes the lines of a run. Figures that hold for the whole run are set once, those of a block as they come.
class Writer {
 public:
  Writer(const LoggedRun& run, const Benchmark& benchmark, const RunProgress& progress)
      : run_(run), benchmark_(benchmark), log_(*benchmark.log), progress_(progress) {
    const Scenario& s = *run.scenario;
    const int gpus = (s.plan.nodes + s.plan.evaluation_nodes) * s.cluster.node.gpus;
    // A scheduler pads ranks to the width of the highest one.
    rank_ = fmt::format("{:>{}}: ", 0, fmt::format("{}", std::max(1, gpus - 1)).size());
    const int replicas = std::max(1, s.workload ? s.plan.gpus(s.cluster.node.gpus) : s.plan.dp);
    f_["org"] = kSimulatedOrg;
    f_["benchmark"] = s.benchmark;
    f_["platform"] = fmt::format("{}x{}", s.plan.nodes + s.plan.evaluation_nodes, kSimulatedOrg);
    f_["seed"] = fmt::format("{}", run.seed);
    f_["gbs"] = fmt::format("{}", s.plan.gbs);
    f_["mbs"] = fmt::format("{}", s.plan.mbs);
    f_["lbs"] = fmt::format("{}", std::max(1, s.plan.gbs / replicas));
    f_["ga"] = fmt::format("{}", s.workload ? 1 : s.plan.ga());
    f_["sequence"] = fmt::format("{}", s.training ? s.training->sequence : 0);
    f_["lora_rank"] = fmt::format("{}", s.training && s.training->lora ? s.training->lora->rank : 0);
    f_["eval_samples"] = whole_text(s.run.evaluation_samples);
    f_["epoch_steps"] = whole_text(std::ceil(benchmark.epoch_samples / s.plan.gbs));
    f_["status"] = run_status(run, progress);
    Sum timed_s;
    for (const LoggedBlock& block : progress.blocks) timed_s.add(block.timed_s);
    const double all = progress.blocks.empty() ? 0 : progress.blocks.back().samples;
    f_["run_throughput"] = float_text(timed_s.value() > 0 ? all / timed_s.value() : 0);
    f_["steps"] = whole_text(all / s.plan.gbs);
    f_["accuracy"] = accuracy(false);
    f_["throughput"] = float_text(0);
    set_position(0);
    set_block({});
  }

  void add(double time_s, const std::vector<std::string>& lines) {
    const int64_t time_ms = run_.start_ms + std::llround(time_s * 1000);
    for (const std::string& text : lines) {
      const LogLine line(text);
      std::string metadata = R"({"file": "trainwatt", "lineno": 0)";
      if (!line.metadata.empty()) metadata += ", " + filled(line.metadata, f_);
      events_.push_back(
          {time_ms,
           rank_ + ":::MLLOG " + mllog_line(time_ms, line.event, line.key, filled(line.value, f_), metadata + "}")});
    }
  }

  void block(const LoggedBlock& b) {
    set_block(b);
    set_position(b.first_samples);
    add(b.begin_s, log_.block_begin);
    if (benchmark_.epoch_samples > 0) epochs(b);
    set_position(b.samples);
    add(b.end_s, log_.block_end);
  }

  void evaluation(const LoggedEvaluation& e, bool last) {
    f_["accuracy"] = accuracy(last && !run_.stopped);
    set_position(e.samples);
    add(e.begin_s, log_.evaluation_begin);
    add(e.end_s, log_.evaluation_end);
  }

  std::string text() {
    // Evaluations beside training overlap blocks; equal times keep their order.
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.time_ms < b.time_ms; });
    std::string out = fmt::format("{}{}: no MLPerf result, not verified by MLCommons. Scenario {}, seed {}.\n", rank_,
                                  kSimulatedOrg, printable(run_.scenario->name), run_.seed);
    for (const Event& event : events_) out += event.text + "\n";
    return out;
  }

 private:
  // Not simulated: the evaluation that ends the run meets the target, the others miss it by 1 %.
  std::string accuracy(bool met) const {
    return float_text(met ? benchmark_.target : benchmark_.target * (benchmark_.lower_is_better ? 1.01 : 0.99));
  }
  double epochs_until(double samples) const { return std::round(samples / benchmark_.epoch_samples); }

  void set_position(double samples) {
    const double sequence = run_.scenario->training ? static_cast<double>(run_.scenario->training->sequence) : 1;
    f_["samples"] = whole_text(samples);
    f_["step"] = whole_text(samples / run_.scenario->plan.gbs);
    f_["tokens"] = whole_text(samples * sequence);
    f_["epoch"] = float_text(benchmark_.epoch_samples > 0 ? samples / benchmark_.epoch_samples : 0);
    set_epoch(benchmark_.epoch_samples > 0 ? epochs_until(samples) : 0);
  }
  void set_epoch(double number) {
    f_["epoch_number"] = whole_text(number);
    f_["epochs_done"] = whole_text(std::max(0.0, number - 1));
  }
  void set_block(const LoggedBlock& b) {
    const double sequence = run_.scenario->training ? static_cast<double>(run_.scenario->training->sequence) : 1;
    f_["first"] = whole_text(b.first_samples);
    f_["count"] = whole_text(b.samples - b.first_samples);
    f_["first_tokens"] = whole_text(b.first_samples * sequence);
    f_["count_tokens"] = whole_text((b.samples - b.first_samples) * sequence);
    const double done = benchmark_.epoch_samples > 0 ? epochs_until(b.first_samples) : 0;
    f_["first_epoch"] = whole_text(done + 1);
    f_["epochs"] = whole_text(benchmark_.epoch_samples > 0 ? std::max(1.0, epochs_until(b.samples) - done) : 1);
    f_["throughput"] = float_text(b.timed_s > 0 ? (b.samples - b.first_samples) / b.timed_s : 0);
  }
  // Epochs of a block; the last one ends with it. Marks of evaluations fall on whole steps, so a little after epochs.
  void epochs(const LoggedBlock& b) {
    if (log_.epoch_begin.empty()) return;
    const double first = epochs_until(b.first_samples) + 1;
    const double last = std::max(first, epochs_until(b.samples));
    double begin_s = b.begin_s;
    for (double e = first; e <= last; ++e) {
      const double end_s = e == last ? b.end_s : progress_.time_at(e * benchmark_.epoch_samples);
      set_epoch(e);
      add(begin_s, log_.epoch_begin);
      add(end_s, log_.epoch_end);
      begin_s = end_s;
    }
  }

  const LoggedRun& run_;
  const Benchmark& benchmark_;
  const BenchmarkLog& log_;
  const RunProgress& progress_;
  std::string rank_;
  Figures f_;
  std::vector<Event> events_;
};

}  // namespace

double RunProgress::time_at(double wanted_samples) const {
  if (samples.empty()) return 0;
  const auto above = std::lower_bound(samples.begin(), samples.end(), wanted_samples);
  if (above == samples.begin()) return time_s.front();
  if (above == samples.end()) return time_s.back();
  const auto i = static_cast<size_t>(above - samples.begin());
  return time_s[i - 1] +
         (wanted_samples - samples[i - 1]) / (samples[i] - samples[i - 1]) * (time_s[i] - time_s[i - 1]);
}

RunProgress run_progress(const Scenario& scenario, const Timeline& timeline) {
  RunProgress out;
  const double gbs = scenario.plan.gbs, begin_s = timeline.run_begin_s;
  const NodeGroup* beside = nullptr;
  const NodeGroup* training = nullptr;
  for (const NodeGroup& group : timeline.groups) {
    if (group.role == "evaluate" && beside == nullptr) beside = &group;
    if (group.role != "evaluate" && training == nullptr) training = &group;
  }
  const bool marks = beside != nullptr && scenario.run.evaluation_interval > 0;
  const auto inside = [&](const NodeGroup* group, const auto& use) {
    if (group == nullptr) return;
    for (const Phase& phase : group->phases)
      if (phase.end_s > timeline.run_begin_s && phase.begin_s < timeline.run_end_s)
        use(phase, std::max(phase.begin_s, timeline.run_begin_s) - begin_s,
            std::min(phase.end_s, timeline.run_end_s) - begin_s);
  };
  Reader reader(gbs, out);
  double mark = marks ? next_mark(scenario.run, gbs, 0) : 1e300;
  inside(training, [&](const Phase& phase, double from_s, double to_s) {
    reader.read(phase, from_s, to_s);
    if (reader.samples() + 1e-9 < mark) return;
    reader.close_block(to_s);
    mark = next_mark(scenario.run, gbs, reader.samples());
  });
  size_t ready = 0;  // weights of this block are evaluated next
  inside(beside, [&](const Phase& phase, double from_s, double to_s) {
    if (phase.kind != PhaseKind::evaluation || ready >= out.blocks.size()) return;
    out.evaluations.push_back({from_s, to_s, out.blocks[ready++].samples});
  });
  return out;
}

std::string mllog_line(int64_t time_ms, const std::string& event, const std::string& key, const std::string& value,
                       const std::string& metadata) {
  return fmt::format(
      R"({{"namespace": "", "time_ms": {}, "event_type": "{}", "key": "{}", "value": {}, "metadata": {}}})", time_ms,
      event, key, value, metadata);
}

std::string run_status(const LoggedRun& run, const RunProgress& progress) {
  const bool judged = !progress.evaluations.empty() || find_benchmark(run.scenario->benchmark)->offline_interval > 0;
  return judged && !run.stopped ? "success" : "aborted";
}

std::string result_log(const LoggedRun& run) {
  const Benchmark& benchmark = *find_benchmark(run.scenario->benchmark);
  const BenchmarkLog& log = *benchmark.log;
  const RunProgress progress = run_progress(*run.scenario, *run.timeline);
  const double run_s = run.timeline->run_end_s - run.timeline->run_begin_s;
  double init_s = 0;
  for (const NodeGroup& group : run.timeline->groups)
    for (const Phase& phase : group.phases)
      if (phase.kind == PhaseKind::init) init_s = std::max(init_s, run.timeline->run_begin_s - phase.begin_s);
  Writer writer(run, benchmark, progress);
  writer.add(-init_s, {log.init.begin(), log.init.end() - 1});
  writer.add(0, {log.init.back()});
  writer.add(0, log.start);
  const auto& evaluations = progress.evaluations;
  for (size_t i = 0; i < std::max(progress.blocks.size(), evaluations.size()); ++i) {
    if (i < progress.blocks.size()) writer.block(progress.blocks[i]);
    if (i < evaluations.size()) writer.evaluation(evaluations[i], i + 1 == evaluations.size());
  }
  // Checkpoints are evaluated after the run, which the rules ask of the last two at least; how long is not simulated.
  if (benchmark.offline_interval > 0 && evaluations.empty() && !progress.blocks.empty()) {
    const double all = progress.blocks.back().samples;
    const double before = all > benchmark.offline_interval ? all - benchmark.offline_interval : all / 2;
    writer.evaluation({run_s, run_s, before}, false);
    writer.evaluation({run_s, run_s, all}, true);
  }
  writer.add(run_s, log.stop);
  return writer.text();
}

}  // namespace tw::mlperf
