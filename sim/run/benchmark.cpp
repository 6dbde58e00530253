#include "run/benchmark.hpp"

#include <cctype>
#include <filesystem>
#include <utility>

#include "core/document.hpp"
#include "core/files.hpp"

namespace tw {
namespace {

namespace fs = std::filesystem;

std::string letters(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Files that were read, by name without ending.
std::map<std::string, Benchmark>& known() {
  static std::map<std::string, Benchmark> read;
  return read;
}

// Of two files of one name that of the first data folder.
void read_all() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  std::error_code none;
  for (const std::string& folder : data_folders())
    for (const auto& entry : fs::directory_iterator(folder + "/models/benchmarks", none))
      if (entry.path().extension() == ".json" && known().count(entry.path().stem().string()) == 0)
        known().emplace(entry.path().stem().string(), load<Benchmark>(entry.path().string()));
}

}  // namespace

const Benchmark* find_benchmark(const std::string& name) {
  const std::string wanted = letters(name);
  if (wanted.empty()) return nullptr;
  // Most names are those of a file; the others need all of them.
  if (known().count(name) == 0 && name.find('/') == std::string::npos)
    if (const auto file = find_input_file("models/benchmarks/" + name + ".json", ""))
      known().emplace(name, load<Benchmark>(*file));
  if (const auto found = known().find(name); found != known().end()) return &found->second;
  read_all();
  for (const auto& [file, b] : known()) {
    if (letters(b.name) == wanted) return &b;
    for (const std::string& alias : b.aliases)
      if (letters(alias) == wanted) return &b;
  }
  return nullptr;
}

std::vector<std::string> benchmark_names() {
  read_all();
  std::vector<std::string> names;
  for (const auto& [file, b] : known()) names.push_back(b.name);
  return names;
}

void BenchmarkLog::describe(Description<BenchmarkLog>& d) {
  d.object(
      "benchmark_log",
      "What a run of the benchmark logs, one text a line: ( and ) begin and end an interval, . is a point; key, "
      "value, and after | what the metadata hold. $name is a figure of the run: org benchmark platform seed gbs mbs "
      "lbs ga "
      "sequence lora_rank nodes steps eval_samples epoch_steps; step samples tokens epoch epoch_number epochs_done; of "
      "the block first count first_tokens count_tokens first_epoch epochs throughput; run_throughput accuracy "
      "status.");
  d.optional("verified", &BenchmarkLog::verified, "keys, order and metadata are tested against real logs");
  d.required("source", &BenchmarkLog::source, "the log whose order and hyperparameters these are");
  d.required("init", &BenchmarkLog::init, "until init_stop");
  d.required("start", &BenchmarkLog::start, "at run_start");
  d.optional("block_begin", &BenchmarkLog::block_begin, "before the steps between two evaluations");
  d.optional("epoch_begin", &BenchmarkLog::epoch_begin, "before an epoch");
  d.optional("epoch_end", &BenchmarkLog::epoch_end, "after an epoch");
  d.optional("block_end", &BenchmarkLog::block_end, "after the steps between two evaluations");
  d.required("evaluation_begin", &BenchmarkLog::evaluation_begin, "before an evaluation");
  d.required("evaluation_end", &BenchmarkLog::evaluation_end, "after an evaluation");
  d.required("stop", &BenchmarkLog::stop, "at run_stop");
}

void Benchmark::describe(Description<Benchmark>& d) {
  d.object("benchmark", "A benchmark of MLPerf Training: scores, what its logs mean, what they hold.");
  d.required("name", &Benchmark::name, "as logs name it");
  d.optional("aliases", &Benchmark::aliases, "other names of it, in other rounds");
  d.required("required_runs", &Benchmark::required_runs, "runs that a submission needs", between(1, 1000));
  d.optional("dropped_each_side", &Benchmark::dropped_each_side,
             "fastest and slowest runs that a score leaves out, each; as many may fail", between(0, 100));
  d.required("target", &Benchmark::target, "quality that ends a run");
  d.optional("lower_is_better", &Benchmark::lower_is_better, "whether less than the target meets it");
  d.optional("epoch_samples", &Benchmark::epoch_samples, "samples of an epoch; 0: it has none");
  d.optional("sequence", &Benchmark::sequence, "tokens of a sample, where a log does not say");
  d.optional("plausible_samples", &Benchmark::plausible_samples,
             "least and most samples to the target in any submission; what a number of a log counts is chosen to fall "
             "between them where no throughput is logged");
  d.optional("progress", &Benchmark::progress,
             "what keys of the metadata count, by key, the likeliest first (default: samples_count samples, epoch_num "
             "epochs, step_num steps)");
  d.optional("least_evaluations", &Benchmark::least_evaluations, "evaluations that a run logs at least",
             between(1, 1000));
  d.optional("offline_interval", &Benchmark::offline_interval,
             "samples between checkpoints that are evaluated after the run; 0: evaluations are part of the run");
  d.optional("convergence", &Benchmark::convergence, "reference convergence points");
  d.optional("log", &Benchmark::log, "what a run logs; absent: it can be imported but not exported");
  d.optional("source", &Benchmark::source, "where this comes from");
}

}  // namespace tw
