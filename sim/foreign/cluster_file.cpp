#include "foreign/cluster_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/document.hpp"
#include "core/files.hpp"
#include "core/units.hpp"
#include "foreign/lines.hpp"
#include "topology/cluster.hpp"
#include "topology/fabric.hpp"

namespace tw::foreign {
namespace {

constexpr double kGbit = 1e9 / 8;

// Rates of InfiniBand by the name of the generation, four lanes (InfiniBand Trade Association's roadmap).
constexpr std::pair<const char*, double> kGenerations[] = {{"sdr", 10},  {"ddr", 20},  {"qdr", 40},  {"fdr", 56},
                                                           {"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}};

// Files that are named in it stay named; "use" of the outermost object is followed.
Json composed(const std::string& file, int depth, Faults& faults) {
  const auto path = find_input_file(file, "");
  if (!path) {
    faults.add({file, "", "there is no such cluster file", suggest_file(file)});
    return nullptr;
  }
  Json cluster = Json::parse(read_file(*path), nullptr, false, true);
  if (!cluster.is_object()) {
    faults.add({file, "", "is no cluster file", "one of topologies/"});
    return nullptr;
  }
  if (!cluster.contains("use") || depth > 8) return cluster;
  Json below = composed(cluster["use"].get<std::string>(), depth + 1, faults);
  if (below.is_null()) return below;
  cluster.erase("use");
  below.merge_patch(cluster);
  return below;
}

double quantity(const Json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_string()) return 0;
  return parse_quantity(object[key].get<std::string>(), DimensionOf<Bandwidth>::info).value;
}

// A name for a cluster that says where it comes from.
std::string stem_of(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() || stem == "-" ? "cluster" : stem;
}

std::string comments(const std::vector<std::string>& said) {
  std::string out;
  for (const std::string& line : said) out += "// " + line + "\n";
  return out;
}

}  // namespace

ClusterParts::ClusterParts()
    : node_(std::make_unique<Json>(Json::object())), fabric_(std::make_unique<Json>(Json::object())) {}
ClusterParts::ClusterParts(ClusterParts&&) noexcept = default;
ClusterParts::~ClusterParts() = default;

Json base_cluster(const std::string& file, Faults& faults) {
  try {
    return composed(file, 0, faults);
  } catch (const nlohmann::json::exception&) {
    faults.add({file, "", "is no cluster file", "one of topologies/"});
    return nullptr;
  }
}

std::string bits_text(double bandwidth_Bps) {
  return fmt::format("{:.6g} Gbit/s", bandwidth_Bps / kGbit);
}

std::optional<double> speed_of(const std::string& text, double bare_Bps) {
  const std::string low = lower(trimmed(text));
  for (const auto& [name, gbit] : kGenerations)
    if (low == name) return gbit * kGbit;
  const size_t unit = low.find_first_not_of("0123456789.+e");
  const auto value = number_of(trimmed(low.substr(0, unit)));
  if (!value || !(*value > 0)) return std::nullopt;
  if (unit == std::string::npos) return bare_Bps > 0 ? std::optional(*value * bare_Bps) : std::nullopt;
  const std::string word = trimmed(low.substr(unit)), exact = trimmed(trimmed(text).substr(unit));
  for (const auto& [prefix, factor] : {std::pair{"t", 1e12}, {"g", 1e9}, {"m", 1e6}}) {
    if (!starts_with(word, prefix)) continue;
    const std::string rest = word.substr(1);
    if (rest == "byte/s" || (rest == "b/s" && contains(exact, "B/s")) || exact.substr(1) == "Bps")
      return *value * factor;  // GB/s counts bytes, Gb/s bits
    if (rest.empty() || rest == "b/s" || rest == "bps" || rest == "bit/s" || rest == "bits/s" || rest == "be" ||
        rest == "bit" || rest == "b" || rest == "base")
      return *value * factor / 8;
  }
  return std::nullopt;
}

int base_ports(const Json& base) {
  return base.contains("fabric") && base["fabric"].contains("switch") ? base["fabric"]["switch"].value("ports", 64)
                                                                      : 64;
}
int base_nics(const Json& base) {
  return base.contains("node") && base["node"].is_object() ? base["node"].value("nics", 8) : 8;
}
double base_nic_Bps(const Json& base) {
  return base.contains("node") && base["node"].is_object() ? quantity(base["node"], "nic_bandwidth") : 0;
}

Reading cluster_reading(const Source& source, const Options& options, ClusterParts parts, std::vector<std::string> said,
                        Faults& faults) {
  Json cluster = base_cluster(parts.base, faults);
  if (cluster.is_null()) return {};
  if (!cluster.contains("node") || !cluster["node"].is_object() || !cluster.contains("fabric") ||
      !cluster["fabric"].is_object()) {
    faults.add({parts.base, "", "its node and fabric stand in files of their own", "a cluster that holds them itself"});
    return {};
  }
  const Json had = cluster["fabric"];
  cluster["name"] = options.name.empty() ? stem_of(source.name) : options.name;
  cluster["description"] = parts.description;
  if (!options.accelerator.empty()) parts.node()["accelerator"] = options.accelerator;
  for (const auto& [key, value] : parts.node().items()) cluster["node"][key] = value;
  for (const char* key : {"switch", "link_efficiency"})
    if (had.contains(key) && !parts.fabric().contains(key)) parts.fabric()[key] = had[key];
  if (parts.ports > base_ports(cluster)) {
    said.push_back(
        fmt::format("switches: of {}, with {} ports for the cables that they carry", parts.base, parts.ports));
    parts.fabric()["switch"]["ports"] = parts.ports;
  } else {
    said.push_back(fmt::format("switches: of {}, {} ports", parts.base, base_ports(cluster)));
  }
  said.push_back(fmt::format("not in the file, so as in {}: {}power of a node and of its delivery, storage, hosts",
                             parts.base, parts.node().contains("accelerator") ? "" : "accelerator, "));
  parts.fabric()["source"] = fmt::format("read from {}", std::filesystem::path(source.name).filename().string());
  cluster["fabric"] = parts.fabric();
  Reading reading;
  reading.text = comments(said) + cluster.dump(2) + "\n";
  reading.said = std::move(said);
  const Document document = Document::from_text(reading.text, source.name, description<Cluster>().info(), {}, faults);
  const auto checked = tw::read<Cluster>(document, faults);
  if (faults.empty()) check_fabric(checked, ReadContext{&document, "", &faults, {}});
  return reading;
}

}  // namespace tw::foreign
