// trainwatt topology: what a cluster file describes.
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "report/topology_report.hpp"
#include "topology/inspect.hpp"

namespace tw::cli {
namespace {

struct TopologyArguments {
  std::string cluster, dot, svg, json;
  std::vector<std::string> set, route;
};

ExitCode run(const TopologyArguments& a, Console& console) {
  const Cluster cluster = load_cluster(a.cluster, a.set, console.faults);
  console.faults.throw_if_any();
  const Fabric fabric = build_fabric(cluster);
  const bool whole = a.route.empty();
  TopologySummary summary;
  if (whole) {
    Progress progress(console, "looking for the longest way");
    summary = topology_summary(fabric, [&](size_t done, size_t all) { progress.update(done, all); });
  }
  const std::string text =
      whole ? report::topology_table(cluster, fabric, summary) : report::route_table(fabric, a.route[0], a.route[1]);
  if (!a.dot.empty()) write_output(console, a.dot, report::topology_dot(fabric));
  if (!a.svg.empty()) write_output(console, a.svg, svg_text(fabric));
  if (!a.json.empty())
    write_output(
        console, a.json,
        whole ? report::topology_json(cluster, fabric, summary) : report::route_json(fabric, a.route[0], a.route[1]));
  if (a.json != "-" && a.dot != "-" && a.svg != "-") console.result(text);
  return ExitCode::done;
}

}  // namespace

Command topology_command() {
  const auto a = std::make_shared<TopologyArguments>();
  return {"topology",
          "Shows a cluster: switches, ports, oversubscription, bisection, routes, drawings",
          "  trainwatt topology topologies/smc-h100.json\n"
          "  trainwatt topology topologies/smc-h100.json --route node-0 node-7\n"
          "  trainwatt topology topologies/smc-h100.json --route \"node-0 nic 2\" \"node-7 nic 2\" --json -\n"
          "  trainwatt topology topologies/smc-h100.json --set /fabric/units=4 --svg fabric.svg",
          {argument("cluster", "FILE", "cluster file", &a->cluster),
           option("--route", "A B", "the way between two nodes or adapters: equal-cost choices, cables, bandwidth",
                  &a->route, between(2, 2)),
           output_file("--dot", "write the graph for Graphviz; - is stdout", &a->dot),
           output_file("--svg", "draw the fabric: levels from the nodes up; - is stdout", &a->svg),
           overrides("the cluster", &a->set), json_file("the summary, or the routes,", &a->json)},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
