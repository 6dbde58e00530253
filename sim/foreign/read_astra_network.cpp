// Network files of ASTRA-sim: its analytical backend's yml (topology, npus_count, bandwidth in GB/s, latency in ns, a
// value a dimension), and the json of its first version (topologies-per-dim, units-count, link-bandwidth ...).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/strict_json.hpp"
#include "core/text.hpp"
#include "foreign/cluster_file.hpp"
#include "foreign/lines.hpp"

namespace tw::foreign {
namespace {

const std::vector<std::string> kYamlKeys{"topology", "npus_count", "bandwidth", "latency"};
const std::vector<std::string> kShapes{"Ring", "FullyConnected", "Switch"};

bool is_astra_network(const Source& s) {
  if (begins_object(s.text)) return contains(s.text, "\"topologies-per-dim\"") || contains(s.text, "\"npus_count\"");
  for (const Line& line : lines_of(s.text))
    if (starts_with(trimmed(line.text), "npus_count")) return true;
  return false;
}

struct Dimension {
  std::string shape;
  int npus = 0;
  double bandwidth_Bps = 0, latency_s = 0;
};

struct Values {
  std::vector<std::string> list;
  std::string place;
};
using Keys = std::map<std::string, Values>;

// "key: [ a, b ]  # remark", or the values as "- a" lines below their key.
Keys keys_of_yaml(const Source& s, Faults& faults) {
  Keys keys;
  std::string open;
  for (const Line& line : lines_of(s.text)) {
    std::string text = trimmed(line.text.substr(0, line.text.find('#')));
    if (text.empty() || text == "---") continue;
    if (text.front() == '-' && !open.empty()) {
      keys[open].list.push_back(trimmed(text.substr(1)));
      continue;
    }
    const size_t colon = text.find(':');
    const std::string key = trimmed(text.substr(0, colon));
    if (colon == std::string::npos || std::find(kYamlKeys.begin(), kYamlKeys.end(), key) == kYamlKeys.end()) {
      faults.add({s.name, line_place(line.number),
                  fmt::format("\"{}\" is no key of a network file", printable(key, 40)), suggest(key, kYamlKeys)});
      continue;
    }
    std::string value = trimmed(text.substr(colon + 1));
    open = value.empty() ? key : "";
    keys[key].place = line_place(line.number);
    if (value.empty()) continue;
    if (value.front() == '[') {
      if (value.back() != ']') {
        faults.add({s.name, line_place(line.number), "a list is not closed", "[ a, b ]"});
        continue;
      }
      value = value.substr(1, value.size() - 2);
    }
    for (const std::string& v : split(value, ',')) keys[key].list.push_back(trimmed(v));
  }
  return keys;
}

Keys keys_of_json(const Source& s, Faults& faults) {
  Keys keys;
  const auto json = parse_strict_json(s.text, s.name, faults);
  if (!json) return keys;
  for (const auto& [key, value] : json->items()) {
    std::string name = key;
    for (const auto& [from, to] : {std::pair{"topologies-per-dim", "topology"},
                                   {"units-count", "npus_count"},
                                   {"link-bandwidth", "bandwidth"},
                                   {"link-latency", "latency"}})
      if (key == from) name = to;
    Values& v = keys[name];
    v.place = "/" + key;
    for (size_t i = 0; i < (value.is_array() ? value.size() : 1); ++i) {
      const nlohmann::json& one = value.is_array() ? value[i] : value;
      v.list.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
  }
  return keys;
}

std::vector<Dimension> dimensions_of(const Source& s, Keys& keys, Faults& faults) {
  const size_t before = faults.size();
  for (const std::string& key : kYamlKeys)
    if (keys.count(key) == 0)
      faults.add({s.name, "", fmt::format("has no {}", key), "topology, npus_count, bandwidth, latency"});
  if (faults.size() != before) return {};
  const size_t n = keys["npus_count"].list.size();
  for (const std::string& key : kYamlKeys)
    if (keys[key].list.size() != n)
      faults.add({s.name, keys[key].place,
                  fmt::format("{} values of {} for {} dimensions", keys[key].list.size(), key, n),
                  "a value a dimension"});
  if (faults.size() != before) return {};
  std::vector<Dimension> list(n);
  const auto number = [&](const char* key, size_t i, bool whole) {
    const Values& values = keys[key];
    const auto v = number_of(values.list[i]);
    if (v && *v >= (whole ? 1 : 0) && *v < 1e9 && (!whole || *v == static_cast<int>(*v))) return *v;
    faults.add({s.name, values.place, fmt::format("\"{}\" is no {}", printable(values.list[i], 40), key),
                whole ? "a whole number, 1 and up" : "a number, 0 and up"});
    return 0.0;
  };
  for (size_t i = 0; i < n; ++i) {
    Dimension& d = list[i];
    d.shape = keys["topology"].list[i];
    if (std::find(kShapes.begin(), kShapes.end(), d.shape) == kShapes.end())
      faults.add({s.name, keys["topology"].place, fmt::format("unknown building block \"{}\"", printable(d.shape, 40)),
                  suggest(d.shape, kShapes)});
    d.npus = static_cast<int>(number("npus_count", i, true));
    d.bandwidth_Bps = 1e9 * number("bandwidth", i, false);
    d.latency_s = 1e-9 * number("latency", i, false);
    if (keys.count("links-count") != 0 && keys["links-count"].list.size() == n)
      d.bandwidth_Bps *= number("links-count", i, true);
  }
  if (faults.size() == before)
    for (size_t i = 0; i < n; ++i)
      if (!(list[i].bandwidth_Bps > 0))
        faults.add({s.name, keys["bandwidth"].place, fmt::format("dimension {} has no bandwidth", i + 1), "above 0"});
  return list;
}

// The links of an NPU in the dimension that is its node, one direction.
double inside_Bps(const Dimension& d) {
  return d.shape == "FullyConnected" ? d.bandwidth_Bps * std::max(1, d.npus - 1) : d.bandwidth_Bps;
}

Json nanoseconds(double latency_s) {
  return fmt::format("{:g} ns", latency_s * 1e9);
}

// Rings only: a torus of nodes of one NPU.
void put_torus(const Source& s, Keys& keys, const std::vector<Dimension>& d, size_t first, ClusterParts& parts,
               std::vector<std::string>& said, Faults& faults) {
  for (size_t i = first; i < d.size(); ++i)
    if (d[i].bandwidth_Bps != d[first].bandwidth_Bps)
      return faults.add({s.name, keys["bandwidth"].place, "rings of a torus have bandwidths that differ",
                         "one bandwidth for all rings between nodes"});
  Json sizes = Json::array();
  for (size_t i = first; i < d.size(); ++i) sizes.push_back(d[i].npus);
  const auto rings = static_cast<double>(d.size() - first);
  parts.node()["nics"] = 1;
  parts.node()["nic_bandwidth"] = bits_text(2 * rings * d[first].bandwidth_Bps);  // the router is the chip's own
  parts.fabric() = {{"kind", "torus"},
                    {"dimensions", sizes},
                    {"uplink_bandwidth", bits_text(d[first].bandwidth_Bps)},
                    {"hop_latency", nanoseconds(d[first].latency_s)}};
  said.push_back(fmt::format("{} rings between nodes: a torus, {} each way on every link", d.size() - first,
                             bits_text(d[first].bandwidth_Bps)));
}

// Switches of the second dimension join NPUs of one place in their nodes: rails. Those of a third are spines.
void put_rails(const Source& s, Keys& keys, const std::vector<Dimension>& d, const Json& base, ClusterParts& parts,
               std::vector<std::string>& said, Faults& faults) {
  for (size_t i = 1; i < d.size(); ++i)
    if (d[i].shape != "Switch" || i > 2)
      return faults.add({s.name, keys["topology"].place,
                         i > 2 ? fmt::format("{} dimensions", d.size())
                               : fmt::format("{} between nodes beside a switch or inside of it", d[i].shape),
                         "a node, then rings only, or one or two levels of switches"});
  const int rails = d[0].npus, nodes = d[1].npus, units = d.size() > 2 ? d[2].npus : 1,
            ports = std::max(base_ports(base), 2 * nodes);
  int spines = 0;
  double up_Bps = d[1].bandwidth_Bps;
  if (units > 1) {
    up_Bps = d[2].bandwidth_Bps;
    for (spines = std::max(1, (units * rails * nodes + ports - 1) / ports); nodes % spines != 0 && spines < nodes;)
      ++spines;
  } else {
    spines = 1;
  }
  parts.ports = std::max({2 * nodes, units > 1 ? units * rails * nodes / spines : rails, 1});
  parts.node()["nics"] = rails;
  parts.node()["nic_bandwidth"] = bits_text(d[1].bandwidth_Bps);
  parts.fabric() = {{"kind", "scalable_units"},
                    {"units", units},
                    {"nodes_per_unit", nodes},
                    {"leaves_per_unit", rails},
                    {"wiring", "rails"},
                    {"spines", spines},
                    {"uplinks_per_leaf", units > 1 ? nodes : 1},
                    {"uplink_bandwidth", bits_text(up_Bps)},
                    {"routing", "adaptive"},
                    {"hop_latency", nanoseconds(d[1].latency_s)}};
  said.push_back(fmt::format("dimension 2: NPUs of one place in their nodes share a switch, so {} rails of {} nodes",
                             rails, nodes));
  said.push_back(
      units > 1 ? fmt::format("dimension 3: {} spines above {} units, {} cables of {} from every leaf", spines, units,
                              nodes, bits_text(up_Bps))
                : "one spine with a cable to every rail's switch is added: the file joins rails inside nodes only");
}

Reading read_astra(const Source& s, const Options& options, Faults& faults) {
  Keys keys = begins_object(s.text) ? keys_of_json(s, faults) : keys_of_yaml(s, faults);
  if (!faults.empty()) return {};
  std::vector<Dimension> d = dimensions_of(s, keys, faults);
  ClusterParts parts;
  parts.base = options.base.empty() ? kDefaultBase : options.base;
  const Json base = base_cluster(parts.base, faults);
  if (!faults.empty()) return {};
  parts.description = fmt::format("The network of {}", s.name);
  std::vector<std::string> said{"bandwidths are GB/s of 10^9 bytes an NPU and direction, latencies ns"};
  const bool rings = std::all_of(d.begin(), d.end(), [](const Dimension& x) { return x.shape == "Ring"; });
  const bool rings_between =
      d.size() > 1 && std::all_of(d.begin() + 1, d.end(), [](const Dimension& x) { return x.shape == "Ring"; });
  if (rings && d.size() > 1) {
    parts.node()["gpus"] = 1;
    put_torus(s, keys, d, 0, parts, said, faults);
  } else {
    parts.node()["gpus"] = d[0].npus;
    parts.node()["nvlink"] = {{"bandwidth", fmt::format("{:g} GB/s", inside_Bps(d[0]) / 1e9)}};
    said.push_back(fmt::format("dimension 1 ({}) is a node of {} NPUs, {:g} GB/s out of each", d[0].shape, d[0].npus,
                               inside_Bps(d[0]) / 1e9));
    if (d.size() == 1)
      parts.fabric() = {{"kind", "scalable_units"}, {"units", 1},  {"nodes_per_unit", 1},
                        {"leaves_per_unit", 1},     {"spines", 0}, {"uplinks_per_leaf", 0}};
    else if (rings_between)
      put_torus(s, keys, d, 1, parts, said, faults);
    else
      put_rails(s, keys, d, base, parts, said, faults);
  }
  if (!faults.empty()) return {};
  return cluster_reading(s, options, std::move(parts), std::move(said), faults);
}

}  // namespace

extern const Kind astra_network_kind{"network file of ASTRA-sim (yml, json)", "a cluster", is_astra_network,
                                     read_astra};

}  // namespace tw::foreign
