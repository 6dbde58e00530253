#include "study/fitting_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/document.hpp"
#include "step/cost.hpp"
#include "step/schedule.hpp"
#include "step/step_memory.hpp"

namespace tw {
namespace {

std::vector<int> powers_around(int value, int highest) {
  std::set<int> values{value};
  for (int v = 1; v <= highest; v *= 2) values.insert(v);
  return {values.begin(), values.end()};
}

double doublings(int a, int b) {
  return std::abs(std::log2(static_cast<double>(a) / b));
}

bool valid(Plan& plan, const Scenario& s, const Training& training, const Document& document) {
  Faults faults;
  const ReadContext at{&document, "", &faults, {}};
  complete_plan(plan, s.cluster.node.gpus, at);
  if (faults.empty()) check_plan(plan, *s.network, training, s.cluster.node.gpus, at);
  if (faults.empty()) check_schedule(plan, at);
  return faults.empty() && (plan.sharding == Sharding::none || plan.dp * plan.cp > 1);
}

}  // namespace

PlanMemory plan_memory(const Architecture& network, const Training& training, const Plan& plan,
                       const Software& software) {
  return plan_memory(network, training, plan, software, memory_work(plan));
}

PlanMemory plan_memory(const Architecture& network, const Training& training, const Plan& plan,
                       const Software& software, const std::vector<StageWork>& work) {
  const auto stages = memory_of_stages(network, training, plan, software, layers_of_chunks(network, plan), work);
  const auto most = std::max_element(stages.begin(), stages.end(),
                                     [](const auto& a, const auto& b) { return a.total() < b.total(); });
  double host = 0;
  for (const StageMemory& m : stages) host = std::max(host, m.host_activations + m.host_states);
  return {static_cast<int>(most - stages.begin()), *most, host};
}

std::vector<std::string> nearest_fitting_plans(const Scenario& s, size_t most) {
  std::vector<std::string> texts;
  if (!s.network || !s.training) return texts;
  Faults ignored;
  const Document document = Document::from_text("{}", "plan", description<Plan>().info(), {}, ignored);
  const double capacity = s.cluster.node.accelerator.memory.value();
  const int gpus = s.plan.nodes * s.cluster.node.gpus;
  std::vector<std::tuple<double, double, std::string>> found;
  for (const int tp : powers_around(s.plan.tp, std::min(gpus, s.cluster.node.gpus)))
    for (const int pp : powers_around(s.plan.pp, std::min(gpus, s.network->layers)))
      for (const auto& [sharding_name, sharding] : Choices<Sharding>::table())
        for (const auto& [recompute_name, recompute] : Choices<Recompute>::table())
          for (int mbs = s.plan.mbs; mbs >= 1; mbs = mbs > 1 ? mbs / 2 : 0) {
            // Only towards less memory: sharding more, recomputing more.
            if (sharding < s.plan.sharding || recompute < s.training->recompute) continue;
            if (recompute == Recompute::alternate && s.training->recompute != Recompute::alternate) continue;
            Plan plan = s.plan;
            Training training = *s.training;
            plan.tp = tp, plan.pp = pp, plan.mbs = mbs, plan.sharding = sharding, plan.dp = 0;
            if (pp == 1) plan.vp = 1;
            if (pp != s.plan.pp) plan.layout.clear();
            training.recompute = recompute;
            if (!valid(plan, s, training, document)) continue;
            const double bytes = plan_memory(*s.network, training, plan, s.software).memory.total();
            if (bytes > capacity) continue;
            const double changes = doublings(tp, s.plan.tp) + doublings(pp, s.plan.pp) + doublings(mbs, s.plan.mbs) +
                                   static_cast<int>(sharding) - static_cast<int>(s.plan.sharding) +
                                   static_cast<int>(recompute) - static_cast<int>(s.training->recompute);
            std::string text;
            const auto change = [&](bool changed, const char* pointer, const std::string& value) {
              if (changed) text += fmt::format("{}--set {}={}", text.empty() ? "" : " ", pointer, value);
            };
            change(tp != s.plan.tp, "/plan/tp", std::to_string(tp));
            change(pp != s.plan.pp, "/plan/pp", std::to_string(pp));
            change(plan.vp != s.plan.vp, "/plan/vp", std::to_string(plan.vp));
            change(mbs != s.plan.mbs, "/plan/mbs", std::to_string(mbs));
            change(sharding != s.plan.sharding, "/plan/sharding", sharding_name);
            change(recompute != s.training->recompute, "/training/recompute", recompute_name);
            found.emplace_back(changes, bytes, fmt::format("{}  ({:.2f} GiB)", text, bytes / gib));
          }
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i < std::min(most, found.size()); ++i) texts.push_back(std::get<2>(found[i]));
  return texts;
}

}  // namespace tw
