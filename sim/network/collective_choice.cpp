// What each way to run a collective takes, what its library takes it to need, and the choice between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/collective_built.hpp"

namespace tw::network {
namespace {

// What NCCL gives a channel of its graphs between nodes.
constexpr double kChannel_Bps = 50e9;

const std::optional<ProtocolTuning>& row_of(const AlgorithmTuning& tuning, Protocol protocol) {
  return protocol == Protocol::ll ? tuning.ll : protocol == Protocol::ll128 ? tuning.ll128 : tuning.simple;
}

}  // namespace

const AlgorithmTuning& Collectives::tuning(const std::string& row) const {
  const auto it = options_.library->algorithms.find(row);
  if (it != options_.library->algorithms.end()) return it->second;
  throw InputError({{"", "", fmt::format("{} has no algorithm of the row \"{}\"", options_.library->name, row), ""}});
}

const ProtocolTuning& Collectives::tuning(const std::string& row, Protocol protocol) const {
  const auto& found = row_of(tuning(row), protocol);
  if (found) return *found;
  throw InputError(
      {{"", "", fmt::format("{} has no protocol {} for {}", options_.library->name, choice_name(protocol), row), ""}});
}

// Every protocol that the library has for the algorithm.
void Collectives::consider(Operation op, double bytes, const Built& built, std::vector<Considered>& all) const {
  const AlgorithmTuning& rows = tuning(built.tuning);
  bool any = false;
  for (const auto& [name, protocol] : Choices<Protocol>::table()) {
    if (protocol == Protocol::automatic || (options_.protocol != Protocol::automatic && options_.protocol != protocol))
      continue;
    const auto& c = row_of(rows, protocol);
    if (!c) continue;
    all.push_back({std::string(built.algorithm->name), protocol,
                   latency_of(*c, built) + relayed_s(*c, built, bytes) + bytes * built.slowest / c->efficiency, 0, "",
                   ""});
    assume(op, bytes, built, *c, all.back());
    any = true;
  }
  if (!any) tuning(built.tuning, options_.protocol);  // throws
}

// The library's own model: latencies, and a bandwidth that it corrects by what it measured.
void Collectives::assume(Operation op, double bytes, const Built& built, const ProtocolTuning& c,
                         Considered& way) const {
  const auto note = [&](const std::string& text) {
    if (options_.explain) way.because += (way.because.empty() ? "" : ", ") + text;
  };
  double latency_s = latency_of(c, built), s_per_byte = built.assumed / c.efficiency;
  if (built.assumed > built.slowest * (1 + 1e-9)) note("trees at half of the bandwidth");
  if (built.domains > 1 && op == Operation::all_reduce && c.assumed_latency > 1) {
    latency_s *= c.assumed_latency;
    note(fmt::format("latency times {:g}", c.assumed_latency));
  }
  const auto cap = [&](const std::vector<Bandwidth>& most, double channels) {
    if (most.empty() || !reduces_or_gathers(op)) return;  // a broadcast's chain has its own waits
    const double Bps = channels * most[std::min<size_t>(static_cast<size_t>(built.domains), most.size()) - 1].value();
    if (built.bus_factor / Bps <= s_per_byte) return;
    s_per_byte = built.bus_factor / Bps;
    note(fmt::format("at most {:.4g} GB/s", Bps * 1e-9));
  };
  cap(c.assumed_most, 1);
  cap(c.assumed_most_channel, std::max(built.adapters, std::floor(built.domain_Bps / kChannel_Bps)));
  constexpr double kFirstSize = 64;
  const auto power = bytes >= kFirstSize ? static_cast<size_t>(std::log2(bytes / kFirstSize)) : 0;
  if (op == Operation::all_reduce && bytes >= kFirstSize && power < c.assumed_shares.size() &&
      c.assumed_shares[power] < 1) {
    s_per_byte /= c.assumed_shares[power];
    note(fmt::format("{:g} of its bandwidth at this size", c.assumed_shares[power]));
  }
  way.assumed_s = latency_s + bytes * s_per_byte;
}

double Collectives::latency_of(const ProtocolTuning& c, const Built& built) const {
  return c.base.value() + built.nvlink * c.nvlink.value() + built.reduced * c.per_rank.value() +
         built.network * (c.network.value() + built.hops * fabric_.hop_latency_s);
}

// Along a chain or tree every hop waits for a slot of all channels; the library does not count that when it chooses.
double Collectives::relayed_s(const ProtocolTuning& c, const Built& built, double bytes) const {
  const auto waits_s = [&](const Bytes& whole, double s_per_byte, double held_s) {
    double slot = whole.value();
    for (const ChunkRule& rule : c.chunks) {
      const double pieces = rule.per_hop * (built.hops_nvlink + built.hops_network) +
                            rule.per_node_hop * (1 + built.hops_network) / built.domain_ranks;
      while (slot > rule.least.value() && bytes < pieces * built.channels * slot) slot /= 2;
    }
    return std::max(0.0, std::min(bytes, built.channels * slot) / c.efficiency * s_per_byte - held_s);
  };
  return waits_s(c.network_slot, built.passed_network, built.relays * built.hops_network * c.network_held.value()) +
         waits_s(c.nvlink_slot, built.passed_nvlink, built.relays * built.hops_nvlink * c.nvlink_held.value());
}

CollectiveCost Collectives::finished(double bytes, const Built& built, const Considered& chosen) const {
  CollectiveCost cost;
  const ProtocolTuning& c = tuning(built.tuning, chosen.protocol);
  cost.algorithm = chosen.algorithm;
  cost.protocol = chosen.protocol;
  cost.bytes = bytes;
  cost.time_s = chosen.time_s;
  cost.load.latency_s = latency_of(c, built) + relayed_s(c, built, bytes);
  cost.load.uses = built.uses;
  for (LinkUse& use : cost.load.uses) use.weight /= c.efficiency;
  cost.remark = built.remark;
  if (built.narrow >= 0) cost.bottleneck = fabric_.link_class(built.narrow);
  return cost;
}

// The first choice of the library's table for the size that can run; null: the library leaves it to its model.
const LibraryChoice* Collectives::listed(Operation op, double bytes, const std::vector<Built>& built,
                                         const CollectiveCost& inside) const {
  if (options_.algorithm != "auto" || options_.library->choices.empty()) return nullptr;
  const auto can_run = [&](const std::string& name) {
    return (inside.inside_domain && inside.algorithm == name) ||
           std::any_of(built.begin(), built.end(), [&](const Built& b) { return b.algorithm->name == name; });
  };
  for (const LibraryChoice& c : options_.library->choices)
    if (c.operation == choice_name(op) && (c.up_to.value() <= 0 || bytes <= c.up_to.value()) && can_run(c.algorithm))
      return &c;
  return nullptr;
}

// The way that the library's table names, where it can run; else the one that it takes for the fastest: `best`, when it
// has a time, or one of `built`.
CollectiveCost Collectives::chosen(Operation op, double bytes, const std::vector<Built>& built,
                                   CollectiveCost best) const {
  std::vector<Considered> all;
  const LibraryChoice* named = listed(op, bytes, built, best);
  const auto is_named = [&](const Considered& way) { return named != nullptr && way.algorithm == named->algorithm; };
  if (best.inside_domain) {
    all.push_back({best.algorithm, Protocol::automatic, best.time_s, best.time_s, "", ""});
    all.front().listed = is_named(all.front());
  }
  const Built* taken = nullptr;
  size_t least = 0;
  for (const Built& b : built) {
    const size_t before = all.size();
    consider(op, bytes, b, all);
    for (size_t i = before; i < all.size(); ++i) {
      all[i].listed = is_named(all[i]);
      if (i == 0 || all[i].listed > all[least].listed ||
          (all[i].listed == all[least].listed && all[i].assumed_s < all[least].assumed_s)) {
        least = i;
        taken = &b;
      }
    }
  }
  if (taken != nullptr) best = finished(bytes, *taken, all[least]);
  if (options_.explain) best.considered = std::move(all);
  return best;
}

// Algorithms that cannot run, and why.
void Collectives::add_refusals(const std::vector<Group>& groups, Operation op, std::vector<Considered>& all) const {
  for (const CollectiveAlgorithm& a : *options_.known) {
    if (std::any_of(all.begin(), all.end(), [&](const Considered& c) { return c.algorithm == a.name; })) continue;
    std::string why;
    for (const Group& g : groups)
      if (why.empty()) why = a.refusal(g, op);
    all.push_back({std::string(a.name), Protocol::automatic, 0, 0,
                   !why.empty()                   ? why
                   : options_.algorithm == "auto" ? "it is not offered without being named"
                                                  : options_.algorithm + " is named",
                   ""});
  }
}

std::vector<Fault> library_faults(const CollectiveLibrary& library) {
  std::vector<Fault> faults;
  std::vector<std::string> operations, known;
  for (const auto& entry : Choices<Operation>::table()) operations.push_back(entry.first);
  for (const CollectiveAlgorithm& a : algorithms()) known.emplace_back(a.name);
  for (size_t i = 0; i < library.choices.size(); ++i)
    for (const auto& [key, word, words] : {std::tuple{"operation", &library.choices[i].operation, &operations},
                                           std::tuple{"algorithm", &library.choices[i].algorithm, &known}})
      if (std::find(words->begin(), words->end(), *word) == words->end())
        faults.push_back({library.name, fmt::format("/choices/{}/{}", i, key),
                          fmt::format("unknown choice \"{}\"", printable(*word)), suggest(*word, *words)});
  return faults;
}

}  // namespace tw::network
