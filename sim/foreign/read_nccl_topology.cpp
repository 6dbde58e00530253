// NCCL's view of a node, as NCCL_TOPO_DUMP_FILE writes it (and NCCL_TOPO_FILE reads it): CPUs, PCIe bridges, GPUs with
// their NVLinks, adapters. Attributes: src/graph/xml.cc of NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "foreign/cluster_file.hpp"
#include "foreign/lines.hpp"
#include "foreign/xml.hpp"

namespace tw::foreign {
namespace {

bool is_nccl_topology(const Source& s) {
  return contains(s.text.substr(0, 4096), "<system") && trimmed(s.text.substr(0, 256)).rfind('<', 0) == 0;
}

// A compute capability: the profile that stands for it, the line rate of one NVLink each way, the cluster whose hosts
// and switches go with it. Rates: NVIDIA's NVLink pages (generations 1 to 5).
struct Chip {
  int sm;
  const char *name, *accelerator;
  double nvlink_Bps;
  const char* base;
};
constexpr Chip kChips[] = {
    {80, "A100", "models/accelerators/a100-sxm-80gb.json", 25e9, "topologies/azure-ndm-a100-v4.json"},
    {86, "RTX A5000", "models/accelerators/rtx-a5000.json", 14.0625e9, "topologies/azure-ndm-a100-v4.json"},
    {89, "L40S", "models/accelerators/l40s.json", 0, "topologies/superpod-h100-4096.json"},
    {90, "H100", "models/accelerators/h100-sxm.json", 25e9, "topologies/superpod-h100-4096.json"},
    {100, "B200", "models/accelerators/b200-sxm-180gb.json", 50e9, "topologies/superpod-b200.json"},
    {103, "B300", "models/accelerators/b300.json", 50e9, "topologies/superpod-b300.json"}};

struct Gpu {
  size_t line = 0;
  int sm = 0, links = 0;
  int place = -1;       // of `bridges`
  double host_Bps = 0;  // of its own PCIe link; 0: not given
};
struct Net {
  size_t line = 0;
  double bandwidth_Bps = 0;
  int place = -1;
};
// A PCIe switch, or the root port of a device that hangs below none.
struct Bridge {
  std::string busid;
  int above = -1, cpu = 0;
  double bandwidth_Bps = 0;  // 0: not given
};
struct Found {
  std::vector<Gpu> gpus;
  std::vector<Net> nets;
  std::vector<Bridge> bridges;
  int cpus = 0;
  double between_cpus_Bps = 0;
  int pci_gpus = 0, pci_nics = 0;  // by class alone: display controllers, InfiniBand controllers
};

class Collector {
 public:
  Collector(const Source& source, Faults& faults) : source_(source), faults_(faults) {}

  void visit(const XmlElement& e, Found& found, int above = -1, double link_Bps = 0) {
    if (e.name == "cpu") {
      ++found.cpus;
      if (found.cpus == 1) found.between_cpus_Bps = between_cpus_Bps(e);
    }
    const bool bridge =
        std::any_of(e.children.begin(), e.children.end(), [](const auto& c) { return c.name == "pci"; });
    if (e.name == "pci" && (bridge || above < 0)) {
      found.bridges.push_back({e.attribute("busid"), above, std::max(0, found.cpus - 1), pcie_Bps(e)});
      above = static_cast<int>(found.bridges.size()) - 1;
    }
    if (e.name == "pci") link_Bps = pcie_Bps(e);
    if (e.name == "gpu") {
      Gpu gpu{e.line, whole(e, "sm"), 0, above, link_Bps};
      for (const XmlElement& child : e.children)
        if (child.name == "nvlink") gpu.links += whole(child, "count");
      found.gpus.push_back(gpu);
    } else if (e.name == "net" && e.attribute("keep") != "0" && e.attribute("coll") != "1") {
      found.nets.push_back({e.line, 1e6 / 8 * whole(e, "speed"), above});  // Mbit/s
    }
    if (e.name == "pci" && starts_with(e.attribute("class"), "0x0302")) ++found.pci_gpus;
    if (e.name == "pci" && starts_with(e.attribute("class"), "0x0207")) ++found.pci_nics;
    for (const XmlElement& child : e.children) visit(child, found, above, link_Bps);
  }

 private:
  // What NCCL takes a link to carry (src/graph/topo.cc, kvDictPciGen: 12 Gbit/s a lane at 16 GT/s); 0: not given.
  static double pcie_Bps(const XmlElement& e) {
    const std::string speed = e.attribute("link_speed");
    const auto rate = number_of(speed.substr(0, speed.find(' '))), lanes = number_of(e.attribute("link_width"));
    return rate && lanes && *rate > 0 && *lanes > 0 ? *rate * 0.75e9 / 8 * *lanes : 0;
  }
  // The same of the link between processors (src/graph/topo.h).
  static double between_cpus_Bps(const XmlElement& cpu) {
    if (cpu.attribute("vendor") == "AuthenticAMD") return 16e9;
    if (cpu.attribute("vendor") != "GenuineIntel") return 6e9;
    const double model = number_of(cpu.attribute("modelid")).value_or(0);
    return model >= 143 ? 22e9 : model >= 85 ? 10e9 : 6e9;
  }
  int whole(const XmlElement& e, const char* key) {
    const std::string text = e.attribute(key);
    const auto v = number_of(text);
    if (v && *v >= 0 && *v < 1e9 && *v == static_cast<int>(*v)) return static_cast<int>(*v);
    faults_.add({source_.name, line_place(e.line),
                 text.empty() ? fmt::format("<{}> has no {}", e.name, key)
                              : fmt::format("{}=\"{}\" of <{}> is no count", key, printable(text, 30), e.name),
                 "a whole number"});
    return 0;
  }
  const Source& source_;
  Faults& faults_;
};

// All alike, or a fault with the line of the first that differs.
bool alike(const Source& s, const std::vector<Gpu>& gpus, Faults& faults) {
  for (const Gpu& g : gpus)
    if (g.sm != gpus.front().sm || g.links != gpus.front().links) {
      faults.add({s.name, line_place(g.line),
                  fmt::format("a GPU of sm {} with {} NVLinks beside one of sm {} with {}", g.sm, g.links,
                              gpus.front().sm, gpus.front().links),
                  "a node of equal GPUs"});
      return false;
    }
  return true;
}

void put_gpus(const Source& s, const Options& options, const Found& found, ClusterParts& parts,
              std::vector<std::string>& said, Faults& faults) {
  const Gpu& gpu = found.gpus.front();
  const auto chip = std::find_if(std::begin(kChips), std::end(kChips), [&](const Chip& c) { return c.sm == gpu.sm; });
  const bool known = chip != std::end(kChips);
  if (!known && options.accelerator.empty())
    return faults.add({s.name, line_place(gpu.line), fmt::format("no accelerator profile stands for sm {}", gpu.sm),
                       "--accelerator FILE, one of models/accelerators/"});
  parts.base = !options.base.empty() ? options.base : known ? chip->base : "topologies/superpod-h100-4096.json";
  parts.node()["gpus"] = found.gpus.size();
  parts.node()["accelerator"] = known ? chip->accelerator : options.accelerator;
  said.push_back(options.accelerator.empty()
                     ? fmt::format("{} GPUs of sm {}: {} (--accelerator FILE names another of that kind)",
                                   found.gpus.size(), gpu.sm, chip->accelerator)
                     : fmt::format("{} GPUs, {}", found.gpus.size(), options.accelerator));
  const double link_Bps = known && chip->nvlink_Bps > 0 ? chip->nvlink_Bps : 25e9;
  const double out_Bps = gpu.links * link_Bps;
  if (gpu.links == 0) {
    parts.node()["nvlink"] = {{"bandwidth", "1 GB/s"}, {"island", 1}};
    if (gpu.host_Bps > 0)
      parts.node()["accelerator"] = {{"use", parts.node()["accelerator"]},
                                     {"host_bandwidth", fmt::format("{:g} GB/s", gpu.host_Bps / 1e9)}};
    said.push_back("no NVLink: GPUs are reached over PCIe");
  } else if (gpu.sm == 90 && out_Bps == 450e9) {
    parts.node()["nvlink"] = "models/accelerators/nvlink4-h100.json";
  } else if (gpu.sm == 80 && out_Bps == 300e9) {
    parts.node()["nvlink"] = "models/accelerators/nvlink3-a100.json";
  } else if (gpu.sm >= 100 && out_Bps == 900e9) {
    parts.node()["nvlink"] = "models/accelerators/nvlink5-b200.json";
  } else {
    parts.node()["nvlink"] = {{"bandwidth", fmt::format("{:g} GB/s", out_Bps / 1e9)}};
  }
  if (gpu.links > 0)
    said.push_back(
        fmt::format("{} NVLinks a GPU of {:g} GB/s each way: {:g} GB/s", gpu.links, link_Bps / 1e9, out_Bps / 1e9));
}

void put_nets(const Found& found, ClusterParts& parts, std::vector<std::string>& said) {
  double fastest_Bps = 0;
  for (const Net& n : found.nets) fastest_Bps = std::max(fastest_Bps, n.bandwidth_Bps);
  std::map<double, int> slower;
  int nics = 0;
  for (const Net& n : found.nets) {
    if (n.bandwidth_Bps == fastest_Bps)
      ++nics;
    else
      ++slower[n.bandwidth_Bps];
  }
  parts.node()["nics"] = nics;
  parts.node()["nic_bandwidth"] = bits_text(fastest_Bps);
  said.push_back(fmt::format("{} adapters of {}", nics, bits_text(fastest_Bps)));
  for (const auto& [bandwidth_Bps, count] : slower)
    said.push_back(fmt::format("left out: {} adapter{} of {}, slower than those of the training fabric", count,
                               count == 1 ? "" : "s", bits_text(bandwidth_Bps)));
}

// The switches that accelerators and kept adapters hang below.
void put_pcie(const Found& found, ClusterParts& parts, std::vector<std::string>& said) {
  double fastest_Bps = 0;
  for (const Net& n : found.nets) fastest_Bps = std::max(fastest_Bps, n.bandwidth_Bps);
  std::vector<Json> gpus(found.bridges.size(), Json::array()), nics = gpus;
  std::vector<bool> used(found.bridges.size(), false);
  bool known = true;
  const auto put = [&](int place, std::vector<Json>& devices, int device) {
    if (place < 0) return void(known = false);
    devices[static_cast<size_t>(place)].push_back(device);
    for (int b = place; b >= 0; b = found.bridges[static_cast<size_t>(b)].above) {
      used[static_cast<size_t>(b)] = true;
      known = known && found.bridges[static_cast<size_t>(b)].bandwidth_Bps > 0;
    }
  };
  int device = 0;
  for (const Gpu& g : found.gpus) put(g.place, gpus, device++);
  device = 0;
  for (const Net& n : found.nets)
    if (n.bandwidth_Bps == fastest_Bps) put(n.place, nics, device++);
  if (!known) return said.push_back("PCIe switches are left out: not every device has a link whose speed is given");
  Json tree{{"switches", Json::array()}};
  for (size_t b = 0; b < found.bridges.size(); ++b) {
    if (!used[b]) continue;
    const Bridge& bridge = found.bridges[b];
    Json one{{"name", bridge.busid},
             {"socket", bridge.cpu},
             {"uplink", fmt::format("{:g} GB/s", bridge.bandwidth_Bps / 1e9)}};
    if (bridge.above >= 0) one["above"] = found.bridges[static_cast<size_t>(bridge.above)].busid;
    if (!gpus[b].empty()) one["gpus"] = gpus[b];
    if (!nics[b].empty()) one["nics"] = nics[b];
    tree["switches"].push_back(std::move(one));
  }
  if (found.cpus > 1) tree["inter_socket"] = fmt::format("{:g} GB/s", found.between_cpus_Bps / 1e9);
  tree["source"] = "NCCL's topology; bandwidths as its src/graph/topo.cc and topo.h take them";
  said.push_back(fmt::format("{} PCIe switch{} below {} processor{}", tree["switches"].size(),
                             tree["switches"].size() == 1 ? "" : "es", found.cpus, found.cpus == 1 ? "" : "s"));
  parts.node()["pcie"] = std::move(tree);
}

// Files for NCCL_TOPO_FILE may name PCIe functions alone: numbers of GPUs and adapters, but no chip and no speed.
void put_functions(const Found& found, const Options& options, ClusterParts& parts, std::vector<std::string>& said) {
  parts.base = options.base.empty() ? "topologies/azure-ndm-a100-v4.json" : options.base;
  parts.node()["gpus"] = found.pci_gpus;
  parts.node()["nics"] = found.pci_nics;
  said.push_back(
      fmt::format("{} GPUs and {} InfiniBand adapters by their PCIe classes; chip, NVLink and speeds as in {} (--base)",
                  found.pci_gpus, found.pci_nics, parts.base));
}

Reading read_nccl(const Source& s, const Options& options, Faults& faults) {
  const auto system = parse_xml(s, faults);
  if (!system) return {};
  Found found;
  Collector(s, faults).visit(*system, found);
  if (!faults.empty()) return {};
  const bool functions = found.gpus.empty() && found.nets.empty() && found.pci_gpus > 0 && found.pci_nics > 0;
  if (found.gpus.empty() && !functions)
    faults.add({s.name, line_place(system->line), "holds no <gpu>", "what NCCL_TOPO_DUMP_FILE wrote"});
  if (found.nets.empty() && !functions)
    faults.add({s.name, line_place(system->line), "holds no <net>", "a node with network adapters"});
  if (!faults.empty() || !alike(s, found.gpus, faults)) return {};
  ClusterParts parts;
  std::vector<std::string> said;
  if (functions) {
    put_functions(found, options, parts, said);
  } else {
    put_gpus(s, options, found, parts, said, faults);
    if (!faults.empty()) return {};
    put_nets(found, parts, said);
    put_pcie(found, parts, said);
  }
  parts.description = fmt::format("{} node{} as {} shows it", options.nodes, options.nodes == 1 ? "" : "s", s.name);
  const Json base = base_cluster(parts.base, faults);
  if (base.is_null()) return {};
  if (!options.base.empty()) {
    parts.fabric() = base.value("fabric", Json::object());
    said.push_back(fmt::format("fabric: that of {}; NCCL sees one node", parts.base));
  } else {
    parts.ports = options.nodes * parts.node()["nics"].get<int>();
    parts.fabric() = {{"kind", "scalable_units"}, {"units", 1},  {"nodes_per_unit", options.nodes},
                      {"leaves_per_unit", 1},     {"spines", 0}, {"uplinks_per_leaf", 0}};
    said.push_back(fmt::format("NCCL sees one node: {} of them below one switch (--nodes, --base)", options.nodes));
  }
  return cluster_reading(s, options, std::move(parts), std::move(said), faults);
}

}  // namespace

extern const Kind nccl_topology_kind{"NCCL topology XML", "a cluster", is_nccl_topology, read_nccl};

}  // namespace tw::foreign
