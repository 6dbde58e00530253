#include "step/step_memory.hpp"

#include <algorithm>
#include <numeric>

#include "core/output_block.hpp"

namespace tw {
namespace {

constexpr size_t kMostMoments = 20000;

MemoryPass pass_of(const Visit& v) {
  if (!v.backward) return MemoryPass::forward;
  return v.part == Part::whole ? MemoryPass::backward : v.part == Part::input ? MemoryPass::input : MemoryPass::weight;
}

double sum(const MemoryParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// The moment that needs most and the end.
std::vector<MemoryMoment> coarse(const std::vector<MemoryMoment>& all) {
  if (all.empty()) return all;
  return {*std::max_element(all.begin(), all.end(),
                            [](const auto& a, const auto& b) { return sum(a.bytes) < sum(b.bytes); }),
          all.back()};
}

}  // namespace

std::vector<StageWork> memory_work(const Plan& plan) {
  const ScheduleRule& rule = rule_of(plan.schedule, plan.vp);
  const ChunkPlacement placement = rule.placement(plan.pp, plan.vp);
  std::vector<StageWork> stages;
  for (int stage = 0; stage < plan.pp; ++stage) {
    StageWork& work = stages.emplace_back();
    work.chunks.clear(), work.visits.clear();
    for (int slot = 0; slot < placement.slots; ++slot) work.chunks.push_back(placement.chunk(stage, slot));
    for (const Visit& v : rule.visits(stage, plan.pp, plan.vp, plan.ga())) work.visits.push_back({v.chunk, pass_of(v)});
  }
  return stages;
}

double StepMemory::total(size_t i) const {
  return sum(bytes[i]);
}

size_t StepMemory::peak() const {
  return static_cast<size_t>(
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return sum(a) < sum(b); }) -
      bytes.begin());
}

void StepMemory::describe(Outputs<StepMemory>& d) {
  d.output("stage", &StepMemory::stage);
  d.output("at_s", &StepMemory::at_s);
  d.output("bytes", &StepMemory::bytes);
}

StepMemory step_memory(const StageCurves& curves, const std::vector<Span>& spans, int stage, double step_s) {
  std::vector<const Span*> visits;
  for (const Span& s : spans)
    if (s.stage == stage && s.stream == Span::Stream::device && s.flops > 0) visits.push_back(&s);
  std::sort(visits.begin(), visits.end(), [](const Span* a, const Span* b) { return a->begin_s < b->begin_s; });
  FirstGradients begun;
  const auto moments_of = [&](const Span& s) -> const std::vector<MemoryMoment>& {
    const MemoryPass pass = pass_of(s.visit);
    const bool earliest = !curves.firsts.empty() && begun.insert({s.visit.chunk, pass});
    return (earliest ? curves.firsts : curves.visits).at(static_cast<size_t>(s.visit.chunk))[static_cast<size_t>(pass)];
  };
  size_t count = 0;
  for (const Span* s : visits)
    count += curves.visits.at(static_cast<size_t>(s->visit.chunk))[static_cast<size_t>(pass_of(s->visit))].size();
  StepMemory m;
  m.stage = stage;
  const auto add = [&](double at_s, const MemoryParts& bytes) { m.at_s.push_back(at_s), m.bytes.push_back(bytes); };
  MemoryParts now = curves.held;
  add(0, now);
  for (const Span* s : visits) {
    const auto& all = moments_of(*s);
    const auto moments = count > kMostMoments ? coarse(all) : all;
    add(s->begin_s, now);
    for (const MemoryMoment& moment : moments) {
      MemoryParts bytes = now;
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] += moment.bytes[i];
      add(s->begin_s + moment.share * (s->end_s - s->begin_s), bytes);
    }
    if (!moments.empty()) now = m.bytes.back();
  }
  add(step_s, now);
  if (!curves.firsts.empty()) add(step_s, curves.held);  // the optimizer has taken the gradients
  return m;
}

}  // namespace tw
