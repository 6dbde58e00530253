#include "mlperf/submission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/files.hpp"
#include "core/sum.hpp"
#include "run/benchmark.hpp"

namespace tw {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Files of one benchmark folder, below the imported folder.
struct BenchmarkFiles {
  std::vector<std::string> results;
  std::map<std::string, std::vector<std::string>> nodes, switches;  // by run
  bool scaling = false, simulated = false;
};

// Files that lie in power/ itself, in no run's folder, are those of the only run.
void name_plain_power(BenchmarkFiles& b, std::vector<LogFinding>& findings) {
  for (auto* files : {&b.nodes, &b.switches}) {
    auto plain = files->extract("");
    if (plain.empty()) continue;
    plain.key() = fs::path(b.results.front()).stem().string();
    if (b.results.size() != 1 || !files->insert(std::move(plain)).inserted)
      findings.push_back({b.results.front(), 0, "no_run", "power files that name no run; power/RUN/node_0.txt does"});
  }
}

constexpr size_t kDeepest = 32;  // folders inside one another

// Every regular file below `top`, by benchmark folder; links to folders are not followed.
std::map<std::string, BenchmarkFiles> walk(const fs::path& top, std::vector<LogFinding>& findings) {
  std::map<std::string, BenchmarkFiles> all;
  std::error_code error;
  const size_t above = top.string().size() + (top.has_relative_path() ? 1 : 0);
  const auto below = [&](const fs::path& path) {  // as lexically_relative(), which takes ten times as long
    if (path.native().size() <= above) return std::string(path == top ? "." : "..");
    return path.native().substr(above);
  };
  fs::recursive_directory_iterator it(top, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (static_cast<size_t>(it.depth()) > kDeepest) it.disable_recursion_pending();
    const std::string name = it->path().filename().string();
    if (!it->is_regular_file(ignored)) continue;
    const bool text = it->path().extension() == ".txt";
    const fs::path folder = it->path().parent_path();
    const std::string file = below(it->path());
    const bool own = folder.parent_path().filename() == "power";  // power/RUN/node_0.txt
    if (own || folder.filename() == "power") {
      BenchmarkFiles& b = all[below(own ? folder.parent_path().parent_path() : folder.parent_path())];
      const std::string run = own ? folder.filename().string() : "";
      if (text && name.starts_with("node_")) b.nodes[run].push_back(file);
      if (text && name.starts_with("sw_")) b.switches[run].push_back(file);
    } else if (text && name.starts_with("result_")) {
      all[below(folder)].results.push_back(file);
    } else if (name == "scaling.json") {
      all[below(folder)].scaling = true;
    } else if (name == "SIMULATED") {
      all[below(folder)].simulated = true;
    }
  }
  if (error) findings.push_back({".", 0, "unreadable", fmt::format("a folder cannot be read ({})", error.message())});
  // node_2 before node_10, result_2 before result_10.
  const auto natural = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  };
  for (auto b = all.begin(); b != all.end();) {
    if (b->second.results.empty()) {
      for (const auto& [run, files] : b->second.nodes)
        findings.push_back({files.front(), 0, "no_result",
                            fmt::format("power files of {}, which has no result file", run.empty() ? "a run" : run)});
      b = all.erase(b);
      continue;
    }
    name_plain_power(b->second, findings);
    std::sort(b->second.results.begin(), b->second.results.end(), natural);
    for (auto* files : {&b->second.nodes, &b->second.switches})
      for (auto& [run, list] : *files) std::sort(list.begin(), list.end(), natural);
    ++b;
  }
  return all;
}

// The text of a small JSON file; null and a finding when it is damaged.
json small_json(const fs::path& path, const std::string& file, std::vector<LogFinding>& findings) {
  constexpr uintmax_t most = 1 << 20;
  std::error_code error;
  if (const auto size = fs::file_size(path, error); error || size > most) {
    findings.push_back({file, 0, "unreadable", error ? error.message() : "is too large for what it should hold"});
    return nullptr;
  }
  try {
    json j = json::parse(read_file(path.string()), nullptr, false);
    if (j.is_object()) return j;
  } catch (const InputError&) {
  }
  findings.push_back({file, 0, "broken_json", "is no JSON object"});
  return nullptr;
}

std::string text_of(const json& j, const char* key) {
  const auto found = j.find(key);
  if (found == j.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::to_string(found->get<int64_t>()) : "";
}

int count_of(const json& j, const char* key) {
  const std::string text = text_of(j, key);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return !text.empty() && *end == '\0' && value > 0 && value < 10'000'000 ? static_cast<int>(value) : 0;
}

std::optional<double> scaling_factor(const fs::path& path, const std::string& file, std::vector<LogFinding>& findings) {
  const json j = small_json(path, file, findings);
  if (j.is_null()) return std::nullopt;
  const auto factor = j.find("scaling_factor");
  if (factor != j.end() && factor->is_number() && factor->get<double>() >= 1 && factor->get<double>() < 10)
    return factor->get<double>();
  findings.push_back({file, 0, "broken_json", "has no scaling_factor from 1 to 10"});
  return std::nullopt;
}

// Names from the path: SUBMITTER/results/SYSTEM/BENCHMARK, as far as there is that much of it.
void name(ImportedBenchmark& b, const fs::path& folder, std::vector<LogFinding>& findings) {
  b.benchmark = folder.filename().string();
  b.system = folder.parent_path().filename().string();
  const fs::path results = folder.parent_path().parent_path();
  if (results.filename() != "results") return;
  b.submitter = results.parent_path().filename().string();
  const fs::path file = results.parent_path() / "systems" / (b.system + ".json");
  std::error_code ignored;
  const std::string shown = fmt::format("systems/{}.json", b.system);
  if (!fs::exists(file, ignored)) {
    findings.push_back({b.folder, 0, "no_system", shown + " is missing"});
    return;
  }
  const json j = small_json(file, shown, findings);
  if (j.is_null()) return;
  SubmittedSystem& s = b.description;
  s.submitter = text_of(j, "submitter"), s.name = text_of(j, "system_name"), s.division = text_of(j, "division");
  s.status = text_of(j, "status"), s.accelerator = text_of(j, "accelerator_model_name");
  s.framework = text_of(j, "framework"), s.cooling = text_of(j, "cooling");
  s.nodes = count_of(j, "number_of_nodes"), s.accelerators_per_node = count_of(j, "accelerators_per_node");
  if (!s.submitter.empty()) b.submitter = s.submitter;
}

std::string meter_of(const ImportedBenchmark& b, const fs::path& folder) {
  const auto says = [](std::string text) -> std::string {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    if (text.find("dc-power") != std::string::npos) return "dc";
    return text.find("ac-power") != std::string::npos ? "ac" : "";
  };
  const std::string name = says(b.description.name);
  return name.empty() ? says(folder.string()) : name;
}

bool same_benchmark(const std::string& a, const std::string& b) {
  const Benchmark* known = find_benchmark(a);
  return a == b || (known != nullptr && known == find_benchmark(b));
}

void find_duplicates(ImportedBenchmark& b, std::vector<LogFinding>& findings) {
  std::map<uint64_t, const ImportedRun*> seen;
  for (MeasuredRun& run : b.runs) {
    if (!run.log.finished()) continue;
    const auto [first, fresh] = seen.emplace(run.log.fingerprint, &run.log);
    if (fresh) continue;
    run.log.duplicate_of = first->second->id;
    findings.push_back({run.log.file, 0, "duplicated_run", fmt::format("has the events of {}", first->second->id)});
  }
}

void find_shared_traces(MeasuredRun& run, std::map<uint64_t, std::string>& of_other_runs,
                        std::vector<LogFinding>& findings) {
  std::map<uint64_t, std::string> seen;
  for (const NodeMeter& node : run.nodes) {
    if (node.readings == 0) continue;
    const auto [first, fresh] = seen.emplace(node.fingerprint, node.name);
    if (!fresh) {
      findings.push_back({node.file, 0, "shared_trace", fmt::format("holds the readings of {}", first->second)});
      continue;
    }
    const auto [other, unknown] = of_other_runs.emplace(node.fingerprint, run.log.id + "/" + node.name);
    if (!unknown && run.log.duplicate_of.empty())
      findings.push_back({node.file, 0, "shared_trace", fmt::format("holds the readings of {}", other->second)});
  }
  run.distinct_traces = static_cast<int>(seen.size());
}

void add_up(MeasuredRun& run, int nodes, std::vector<LogFinding>& findings) {
  if (run.nodes.empty() || !run.log.finished()) return;
  Sum run_j, mlperf_j;
  bool complete = true;
  for (const NodeMeter& n : run.nodes) {
    complete = complete && n.usable && n.run_j && n.mlperf_j;
    if (!n.usable) continue;
    run_j.add(n.run_j.value_or(0));
    mlperf_j.add(n.mlperf_j.value_or(0));
    const double w = n.run_j.value_or(0) / *run.log.run_s;
    run.node_w_min = std::min(run.node_w_min.value_or(w), w);
    run.node_w_max = std::max(run.node_w_max.value_or(w), w);
  }
  if (nodes > 0 && static_cast<int>(run.nodes.size()) != nodes) {
    complete = false;
    findings.push_back({fs::path(run.nodes.front().file).parent_path().string(), 0, "missing_node",
                        fmt::format("node files: {}, nodes: {}; no energy", run.nodes.size(), nodes)});
  }
  if (!complete) return;
  run.nodes_run_j = run_j.value();
  run.nodes_mlperf_j = mlperf_j.value();
  run.node_w_mean = *run.nodes_run_j / *run.log.run_s / static_cast<double>(run.nodes.size());
}

class Importer {
 public:
  Importer(fs::path top, const std::function<void(size_t, size_t)>& progress)
      : top_(std::move(top)), progress_(progress) {}

  void plan(const BenchmarkFiles& files) {
    planned_ += files.results.size();
    for (const auto* lists : {&files.nodes, &files.switches})
      for (const auto& [run, list] : *lists) planned_ += list.size();
  }

  // File names of a run are let go with it.
  void read(ImportedBenchmark& b, BenchmarkFiles files) {
    for (const std::string& file : files.results) {
      b.runs.push_back({});
      b.runs.back().log = read_run(path(file), file, out.findings);
      done();
    }
    find_duplicates(b, out.findings);
    const bool any_power = !files.nodes.empty();
    if (b.nodes == 0)
      for (const auto& [run, list] : files.nodes) b.nodes = std::max(b.nodes, static_cast<int>(list.size()));
    std::vector<RunSpan> spans;
    for (const MeasuredRun& run : b.runs)
      if (run.log.finished()) spans.push_back({run.log.id, run.log.start_ms, run.log.stop_ms});
    std::set<std::string> known;
    std::map<uint64_t, std::string> traces;
    for (MeasuredRun& run : b.runs) {
      known.insert(run.log.id);
      if (!run.log.benchmark.empty() && !same_benchmark(run.log.benchmark, b.benchmark))
        out.findings.push_back(
            {run.log.file, 0, "other_benchmark",
             fmt::format("logs benchmark \"{}\", its folder is \"{}\"", run.log.benchmark, b.benchmark)});
      power(b, run, files, spans);
      std::vector<LogFinding> shared;
      find_shared_traces(run, traces, shared);
      // Simulated nodes of one kind draw the same watts.
      if (!b.simulated) out.findings.insert(out.findings.end(), shared.begin(), shared.end());
      add_up(run, b.nodes, out.findings);
      if (any_power && run.nodes.empty())
        out.findings.push_back({run.log.file, 0, "no_power", "has no power files, as other runs of its folder have"});
    }
    for (const auto& [run, list] : files.nodes)
      if (known.count(run) == 0)
        out.findings.push_back(
            {list.front(), 0, "no_result",
             fmt::format("power files of {}, which has no result file", run.empty() ? "a run" : run)});
  }

  Import out;

 private:
  std::string path(const std::string& file) const { return (top_ / file).string(); }
  void done() {
    ++out.files;
    if (progress_) progress_(out.files, planned_);
  }

  void power(const ImportedBenchmark& b, MeasuredRun& run, BenchmarkFiles& files, const std::vector<RunSpan>& spans) {
    const auto nodes = files.nodes.find(run.log.id);
    if (nodes == files.nodes.end()) return;
    run.nodes.reserve(nodes->second.size());
    for (const std::string& file : std::exchange(nodes->second, {})) {
      run.nodes.push_back(read_node_meter(path(file), file, run.log, spans, out.findings));
      done();
    }
    const auto switches = files.switches.find(run.log.id);
    if (switches != files.switches.end()) {
      for (const std::string& file : switches->second) {
        if (const auto watts = read_switch_estimate(path(file), file, out.findings))
          run.network_w = run.network_w.value_or(0) + *watts;
        done();
      }
    }
    if (switches == files.switches.end() && b.nodes > 1)
      out.findings.push_back({fs::path(run.nodes.front().file).parent_path().string(), 0, "no_switch_estimate",
                              "has no sw_*.txt; the network counts as 0 W"});
  }

  fs::path top_;
  const std::function<void(size_t, size_t)>& progress_;
  size_t planned_ = 0;
};

// Benchmarks whose runs are those of another folder, as where power is told on both sides of the rectifiers.
void find_same_runs(Import& import) {
  std::map<uint64_t, const ImportedBenchmark*> seen;
  for (const ImportedBenchmark& b : import.benchmarks) {
    std::map<const ImportedBenchmark*, size_t> same;
    for (const MeasuredRun& run : b.runs) {
      if (!run.log.finished()) continue;
      const auto [first, fresh] = seen.emplace(run.log.fingerprint, &b);
      if (!fresh && first->second != &b) ++same[first->second];
    }
    for (const auto& [other, count] : same)
      import.findings.push_back(
          {b.folder, 0, "same_runs",
           fmt::format("{} of its {} runs are those of {}", count, b.runs.size(), other->folder)});
  }
}

}  // namespace

bool Import::usable() const {
  for (const ImportedBenchmark& b : benchmarks)
    for (const MeasuredRun& run : b.runs)
      if (run.log.finished()) return true;
  return false;
}

Import import_submission(const std::string& folder,
                         const std::function<bool(const std::string&, const std::string&)>& select,
                         const std::function<void(size_t done, size_t all)>& progress) {
  std::error_code error;
  fs::path top = fs::canonical(folder, error);
  if (error) throw InputError({{folder, "", "there is no such folder", ""}});
  std::string only;
  if (!fs::is_directory(top)) {  // one result file, with the power files beside it
    if (!fs::is_regular_file(top)) throw InputError({{folder, "", "is neither a folder nor a file", ""}});
    only = top.filename().string();
    top = top.parent_path();
  }
  Importer importer(top, progress);
  auto all = walk(top, importer.out.findings);
  if (!only.empty()) {
    BenchmarkFiles one;
    if (const auto here = all.find("."); here != all.end()) one = here->second;
    one.results = {only};
    const std::string run = fs::path(only).stem().string();
    for (auto* files : {&one.nodes, &one.switches})
      for (auto it = files->begin(); it != files->end();) it = it->first == run ? std::next(it) : files->erase(it);
    all = {{".", one}};
  }
  if (all.empty())
    throw InputError({{folder, "", "holds no result file",
                       "a submission (SUBMITTER/results/SYSTEM/BENCHMARK/result_*.txt) or a part of it"}});
  std::vector<std::pair<ImportedBenchmark, BenchmarkFiles*>> chosen;
  std::vector<std::string> there;
  for (auto& [path, files] : all) {
    ImportedBenchmark b;
    b.folder = path;
    const fs::path place = path == "." ? top : top / path;
    std::vector<LogFinding> own;
    name(b, place, own);
    there.push_back(b.system + " " + b.benchmark);
    if (select && !select(b.system, b.benchmark)) continue;
    importer.out.findings.insert(importer.out.findings.end(), own.begin(), own.end());
    b.simulated = files.simulated;
    b.nodes = b.description.nodes;
    b.meter = meter_of(b, place);
    if (files.scaling)
      b.scaling_factor = scaling_factor(
          place / "scaling.json", (fs::path(path) / "scaling.json").lexically_normal().string(), importer.out.findings);
    importer.plan(files);
    chosen.emplace_back(std::move(b), &files);
  }
  if (chosen.empty()) {
    std::string list;
    for (size_t i = 0; i < std::min<size_t>(there.size(), 12); ++i) list += (i > 0 ? ", " : "") + there[i];
    throw InputError({{folder, "", "none of its benchmarks is asked for", "there are: " + list}});
  }
  for (auto& [b, files] : chosen) {
    importer.read(b, std::exchange(*files, {}));
    b.score = score_runs(b.benchmark, b.runs, b.scaling_factor.value_or(1));
    importer.out.benchmarks.push_back(std::move(b));
  }
  find_same_runs(importer.out);
  return std::move(importer.out);
}

}  // namespace tw
