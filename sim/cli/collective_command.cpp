// trainwatt collective: one collective on a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

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

struct CollectiveArguments {
  std::string cluster, json, output;
  Operation operation = Operation::all_reduce;
  network::CollectiveOptions options;
  Placement placement = Placement::packed;
  std::vector<std::string> set;
  std::vector<double> sizes;
  std::string library;
  std::vector<std::pair<int, double>> late;  // rank, seconds
  int ranks = 0, level = 1;
};

// "3=200 us".
std::string read_late(const std::string& word, std::vector<std::pair<int, double>>& late) {
  const size_t sign = word.find('=');
  int rank = -1;
  const auto number = std::from_chars(word.data(), word.data() + std::min(sign, word.size()), rank);
  if (sign == std::string::npos || number.ec != std::errc() || number.ptr != word.data() + sign || rank < 0)
    return "a rank and a time, such as \"3=200 us\"";
  std::optional<double> time_s;
  std::string problem = quantity<Time>(time_s)(word.substr(sign + 1));
  if (time_s) late.emplace_back(rank, *time_s);
  return problem;
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
ExitCode simulate(const CollectiveArguments& a, const Fabric& fabric, const network::CollectiveOptions& options,
                  const std::vector<network::Rank>& ranks, std::vector<network::CollectiveCost>& costs,
                  Console& console) {
  const auto answers = in_children(costs.size(),
                                   [&](size_t i) {
                                     const network::CollectiveCost& c = costs[i];
                                     const double time_s = a.level == 2
                                                               ? network::load_level_s(fabric, c)
                                                               : network::message_level_s(fabric, c.operation, ranks,
                                                                                          c.bytes, chosen(options, c));
                                     return fmt::format("{:.17g}", time_s);
                                   },
                                   {workers(0), kDeadline_s, {}, {}});
  ExitCode code = ExitCode::done;
  std::set<std::string> said;
  for (size_t i = 0; i < answers.size(); ++i) {
    network::CollectiveCost& c = costs[i];
    if (answers[i].error.empty()) {
      c.time_s = std::stod(answers[i].value);
      if (a.level < 3) continue;
      const std::string joined = network::joined_rounds(fabric, {c.operation, {ranks}, c.algorithm});
      if (joined.empty()) continue;
      c.remark += (c.remark.empty() ? "" : "; ") + joined;
      if (said.insert(joined).second) console.message("warning: " + joined);
      continue;
    }
    console.error(fmt::format("{}: {}", report::bytes_text(costs[i].bytes), answers[i].error));
    code = std::max(code, answers[i].code);
  }
  return code;
}

ExitCode run(const CollectiveArguments& a, Console& console) {
  Faults& faults = console.faults;
  network::CollectiveOptions options = a.options;
  const auto known = network::algorithm_names(*options.known);
  if (std::find(known.begin(), known.end(), options.algorithm) == known.end())
    faults.add({"--algorithm", "", fmt::format("unknown choice \"{}\"", options.algorithm),
                suggest(options.algorithm, known)});
  options.nvls = options.nvls || options.algorithm == "nvls";
  options.sharp = options.sharp || options.algorithm == "sharp";
  CollectiveLibrary library;
  if (!a.library.empty()) {
    library =
        read<CollectiveLibrary>(Document::load(a.library, description<CollectiveLibrary>().info(), {}, faults), faults);
    options.library = &library;
    for (Fault f : network::library_faults(library)) f.file = a.library, faults.add(f);
  }
  const std::vector<double> sizes = a.sizes.empty() ? network::doubling_sizes() : a.sizes;
  const Cluster cluster = load_cluster(a.cluster, a.set, faults);
  if (a.library.empty() && cluster.node.accelerator.collectives)
    options.library = &*cluster.node.accelerator.collectives;
  const long most = static_cast<long>(cluster.nodes()) * cluster.node.gpus;
  if (faults.empty() && a.ranks > most)
    faults.add({"--ranks", "", fmt::format("{} ranks are more than the cluster has", a.ranks),
                fmt::format("allowed: at most {}", most)});
  const int ranks = a.ranks > 0 ? a.ranks : static_cast<int>(most);
  if (faults.empty() && a.level == 3 && ranks > kMostMessageRanks)
    faults.add({"--level", "", fmt::format("level 3 sends every message of {} ranks on its own", ranks),
                fmt::format("at most {} ranks: --ranks", kMostMessageRanks)});
  for (const auto& [rank, late_s] : a.late) {
    options.late_s.resize(static_cast<size_t>(std::max(0, ranks)), 0);
    if (rank < ranks)
      options.late_s[static_cast<size_t>(rank)] = late_s;
    else if (faults.empty())
      faults.add({"--late", "", fmt::format("there is no rank {}", rank), fmt::format("0 to {}", ranks - 1)});
  }
  faults.throw_if_any();

  const Fabric fabric = build_fabric(cluster);
  network::Collectives collectives(fabric, options);
  const auto members = first_ranks(fabric, a.placement, ranks);
  auto costs = collectives.costs(a.operation, {members}, sizes);
  if (a.level > 1) {
    const ExitCode code = simulate(a, fabric, options, members, costs, console);
    if (code != ExitCode::done) return code;
  }
  if (!a.output.empty())
    for (const std::string& note : report::collectives_figure(a.output, cluster.name, costs)) console.message(note);
  if (!a.json.empty())
    write_output(console, a.json,
                 a.sizes.size() == 1 ? report::collective_json(costs.front(), a.level)
                                     : report::collectives_json(costs, a.level));
  if (a.json != "-")
    console.result(a.sizes.size() == 1 ? report::collective_text(costs.front())
                                       : report::collectives_table(cluster.name, costs));
  for (const std::string& remark : collectives.remarks()) console.message("warning: " + remark);
  if (options.explain && a.json != "-")
    for (const network::CollectiveCost& c : costs) console.result(report::choice_text(c));
  return ExitCode::done;
}

}  // namespace

Command collective_command() {
  const auto a = std::make_shared<CollectiveArguments>();
  const auto size = [a](const std::string& word) {
    std::optional<double> bytes;
    std::string problem = quantity<Bytes>(bytes)(word);
    if (bytes) a->sizes.push_back(*bytes);
    return problem;
  };
  const auto late = [a](const std::string& word) { return read_late(word, a->late); };
  return {
      "collective",
      "Times a collective on a cluster: algorithm, bus bandwidth, bound, bottleneck",
      "  trainwatt collective topologies/smc-h100.json --op all-reduce -o out\n"
      "  trainwatt collective topologies/smc-h100.json --op all-reduce --size \"1 GiB\"\n"
      "  trainwatt collective topologies/smc-h100.json --op all-gather --size \"64 MiB\" --ranks 64 --json -",
      {argument("cluster", "FILE", "cluster file", &a->cluster),
       required(option("--op", "OPERATION",
                       "all-reduce, reduce-scatter, all-gather, broadcast, all-to-all or send-recv",
                       choice(a->operation))),
       option("--size", "SIZE",
              "full buffer of a rank, such as \"1 GiB\" or \"64 MB\"; may be repeated (default: a table from 1 KiB to "
              "16 GiB)",
              Reader(size)),
       option("--ranks", "N", "accelerators, filled node by node (default: all of the cluster)", &a->ranks,
              between(2, 1e8)),
       option("--algorithm", "NAME",
              "auto (default), ring, tree, hierarchical, nvls, sharp, direct, recursive_doubling or pieces",
              &a->options.algorithm),
       option("--protocol", "NAME", "auto (default), ll, ll128 or simple", choice(a->options.protocol)),
       option("--library", "FILE",
              "tuning tables of a library (default: the accelerator's, or models/collectives/nccl-2.27.json)",
              &a->library),
       flag("--explain", "say what was considered, and why the algorithm was chosen", &a->options.explain),
       flag("--nvls", "reduction in the NVLink switches may be used", &a->options.nvls),
       flag("--sharp", "reduction in the network switches may be used", &a->options.sharp),
       option("--placement", "NAME", "packed (default): the first nodes; spread: over all units in turn",
              choice(a->placement)),
       option("--late", "RANK=TIME",
              "a rank, counted from 0, comes to the collective this much later than the others, such as \"3=200 us\"; "
              "may be repeated. Levels 1 and 2 begin with the last one; at level 3 goes on what does not wait for it",
              Reader(late)),
       option("--level", "N",
              "1: closed form on the links that the collective loads (default); 2: the same through the engine; 3: "
              "every message",
              &a->level, between(1, 3)),
       overrides("the cluster", &a->set),
       output_folder("-o,--output", "write collective.csv and the figure into DIR", &a->output),
       json_file("the answer (of several sizes: an array)", &a->json)},
      [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
