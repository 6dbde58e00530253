#include "mlperf/import_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/csv_field.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "report/columns.hpp"
#include "report/numbers.hpp"
#include "report/run_lines.hpp"

namespace tw::mlperf {
namespace {

using report::columns_text;
using report::count_text;
using report::power_text;
using report::TableColumn;
using report::wrapped;

using json = nlohmann::ordered_json;
using Maybe = std::optional<double>;

constexpr size_t kMostRuns = 60;  // of a benchmark, in the table

json number(Maybe v) {
  if (!v || !std::isfinite(*v)) return nullptr;
  if (*v == std::floor(*v) && std::abs(*v) < 9e15) return static_cast<int64_t>(*v);
  return *v;
}
json text(const std::string& s) {
  return s.empty() ? json(nullptr) : json(s);
}

std::string shortened(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  return name.substr(0, most / 2 - 2) + "..." + name.substr(name.size() - (most - most / 2 - 1));
}

std::string fixed(Maybe v, int digits) {
  return v ? fmt::format("{:.{}f}", *v, digits) : "-";
}

// Kinds that tell of doubtful data, not of damaged files.
bool is_quality(const std::string& kind) {
  static const std::set<std::string> kinds{"late_start",      "early_end",       "gap",          "repeated_stamp",
                                           "backward_stamp",  "wrong_stop",      "shared_trace", "duplicated_run",
                                           "same_runs",       "no_start",        "odd_reading",  "repeated_event",
                                           "unclear_samples", "impossible_value"};
  return kinds.count(kind) != 0;
}

std::string kind_title(const std::string& kind) {
  std::string title = kind;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

// A path's first folder and its end, whole folders, in `most` characters: "round/.../power/result_0/node_0.txt".
std::string shortened_path(const std::string& path, size_t most) {
  const size_t first = path.find('/');
  if (path.size() <= most || first == std::string::npos) return path;
  const std::string head = path.substr(0, first) + "/...";
  size_t from = path.rfind('/');
  for (size_t next = from; next > first && head.size() + path.size() - next <= most; next = path.rfind('/', next - 1))
    from = next;
  return head + path.substr(from);
}

std::string place(const LogFinding& f) {
  const std::string line = f.line > 0 ? report::tied(fmt::format(", line {}", f.line)) : "";
  return shortened_path(printable(f.file, 300), 75 - line.size()) + line;
}

std::string title_of(const ImportedBenchmark& b) {
  std::string out;
  for (const std::string& part : {b.submitter, b.system, b.benchmark})
    if (!part.empty()) out += (out.empty() ? "" : " / ") + printable(part, 60);
  std::string about;
  const auto add = [&](const std::string& what) {
    if (!what.empty()) about += (about.empty() ? "" : ", ") + printable(what, 60);
  };
  const SubmittedSystem& s = b.description;
  if (b.nodes > 0)
    add(s.accelerators_per_node > 0
            ? fmt::format("{} node{} of {} {}", b.nodes, b.nodes > 1 ? "s" : "", s.accelerators_per_node, s.accelerator)
            : fmt::format("{} node{}", b.nodes, b.nodes > 1 ? "s" : ""));
  add(s.division);
  add(s.status);
  if (!b.meter.empty()) add(b.meter == "dc" ? "DC meters" : "AC meters");
  out = wrapped(out, "", "  ");
  if (!about.empty()) out += wrapped(about, "  ", "    ");
  if (b.simulated) out += "  SIMULATED by TrainWatt: no MLPerf result\n";
  return out;
}

// Why a run counts as failed; empty for one that does not.
std::string failure_of(const ImportedRun& l) {
  if (l.succeeded()) return "";
  if (!l.finished()) return "unfinished";
  if (!l.not_compliant.empty()) return "not compliant: " + printable(l.not_compliant, 200);
  return l.status.empty() ? "no status" : "status " + printable(l.status, 12);
}

std::string runs_table(const ImportedBenchmark& b) {
  const bool power = std::any_of(b.runs.begin(), b.runs.end(), [](const MeasuredRun& r) { return !r.nodes.empty(); });
  std::vector<TableColumn> columns{{"  run", true}, {"time s"}, {"samples"}, {"step s"}, {"evals x s"}};
  if (power) columns.insert(columns.end(), {{"run MJ"}, {"v4.0 MJ"}, {"node kW"}});
  const size_t name_width = power ? 15 : 28;
  std::vector<std::vector<std::string>> rows;
  std::string failed;
  for (const MeasuredRun& r : b.runs) {
    if (rows.size() == kMostRuns) break;
    const ImportedRun& l = r.log;
    std::string name = printable(l.id, 80);
    if (name.size() > name_width && name.rfind("result_", 0) == 0) name.erase(0, 7);
    name = shortened(name, name_width);
    if (const std::string why = failure_of(l); !why.empty()) failed += wrapped(name + ": " + why, "  ", "    ");
    const int digits = l.step_s.value_or(1) < 0.1 ? 6 : 4;
    rows.push_back({(r.in_score ? "* " : "  ") + name, fixed(l.run_s, 3), l.samples ? count_text(*l.samples) : "-",
                    fixed(l.step_s, digits), l.eval_s ? fmt::format("{} x {:.3f}", l.evaluations, *l.eval_s) : "-"});
    const auto scaled = [](Maybe v, double unit) { return fixed(v ? Maybe(*v / unit) : v, 3); };
    if (power)
      rows.back().insert(rows.back().end(),
                         {scaled(r.nodes_run_j, 1e6), scaled(r.nodes_mlperf_j, 1e6), scaled(r.node_w_mean, 1e3)});
  }
  std::string out = columns_text(columns, rows, 1);
  if (b.runs.size() > kMostRuns)
    out += fmt::format("  ... and {} more (--csv and --json hold all)\n", b.runs.size() - kMostRuns);
  return out + failed;
}

std::string score_text(const ImportedBenchmark& b) {
  const ImportedScore& s = b.score;
  const auto line = [](const std::string& text) { return wrapped(text, "  ", "    "); };
  if (!s.time_s) return line("no score: " + s.none_because);
  const auto counted = std::count_if(b.runs.begin(), b.runs.end(), [](const MeasuredRun& r) { return r.in_score; });
  std::string out = line(
      fmt::format("score {:.5f} min: olympic mean of {} runs, {} of {} (*), times RCP factor {:.6g}{}", *s.time_s / 60,
                  b.runs.size(), counted, b.runs.size(), s.factor, b.scaling_factor ? "" : " (no scaling.json)"));
  if (!s.remark.empty()) out += line(s.remark);
  const std::string side = b.meter.empty() ? "" : b.meter == "dc" ? " DC" : " AC";
  if (s.energy_mlperf_j)
    out += line(fmt::format(
        "energy{}, nodes and network: window mlperf_v4_0 {} J (with the RCP factor){}", side,
        count_text(std::round(*s.energy_mlperf_j)),
        s.energy_run_j ? fmt::format(", window run {} J (without)", count_text(std::round(*s.energy_run_j))) : ""));
  Maybe network;
  for (const MeasuredRun& r : b.runs)
    if (r.network_w) network = r.network_w;
  if (network) out += line(fmt::format("network {}, an estimate of the submitter", power_text(*network)));
  return out;
}

std::string findings_text(const Import& import) {
  if (import.findings.empty()) return "No findings: no file is damaged, no data look doubtful.\n";
  std::map<std::string, std::vector<const LogFinding*>> kinds;
  std::vector<std::string> order;
  for (const LogFinding& f : import.findings) {
    if (kinds[f.kind].empty()) order.push_back(f.kind);
    kinds[f.kind].push_back(&f);
  }
  std::stable_partition(order.begin(), order.end(), [](const std::string& k) { return !is_quality(k); });
  std::string out = fmt::format("Findings: {}\n", import.findings.size());
  for (const std::string& kind : order) {
    const auto& list = kinds[kind];
    out += fmt::format("  {} ({})\n", kind_title(kind), list.size());
    const size_t most = is_quality(kind) ? 3 : 20;
    for (size_t i = 0; i < std::min(most, list.size()); ++i)
      out += wrapped(fmt::format("{}: {}", place(*list[i]), printable(list[i]->what, 300)), "    ", "      ");
    if (list.size() > most) out += fmt::format("    ... and {} more (--json holds all)\n", list.size() - most);
  }
  return out;
}

json run_json(const MeasuredRun& r) {
  const ImportedRun& l = r.log;
  json evals = json::array(), nodes = json::array();
  for (const auto& [from, to] : l.evaluation_times) evals.push_back({number(from), number(to)});
  for (const NodeMeter& n : r.nodes)
    nodes.push_back({{"node", n.name},
                     {"usable", n.usable},
                     {"readings", n.readings},
                     {"run_j", number(n.run_j)},
                     {"mlperf_v4_0_j", number(n.mlperf_j)},
                     {"before_s", number(n.before_s)},
                     {"after_s", number(n.after_s)},
                     {"interval_s", number(n.interval_s)},
                     {"longest_gap_s", number(n.longest_gap_s)},
                     {"shift_h", n.shift_h}});
  return {{"run", l.id},
          {"file", l.file},
          {"status", text(l.status)},
          {"benchmark", text(l.benchmark)},
          {"division", text(l.division)},
          {"organisation", text(l.organisation)},
          {"platform", text(l.platform)},
          {"duplicate_of", text(l.duplicate_of)},
          {"not_compliant", text(l.not_compliant)},
          {"in_score", r.in_score},
          {"run_start_ms", l.start_ms != 0 ? json(l.start_ms) : json(nullptr)},
          {"run_stop_ms", l.stop_ms != 0 ? json(l.stop_ms) : json(nullptr)},
          {"run_s", number(l.run_s)},
          {"init_s", number(l.init_s)},
          {"seed", number(l.seed)},
          {"global_batch_size", number(l.global_batch_size)},
          {"gradient_accumulation", number(l.gradient_accumulation)},
          {"learning_rate", number(l.learning_rate)},
          {"samples", number(l.samples)},
          {"samples_from", text(l.samples_from)},
          {"steps", number(l.steps)},
          {"accuracy", number(l.accuracy)},
          {"evaluations", l.evaluations},
          {"eval_s_mean", number(l.eval_s)},
          {"eval_first_s", number(l.eval_first_s)},
          {"eval_blocking_s_mean", number(l.eval_blocking_s)},
          {"eval_times_s", evals},
          {"step_s_mean", number(l.step_s)},
          {"step_s_p5", number(l.step_s_p5)},
          {"step_s_p50", number(l.step_s_p50)},
          {"step_s_p95", number(l.step_s_p95)},
          {"step_source", text(l.step_source)},
          {"step_observations", l.step_observations},
          {"first_step_overhead_s", number(l.first_step_overhead_s)},
          {"first_gap_s", number(l.first_gap_s)},
          {"nodes_run_j", number(r.nodes_run_j)},
          {"nodes_mlperf_v4_0_j", number(r.nodes_mlperf_j)},
          {"network_w", number(r.network_w)},
          {"network_j", number(r.network_j())},
          {"total_run_j", number(r.total_run_j())},
          {"total_mlperf_v4_0_j", number(r.total_mlperf_j())},
          {"node_w_mean", number(r.node_w_mean)},
          {"node_w_min", number(r.node_w_min)},
          {"node_w_max", number(r.node_w_max)},
          {"distinct_traces", r.distinct_traces},
          {"nodes", nodes}};
}

json benchmark_json(const ImportedBenchmark& b) {
  const SubmittedSystem& d = b.description;
  const ImportedScore& s = b.score;
  json runs = json::array();
  for (const MeasuredRun& r : b.runs) runs.push_back(run_json(r));
  return {{"folder", b.folder},
          {"submitter", text(b.submitter)},
          {"system", text(b.system)},
          {"benchmark", text(b.benchmark)},
          {"simulated", b.simulated},
          {"description",
           {{"system_name", text(d.name)},
            {"division", text(d.division)},
            {"status", text(d.status)},
            {"accelerator", text(d.accelerator)},
            {"accelerators_per_node", d.accelerators_per_node > 0 ? json(d.accelerators_per_node) : json(nullptr)},
            {"framework", text(d.framework)},
            {"cooling", text(d.cooling)}}},
          {"nodes", b.nodes > 0 ? json(b.nodes) : json(nullptr)},
          {"meter", text(b.meter)},
          {"score",
           {{"time_s", number(s.time_s)},
            {"time_min", s.time_s ? json(*s.time_s / 60) : json(nullptr)},
            {"rcp_factor", number(s.factor)},
            {"rcp_factor_given", b.scaling_factor.has_value()},
            {"dropped_each_side", s.drop},
            {"failed", s.failed},
            {"required_runs", s.required_runs > 0 ? json(s.required_runs) : json(nullptr)},
            {"energy_mlperf_v4_0_j", number(s.energy_mlperf_j)},
            {"energy_run_j", number(s.energy_run_j)},
            {"none_because", text(s.none_because)},
            {"remark", text(s.remark)}}},
          {"runs", runs}};
}

}  // namespace

std::string import_table(const Import& import) {
  std::string out;
  for (const ImportedBenchmark& b : import.benchmarks) out += title_of(b) + runs_table(b) + score_text(b) + "\n";
  return out + findings_text(import);
}

void import_json(const Import& import, const std::string& comparison,
                 const std::function<void(std::string_view)>& write) {
  const auto part = [](const json& j, size_t indent) {
    std::string text;
    for (const char c : j.dump(2, ' ', false, json::error_handler_t::replace))
      text.append(1, c).append(c == '\n' ? indent : 0, ' ');
    return text;
  };
  const auto list = [&](const char* key, const auto& values, const auto& json_of) {
    const char* before = "[\n    ";
    write(fmt::format(",\n  \"{}\": ", key));
    for (const auto& value : values) {
      write(std::exchange(before, ",\n    ") + part(json_of(value), 4));
    }
    write(values.empty() ? "[]" : "\n  ]");
  };
  write(fmt::format("{{\n  \"trainwatt\": {},\n  \"files\": {}", json(version()).dump(), import.files));
  list("benchmarks", import.benchmarks, benchmark_json);
  list("findings", import.findings, [](const LogFinding& f) -> json {
    return {{"kind", f.kind}, {"file", f.file}, {"line", f.line > 0 ? json(f.line) : json(nullptr)}, {"what", f.what}};
  });
  if (!comparison.empty()) write(",\n  \"comparison\": " + part(json::parse(comparison), 2));
  write("\n}\n");
}

std::string import_csv(const Import& import) {
  std::string out =
      "folder,submitter,system,nodes,benchmark,run_id,duplicate_of,status,simulated,run_s,init_s,global_batch_size,"
      "grad_accum,"
      "learning_rate,samples_to_converge,steps_to_converge,n_evals,eval_s_mean,eval_first_s,eval_blocking_s_mean,"
      "step_s_mean,step_s_p5,step_s_p50,step_s_p95,step_source,step_obs,first_step_overhead_s,first_gap_s,in_score,"
      "scaling_factor,node_energy_window_j,node_energy_official_j,net_power_w,net_energy_j,total_energy_window_j,"
      "total_energy_official_j,node_w_mean,node_w_min,node_w_max,distinct_node_signals,power_dt_median_s,"
      "power_max_gap_in_run_s,power_file_pre_s,power_file_post_s\n";
  for (const ImportedBenchmark& b : import.benchmarks) {
    for (const MeasuredRun& r : b.runs) {
      const ImportedRun& l = r.log;
      Maybe interval, gap, pre, post;
      for (const NodeMeter& n : r.nodes) {
        if (!n.usable) continue;
        interval = std::max(interval.value_or(0), n.interval_s);
        gap = std::max(gap.value_or(0), n.longest_gap_s);
        pre = std::min(pre.value_or(n.before_s), n.before_s);
        post = std::min(post.value_or(n.after_s), n.after_s);
      }
      std::string row;
      const auto word = [&](const std::string& s) { row += (row.empty() ? "" : ",") + csv_field(s); };
      const auto value = [&](Maybe v) { row += v && std::isfinite(*v) ? fmt::format(",{}", *v) : ","; };
      word(b.folder), word(b.submitter), word(b.system);
      value(b.nodes > 0 ? Maybe(b.nodes) : Maybe());
      word(b.benchmark), word(l.id), word(l.duplicate_of), word(l.status), value(b.simulated ? 1 : 0);
      for (const Maybe& v : {l.run_s, l.init_s, l.global_batch_size, l.gradient_accumulation, l.learning_rate,
                             l.samples, l.steps, Maybe(l.evaluations), l.eval_s, l.eval_first_s, l.eval_blocking_s,
                             l.step_s, l.step_s_p5, l.step_s_p50, l.step_s_p95})
        value(v);
      word(l.step_source);
      for (const Maybe& v :
           {Maybe(l.step_observations), l.first_step_overhead_s, l.first_gap_s, Maybe(r.in_score ? 1 : 0),
            b.scaling_factor, r.nodes_run_j, r.nodes_mlperf_j, r.network_w, r.network_j(), r.total_run_j(),
            r.total_mlperf_j(), r.node_w_mean, r.node_w_min, r.node_w_max,
            r.nodes.empty() ? Maybe() : Maybe(r.distinct_traces), interval, gap, pre, post})
        value(v);
      out += row + "\n";
    }
  }
  return out;
}

std::string findings_csv(const Import& import) {
  std::string out = "kind,file,line,what\n";
  for (const LogFinding& f : import.findings)
    out += fmt::format("{},{},{},{}\n", f.kind, csv_field(printable(f.file, 400)),
                       f.line > 0 ? std::to_string(f.line) : "", csv_field(printable(f.what, 400)));
  return out;
}

}  // namespace tw::mlperf
