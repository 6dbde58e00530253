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

namespace {

constexpr int kWideLayers = 1000;  // a search through all ranks takes seconds for more

class NearestPlans {
 public:
  explicit NearestPlans(const Scenario& s)
      : s_(s), own_(s.plan), document_(Document::from_text("{}", "plan", description<Plan>().info(), {}, ignored_)) {}

  std::vector<std::string> find(size_t most) {
    const HostMemory& host = s_.cluster.node.host_memory;
    const double states = s_.training->offload_states;
    look({own_.cp}, {own_.ep}, states, false);
    if (s_.network->layers > kWideLayers) return texts(most);
    // Where nothing fits so: contexts and experts over more ranks, and then states in the host's memory.
    const std::vector<int> contexts = powers_around(own_.cp, std::min(gpus(), 64));
    const std::vector<int> experts =
        s_.network->experts > 0 ? powers_around(own_.ep, s_.network->experts) : std::vector<int>{own_.ep};
    if (found_.empty()) look(contexts, experts, states, true);
    if (found_.empty() && states < 1 && host.capacity.value() > 0 && s_.cluster.node.host_copy_Bps() > 0 &&
        !(s_.training->optimizer && s_.training->optimizer->update == Update::muon))
      look(contexts, experts, 1, true);
    return texts(most);
  }

 private:
  std::vector<std::string> texts(size_t most) {
    std::sort(found_.begin(), found_.end());
    std::vector<std::string> list;
    for (size_t i = 0; i < std::min(most, found_.size()); ++i) list.push_back(std::get<2>(found_[i]));
    return list;
  }

  int gpus() const { return own_.gpus(s_.cluster.node.gpus); }

  // `wide`: of sharding, recomputation and micro-batches the ends alone.
  void look(const std::vector<int>& contexts, const std::vector<int>& experts, double states, bool wide) {
    for (const int tp : powers_around(own_.tp, std::min(gpus(), s_.cluster.node.gpus)))
      for (const int pp : powers_around(own_.pp, std::min(gpus(), s_.network->layers)))
        for (const int cp : contexts)
          for (const int ep : experts)
            for (int mbs = own_.mbs; mbs >= 1; mbs = mbs == 1 ? 0 : wide ? 1 : mbs / 2) {
              Plan plan = own_;
              plan.tp = tp, plan.pp = pp, plan.cp = cp, plan.ep = ep, plan.mbs = mbs, plan.dp = 0;
              if (pp == 1) plan.vp = 1;
              if (pp != own_.pp) plan.layout.clear();
              less_memory(plan, states, wide);
            }
  }

  // Only towards less memory: sharding more, recomputing more.
  void less_memory(const Plan& given, double states, bool wide) {
    for (const auto& [sharding_name, sharding] : Choices<Sharding>::table())
      for (const auto& [recompute_name, recompute] : Choices<Recompute>::table()) {
        if (sharding < own_.sharding || recompute < s_.training->recompute) continue;
        if (recompute == Recompute::alternate && s_.training->recompute != Recompute::alternate) continue;
        if (wide && ((sharding == Sharding::zero2 && own_.sharding != sharding) ||
                     (recompute == Recompute::selective && s_.training->recompute != recompute)))
          continue;
        Plan plan = given;
        Training training = *s_.training;
        plan.sharding = sharding, training.recompute = recompute, training.offload_states = states;
        consider(plan, training);
      }
  }

  void consider(Plan& plan, const Training& training) {
    if (!valid(plan, s_, training, document_)) return;
    const PlanMemory memory = plan_memory(*s_.network, training, plan, s_.software);
    const double bytes = memory.memory.total(), own_states = s_.training->offload_states;
    if (bytes > s_.cluster.node.accelerator.memory.value() ||
        memory.host_bytes * s_.cluster.node.gpus > s_.cluster.node.host_memory.capacity.value())
      return;
    const double changes = doublings(plan.tp, own_.tp) + doublings(plan.pp, own_.pp) + doublings(plan.cp, own_.cp) +
                           doublings(plan.ep, own_.ep) + doublings(plan.mbs, own_.mbs) +
                           static_cast<int>(plan.sharding) - static_cast<int>(own_.sharding) +
                           static_cast<int>(training.recompute) - static_cast<int>(s_.training->recompute);
    std::string text;
    const auto change = [&](bool changed, const char* pointer, const std::string& value) {
      if (changed) text += fmt::format("{}--set {}={}", text.empty() ? "" : " ", pointer, value);
    };
    for (const auto& [pointer, now, before] : {std::tuple{"/plan/tp", plan.tp, own_.tp},
                                               {"/plan/pp", plan.pp, own_.pp},
                                               {"/plan/vp", plan.vp, own_.vp},
                                               {"/plan/cp", plan.cp, own_.cp},
                                               {"/plan/ep", plan.ep, own_.ep},
                                               {"/plan/mbs", plan.mbs, own_.mbs}})
      change(now != before, pointer, std::to_string(now));
    change(plan.layout != own_.layout, "/plan/layout", "null");
    change(plan.sharding != own_.sharding, "/plan/sharding", choice_name(plan.sharding));
    change(training.recompute != s_.training->recompute, "/training/recompute", choice_name(training.recompute));
    change(training.offload_states != own_states, "/training/offload_states",
           fmt::format("{}", training.offload_states));
    found_.emplace_back(changes, bytes, fmt::format("{}  ({:.2f} GiB)", text, bytes / gib));
  }

  const Scenario& s_;
  const Plan& own_;
  Faults ignored_;
  Document document_;
  std::vector<std::tuple<double, double, std::string>> found_;
};

}  // namespace

std::vector<std::string> nearest_fitting_plans(const Scenario& s, size_t most) {
  return NearestPlans(s).find(most);
}

}  // namespace tw
