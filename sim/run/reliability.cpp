#include "run/reliability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"

namespace tw {

bool takes_node(Component c) {
  return c == Component::gpu || c == Component::nic || c == Component::node;
}

double FailureRates::total() const {
  double sum = 0;
  for (const double rate : per_s) sum += rate;
  return sum;
}

FailureRates failure_rates(const Reliability& r, int nodes, int gpus_per_node, int nics_per_node, double switches) {
  FailureRates rates;
  const double n = nodes;
  const auto set = [&](Component c, const std::optional<Time>& mtbf, double count) {
    if (mtbf) rates.per_s[static_cast<size_t>(c)] = count / mtbf->value();
  };
  set(Component::gpu, r.gpu_mtbf, n * gpus_per_node);
  set(Component::nic, r.nic_mtbf, n * nics_per_node);
  set(Component::node, r.node_mtbf, n);
  set(Component::link, r.link_mtbf, n * nics_per_node);
  set(Component::switch_, r.switch_mtbf, switches);
  set(Component::software, r.software_mtbf, n);
  return rates;
}

FailureSource::FailureSource(const FailureRates& rates, uint64_t seed) : rates_(rates) {
  for (size_t kind = 0; kind < at_s_.size(); ++kind) {
    streams_.push_back(random_stream(seed, "failures", kind));
    draw(kind);
  }
}

void FailureSource::draw(size_t kind) {
  if (rates_.per_s[kind] > 0)
    at_s_[kind] -= std::log(uniform(streams_[kind])) / rates_.per_s[kind];
  else
    at_s_[kind] = std::numeric_limits<double>::infinity();
}

double FailureSource::next_gap_s() {
  const auto next = std::min_element(at_s_.begin(), at_s_.end());
  if (!std::isfinite(*next)) return *next;
  const auto kind = static_cast<size_t>(next - at_s_.begin());
  const double gap_s = *next - now_s_;
  now_s_ = *next;
  kind_ = static_cast<Component>(kind);
  draw(kind);
  return gap_s;
}

double daly_interval_s(double write_s, double mtbf_s) {
  if (write_s >= 2 * mtbf_s) return mtbf_s;
  const double ratio = write_s / (2 * mtbf_s);
  return std::sqrt(2 * write_s * mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write_s;
}

double interval_goodput(double interval_s, double write_s, double blocked_s, double restart_s, double mtbf_s,
                        uint64_t seed, int failures) {
  FailureRates rates;
  rates.per_s[static_cast<size_t>(Component::software)] = 1 / mtbf_s;
  FailureSource source(rates, seed);
  double worked_s = 0, elapsed_s = 0;
  const double cycle_s = interval_s + blocked_s;
  for (int i = 0; i < failures; ++i) {
    const double gap_s = source.next_gap_s();
    // Cycle k: work for an interval, then a checkpoint of that state begins; it counts once it is complete.
    const double behind_s = interval_s + std::max(blocked_s, write_s);
    const double complete = std::max(0.0, std::floor((gap_s - behind_s) / cycle_s) + 1);
    worked_s += complete * interval_s;
    elapsed_s += gap_s + restart_s;
  }
  return worked_s / elapsed_s;
}

std::vector<IntervalTrial> try_intervals(double write_s, double blocked_s, double restart_s, double mtbf_s,
                                         double step_s, uint64_t seed, int failures) {
  // What training waits for is what the interval weighs against losses; a write beside training only delays the moment
  // from which its state is safe.
  const double daly_s = daly_interval_s(std::max(blocked_s, 1e-3 * step_s), mtbf_s);
  std::vector<IntervalTrial> trials;
  for (int k = -8; k <= 8; ++k) {
    // Checkpoints fall between steps, and not before the last one is written.
    const double wanted_s = std::max(daly_s * std::exp2(k / 4.0), write_s - blocked_s);
    const double interval_s = std::max(1.0, std::round(wanted_s / step_s)) * step_s;
    if (!trials.empty() && interval_s <= trials.back().interval_s) continue;
    trials.push_back({interval_s, interval_goodput(interval_s, write_s, blocked_s, restart_s, mtbf_s, seed, failures)});
  }
  std::stable_sort(trials.begin(), trials.end(),
                   [](const IntervalTrial& a, const IntervalTrial& b) { return a.goodput > b.goodput; });
  return trials;
}

void Reliability::describe(Description<Reliability>& d) {
  d.object("reliability", "Mean times between failures that interrupt a job, and what a restart costs.");
  d.required("name", &Reliability::name, "name of the profile");
  d.optional("gpu_mtbf", &Reliability::gpu_mtbf, "of one accelerator with its memory; absent: never", above(0));
  d.optional("nic_mtbf", &Reliability::nic_mtbf, "of one adapter of the training fabric", above(0));
  d.optional("node_mtbf", &Reliability::node_mtbf, "of the rest of a node: host, storage, power supply", above(0));
  d.optional("link_mtbf", &Reliability::link_mtbf, "of one cable of a node's adapters with its optics", above(0));
  d.optional("switch_mtbf", &Reliability::switch_mtbf, "of one switch that carries the job's traffic", above(0));
  d.optional("software_mtbf", &Reliability::software_mtbf,
             "of the software on one node: crashes and hangs of the job that no hardware causes", above(0));
  d.optional("detect", &Reliability::detect, "from a failure until the job is stopped, diagnosis included");
  d.optional("reschedule", &Reliability::reschedule,
             "until the job starts again; its initialisation and the restore of the checkpoint follow");
  d.optional("repair", &Reliability::repair, "until a node that failed is back as a spare");
  d.optional("source", &Reliability::source, "where the numbers come from");
}

}  // namespace tw
