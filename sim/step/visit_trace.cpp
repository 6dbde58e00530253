#include "step/visit_trace.hpp"

#include <algorithm>

#include "step/chunk_program.hpp"
#include "workload/memory.hpp"

namespace tw {
namespace {

VisitTrace joined(const std::vector<ChunkProgram::Kept>& lists) {
  VisitTrace trace;
  for (const ChunkProgram::Kept& list : lists)
    for (int i = 0; i < list.repeats; ++i) {
      for (size_t k = 0; k < list.tasks.size(); ++k) {
        const double begin_s = trace.end_s + list.played.begin_s[k], end_s = trace.end_s + list.played.done_s[k];
        if (end_s > begin_s) trace.tasks.push_back({list.tasks[k], begin_s, end_s});
      }
      trace.end_s += list.played.end_s;
    }
  return trace;
}

}  // namespace

VisitTraces visit_traces(const StepInputs& in, const ExchangeTime& exchange, const Slowdown& slowdown) {
  VisitTraces out;
  if (in.network == nullptr) return out;
  const Plan& plan = *in.plan;
  ChunkProgram program(in, exchange, slowdown, Pass::training);
  const auto groups = groups_of(in);
  std::vector<VisitTrace> forward, backward;  // [chunk]
  std::vector<ChunkShape> shapes = chunk_shapes(in);
  for (size_t c = 0; c < shapes.size(); ++c) {
    ChunkShape& shape = shapes[c];
    if (plan.sharding == Sharding::zero3) {
      shape.gathered = gathered_bytes(groups, static_cast<int>(c));
      shape.gradients = exchanged_gradients(in, groups, static_cast<int>(c));
    }
    forward.push_back(joined(program.kept(shape, false)));
    backward.push_back(joined(program.kept(shape, true)));
  }
  const ChunkPlacement placement = rule_of(plan.schedule, plan.vp).placement(plan.pp, plan.vp);
  out.forward.resize(static_cast<size_t>(placement.slots * plan.pp));
  out.backward.resize(out.forward.size());
  for (const auto& way : placement.way)
    for (size_t c = 0; c < way.size(); ++c) {
      const auto at = static_cast<size_t>(way[c].slot * plan.pp + way[c].stage);
      out.forward[at] = forward[c], out.backward[at] = backward[c];
    }
  return out;
}

std::vector<ChunkProgram::Kept> ChunkProgram::kept(const ChunkShape& shape, bool backward) {
  std::vector<Kept> lists;
  kept_ = &lists;
  const bool each = in_.plan->sharding == Sharding::zero3 && reshards(*in_.plan);
  (void)(each ? sharded(shape, backward, true, true) : layers(shape, backward, true, true));
  kept_ = nullptr;
  return lists;
}

}  // namespace tw
