#include "power/delivery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <map>

#include "core/error.hpp"
#include "core/sum.hpp"
#include "power/bus.hpp"
#include "power/loss_law.hpp"

namespace tw {
namespace {

enum class DeliveryKind { feed, stage, shelf, rectifier, bus, node };

struct DeliveryVertex {
  DeliveryKind kind = DeliveryKind::node;
  std::string name;           // "PDU-3", "bus-7 shelf-0", ...
  std::string stage;          // "feed", "UPS", "PDU", "shelf", "rectifier", "bus", "node"
  int index = 0;              // of the cluster: node or bus; else a running number of its stage
  double rating_w = 0;        // output; 0 = no limit of its own
  double spare_rating_w = 0;  // output that is left after the failure that its redundancy is to survive
  LossLaw law;
  bool failed = false;
  double battery_w = 0;  // of a bus: taken by its battery; negative: given
};

// Edges point from the source to the load. A load with several sources draws from them in equal parts.
using DeliveryGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, DeliveryVertex, boost::no_property>;

struct DeliveryFlow {
  double output_w = 0, loss_w = 0, battery_w = 0;
  double input_w() const { return output_w + loss_w + battery_w; }
};

// A unit of n has nothing to survive, one of n+1 a spare module, one of 2n a second side of the same rating: what is
// left of each after its failure is its rating.
DeliveryVertex stage_vertex(const PowerStage& stage, int index) {
  DeliveryVertex v;
  v.kind = DeliveryKind::stage;
  v.stage = stage.kind;
  v.index = index;
  v.name = fmt::format("{}-{}", stage.kind, index);
  v.rating_w = v.spare_rating_w = stage.rating.value();
  v.law = stage_law(stage);
  return v;
}

double spare_bus_rating_w(const PowerDelivery& delivery) {
  if (delivery.redundancy == Redundancy::two_n) return bus_rating_w(delivery) - shelf_rating_w(delivery);
  if (delivery.redundancy == Redundancy::n_plus_1) return bus_rating_w(delivery) - delivery.rectifier.rating.value();
  return bus_rating_w(delivery);
}

using Vertex = DeliveryGraph::vertex_descriptor;

// What each vertex draws from.
using Sources = std::vector<std::vector<Vertex>>;
Sources live_sources(const DeliveryGraph& graph) {
  Sources sources(boost::num_vertices(graph));
  for (Vertex v = 0; v < sources.size(); ++v)
    for (auto [e, end] = boost::in_edges(v, graph); e != end; ++e)
      if (const Vertex source = boost::source(*e, graph); !graph[source].failed) sources[v].push_back(source);
  return sources;
}

// Parts that have failed: of a bus's rectifiers the last first; without a feed, everything above the buses.
void fail_parts(DeliveryGraph& graph, const PowerRun& run, double time_s) {
  std::map<int, int> rectifiers;  // by bus
  for (const BusPowerRun& bus : run.buses)
    for (const FailedUnit& f : bus.failures)
      if (f.at(time_s)) rectifiers[bus.bus] += f.count;
  const bool feed = std::none_of(run.failures.begin(), run.failures.end(),
                                 [&](const FailedUnit& f) { return f.part == "feed" && f.at(time_s); });
  std::map<int, std::vector<Vertex>> by_bus;
  for (Vertex v = 0; v < boost::num_vertices(graph); ++v) {
    DeliveryVertex& vertex = graph[v];
    vertex.failed = !feed && vertex.kind != DeliveryKind::bus && vertex.kind != DeliveryKind::node;
    for (const FailedUnit& f : run.failures)
      vertex.failed |=
          vertex.kind == DeliveryKind::stage && f.at(time_s) && f.part == vertex.stage && f.unit == vertex.index;
    if (vertex.kind == DeliveryKind::rectifier)
      by_bus[graph[*boost::adjacent_vertices(v, graph).first].index].push_back(v);
  }
  for (const auto& [bus, failed] : rectifiers) {
    auto& list = by_bus[bus];
    for (int k = 0; k < failed && k < static_cast<int>(list.size()); ++k)
      graph[list[list.size() - 1 - static_cast<size_t>(k)]].failed = true;
  }
}

// The part of the cluster's power delivery that feeds `nodes`.
DeliveryGraph build_delivery(const Cluster& cluster, const std::vector<int>& nodes) {
  DeliveryGraph graph;
  const PowerDelivery& delivery = cluster.power_delivery;
  DeliveryVertex feed;
  feed.kind = DeliveryKind::feed;
  feed.name = feed.stage = "feed";
  const Vertex root = boost::add_vertex(feed, graph);
  std::map<int, Vertex> buses;
  // Units of each upstream stage by number, made when first needed; the topmost hang on the feed.
  std::vector<std::map<int, Vertex>> units(delivery.upstream.size());
  const auto source_of_bus = [&](int bus) {
    Vertex below = root;
    std::vector<int> numbers;
    int number = bus;
    for (const PowerStage& stage : delivery.upstream) {
      number /= stage.feeds;
      numbers.push_back(number);
    }
    Vertex above = root;
    for (size_t s = delivery.upstream.size(); s-- > 0;) {
      const auto found = units[s].find(numbers[s]);
      if (found != units[s].end()) {
        above = found->second;
        continue;
      }
      below = boost::add_vertex(stage_vertex(delivery.upstream[s], numbers[s]), graph);
      boost::add_edge(above, below, graph);
      units[s][numbers[s]] = below;
      above = below;
    }
    return above;
  };
  for (const int node : nodes) {
    const int index = bus_of(cluster, node);
    if (buses.count(index) != 0) continue;
    const Vertex source = source_of_bus(index);
    DeliveryVertex bus;
    bus.kind = DeliveryKind::bus;
    bus.stage = "bus";
    bus.index = index;
    bus.name = fmt::format("bus-{}", index);
    bus.rating_w = bus_rating_w(delivery);
    bus.spare_rating_w = spare_bus_rating_w(delivery);
    std::vector<Vertex> rectifiers;
    for (int s = 0; s < delivery.shelves_per_bus; ++s) {
      DeliveryVertex shelf;
      shelf.kind = DeliveryKind::shelf;
      shelf.stage = "shelf";
      shelf.index = index * delivery.shelves_per_bus + s;
      shelf.name = fmt::format("bus-{} shelf-{}", index, s);
      const Vertex sv = boost::add_vertex(shelf, graph);
      boost::add_edge(source, sv, graph);
      for (int r = 0; r < delivery.rectifiers_per_shelf; ++r) {
        DeliveryVertex rectifier;
        rectifier.kind = DeliveryKind::rectifier;
        rectifier.stage = "rectifier";
        rectifier.index = shelf.index * delivery.rectifiers_per_shelf + r;
        rectifier.name = fmt::format("{} rectifier-{}", shelf.name, r);
        rectifier.rating_w = rectifier.spare_rating_w = delivery.rectifier.rating.value();
        rectifier.law = rectifier_law(delivery, 1);
        const Vertex rv = boost::add_vertex(rectifier, graph);
        boost::add_edge(sv, rv, graph);
        rectifiers.push_back(rv);
      }
    }
    const Vertex bv = boost::add_vertex(bus, graph);
    for (const Vertex rv : rectifiers) boost::add_edge(rv, bv, graph);
    buses[index] = bv;
  }
  for (const int node : nodes) {
    DeliveryVertex v;
    v.stage = "node";
    v.index = node;
    v.name = fmt::format("node-{}", node);
    const Vertex nv = boost::add_vertex(v, graph);
    boost::add_edge(buses[bus_of(cluster, node)], nv, graph);
  }
  return graph;
}

// Every vertex after all that it feeds.
std::vector<Vertex> loads_first(const DeliveryGraph& graph) {
  std::vector<Vertex> order;
  boost::topological_sort(graph, std::back_inserter(order));
  return order;
}

// Flows for given watts of each node (in the order of the node vertices). Failed vertices carry nothing; a load whose
// sources have all failed gets nothing. Vertices in graph order; `order`: loads first.
void deliver(const std::vector<Vertex>& order, const DeliveryGraph& graph, const Sources& sources,
             const std::vector<double>& node_w, std::vector<DeliveryFlow>& flows) {
  flows.assign(boost::num_vertices(graph), {});
  size_t next = 0;
  for (Vertex v = 0; v < boost::num_vertices(graph); ++v)
    if (graph[v].kind == DeliveryKind::node) flows[v].output_w = next < node_w.size() ? node_w[next++] : 0;
  for (const Vertex v : order) {
    const DeliveryVertex& vertex = graph[v];
    DeliveryFlow& flow = flows[v];
    if (vertex.failed) {
      flow = {};
      continue;
    }
    flow.battery_w = vertex.battery_w;
    flow.loss_w = vertex.law.loss_w(flow.output_w);
    const auto count = static_cast<double>(sources[v].size());
    for (const Vertex source : sources[v]) flows[source].output_w += flow.input_w() / count;
  }
}

// What the units of one stage carry over the run.
struct StageSum {
  StageTotals total;
  Sum output_j, loss_j;
  double spare_w = 0;

  void add(const DeliveryFlow& flow, const std::string& unit, double begin_s, double length_s) {
    output_j.add(flow.output_w * length_s);
    loss_j.add(flow.loss_w * length_s);
    if (flow.output_w <= total.peak_w) return;
    total.peak_w = flow.output_w;
    total.peak_unit = unit;
    total.peak_at_s = begin_s;
  }
  StageTotals closed() const {
    StageTotals t = total;
    t.output_j = output_j.value();
    t.loss_j = loss_j.value();
    if (t.rating_w <= 0) return t;
    t.headroom_w = t.rating_w - t.peak_w;
    t.spare_headroom_w = spare_w - t.peak_w;
    t.redundant = t.spare_headroom_w >= 0;
    return t;
  }
};

// From the loads up.
std::vector<StageSum> stage_sums(const PowerDelivery& delivery) {
  std::vector<std::string> names{"node", "bus", "rectifier", "shelf"};
  for (const PowerStage& stage : delivery.upstream) names.push_back(stage.kind);
  names.push_back("feed");
  std::vector<StageSum> stages(names.size());
  for (size_t at = 0; at < names.size(); ++at) stages[at].total = {names[at], 0, 0, 0, 0, "", 0, 0, 0, 0, true};
  return stages;
}

// Moments at which anything changes.
std::vector<double> times_of_change(const PowerRun& run) {
  std::vector<double> times{run.run_begin_s, run.run_end_s};
  for (const PiecewiseWatts& dc : run.group_dc)
    for (size_t i = 0; i < dc.pieces(); ++i) times.push_back(dc.piece_begin_s(i));
  for (const BusPowerRun& bus : run.buses)
    for (size_t i = 0; bus.supply != bus.dc && i < bus.supply->pieces(); ++i)
      times.push_back(bus.supply->piece_begin_s(i));
  for (const FailedUnit& failure : run.failures) times.insert(times.end(), {failure.from_s, failure.to_s});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

void set_batteries(DeliveryGraph& graph, const PowerRun& run, double time_s) {
  std::map<int, double> battery_w;
  for (const BusPowerRun& bus : run.buses)
    if (bus.supply != bus.dc) battery_w[bus.bus] = bus.supply->at(time_s) - bus.dc->at(time_s);
  for (Vertex v = 0; v < boost::num_vertices(graph) && !battery_w.empty(); ++v)
    if (graph[v].kind == DeliveryKind::bus) graph[v].battery_w = battery_w[graph[v].index];
}

}  // namespace

DeliveryRun integrate_delivery(const Cluster& cluster, const PowerRun& run) {
  std::vector<int> nodes;
  for (const NodePowerRun& node : run.nodes) nodes.push_back(node.node);
  DeliveryGraph graph = build_delivery(cluster, nodes);
  const std::vector<double> times = times_of_change(run);
  std::vector<StageSum> stages = stage_sums(cluster.power_delivery);
  std::map<std::string, size_t> position;
  for (size_t at = 0; at < stages.size(); ++at) position[stages[at].total.stage] = at;
  std::vector<size_t> stage_of;  // of each vertex
  for (Vertex v = 0; v < boost::num_vertices(graph); ++v) {
    StageSum& stage = stages[stage_of.emplace_back(position[graph[v].stage])];
    ++stage.total.units;
    stage.total.rating_w = graph[v].rating_w;
    stage.spare_w = graph[v].spare_rating_w;
  }
  std::vector<double> node_w(run.nodes.size());
  Sum battery_j;
  const std::vector<Vertex> vertices = loads_first(graph);
  const bool failures = !run.failures.empty() || std::any_of(run.buses.begin(), run.buses.end(),
                                                             [](const auto& bus) { return !bus.failures.empty(); });
  Sources sources = live_sources(graph);
  std::vector<DeliveryFlow> flows;
  for (size_t k = 0; k + 1 < times.size(); ++k) {
    const double begin_s = times[k], length_s = times[k + 1] - times[k];
    if (begin_s < run.run_begin_s || times[k + 1] > run.run_end_s) continue;
    if (failures) fail_parts(graph, run, begin_s), sources = live_sources(graph);
    set_batteries(graph, run, begin_s);
    for (size_t i = 0; i < node_w.size(); ++i) node_w[i] = run.node_w(i, begin_s);
    deliver(vertices, graph, sources, node_w, flows);
    for (Vertex v = 0; v < flows.size(); ++v) {
      stages[stage_of[v]].add(flows[v], graph[v].name, begin_s, length_s);
      battery_j.add(flows[v].battery_w * length_s);
      // 1e-9: a load at its rating is not beyond it.
      if (graph[v].rating_w > 0 && flows[v].output_w > graph[v].rating_w * (1 + 1e-9))
        throw DoesNotFit(fmt::format("{} of {} is asked for {:.0f} W at {:.3f} s from run_start; it gives {:.0f} W",
                                     graph[v].name, cluster.name, flows[v].output_w, begin_s, graph[v].rating_w));
    }
  }
  DeliveryRun result;
  Sum total_loss;
  for (const StageSum& stage : stages) {
    result.stages.push_back(stage.closed());
    total_loss.add(result.stages.back().loss_j);
  }
  result.nodes_j = result.stages.front().output_j;
  result.loss_j = total_loss.value();
  result.battery_j = battery_j.value();
  result.grid_j = result.stages.back().output_j + result.stages.back().loss_j;
  return result;
}

}  // namespace tw
