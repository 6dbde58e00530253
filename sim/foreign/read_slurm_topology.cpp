// Slurm's topology.conf of the tree plugin: switches, and the nodes or switches below each. It names no cable, so their
// number follows from the adapters of a node and from trees without oversubscription.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "foreign/lines.hpp"
#include "foreign/wiring.hpp"

namespace tw::foreign {
namespace {

bool is_slurm_topology(const Source& s) {
  for (const Line& line : lines_of(s.text)) {
    const std::string low = lower(trimmed(line.text));
    if (low.empty() || low.front() == '#') continue;
    return starts_with(low, "switchname=") || starts_with(low, "blockname=") || starts_with(low, "topologyplugin=");
  }
  return false;
}

struct SlurmSwitch {
  std::string name;
  size_t line = 0;
  std::vector<std::string> nodes, switches;
  std::string parent;
};

class SlurmFile {
 public:
  SlurmFile(const Source& source, Faults& faults) : source_(source), faults_(faults) {}

  std::vector<SlurmSwitch> read() {
    std::string text;
    size_t first = 0;
    for (const Line& line : lines_of(source_.text)) {
      std::string part = line.text.substr(0, line.text.find('#'));
      if (text.empty()) first = line.number;
      const bool more = !trimmed(part).empty() && trimmed(part).back() == '\\';  // goes on in the next line
      text += more ? trimmed(part).substr(0, trimmed(part).size() - 1) + " " : part;
      if (more) continue;
      if (!trimmed(text).empty()) one(trimmed(text), first);
      text.clear();
    }
    tie();
    return std::move(list_);
  }

 private:
  void refuse(size_t line, const std::string& what, const std::string& allowed) {
    faults_.add({source_.name, line_place(line), what, allowed});
  }

  void one(const std::string& text, size_t line) {
    SlurmSwitch s;
    s.line = line;
    std::string rest = text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      const std::string word = rest.substr(0, end);
      rest = trimmed(rest.substr(end));
      const size_t equals = word.find('=');
      const std::string key = lower(word.substr(0, equals)),
                        value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "switchname") {
        s.name = value;
      } else if (key == "nodes" || key == "switches") {
        const auto names = host_names(value);
        if (!names)
          return refuse(line, fmt::format("\"{}\" is no list of names", printable(value, 60)),
                        "such as node[00-15,20]");
        (key == "nodes" ? s.nodes : s.switches) = *names;
      } else if (key == "blockname" || key == "blocksizes") {
        return refuse(line, "blocks name no switches", "a topology.conf of the tree plugin (SwitchName=)");
      } else if (key != "linkspeed") {
        return refuse(line, fmt::format("unknown key \"{}\"", printable(word.substr(0, equals), 40)),
                      suggest(key, {"switchname", "nodes", "switches", "linkspeed"}));
      }
    }
    if (s.name.empty()) return refuse(line, "has no SwitchName", "SwitchName=leaf0 Nodes=node[0-15]");
    if (s.nodes.empty() && s.switches.empty())
      return refuse(line, fmt::format("{} has neither Nodes nor Switches", s.name), "");
    if (place_.count(s.name) != 0)
      return refuse(line, fmt::format("{} stands in line {} already", s.name, list_[place_[s.name]].line),
                    "a name of its own");
    for (const std::string& node : s.nodes) {
      const auto [known, added] = leaf_.emplace(node, s.name);
      if (!added) return refuse(line, fmt::format("{} is below {} already", node, known->second), "one leaf a node");
    }
    place_[s.name] = list_.size();
    list_.push_back(std::move(s));
  }

  void tie() {
    size_t tops = 0;
    for (const SlurmSwitch& s : list_)
      for (const std::string& child : s.switches) {
        const auto found = place_.find(child);
        if (found == place_.end()) {
          std::vector<std::string> known;
          for (const auto& entry : place_) known.push_back(entry.first);
          refuse(s.line, fmt::format("there is no switch \"{}\"", child), suggest(child, known, 6));
        } else if (std::string& parent = list_[found->second].parent; !parent.empty()) {
          refuse(s.line, fmt::format("{} is below {} already", child, parent), "a tree");
        } else {
          parent = s.name;
        }
      }
    for (const SlurmSwitch& s : list_) {
      tops += s.parent.empty() ? 1 : 0;
      size_t steps = 0;
      for (std::string up = s.parent; !up.empty(); up = list_[place_.at(up)].parent)
        if (up == s.name)
          return refuse(s.line, fmt::format("{} stands above itself", s.name), "a tree");
        else if (++steps > list_.size())
          break;  // below such a switch
    }
    if (faults_.empty() && tops != 1)
      for (const SlurmSwitch& s : list_)
        if (s.parent.empty() && s.line != list_.front().line)
          return refuse(s.line, fmt::format("{} of {} switches have no switch above them", tops, list_.size()),
                        "one top switch");
  }

  const Source& source_;
  Faults& faults_;
  std::vector<SlurmSwitch> list_;
  std::map<std::string, size_t> place_;
  std::map<std::string, std::string> leaf_;  // of a node
};

// Equal leaves below one switch, as scalable units: a Slurm switch stands for as many real ones as its cables need.
Json equal_leaves(const std::vector<SlurmSwitch>& list, int nics, int ports, std::vector<std::string>& said) {
  size_t leaves = 0, nodes = 0;
  for (const SlurmSwitch& s : list) {
    if (s.nodes.empty()) continue;
    if (leaves++ > 0 && s.nodes.size() != nodes) return nullptr;
    nodes = s.nodes.size();
    for (const SlurmSwitch& above : list)
      if (above.name == s.parent && !above.parent.empty()) return nullptr;  // three levels
  }
  if (leaves == 0 || (leaves > 1 && list.size() != leaves + 1)) return nullptr;
  const bool rails = static_cast<int>(nodes) * nics > ports / 2;
  const int per_unit = rails ? nics : 1, up = static_cast<int>(nodes) * nics / per_unit;
  int spines = 0;
  if (leaves > 1) {
    const long cables = static_cast<long>(leaves) * per_unit * up;
    for (spines = static_cast<int>((cables + ports - 1) / ports); up % spines != 0 && spines < up;) ++spines;
  }
  said.push_back(
      fmt::format("{} leaf switches of {} nodes: {}", leaves, nodes,
                  rails ? fmt::format("{} adapters a node need more than one real switch, so one for each rail", nics)
                        : "one real switch each"));
  if (spines > 0)
    said.push_back(
        fmt::format("the switch above them: {} spines of {} ports, as many cables up as down (no oversubscription)",
                    spines, ports));
  return {{"kind", "scalable_units"},
          {"units", leaves},
          {"nodes_per_unit", nodes},
          {"leaves_per_unit", per_unit},
          {"wiring", rails ? "rails" : "halves"},
          {"spines", spines},
          {"uplinks_per_leaf", spines > 0 ? up : 0}};
}

// Any other tree: every switch is one real switch, with as many cables up as it has down.
Wiring wiring_of(const std::vector<SlurmSwitch>& list, int nics, double nic_Bps) {
  Wiring w;
  std::map<std::string, const SlurmSwitch*> by_name;
  for (const SlurmSwitch& s : list) by_name[s.name] = &s;
  for (const SlurmSwitch& s : list) {
    w.switches.push_back(s.name);
    for (const std::string& node : s.nodes) {
      w.nodes.push_back(node);
      w.cables.push_back({node, s.name, nic_Bps, nics, s.line, "", ""});
    }
    // Cables of the nodes of this leaf, on every switch above it.
    std::string below = s.name;
    for (const SlurmSwitch* up = &s; !s.nodes.empty() && !up->parent.empty(); up = by_name.at(up->parent))
      w.cables.push_back({up->name, up->parent, nic_Bps, static_cast<int>(s.nodes.size()) * nics, s.line, "", ""});
  }
  return w;
}

Reading read_slurm(const Source& s, const Options& options, Faults& faults) {
  const std::vector<SlurmSwitch> list = SlurmFile(s, faults).read();
  ClusterParts parts;
  parts.base = options.base.empty() ? kDefaultBase : options.base;
  const Json base = base_cluster(parts.base, faults);
  if (!faults.empty()) return {};
  parts.description = fmt::format("The tree of {}", s.name);
  const int nics = base_nics(base);
  const double nic_Bps = base_nic_Bps(base);
  std::vector<std::string> said{
      fmt::format("{} adapters of {} a node, as in {}: Slurm names none (LinkSpeed has no unit)", nics,
                  bits_text(nic_Bps), parts.base)};
  if (Json tree = equal_leaves(list, nics, base_ports(base), said); !tree.is_null()) {
    tree["uplink_bandwidth"] = bits_text(nic_Bps);
    tree["routing"] = "adaptive";
    parts.fabric() = std::move(tree);
  } else {
    said.push_back("every switch stands for one real switch with as many cables up as down (no oversubscription)");
    put_wiring(s, wiring_of(list, nics, nic_Bps), parts, said, faults);
  }
  if (!faults.empty()) return {};
  return cluster_reading(s, options, std::move(parts), std::move(said), faults);
}

}  // namespace

extern const Kind slurm_topology_kind{"Slurm's topology.conf", "a cluster", is_slurm_topology, read_slurm};

}  // namespace tw::foreign
