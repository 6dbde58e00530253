#include "run/step_source.hpp"

#include <algorithm>

namespace tw {
namespace {

constexpr size_t kNoisyPipelineSteps = 8;  // simulated with noise; later steps draw one of them
constexpr size_t kReplayedSteps = 4096;    // of long runs of single stages, the same
constexpr uint64_t kExactDraws = 400000;
constexpr size_t kFewestSteps = 2;    // of jobs whose steps are long to simulate
constexpr double kExactEvents = 1e6;  // of all replicas: about a second

// Visits of a step, and the exchanges inside them that the engine plays.
double events_of(const RunModel& model) {
  const StepPlan& plan = model.step;
  double events = 0;
  for (const PassCost& cost : plan.cost)
    for (const TaskCost* visit : {&cost.forward, &cost.backward})
      events += 1 + 2 * static_cast<double>(visit->shared.size());
  return events * plan.micro_batches * model.replicas;
}

// Noisy steps that are simulated before later ones draw from them. With every replica on its own (level 2) as many as
// some seconds allow, else the few that a pool needs; of messages (level 3) one.
size_t pool_size(const RunModel& model) {
  if (model.level == 3) return 1;
  if (model.replicas == 1) return kNoisyPipelineSteps;
  return std::max(kFewestSteps, static_cast<size_t>(kExactEvents / events_of(model)));
}

double drawn_from(const std::vector<double>& values, uint64_t seed, uint64_t index) {
  auto stream = random_stream(seed, "replayed step", index);
  return values[static_cast<size_t>(uniform(stream) * static_cast<double>(values.size()))];
}

}  // namespace

StepSource::StepSource(const RunModel& model, network::Engine& engine, const SeriesRun& series)
    : model_(model), engine_(engine), series_(series) {
  const StepPlan& plan = model.step;
  if (plan.meet_every_visit && plan.stages == 1) {
    // A host that waits for its device (device_s 0) does so before the same meeting.
    for (const IssuedWork& i : model.quiet.work.stages.front()) {
      const MemberNoise n = noise_of(plan.noise, i, plan.nodes_per_member);
      if (i.device_s > 0 || noises_.empty())
        noises_.push_back(n);
      else
        noises_.back().stalls += n.stalls;
    }
  } else {
    noises_ = {noise_of(plan.noise, model.quiet.work, plan.nodes_per_member)};
  }
  const uint64_t draws = std::max<uint64_t>(1, noises_.size());
  exact_steps_ = std::max<uint64_t>(kReplayedSteps, kExactDraws / draws);
}

double StepSource::jitter_s(uint64_t index) {
  if (silent()) return 0;
  if (model_.step.stages > 1 || model_.replicas > 1) return pipelined(index);
  if (index >= exact_steps_) return drawn_from(replayed_, series_.seed, index);
  const double jitter = replay(index);
  if (replayed_.size() < kReplayedSteps) replayed_.push_back(jitter);
  return jitter;
}

bool StepSource::silent() const {
  const HostNoise& n = model_.step.noise;
  return n.device_sigma <= 0 && n.host_sigma <= 0 && n.stalls_per_hour <= 0;
}

double StepSource::pipelined(uint64_t index) {
  const bool own = series_.pool_seed == series_.seed || model_.replicas > 1;
  const uint64_t seed = own ? series_.seed : series_.pool_seed;
  std::vector<double>& pool = series_.pools != nullptr && model_.replicas == 1 ? (*series_.pools)[seed] : own_[seed];
  const StepPlan& plan = model_.step;
  const auto simulate_next = [&] {
    // Where replicas meet at the end alone, and nobody else is on the links, noise changes nothing before.
    if (!plan.meet_every_visit && model_.network.others.empty())
      pool.push_back(end_jitter_s(plan, model_.quiet, model_.replicas, seed, pool.size()));
    else
      pool.push_back(simulate_step(model_.step, model_.network, engine_, model_.replicas, seed, pool.size()).time_s -
                     model_.quiet.time_s);
  };
  if (own) {
    if (index == pool.size() && pool.size() < pool_size(model_)) simulate_next();
    if (index < pool.size()) return pool[index];
  } else {
    while (pool.size() < kNoisyPipelineSteps) simulate_next();
  }
  return drawn_from(pool, series_.seed, index);
}

void fill_pools(const RunModel& model, network::Engine& engine, const std::vector<uint64_t>& seeds, NoisePools& pools) {
  if (model.step.stages <= 1 || model.replicas > 1) return;
  for (const uint64_t seed : seeds) {
    SeriesRun any;
    any.seed = seed + 1;  // not its own: the whole pool is simulated at the first draw
    any.pool_seed = seed;
    any.pools = &pools;
    (void)StepSource(model, engine, any).jitter_s(0);
  }
}

// One stage: every meeting adds its own draw, in the order of the visits (see simulate_step).
double StepSource::replay(uint64_t index) const {
  auto stream = random_stream(series_.seed, "step noise", index << 24U);
  double sum = 0;
  for (const MemberNoise& n : noises_) sum += draw_maximum(n, model_.step.members, stream);
  return sum;
}

}  // namespace tw
