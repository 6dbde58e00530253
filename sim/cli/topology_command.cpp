// trainwatt topology: what a cluster file describes.
#include <memory>

#include "cli/command.hpp"
#include "cli/outputs.hpp"
#include "core/document.hpp"
#include "report/topology_report.hpp"
#include "topology/inspect.hpp"

namespace tw::cli {
namespace {

struct Arguments {
  std::string cluster, dot, svg, json;
  std::vector<std::string> set, route;
};

ExitCode run(const Arguments& a, Console& console) {
  Faults faults;
  check_output_file("--dot", a.dot, faults);
  check_output_file("--svg", a.svg, faults);
  check_output_file("--json", a.json, faults);
  if ((a.dot == "-" ? 1 : 0) + (a.svg == "-" ? 1 : 0) + (a.json == "-" ? 1 : 0) > 1)
    faults.add({"-", "", "stdout takes one of --dot, --svg and --json", "a file name for the others"});
  const Document document = Document::load(a.cluster, description<Cluster>().info(), a.set, faults);
  const auto cluster = read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(cluster, ReadContext{&document, "", &faults, {}});
  faults.throw_if_any();
  const Fabric fabric = build_fabric(cluster);
  const std::string text =
      a.route.empty() ? report::topology_table(cluster, fabric) : report::route_table(fabric, a.route[0], a.route[1]);
  if (!a.dot.empty()) write_output(console, a.dot, report::topology_dot(fabric));
  if (!a.svg.empty()) write_output(console, a.svg, svg_text(fabric));
  if (!a.json.empty())
    write_output(
        console, a.json,
        a.route.empty() ? report::topology_json(cluster, fabric) : report::route_json(fabric, a.route[0], a.route[1]));
  if (a.json != "-" && a.dot != "-" && a.svg != "-") console.result(text);
  return ExitCode::done;
}

}  // namespace

Command topology_command() {
  const auto a = std::make_shared<Arguments>();
  return {"topology",
          "Shows a cluster: switches, ports, oversubscription, bisection, routes, drawings",
          "  trainwatt topology topologies/smc-h100.json\n"
          "  trainwatt topology topologies/smc-h100.json --route node-0 node-7\n"
          "  trainwatt topology topologies/smc-h100.json --route \"node-0 nic 2\" \"node-7 nic 2\" --json -\n"
          "  trainwatt topology topologies/smc-h100.json --set /fabric/units=4 --svg fabric.svg",
          {{"cluster", "FILE", "cluster file", &a->cluster, true, {}},
           {"--route", "A B", "the way between two nodes or adapters: equal-cost choices, cables, bandwidth", &a->route,
            false, between(2, 2)},
           {"--dot", "FILE", "write the graph for Graphviz; - is stdout", &a->dot, false, {}},
           {"--svg", "FILE", "draw the fabric: levels from the nodes up; - is stdout", &a->svg, false, {}},
           {"--set", "POINTER=VALUE", "override a value of the cluster; may be repeated", &a->set, false, {}},
           {"--json",
            "FILE",
            "write the summary, or the routes, as JSON; - is stdout, in place of the table",
            &a->json,
            false,
            {}}},
          [a](Console& console) { return run(*a, console); }};
}

}  // namespace tw::cli
