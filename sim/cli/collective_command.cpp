// trainwatt collective: one collective on a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "core/text.hpp"
#include "network/collective.hpp"
#include "network/message_level.hpp"
#include "network/process.hpp"
#include "report/collective_report.hpp"
#include "report/numbers.hpp"
#include "topology/placement.hpp"

namespace tw::cli {
namespace {

using network::Operation;

struct Arguments {
  std::string cluster, operation, algorithm = "auto", protocol = "auto", library, placement = "packed", json, output;
  std::vector<std::string> set, size;
  int ranks = 0, level = 1;
  bool nvls = false, sharp = false, explain = false;
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

// The first `count` accelerators of the placed nodes, node by node.
std::vector<network::Rank> first_ranks(const Fabric& fabric, Placement placement, int count) {
  const int nodes = (count + fabric.gpus - 1) / fabric.gpus;
  auto ranks = network::ranks_of(fabric, place(fabric, placement, nodes));
  ranks.resize(static_cast<size_t>(count));
  return ranks;
}

// What was chosen, for the levels that play one algorithm.
network::CollectiveOptions chosen(network::CollectiveOptions options, const network::CollectiveCost& cost) {
  options.algorithm = cost.algorithm;
  if (!cost.inside_domain) options.protocol = cost.protocol;
  return options;
}

// Rings of r ranks send r^2 messages an adapter: beyond this a person waits.
constexpr int kMostMessageRanks = 256;

// Replaces the times by those of the engine: level 2 sends each collective as one load over all its links, level 3
// every message. One engine a process.
ExitCode simulate(const Arguments& a, const Fabric& fabric, const network::CollectiveOptions& options,
                  const std::vector<network::Rank>& ranks, std::vector<network::CollectiveCost>& costs,
                  Console& console) {
  ChildOptions children;
  children.jobs = default_jobs();
  children.deadline_s = kDeadline_s;
  const auto answers = in_children(
      costs.size(),
      [&](size_t i) {
        const network::CollectiveCost& c = costs[i];
        const double time_s = a.level == 2
                                  ? network::load_level_s(fabric, c)
                                  : network::message_level_s(fabric, c.operation, ranks, c.bytes, chosen(options, c));
        return fmt::format("{:.17g}", time_s);
      },
      children);
  ExitCode code = ExitCode::done;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].error.empty()) {
      costs[i].time_s = std::stod(answers[i].value);
      continue;
    }
    console.error(fmt::format("{}: {}", report::bytes_text(costs[i].bytes), answers[i].error));
    code = std::max(code, answers[i].code);
  }
  return code;
}

// Sizes asked for; the table of nccl-tests when there are none.
std::vector<double> sizes_of(const std::vector<std::string>& given, Faults& faults) {
  if (given.empty()) return network::doubling_sizes();
  std::vector<double> sizes;
  for (const std::string& text : given) {
    const ParsedQuantity size = parse_quantity(text, DimensionOf<Bytes>::info);
    if (!size.problem.empty()) faults.add({"--size", "", size.problem, ""});
    if (size.problem.empty() && size.value <= 0)
      faults.add({"--size", "", fmt::format("\"{}\" is out of range", text), "allowed: above 0 B"});
    sizes.push_back(size.value);
  }
  return sizes;
}

ExitCode run(const Arguments& a, Console& console) {
  Faults faults;
  const auto operation = choice_of<Operation>("--op", a.operation, faults);
  const auto placement = choice_of<Placement>("--placement", a.placement, faults);
  network::CollectiveOptions options;
  options.algorithm = a.algorithm;
  const auto known = network::algorithm_names(*options.known);
  if (std::find(known.begin(), known.end(), a.algorithm) == known.end())
    faults.add({"--algorithm", "", fmt::format("unknown choice \"{}\"", a.algorithm), suggest(a.algorithm, known)});
  options.protocol = choice_of<network::Protocol>("--protocol", a.protocol, faults);
  options.nvls = a.nvls || a.algorithm == "nvls";
  options.sharp = a.sharp || a.algorithm == "sharp";
  options.explain = a.explain;
  CollectiveLibrary library;
  if (!a.library.empty()) {
    library =
        read<CollectiveLibrary>(Document::load(a.library, description<CollectiveLibrary>().info(), {}, faults), faults);
    options.library = &library;
  }
  const std::vector<double> sizes = sizes_of(a.size, faults);
  check_output_file("--json", a.json, faults);
  check_output_folder("-o", a.output, faults);
  const Document document = Document::load(a.cluster, description<Cluster>().info(), a.set, faults);
  const auto cluster = read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(cluster, ReadContext{&document, "", &faults, {}});
  const long most = static_cast<long>(cluster.nodes()) * cluster.node.gpus;
  if (faults.empty() && a.ranks > most)
    faults.add({"--ranks", "", fmt::format("{} ranks are more than the cluster has", a.ranks),
                fmt::format("allowed: at most {}", most)});
  const int ranks = a.ranks > 0 ? a.ranks : static_cast<int>(most);
  if (faults.empty() && a.level == 3 && ranks > kMostMessageRanks)
    faults.add({"--level", "", fmt::format("level 3 sends every message of {} ranks on its own", ranks),
                fmt::format("at most {} ranks: --ranks", kMostMessageRanks)});
  faults.throw_if_any();

  const Fabric fabric = build_fabric(cluster);
  network::Collectives collectives(fabric, options);
  const auto members = first_ranks(fabric, placement, ranks);
  auto costs = collectives.costs(operation, {members}, sizes);
  if (a.level > 1) {
    const ExitCode code = simulate(a, fabric, options, members, costs, console);
    if (code != ExitCode::done) return code;
  }
  if (!a.output.empty())
    for (const std::string& note : report::collectives_figure(a.output, cluster.name, costs)) console.message(note);
  if (!a.json.empty())
    write_output(console, a.json,
                 a.size.size() == 1 ? report::collective_json(costs.front(), a.level)
                                    : report::collectives_json(costs, a.level));
  if (a.json != "-")
    console.result(a.size.size() == 1 ? report::collective_text(costs.front())
                                      : report::collectives_table(cluster.name, costs));
  if (a.explain && a.json != "-")
    for (const network::CollectiveCost& c : costs) console.result(report::choice_text(c));
  return ExitCode::done;
}

}  // namespace

Command collective_command() {
  const auto a = std::make_shared<Arguments>();
  return {"collective",
          "Times a collective on a cluster: algorithm, bus bandwidth, bound, bottleneck",
          "  trainwatt collective topologies/smc-h100.json --op all-reduce -o out\n"
          "  trainwatt collective topologies/smc-h100.json --op all-reduce --size \"1 GiB\"\n"
          "  trainwatt collective topologies/smc-h100.json --op all-gather --size \"64 MiB\" --ranks 64 --json -",
          {{"cluster", "FILE", "cluster file", &a->cluster, true, {}},
           {"--op",
            "OPERATION",
            "all-reduce, reduce-scatter, all-gather, broadcast, all-to-all or send-recv",
            &a->operation,
            true,
            {}},
           {"--size",
            "SIZE",
            "full buffer of a rank, such as \"1 GiB\" or \"64 MB\"; may be repeated (default: a table from 1 KiB to 16 "
            "GiB)",
            &a->size,
            false,
            {}},
           {"--ranks", "N", "accelerators, filled node by node (default: all of the cluster)", &a->ranks, false,
            between(2, 1e8)},
           {"--algorithm",
            "NAME",
            "auto (default), ring, tree, hierarchical, nvls, sharp or direct",
            &a->algorithm,
            false,
            {}},
           {"--protocol", "NAME", "auto (default), ll, ll128 or simple", &a->protocol, false, {}},
           {"--library",
            "FILE",
            "tuning tables of a library (default: models/collectives/nccl-2.27.json)",
            &a->library,
            false,
            {}},
           {"--explain", "", "say what was considered, and why the algorithm was chosen", &a->explain, false, {}},
           {"--nvls", "", "reduction in the NVLink switches may be used", &a->nvls, false, {}},
           {"--sharp", "", "reduction in the network switches may be used", &a->sharp, false, {}},
           {"--placement",
            "NAME",
            "packed (default): the first nodes; spread: over all units in turn",
            &a->placement,
            false,
            {}},
           {"--level", "N",
            "1: closed form on the links that the collective loads (default); 2: the same through the engine; 3: every "
            "message",
            &a->level, false, between(1, 3)},
           {"--set", "POINTER=VALUE", "override a value of the cluster; may be repeated", &a->set, false, {}},
           {"-o,--output", "DIR", "write collective.csv and the figure into DIR", &a->output, false, {}},
           {"--json",
            "FILE",
            "write the answer (of several sizes: an array) as JSON; - is stdout, in place of the table",
            &a->json,
            false,
            {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
