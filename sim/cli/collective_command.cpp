// trainwatt collective: one collective on a cluster.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/text.hpp"
#include "network/collective.hpp"
#include "report/numbers.hpp"
#include "topology/placement.hpp"

namespace tw::cli {
namespace {

using network::Algorithm;
using network::Operation;

struct Arguments {
  std::string cluster, operation, size, algorithm = "auto", json;
  std::vector<std::string> set;
  int ranks = 0, level = 1;
};

template <class E>
E choice_of(const std::string& option, const std::string& given, Faults& faults) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Choices<E>::table()) {
    if (name == given) return value;
    names.push_back(name);
  }
  faults.add({option, "", fmt::format("unknown choice \"{}\"", given), suggest(given, names)});
  return Choices<E>::table().front().second;
}

// The first `count` accelerators, node by node.
std::vector<network::Rank> first_ranks(const Fabric& fabric, int count) {
  const int nodes = (count + fabric.gpus - 1) / fabric.gpus;
  auto ranks = network::ranks_of(fabric, place_packed(fabric, nodes));
  ranks.resize(static_cast<size_t>(count));
  return ranks;
}

std::string table_of(const network::CollectiveCost& cost) {
  std::string out =
      fmt::format("{} of {} over {} ranks\n", choice_name(cost.operation), report::bytes_text(cost.bytes), cost.ranks);
  const auto add = [&](const char* name, const std::string& value) {
    out += fmt::format("  {:<16} {}\n", name, value);
  };
  add("time", report::time_text(cost.time_s));
  add("algorithm", choice_name(cost.algorithm) + (cost.inside_domain ? ", inside one NVLink domain" : ""));
  add("bus bandwidth", report::bytes_text(cost.bus_bandwidth_Bps()) + "/s");
  add("bound", fmt::format("{}, {:.2f} times of which are taken", report::time_text(cost.bound_s),
                           cost.bound_s > 0 ? cost.time_s / cost.bound_s : 1));
  add("bottleneck", cost.bottleneck);
  return out;
}

std::string json_of(const network::CollectiveCost& cost) {
  const nlohmann::ordered_json j = {{"op", choice_name(cost.operation)},
                                    {"bytes", cost.bytes},
                                    {"ranks", cost.ranks},
                                    {"algorithm", choice_name(cost.algorithm)},
                                    {"time_s", cost.time_s},
                                    {"busbw_Bps", cost.bus_bandwidth_Bps()},
                                    {"bound_s", cost.bound_s},
                                    {"bottleneck", cost.bottleneck}};
  return j.dump(2) + "\n";
}

ExitCode run(const Arguments& a, Console& console) {
  Faults faults;
  const auto operation = choice_of<Operation>("--op", a.operation, faults);
  network::CollectiveOptions options;
  options.algorithm = choice_of<Algorithm>("--algorithm", a.algorithm, faults);
  options.nvls = options.algorithm == Algorithm::nvls;
  options.sharp = options.algorithm == Algorithm::sharp;
  const ParsedQuantity size = parse_quantity(a.size, DimensionOf<Bytes>::info);
  if (!size.problem.empty()) faults.add({"--size", "", size.problem, ""});
  if (size.problem.empty() && size.value <= 0)
    faults.add({"--size", "", fmt::format("\"{}\" is out of range", a.size), "allowed: above 0 B"});
  if (a.level != 1) faults.add({"--level", "", "only level 1 is part of this version", ""});
  check_output_file("--json", a.json, faults);
  const Document document = Document::load(a.cluster, description<Cluster>().info(), a.set, faults);
  const auto cluster = read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(cluster, ReadContext{&document, "", &faults, {}});
  const long most = static_cast<long>(cluster.nodes()) * cluster.node.gpus;
  if (faults.empty() && a.ranks > most)
    faults.add({"--ranks", "", fmt::format("{} ranks are more than the cluster has", a.ranks),
                fmt::format("allowed: at most {}", most)});
  faults.throw_if_any();

  const Fabric fabric = build_fabric(cluster);
  network::Collectives collectives(fabric, options);
  const int ranks = a.ranks > 0 ? a.ranks : static_cast<int>(most);
  const auto cost = collectives.cost(operation, first_ranks(fabric, ranks), size.value);
  if (!a.json.empty()) write_output(console, a.json, json_of(cost));
  if (a.json != "-") console.result(table_of(cost));
  return ExitCode::done;
}

}  // namespace

Command collective_command() {
  const auto a = std::make_shared<Arguments>();
  return {"collective",
          "Times one collective on a cluster: algorithm, bus bandwidth, bound, bottleneck",
          "  trainwatt collective topologies/smc-h100.json --op all-reduce --size \"1 GiB\"\n"
          "  trainwatt collective topologies/smc-h100.json --op all-gather --size \"64 MiB\" --ranks 64 --json -",
          {{"cluster", "FILE", "cluster file", &a->cluster, true, {}},
           {"--op",
            "OPERATION",
            "all-reduce, reduce-scatter, all-gather, broadcast, all-to-all or send-recv",
            &a->operation,
            true,
            {}},
           {"--size", "SIZE", "full buffer of a rank, such as \"1 GiB\" or \"64 MB\"", &a->size, true, {}},
           {"--ranks", "N", "accelerators, filled node by node (default: all of the cluster)", &a->ranks, false,
            between(2, 1e8)},
           {"--algorithm",
            "NAME",
            "auto (default), ring, tree, hierarchical, nvls, sharp or direct",
            &a->algorithm,
            false,
            {}},
           {"--level", "N", "1: closed form on the links that the collective loads (default)", &a->level, false,
            between(1, 3)},
           {"--set", "POINTER=VALUE", "override a value of the cluster; may be repeated", &a->set, false, {}},
           {"--json", "FILE", "write the answer as JSON; - is stdout, in place of the table", &a->json, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
