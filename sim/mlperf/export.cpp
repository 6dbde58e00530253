#include "mlperf/export.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "mlperf/result_log.hpp"
#include "power/meter.hpp"
#include "run/benchmark.hpp"
#include "study/run_study.hpp"

namespace tw::mlperf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSubmitterFolder = "TrainWatt-simulated";
constexpr const char* kMarkFile = "SIMULATED";
constexpr double kMostReadings = 2e7;          // about 3 GB of text
constexpr int64_t kFirstStart_s = 1704067200;  // 2024-01-01T00:00:00Z, for scenarios without a start
constexpr int64_t kBetweenRuns_s = 600;        // from the end of a run's files to the init of the next one
constexpr const char* kSwitchId = "sw_01";

// Letters that a folder's name may hold in any file system.
std::string folder_name(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._+-").find(c) != std::string::npos
               ? c
               : '-';
  return out.find_first_not_of('.') == std::string::npos ? "unnamed" : out;
}

int all_nodes(const Scenario& s) {
  return s.plan.nodes + s.plan.evaluation_nodes;
}

std::string system_name(const Scenario& s) {
  return fmt::format("{}x{}", all_nodes(s), folder_name(s.cluster.name));
}

fs::path benchmark_folder(const std::string& folder, const Scenario& s) {
  return fs::path(folder) / kSubmitterFolder / "results" / system_name(s) / s.benchmark;
}

fs::path system_file(const std::string& folder, const Scenario& s) {
  return fs::path(folder) / kSubmitterFolder / "systems" / (system_name(s) + ".json");
}

std::string notice() {
  return fmt::format(
      "SIMULATED. TrainWatt {} computed these files; no machine ran. They are no MLPerf results, were not verified by\n"
      "MLCommons, and must not be submitted or quoted as MLPerf results.\n",
      version());
}

// Holds the folder against other writers, as long as it lives; no file is left in it.
class FolderHold {
 public:
  explicit FolderHold(const std::string& folder) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0) ::flock(fd_, LOCK_EX);
  }
  ~FolderHold() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderHold(const FolderHold&) = delete;
  FolderHold& operator=(const FolderHold&) = delete;

 private:
  int fd_;
};

// What a system description of the v4.0 round holds, in its order. What is not modelled stays empty, as the round's
// submitters leave what they do not tell, but for the counts, which the summarizer multiplies: 0.
std::string system_json(const Scenario& s) {
  const NodeType& node = s.cluster.node;
  nlohmann::ordered_json j;
  j["submitter"] = kSimulatedOrg;
  j["division"] = "closed";
  j["status"] = "Research, Development, or Internal (RDI)";
  j["system_name"] = fmt::format("{}: {}", kSimulatedOrg, s.cluster.name);
  j["number_of_nodes"] = fmt::format("{}", all_nodes(s));
  for (const char* key :
       {"host_processors_per_node", "host_processor_model_name", "host_processor_core_count",
        "host_processor_vcpu_count", "host_processor_frequency", "host_processor_caches", "host_processor_interconnect",
        "host_memory_capacity", "host_storage_type", "host_storage_capacity"})
    j[key] = "";
  for (const char* key : {"host_processors_per_node", "host_processor_core_count", "host_processor_vcpu_count"})
    j[key] = "0";
  j["host_networking"] = fmt::format("{} x {}", node.nics, to_text(node.nic_bandwidth));
  j["host_networking_topology"] = s.cluster.description;
  j["host_memory_configuration"] = "";
  j["accelerators_per_node"] = fmt::format("{}", node.gpus);
  j["accelerator_model_name"] = node.accelerator.name;
  j["accelerator_host_interconnect"] = "";
  j["accelerator_frequency"] = "";
  j["accelerator_on-chip_memories"] = "";
  j["accelerator_memory_configuration"] = "";
  j["accelerator_memory_capacity"] = to_text(node.accelerator.memory);
  j["accelerator_interconnect"] = "";
  j["accelerator_interconnect_topology"] = "";
  j["cooling"] = "";
  j["hw_notes"] = "simulated; no machine ran";
  j["framework"] = kSimulatedOrg;
  j["framework_name"] = "";
  j["other_software_stack"] = {{"trainwatt", version()}};
  j["operating_system"] = "";
  j["sw_notes"] = "simulated; not verified by MLCommons";
  return j.dump(2) + "\n";
}

// What the runs of a benchmark's folder come from: its file says so, each on a line of its own.
std::vector<std::string> origin_lines(const LoadedScenario& loaded, uint64_t first_seed) {
  return {fmt::format("Scenario: {}", printable(loaded.scenario.name)),
          fmt::format("Made from: inputs of sha256 {}", loaded.sha256), fmt::format("Runs from: seed {}", first_seed)};
}

bool is_filled_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && !fs::is_empty(folder, ignored);
}

// Runs from elsewhere are never replaced: nobody loses them to a second writer.
void check_scenario(const std::string& option, const std::string& folder, const LoadedScenario& loaded, uint64_t seed,
                    Faults& faults) {
  const Scenario& s = loaded.scenario;
  const fs::path results = benchmark_folder(folder, s), mark = results / kMarkFile, system = system_file(folder, s);
  std::error_code ignored;
  std::vector<std::string> there;
  if (fs::is_regular_file(mark, ignored)) there = split(read_file(mark.string()), '\n');
  const auto says = [&](const std::string& line) { return std::find(there.begin(), there.end(), line) != there.end(); };
  const std::vector<std::string> origin = origin_lines(loaded, seed);
  const auto other = std::find_if_not(origin.begin(), origin.end(), says);
  if (fs::exists(results, ignored) && other != origin.end()) {
    const size_t key = other->find(": ") + 2;
    const auto own = std::find_if(there.begin(), there.end(),
                                  [&](const auto& line) { return line.compare(0, key, *other, 0, key) == 0; });
    faults.add({option, "",
                own == there.end() ? fmt::format("{} holds something that is not from here", results.string())
                                   : fmt::format("{} holds runs of {}, not of {}", results.string(), own->substr(key),
                                                 other->substr(key)),
                "another folder; --runs N writes several seeds into one"});
  }
  if (fs::is_regular_file(system, ignored) && read_file(system.string()) != system_json(s))
    faults.add(
        {option, "", fmt::format("{} describes another system of that name", system.string()), "another folder"});
}

double node_readings(const Scenario& s, const Result& r) {
  const MlperfWindow& window = s.run.mlperf_v4_0;
  return (r.timeline.run_end_s - r.timeline.run_begin_s + window.meter_before.value() + window.meter_after.value()) /
         dc_meter.interval_s;
}

std::string reading_line(int64_t time_ms, const std::string& event, const std::string& key, const std::string& value) {
  return ":::MLLOG " + mllog_line(time_ms, event, key, value, "\"\"") + "\n";
}

// Files of the v4.0 round: start and stop carry the stamps of the first and the last reading.
std::string node_file(const Readings& readings, double factor, int64_t start_ms, double begin_s) {
  const auto stamp = [&](size_t i) { return start_ms + std::llround((readings.time_s[i] - begin_s) * 1000); };
  std::string out = reading_line(stamp(0), "INTERVAL_START", "power_measurement_start", "null");
  for (size_t i = 0; i < readings.time_s.size(); ++i)
    out += reading_line(stamp(i), "POINT_IN_TIME", "power_reading",
                        fmt::format("{}", std::llround(readings.watts[i] * factor)));
  return out + reading_line(stamp(readings.time_s.size() - 1), "INTERVAL_END", "power_measurement_stop", "null");
}

// Of one run, into `folder`.
void write_power(const fs::path& folder, const Scenario& s, const Result& r, int64_t start_ms) {
  const PowerRun power = integrate_power(s.cluster, r.timeline, r.power_options);
  const MlperfWindow& window = s.run.mlperf_v4_0;
  Meter meter = dc_meter;
  meter.rounding_w = 0;  // rounded once, with the node's own factor
  const double from_s = power.run_begin_s - window.meter_before.value(),
               to_s = power.run_end_s + window.meter_after.value();
  int k = 0;
  for (const NodePowerRun& node : power.nodes) {
    // The meters of each bus are asked at moments of their own, as real ones are: meters that all read at the same
    // moment of a step would be wrong together.
    auto stream = random_stream(r.seed, "meter", static_cast<uint64_t>(node.bus));
    const double phase_s = std::floor(1e3 * std::min(meter.interval_s, to_s - from_s) * uniform(stream)) / 1e3;
    const Readings readings = sample(meter, power.group_dc[static_cast<size_t>(node.group)], from_s + phase_s, to_s);
    write_file((folder / fmt::format("node_{}.txt", k++)).string(),
               node_file(readings, node.factor, start_ms, power.run_begin_s));
  }
  if (r.power.network_w && *r.power.network_w > 0)
    write_file((folder / "sw_0.txt").string(), ":::MLLOG " +
                                                   mllog_line(start_ms, "POINT_IN_TIME", "interconnect_power_est",
                                                              fmt::format("{}", std::llround(*r.power.network_w)),
                                                              fmt::format(R"({{"switch_id": "{}"}})", kSwitchId)) +
                                                   "\n");
  write_file((folder / kMarkFile).string(), notice());
}

// When each run starts: one after the other, so that no two runs share their time.
std::vector<int64_t> starts_ms(const MlperfRuns& runs) {
  const Scenario& s = runs.scenario->scenario;
  int64_t next_s = kFirstStart_s;
  if (const auto start = parse_time(s.run.start, parse_utc_offset(s.site.utc_offset))) next_s = start->utc_s;
  std::vector<int64_t> starts;
  for (const Result* r : runs.runs) {
    starts.push_back(next_s * 1000);
    const double busy_s = r->timeline.run_end_s - r->timeline.run_begin_s + s.run.mlperf_v4_0.meter_after.value() +
                          s.run.mlperf_v4_0.meter_before.value() + s.software.phases.init.value();
    next_s += static_cast<int64_t>(std::ceil(busy_s)) + kBetweenRuns_s;
  }
  return starts;
}

std::string benchmark_notice(const MlperfRuns& runs) {
  const Scenario& s = runs.scenario->scenario;
  const BenchmarkLog& log = *find_benchmark(s.benchmark)->log;
  std::string out = notice() + "\n";
  for (const std::string& line : origin_lines(*runs.scenario, runs.runs.front()->seed)) out += line + "\n";
  out += fmt::format("Software profile: {}\nRuns: {}\n", s.software.name, runs.runs.size());
  out += log.verified ? fmt::format("Keys, order and metadata: verified against {}\n", log.source)
                      : fmt::format("Keys, order and metadata: not verified; after {}\n", log.source);
  out +=
      "Not simulated: eval_accuracy (the last evaluation of a run logs the target, others miss it by 1 %) and\n"
      "hyperparameters that the scenario does not hold (those of the named logs).\n"
      "Energies of node files are what a meter sees (a reading every 2 s, whole watts): those of trainwatt run are\n"
      "integrals, and the two differ by what the meters miss between readings and at both ends of a run.\n";
  if (s.run.evaluation_interval <= 0) out += "The scenario has no evaluations, so the logs have none either.\n";
  return out;
}

// Everything below the folder of a benchmark.
void write_benchmark(const fs::path& folder, const MlperfRuns& runs) {
  const Scenario& s = runs.scenario->scenario;
  const std::vector<int64_t> starts = starts_ms(runs);
  std::vector<double> samples;
  std::string rule;
  for (size_t i = 0; i < runs.runs.size(); ++i) {
    const Result& r = *runs.runs[i];
    const std::string name = fmt::format("result_{}", i);
    write_file((folder / (name + ".txt")).string(),
               result_log({&s, &r.timeline, r.seed, r.run.stopped_at_s.has_value(), starts[i]}));
    write_power(folder / "power" / name, s, r, starts[i]);
    samples.push_back(r.run.target_samples.value_or(r.run.samples.value_or(0)));
  }
  write_file((folder / "power" / kMarkFile).string(), notice());
  write_file((folder / "scaling.json").string(),
             fmt::format(R"({{"scaling_factor": {}}})", submission_factor(s, samples, rule)));
  write_file((folder / kMarkFile).string(), benchmark_notice(runs));
}

void check_held_folder(const std::string& option, const std::string& folder,
                       const std::vector<LoadedScenario>& scenarios, uint64_t seed, Faults& faults) {
  std::error_code ignored;
  if (is_filled_folder(folder) && !fs::is_regular_file(fs::path(folder) / kMarkFile, ignored))
    return faults.add({option, "", fmt::format("{} is not empty and holds no simulated submission", folder),
                       "a new folder, or one that this option wrote"});
  std::map<fs::path, std::string> taken;
  for (const LoadedScenario& loaded : scenarios) {
    const Scenario& s = loaded.scenario;
    if (s.benchmark.empty()) {
      faults.add(
          {loaded.file, "/benchmark", fmt::format("is missing, but {} needs it", option), one_of(benchmark_names())});
      continue;
    }
    if (!find_benchmark(s.benchmark)->log) {
      faults.add({loaded.file, "/benchmark", fmt::format("what a run of {} logs is not known", s.benchmark),
                  "a \"log\" in its file under models/benchmarks"});
      continue;
    }
    if (s.run.reliability)
      faults.add({loaded.file, "/run/reliability", fmt::format("interrupts the run, and {} logs none that is", option),
                  "leave it out"});
    const auto [other, fresh] = taken.emplace(benchmark_folder(folder, s), loaded.file);
    if (fresh)
      check_scenario(option, folder, loaded, seed, faults);
    else
      faults.add({option, "",
                  fmt::format("{} and {} are both {} on {}", other->second, loaded.file, s.benchmark, system_name(s)),
                  "a folder for each"});
  }
}

}  // namespace

void check_mlperf_folder(const std::string& option, const std::string& folder,
                         const std::vector<LoadedScenario>& scenarios, uint64_t seed, Faults& faults) {
  if (folder.empty()) return;
  const FolderHold hold(folder);
  check_held_folder(option, folder, scenarios, seed, faults);
}

void write_mlperf_logs(const std::string& folder, const MlperfRuns& runs) {
  if (runs.runs.empty()) return;
  const Scenario& s = runs.scenario->scenario;
  double readings = 0;
  for (const Result* r : runs.runs) readings += node_readings(s, *r) * all_nodes(s);
  if (readings > kMostReadings)
    throw InputError({{folder, "", fmt::format("{} would have {:.3g} power readings", s.name, readings),
                       fmt::format("at most {:.0e}: fewer runs, nodes or steps", kMostReadings)}});
  std::error_code error;
  fs::create_directories(folder, error);
  // Another process may have written here since the check before the simulation.
  const FolderHold hold(folder);
  Faults faults;
  check_held_folder("--mlperf-logs", folder, {*runs.scenario}, runs.runs.front()->seed, faults);
  faults.throw_if_any();
  const fs::path target = benchmark_folder(folder, s), system = system_file(folder, s);
  const fs::path submitter = fs::path(folder) / kSubmitterFolder;
  for (const fs::path& at : {fs::path(folder), submitter, submitter / "results", target.parent_path()})
    write_file((at / kMarkFile).string(), notice());
  write_file((system.parent_path() / kMarkFile).string(), notice());
  write_file(system.string(), system_json(s));

  // Built beside its place, so that nobody sees half a folder; runs of the same scenario make place as a whole, since
  // fewer new runs must not leave old ones beside them.
  const fs::path partial = target.string() + ".part";
  fs::remove_all(partial, error);
  try {
    write_benchmark(partial, runs);
    fs::remove_all(target);
    fs::rename(partial, target);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(partial, error);
    throw InputError({{target.string(), "", fmt::format("cannot be written ({})", e.code().message()), ""}});
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
}

}  // namespace tw::mlperf
