#include "network/contention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "network/link_merge.hpp"

namespace tw::network {

int narrowest_link(const std::vector<Link>& links, const std::vector<LoadClass>& classes, size_t job) {
  std::map<int, double> weights;  // pressure of all jobs, each relative to what it asks for alone
  for (const LoadClass& c : classes) {
    const double alone = alone_s(links, {c.name, c.uses, 0}, 1);
    for (const LinkUse& use : c.uses)
      if (alone > 0) weights[use.link] += use.weight / links[static_cast<size_t>(use.link)].capacity_Bps / alone;
  }
  int found = -1;
  double most = 0;
  for (const LinkUse& use : classes[job].uses)
    if (weights[use.link] > most * (1 + 1e-9)) {
      most = weights[use.link];
      found = use.link;
    }
  return found;
}

LoadClass traffic_load(Router& router, const Fabric& fabric, const std::string& name, const std::vector<int>& sources,
                       const std::vector<int>& destinations) {
  std::map<int, double> loads;
  LoadClass c{name, {}, 0};
  for (const int a : sources)
    for (const int b : destinations) {
      if (a == b) continue;
      for (int k = 0; k < fabric.nics; ++k) {
        if (!fabric.nic_alive(a, k) || !fabric.nic_alive(b, k))
          throw SimulationError(fmt::format("\"{}\": node-{} or node-{} has a dead adapter", name, a, b));
        for (const LinkShare& l : router.route(a, k, b, k))
          loads[l.link] += l.share / static_cast<double>(destinations.size()) / fabric.nics;
        c.latency_s = std::max(c.latency_s, router.hops(a, k, b, k) * fabric.hop_latency_s);
      }
    }
  for (const auto& [link, weight] : loads) c.uses.push_back({link, weight});
  return c;
}

std::vector<JobOutcome> run_together(const Fabric& fabric, const std::vector<NetworkJob>& jobs) {
  std::vector<LoadClass> classes;
  for (const NetworkJob& j : jobs) {
    classes.push_back(j.load);
    classes.back().name = j.name;
  }
  std::vector<LoadClass> fabric_classes = classes;
  const std::vector<Link> links = engine_links(fabric, classes);
  const auto engine = open_engine(links, classes);
  std::vector<JobOutcome> outcomes(jobs.size());
  std::function<void(size_t, int)> turn = [&](size_t j, int done) {
    if (done == jobs[j].repeats) {
      outcomes[j].together_s = engine->now_s() - jobs[j].begin_s;
      return;
    }
    engine->at(engine->now_s() + jobs[j].compute_s, [&, j, done] {
      engine->start(static_cast<int>(j), jobs[j].bytes, [&, j, done] { turn(j, done + 1); });
    });
  };
  for (size_t j = 0; j < jobs.size(); ++j) {
    outcomes[j].name = jobs[j].name;
    outcomes[j].alone_s = jobs[j].repeats * (jobs[j].compute_s + alone_s(links, classes[j], jobs[j].bytes));
    engine->at(jobs[j].begin_s, [&, j] { turn(j, 0); });
  }
  engine->run();
  for (size_t j = 0; j < jobs.size(); ++j) {
    const int link = narrowest_link(links, classes, j);
    if (link < 0) continue;
    outcomes[j].narrowest = links[static_cast<size_t>(link)].name;
    for (size_t u = 0; u < classes[j].uses.size(); ++u)
      if (classes[j].uses[u].link == link) outcomes[j].bottleneck = fabric.link_class(fabric_classes[j].uses[u].link);
  }
  return outcomes;
}

}  // namespace tw::network
