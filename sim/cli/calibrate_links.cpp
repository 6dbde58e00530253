#include "cli/calibrate_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "foreign/cluster_file.hpp"
#include "foreign/nccl_tests.hpp"
#include "network/collective.hpp"
#include "report/numbers.hpp"
#include "topology/placement.hpp"

namespace tw::cli {
namespace {

using foreign::Json;
using foreign::NcclTest;
using foreign::NcclTestRow;

// Rows whose time is that of the links, not of latencies: bus bandwidth within a fifth of the best.
std::vector<NcclTestRow> plateau(const NcclTest& test) {
  double best_Bps = 0;
  for (const NcclTestRow& r : test.rows) best_Bps = std::max(best_Bps, r.bus_Bps);
  std::vector<NcclTestRow> rows;
  for (const NcclTestRow& r : test.rows)
    if (r.bus_Bps >= 0.8 * best_Bps && r.bus_Bps > 0) rows.push_back(r);
  return rows;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : 0.5 * (v[(v.size() - 1) / 2] + v[v.size() / 2]);
}

network::Operation operation_of(const NcclTest& test) {
  for (const auto& [name, operation] : Choices<network::Operation>::table())
    if (name == test.operation) return operation;
  return network::Operation::all_reduce;
}

// Simulated costs of the rows, with the cluster as it stands.
std::vector<network::CollectiveCost> simulated(const Cluster& cluster, const NcclTest& test,
                                               const std::vector<NcclTestRow>& rows) {
  const Fabric fabric = build_fabric(cluster);
  const int per_node = test.hosts > 0 ? std::max(1, test.ranks / test.hosts) : fabric.gpus;
  const int nodes = (test.ranks + per_node - 1) / per_node;
  std::vector<network::Rank> ranks;
  for (const network::Rank& r : network::ranks_of(fabric, place(fabric, Placement::packed, nodes)))
    if (r.gpu < per_node) ranks.push_back(r);
  network::CollectiveOptions options;
  if (cluster.node.accelerator.collectives) options.library = &*cluster.node.accelerator.collectives;
  network::Collectives collectives(fabric, options);
  std::vector<double> sizes;
  for (const NcclTestRow& r : rows) sizes.push_back(r.bytes);
  return collectives.costs(operation_of(test), {ranks}, sizes);
}

// How much longer the plateau takes than measured, in the geometric mean.
double excess(const Cluster& cluster, const NcclTest& test, const std::vector<NcclTestRow>& rows) {
  const auto costs = simulated(cluster, test, rows);
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) sum += std::log(costs[i].time_s / rows[i].time_s);
  return sum / static_cast<double>(rows.size());
}

// The share of the line rate with which the plateau takes as long as measured. A collective that NVLink binds says
// nothing about the links between nodes, which is a fault.
double fitted_efficiency(const std::string& file, Cluster cluster, const NcclTest& test,
                         const std::vector<NcclTestRow>& rows, Faults& faults) {
  double low = 0.01, high = 1;
  cluster.fabric.link_efficiency = high;
  if (const std::string bottleneck = simulated(cluster, test, rows).back().bottleneck; bottleneck == "NVLink") {
    faults.add({file, "",
                fmt::format("{} on {} nodes is bound by NVLink: it does not show what the links between nodes reach",
                            test.operation, test.hosts),
                "alltoall_perf, or more nodes"});
    return high;
  }
  if (excess(cluster, test, rows) >= 0) return high;
  for (int i = 0; i < 24; ++i) {
    const double middle = 0.5 * (low + high);
    cluster.fabric.link_efficiency = middle;
    (excess(cluster, test, rows) > 0 ? low : high) = middle;
  }
  return std::round(5000 * (low + high)) / 1e4;
}

// A measured collective of the domain: t = max(floor, factor * (bytes + half_size) / bandwidth).
Json domain_entry(const NcclTest& test, const std::vector<NcclTestRow>& rows, const std::string& source) {
  std::vector<double> best, half;
  for (const NcclTestRow& r : rows) best.push_back(r.bus_Bps);
  const double bus_Bps = median(best);
  double floor_s = test.rows.front().time_s;
  for (const NcclTestRow& r : test.rows) {
    floor_s = std::min(floor_s, r.time_s);
    const double share = r.bus_Bps / bus_Bps;
    if (share > 0.25 && share < 0.75) half.push_back(r.bytes / share - r.bytes);
  }
  Json entry{{"operation", test.operation},
             {"ranks", test.ranks},
             {"floor", fmt::format("{:.4g} us", floor_s * 1e6)},
             {"bus_bandwidth", fmt::format("{:.4g} GB/s", bus_Bps / 1e9)}};
  if (!half.empty()) entry["half_size"] = fmt::format("{:.3g} MB", median(half) / 1e6);
  entry["source"] = source;
  return entry;
}

// The domain's links as the cluster has them, with this measurement in place of one of the same operation and ranks.
Json domain_with(const std::string& cluster, const Json& entry, Faults& faults) {
  const Json base = foreign::base_cluster(cluster, faults);
  if (base.is_null()) return nullptr;
  Json nvlink = base["node"]["nvlink"];
  if (nvlink.is_string()) {
    const auto path = find_input_file(nvlink.get<std::string>(), cluster);
    if (!path) return nullptr;
    nvlink = Json::parse(read_file(*path), nullptr, false, true);
  }
  Json list = Json::array();
  for (const Json& old : nvlink.value("collectives", Json::array()))
    if (old["operation"] != entry["operation"] || old["ranks"] != entry["ranks"]) list.push_back(old);
  list.push_back(entry);
  nvlink["collectives"] = list;
  return nvlink;
}

std::string rows_table(const NcclTest& test, const Cluster& cluster) {
  const auto costs = simulated(cluster, test, test.rows);
  std::string out = fmt::format("{} on {} ranks\n  {:>12} {:>12} {:>12} {:>12} {:>9}\n", test.operation, test.ranks,
                                "size", "measured", "simulated", "bus, meas.", "error");
  for (size_t i = 0; i < test.rows.size(); ++i) {
    const NcclTestRow& r = test.rows[i];
    out +=
        fmt::format("  {:>12} {:>12} {:>12} {:>12} {:>9}\n", report::size_text(r.bytes), report::in_unit(r.time_s, "s"),
                    report::in_unit(costs[i].time_s, "s"), report::bytes_text(r.bus_Bps) + "/s",
                    report::percent_text(100 * (costs[i].time_s / r.time_s - 1)));
  }
  return out;
}

}  // namespace

ExitCode calibrate_links(const LinkCalibration& a, Console& console) {
  Faults& faults = console.faults;
  const auto path = named_file(a.test, faults);
  if (a.cluster.empty())
    faults.add({"--cluster", "", "is missing: the links of which cluster?", "a file of topologies/"});
  faults.throw_if_any();
  const foreign::Source source{a.test, read_file(*path)};
  if (!foreign::is_nccl_test(source))
    throw InputError({{a.test, "", "is no output of nccl-tests", "what all_reduce_perf and its kin print"}});
  const NcclTest test = foreign::parse_nccl_test(source, faults);
  Cluster cluster = load_cluster(a.cluster, {}, faults);
  const long most = static_cast<long>(cluster.nodes()) * cluster.node.gpus;
  if (faults.empty() && (test.ranks < 2 || test.ranks > most || test.hosts > cluster.nodes()))
    faults.add({a.test, "", fmt::format("{} ranks on {} hosts", test.ranks, test.hosts),
                fmt::format("2 to {} ranks on the {} nodes of {}", most, cluster.nodes(), a.cluster)});
  faults.throw_if_any();
  const auto rows = plateau(test);
  const std::string note = fmt::format("trainwatt calibrate --nccl-tests {}: {} on {} ranks",
                                       std::filesystem::path(a.test).filename().string(), test.operation, test.ranks);
  Json file{{"use", a.cluster}, {"name", cluster.name + "-measured"}};
  std::string said;
  if (test.hosts <= cluster.node.nvlink.nodes && test.ranks <= cluster.node.gpus * cluster.node.nvlink.nodes) {
    const Json entry = domain_entry(test, rows, note);
    file["node"]["nvlink"] = domain_with(a.cluster, entry, faults);
    said = fmt::format("inside one NVLink domain: {} of bus bandwidth, {} for the smallest call\n",
                       entry["bus_bandwidth"].get<std::string>(), entry["floor"].get<std::string>());
  } else {
    const double efficiency = fitted_efficiency(a.test, cluster, test, rows, faults);
    file["fabric"] = {{"link_efficiency", efficiency}};
    file["hosts"] = {{"source", "link_efficiency: " + note}};
    said =
        fmt::format("link efficiency {:.4g} of the line rate, fitted on the {} largest sizes{}\n", efficiency,
                    rows.size(), efficiency >= 1 ? "; the measured collective is no slower than the links allow" : "");
  }
  if (!test.operation_said)
    said += fmt::format("the file does not name its operation: {} by its bandwidths\n", test.operation);
  faults.throw_if_any();
  const std::string text = "// Made by trainwatt calibrate --nccl-tests.\n" + file.dump(2) + "\n";
  const Document document =
      Document::from_text(text, a.output == "-" ? a.cluster : a.output, description<Cluster>().info(), {}, faults);
  cluster = read<Cluster>(document, faults);
  faults.throw_if_any();
  write_output(console, a.output, text);
  said += rows_table(test, cluster);
  if (a.output == "-")
    console.message(said);
  else
    console.result(said);
  return ExitCode::done;
}

}  // namespace tw::cli
