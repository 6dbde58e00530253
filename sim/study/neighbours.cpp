#include "study/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/codec.hpp"
#include "network/collective.hpp"
#include "network/contention.hpp"
#include "network/link_merge.hpp"

namespace tw {
namespace {

// Traffic flows in pieces of so much of its offered rate: short against a step, long against the links' latency.
constexpr double kTrafficPiece_s = 0.01;

void check_nodes(const std::vector<std::string>& names, const Cluster& cluster, const std::set<int>& own,
                 const ReadContext& at) {
  if (names.empty()) at.fault("no node is named", "at least one");
  std::set<int> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const int index = node_index(names[i], cluster.nodes());
    if (index < 0)
      at.at(i).fault(fmt::format("there is no node \"{}\"", names[i]),
                     fmt::format("node-0 to node-{}", cluster.nodes() - 1));
    else if (!seen.insert(index).second)
      at.at(i).fault(fmt::format("\"{}\" stands twice", names[i]), "every node once");
    else if (own.count(index) != 0)
      at.at(i).fault(fmt::format("\"{}\" belongs to this job", names[i]), "nodes that the plan leaves free");
  }
}

}  // namespace

void check_neighbours(const Neighbours& neighbours, const Cluster& cluster, const CollectiveLibrary& library,
                      const NodePlacement& placement, int own_nodes, const ReadContext& root) {
  if (neighbours.empty()) return;
  const size_t before = root.faults->size();
  const Fabric fabric = build_fabric(cluster);
  const std::vector<int> placed = place(fabric, placement, own_nodes);
  const std::set<int> own(placed.begin(), placed.end());
  for (size_t i = 0; i < neighbours.jobs.size(); ++i) {
    const NeighbourJob& job = neighbours.jobs[i];
    const ReadContext at = root.at("jobs").at(i).at("nodes");
    check_nodes(job.nodes, cluster, own, at);
    std::set<int> domains;
    for (const std::string& name : job.nodes)
      domains.insert(node_index(name, cluster.nodes()) / fabric.nodes_per_domain);
    if (job.nodes.size() > 1 && domains.size() > 1) continue;
    at.fault("a job inside one NVLink domain loads no link of the fabric", "nodes of at least two domains");
  }
  for (size_t i = 0; i < neighbours.traffic.size(); ++i) {
    const BackgroundTraffic& t = neighbours.traffic[i];
    const ReadContext at = root.at("traffic").at(i);
    check_nodes(t.from, cluster, {}, at.at("from"));
    check_nodes(t.to, cluster, {}, at.at("to"));
    for (const std::string& name : t.from)
      if (std::find(t.to.begin(), t.to.end(), name) != t.to.end())
        at.at("to").fault(fmt::format("\"{}\" sends and receives", name), "nodes that do not send");
  }
  if (root.faults->size() != before) return;
  try {
    neighbour_loads(neighbours, fabric, library);
  } catch (const std::exception& error) {  // a collective that does not exist, a dead adapter
    root.at(neighbours.jobs.empty() ? "traffic" : "jobs").fault(error.what());
  }
}

std::vector<network::LoadClass> neighbour_loads(const Neighbours& neighbours, const Fabric& fabric,
                                                const CollectiveLibrary& library, std::vector<std::string>* remarks) {
  std::vector<network::LoadClass> loads;
  network::CollectiveOptions options;
  options.library = &library;
  network::Collectives collectives(fabric, options);
  for (const NeighbourJob& job : neighbours.jobs) {
    auto cost =
        collectives.cost(job.operation, network::ranks_of(fabric, place_named(fabric, job.nodes)), job.size.value());
    cost.load.name = job.name;
    loads.push_back(std::move(cost.load));
    if (remarks != nullptr && !cost.remark.empty())
      remarks->push_back(fmt::format("\"{}\": {}", job.name, cost.remark));
  }
  for (const BackgroundTraffic& t : neighbours.traffic) {
    std::string remark;
    loads.push_back(network::traffic_load(collectives.router(), fabric, t.name, place_named(fabric, t.from),
                                          place_named(fabric, t.to), &remark));
    if (remarks != nullptr && !remark.empty()) remarks->push_back(std::move(remark));
  }
  return loads;
}

std::vector<network::Neighbour> neighbours_of(const Neighbours& neighbours, StepNetwork& network) {
  std::vector<network::Neighbour> list;
  size_t next = 0;
  for (const NeighbourJob& job : neighbours.jobs)
    list.push_back({job.name, network.others[next++], job.size.value(), job.compute.value()});
  for (const BackgroundTraffic& t : neighbours.traffic) {
    const int index = network.others[next++];
    network::LoadClass& load = network.classes[static_cast<size_t>(index)];
    // A link of its own holds the stream to what it offers. It is counted in the bytes of the stream's narrowest real
    // link, so that on that link the stream and a job share alike.
    double narrowest = 0, weight = 1;
    for (const network::LinkUse& use : load.uses) {
      const double pressure = use.weight / network.links[static_cast<size_t>(use.link)].capacity_Bps;
      if (pressure <= narrowest) continue;
      narrowest = pressure;
      weight = use.weight;
    }
    load.uses.push_back({static_cast<int>(network.links.size()), weight});
    network.links.push_back({t.name + " as offered", t.rate.value() * weight});
    load.latency_s = 0;  // pieces of one stream follow one another without a pause
    list.push_back({t.name, index, t.rate.value() * kTrafficPiece_s, 0});
  }
  return list;
}

std::vector<JobResult> job_results(const std::string& job, double alone_s, double together_s,
                                   const std::vector<network::Neighbour>& neighbours,
                                   const std::vector<network::NeighbourTurns>& turns, const StepNetwork& network,
                                   const Fabric& fabric) {
  std::vector<network::LoadClass> classes;
  // The job is judged by its gradient exchange, or what it has instead.
  const bool exchanges = !network.gradient_exchange.empty() && network.gradient_exchange.front() >= 0;
  if (exchanges || network.classes.size() > neighbours.size())
    classes.push_back(network.classes[static_cast<size_t>(exchanges ? network.gradient_exchange.front() : 0)]);
  else
    classes.emplace_back();
  for (const network::Neighbour& n : neighbours) classes.push_back(network.classes[static_cast<size_t>(n.load_class)]);
  std::vector<JobResult> results;
  const auto add = [&](const std::string& name, double alone, double together) {
    JobResult r;
    r.name = name;
    r.alone_s = alone;
    r.together_s = together;
    r.slow_down = alone > 0 ? together / alone : 1;
    const int link = network::narrowest_link(network.links, classes, results.size());
    if (link >= 0) {
      r.narrowest = network.links[static_cast<size_t>(link)].name;
      r.bottleneck = static_cast<size_t>(link) < network.link_ids.size()
                         ? fabric.link_class(network.link_ids[static_cast<size_t>(link)])
                         : "its own rate";
    }
    results.push_back(std::move(r));
  };
  add(job, alone_s, together_s);
  for (size_t i = 0; i < neighbours.size(); ++i) {
    const network::Neighbour& n = neighbours[i];
    const double alone = n.compute_s + network::alone_s(network.links, classes[i + 1], n.bytes);
    add(n.name, alone, turns[i].turns > 0 ? turns[i].time_s / turns[i].turns : alone);
  }
  return results;
}

void NeighbourJob::describe(Description<NeighbourJob>& d) {
  d.object("neighbour_job", "Another job on the cluster: it computes, then communicates, over and over.");
  d.required("name", &NeighbourJob::name, "its name in the report");
  d.required("nodes", &NeighbourJob::nodes, "its nodes, none of which are this job's");
  d.optional("operation", &NeighbourJob::operation, "the collective over all accelerators of its nodes");
  d.required("size", &NeighbourJob::size, "full buffer of a rank of one communication", above(0));
  d.optional("compute", &NeighbourJob::compute, "computing before each communication");
}

void BackgroundTraffic::describe(Description<BackgroundTraffic>& d) {
  d.object("background_traffic", "Steady traffic between nodes, through all their adapters.");
  d.required("name", &BackgroundTraffic::name, "its name in the report");
  d.required("from", &BackgroundTraffic::from, "nodes that send, each in equal parts to all of `to`");
  d.required("to", &BackgroundTraffic::to, "nodes that receive");
  d.required("rate", &BackgroundTraffic::rate, "what each sender offers; it gets less where links are full",
             Range{0, 1e15, true});
}

}  // namespace tw
