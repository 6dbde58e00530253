#include "step/schedule.hpp"

#include <algorithm>
#include <array>

namespace tw {
namespace {

const std::array<ScheduleRule, 8>& schedules() {
  static const std::array<ScheduleRule, 8> all{
      gpipe(),      one_forward_one_backward(), zb_h1(), interleaved_zero_bubble(), zbv(), dualpipev(), dualpipe(),
      interleaved()};
  return all;
}

}  // namespace

int ChunkPlacement::chunk(int stage, int slot) const {
  for (const auto& chunks : way)
    for (size_t c = 0; c < chunks.size(); ++c)
      if (chunks[c].stage == stage && chunks[c].slot == slot) return static_cast<int>(c);
  return 0;
}

const ScheduleRule& rule_of(Schedule schedule, int vp) {
  if (schedule == Schedule::one_f_one_b && vp > 1) return schedules().back();
  for (const ScheduleRule& rule : schedules())
    if (rule.name == schedule) return rule;
  return schedules().front();
}

bool single_chunk(Schedule schedule, int vp) {
  return vp == 1 && (schedule == Schedule::gpipe || schedule == Schedule::one_f_one_b);
}

void check_schedule(const Plan& plan, const ReadContext& at) {
  const ScheduleRule& rule = rule_of(plan.schedule, plan.vp);
  // One stage cannot hold two chunks: what runs in order there needs none of these orders.
  if (plan.pp == 1 && rule.placement(1, 1).slots > 1)
    at.at("schedule").fault(choice_name(plan.schedule) + " needs pipeline parallelism", "pp above 1, or 1f1b");
  if (plan.pp < 2) return;
  const std::string refusal = rule.refusal(plan.pp, plan.vp, plan.ga());
  if (refusal.empty()) return;
  const size_t cut = refusal.find("; ");
  at.at("schedule").fault(refusal.substr(0, cut), cut == std::string::npos ? "1f1b" : refusal.substr(cut + 2));
}

ChunkPlacement looped(int pp, int vp) {
  ChunkPlacement p{vp, {{}}};
  for (int c = 0; c < pp * vp; ++c) p.way[0].push_back({c % pp, c / pp});
  return p;
}

ChunkPlacement v_shaped(int pp, int) {
  ChunkPlacement p{2, {{}}};
  for (int c = 0; c < 2 * pp; ++c) p.way[0].push_back(c < pp ? Place{c, 0} : Place{2 * pp - 1 - c, 1});
  return p;
}

ChunkPlacement two_way(int pp, int) {
  ChunkPlacement p{2, {{}, {}}};
  for (int c = 0; c < pp; ++c) {
    p.way[0].push_back({c, 0});
    p.way[1].push_back({pp - 1 - c, 1});
  }
  return p;
}

}  // namespace tw
