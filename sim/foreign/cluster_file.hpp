// The text of a cluster file: what a foreign file says, over the parts of a known cluster for what it does not.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foreign/foreign.hpp"

namespace tw::foreign {

using Json = nlohmann::ordered_json;

// Base of files that say nothing of their nodes.
inline constexpr const char* kDefaultBase = "topologies/superpod-h100-4096.json";

// The base cluster as its file has it: parts that stand in files of their own stay names of files. Null with a fault.
Json base_cluster(const std::string& file, Faults& faults);

// "400 Gbit/s" of bytes a second.
std::string bits_text(double bandwidth_Bps);

// A speed as cabling lists write it: "400 Gbit/s", "400G", "400Gb/s", "50 GB/s", "NDR"; a bare number counts `bare_Bps`
// each (0: refused). Bytes a second; nothing where it is none.
std::optional<double> speed_of(const std::string& text, double bare_Bps);

// What is known of a cluster.
struct ClusterParts {
  ClusterParts();
  ClusterParts(ClusterParts&&) noexcept;
  ~ClusterParts();
  Json& node() { return *node_; }      // over the base's node
  Json& fabric() { return *fabric_; }  // whole, but for "switch", which is the base's
  std::string base;                    // file whose power, storage, hosts and switches are taken
  int ports = 0;                       // most cables on a switch; more ports than the base's switch has are given to it
  std::string description;

 private:
  std::unique_ptr<Json> node_, fabric_;
};

// The whole file, with what was inferred as comment lines. Checked as any cluster is: a fabric whose nodes cannot reach
// one another is a fault.
Reading cluster_reading(const Source& source, const Options& options, ClusterParts parts, std::vector<std::string> said,
                        Faults& faults);

// What a base gives, for readers that need it: its switch's ports, its node's adapters.
int base_ports(const Json& base);
int base_nics(const Json& base);
double base_nic_Bps(const Json& base);

}  // namespace tw::foreign
