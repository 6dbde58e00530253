// trainwatt topology: what a cluster file describes.
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "report/topology_report.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string cluster, dot, json, from, to;
  std::vector<std::string> set, route;
};

ExitCode run(const Arguments& a, Console& console) {
  Faults faults;
  check_output_file("--dot", a.dot, faults);
  check_output_file("--json", a.json, faults);
  if (!a.route.empty() && a.route.size() != 2)
    faults.add({"--route", "", "two nodes are due", "example: --route node-0 --route node-7"});
  const Document document = Document::load(a.cluster, description<Cluster>().info(), a.set, faults);
  const auto cluster = read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(cluster, ReadContext{&document, "", &faults, {}});
  faults.throw_if_any();
  const Fabric fabric = build_fabric(cluster);
  const std::string route = a.route.empty() ? "" : report::route_table(fabric, a.route[0], a.route[1]);
  if (!a.dot.empty()) write_output(console, a.dot, report::topology_dot(fabric));
  if (!a.json.empty()) write_output(console, a.json, report::topology_json(cluster, fabric));
  if (a.json == "-" || a.dot == "-") return ExitCode::done;
  console.result(route.empty() ? report::topology_table(cluster, fabric) : route);
  return ExitCode::done;
}

}  // namespace

Command topology_command() {
  const auto a = std::make_shared<Arguments>();
  return {"topology",
          "Shows a cluster: switches, cables, ports, oversubscription, routes",
          "  trainwatt topology topologies/smc-h100.json\n"
          "  trainwatt topology topologies/smc-h100.json --route node-0 node-7\n"
          "  trainwatt topology topologies/smc-h100.json --dot fabric.dot --json -",
          {{"cluster", "FILE", "cluster file", &a->cluster, true, {}},
           {"--route", "A B", "the links between two nodes, with their shares", &a->route, false, between(2, 2)},
           {"--dot", "FILE", "write the graph for Graphviz; - is stdout", &a->dot, false, {}},
           {"--set", "POINTER=VALUE", "override a value of the cluster; may be repeated", &a->set, false, {}},
           {"--json", "FILE", "write the summary as JSON; - is stdout, in place of the table", &a->json, false, {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
