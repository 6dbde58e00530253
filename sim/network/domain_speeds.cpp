#include "network/domain_speeds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw::network {
namespace {

size_t index(Operation o) {
  return static_cast<size_t>(o);
}

// In this order; the last resort is the bound.
std::vector<Operation> related(Operation o) {
  switch (o) {
    case Operation::all_reduce:
      return {o};
    case Operation::reduce_scatter:
      return {o, Operation::all_gather};
    case Operation::all_gather:
      return {o, Operation::reduce_scatter};
    case Operation::broadcast:
      return {o, Operation::all_gather, Operation::reduce_scatter};
    case Operation::all_to_all:
      return {o, Operation::send_recv};
    case Operation::send_recv:
      return {o, Operation::all_to_all};
  }
  return {o};
}

}  // namespace

double bus_factor(Operation operation, int ranks) {
  if (ranks < 2) return 0;
  const double n = ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (n - 1) / n;
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::all_to_all:
      return (n - 1) / n;
    case Operation::broadcast:
    case Operation::send_recv:
      break;
  }
  return 1;
}

namespace {

const AlgorithmTuning* row_for(const CollectiveLibrary& library, Operation o) {
  const auto it = library.algorithms.find(o == Operation::all_to_all || o == Operation::send_recv ? "p2p" : "ring");
  return it == library.algorithms.end() ? nullptr : &it->second;
}

}  // namespace

DomainSpeeds::DomainSpeeds(const NvlinkDomain& domain, const CollectiveLibrary& library)
    : line_Bps_(domain.bandwidth.value()), library_(library) {
  std::array<std::vector<Speed>, 6> own;
  for (const auto& [name, operation] : Choices<Operation>::table())
    for (const DomainCollective& c : domain.collectives)
      if (c.operation == name)
        own[index(operation)].push_back(
            {std::log2(static_cast<double>(c.ranks)), c.floor.value(), c.bus_bandwidth.value(), c.half_size.value()});
  for (auto& list : own)
    std::sort(list.begin(), list.end(), [](const Speed& a, const Speed& b) { return a.log2_ranks < b.log2_ranks; });
  for (const auto& entry : Choices<Operation>::table())
    for (const Operation o : related(entry.second))
      if (measured_[index(entry.second)].empty()) measured_[index(entry.second)] = own[index(o)];
}

DomainSpeeds::Speed DomainSpeeds::at(Operation operation, int ranks) const {
  const std::vector<Speed>& list = measured_[index(operation)];
  if (list.empty()) return {0, 0, line_Bps_, 0};
  const double x = std::log2(static_cast<double>(ranks));
  if (x <= list.front().log2_ranks) return list.front();
  if (x >= list.back().log2_ranks) {
    Speed s = list.back();
    const AlgorithmTuning* row = row_for(library_, operation);
    const double more =
        rounds(operation, ranks) - rounds(operation, static_cast<int>(std::lround(std::exp2(s.log2_ranks))));
    if (row != nullptr && row->simple && more > 0)
      s.half_bytes += more * row->simple->nvlink.value() * s.bandwidth_Bps / bus_factor(operation, ranks);
    return s;
  }
  size_t i = 1;
  while (list[i].log2_ranks < x) ++i;
  const Speed &a = list[i - 1], &b = list[i];
  const double share = (x - a.log2_ranks) / (b.log2_ranks - a.log2_ranks);
  const auto mix = [share](double u, double v) { return u + share * (v - u); };
  return {x, mix(a.floor_s, b.floor_s), mix(a.bandwidth_Bps, b.bandwidth_Bps), mix(a.half_bytes, b.half_bytes)};
}

// Messages that follow one another.
double DomainSpeeds::rounds(Operation operation, int ranks) const {
  const AlgorithmTuning* row = row_for(library_, operation);
  if (operation == Operation::send_recv) return 1;
  if (operation == Operation::all_to_all)
    return row != nullptr && row->parallel > 0 ? std::ceil((ranks - 1.0) / row->parallel) : 1;
  return (operation == Operation::all_reduce ? 2 : 1) * (ranks - 1.0);
}

double DomainSpeeds::low_latency_s(Operation operation, int ranks, double bytes, double bus_Bps) const {
  double least = std::numeric_limits<double>::infinity();
  const AlgorithmTuning* row = row_for(library_, operation);
  if (row == nullptr) return least;
  for (const auto* c : {&row->ll, &row->ll128})
    if (*c)
      least = std::min(least, (*c)->base.value() + rounds(operation, ranks) * (*c)->nvlink.value() +
                                  bus_factor(operation, ranks) * bytes / bus_Bps / (*c)->efficiency);
  return least;
}

double DomainSpeeds::time_s(Operation operation, int ranks, double bytes, double floor_s) const {
  if (ranks < 2) return 0;
  const Speed s = at(operation, ranks);
  // Measured on the links the profile was made with; a slower link, as in a what-if, bounds it.
  const double bandwidth_Bps = std::min(s.bandwidth_Bps, line_Bps_);
  const double moving_s = bus_factor(operation, ranks) * (bytes + s.half_bytes) / bandwidth_Bps;
  const double sent_s = std::min(moving_s, low_latency_s(operation, ranks, bytes, bandwidth_Bps));
  return std::max(floor_s >= 0 ? floor_s : s.floor_s, bytes > 0 ? sent_s : 0);
}

double DomainSpeeds::efficiency(Operation operation, int ranks) const {
  return ranks < 2 ? 1 : std::min(1.0, at(operation, ranks).bandwidth_Bps / line_Bps_);
}

double domain_time_s(const NvlinkDomain& domain, Operation operation, int ranks, double bytes) {
  return DomainSpeeds(domain).time_s(operation, ranks, bytes);
}

}  // namespace tw::network
