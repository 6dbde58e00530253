#include "study/check_result.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/strict_json.hpp"
#include "core/sum.hpp"

namespace tw {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

constexpr double kRounding = 1e-9;

class ResultCheck {
 public:
  ResultCheck(const json& result, std::string file, std::string place, Faults& faults)
      : r_(result), file_(std::move(file)), place_(std::move(place)), faults_(faults) {}

  void run() {
    for (const char* block : {"/plan", "/step", "/run", "/power", "/energy", "/carbon"})
      if (!r_.contains(Pointer(block)) || !r_[Pointer(block)].is_object()) return fault(block, "is missing", "");
    adds_up("/step/time_s", "/step/breakdown_s");
    adds_up("/memory/per_gpu_bytes", "/memory/parts_bytes");
    adds_up("/energy/nodes_dc_j", "/energy/nodes_parts_j");
    Sum nodes_j;
    if (r_.contains(Pointer("/power/per_node")) && r_[Pointer("/power/per_node")].is_array())
      for (const json& node : r_[Pointer("/power/per_node")])
        nodes_j.add(node.is_object() && node.value("dc_j", json()).is_number() ? node["dc_j"].get<double>() : 0);
    if (nodes_j.value() > 0) same("/energy/nodes_dc_j", nodes_j.value(), "the nodes' dc_j");
    if (const auto nodes = number("/energy/nodes_dc_j"), network = number("/energy/network_j"); nodes && network)
      same("/energy/total_dc_j", *nodes + *network, "nodes and network");
    for (const std::string block : {"/energy", "/energy_mlperf_v4_0"})
      if (const auto dc = number(block + "/total_dc_j"), loss = number(block + "/rectifier_loss_j"); dc && loss)
        same(block + "/total_ac_j", *dc + *loss, "total_dc_j and rectifier_loss_j");
    if (const auto ac = number("/energy/facility_j"), dc = number("/energy/total_dc_j"); ac && dc)
      in_order("/energy/facility_j", *dc, *ac, "is below what its nodes and network take");
    for (const auto& [block, value] : {std::pair{"/step", "/time_s"}, std::pair{"/run/time_to_train_s", "/mean"},
                                       std::pair{"/power/node_dc_w", "/mean"}, std::pair{"/energy", "/total_dc_j"}})
      holds(block, number(std::string(block) + value));
    for (const char* share : {"/step/mfu", "/run/goodput", "/power/shelf_headroom"})
      if (const auto v = number(share); v && *v > 1 + kRounding)
        fault(share, fmt::format("{:g} is no share", *v), "at most 1");
    for (const char* block : {"/step", "/run", "/energy", "/memory", "/power/network_w_by_rule"}) not_negative(block);
    const std::string status =
        r_[Pointer("/run")].value("status", json("finished")) == json("stopped") ? "stopped" : "finished";
    const bool time = number("/run/time_to_train_s/mean").has_value();
    if (status == "stopped" && time)
      fault("/run/time_to_train_s/mean", "a run that stopped has no time to train", "null");
    double before = 0;
    for (const char* quantile : {"p5", "p50", "p95"})
      if (const auto v = number(std::string("/run/time_to_train_s/") + quantile)) {
        if (*v < before) fault(std::string("/run/time_to_train_s/") + quantile, "is below the quantile before it", "");
        before = *v;
      }
  }

 private:
  std::optional<double> number(const std::string& pointer) const {
    const Pointer at(pointer);
    return r_.contains(at) && r_[at].is_number() ? std::optional(r_[at].get<double>()) : std::nullopt;
  }
  void fault(const std::string& pointer, const std::string& what, const std::string& allowed) {
    faults_.add({file_, place_ + pointer, what, allowed});
  }
  void same(const std::string& pointer, double sum, const std::string& of) {
    const auto whole = number(pointer);
    if (whole && std::abs(*whole - sum) > 1e3 * kRounding * std::max(std::abs(*whole), std::abs(sum)))
      fault(pointer, fmt::format("{:.9g} is not the sum of {}, {:.9g}", *whole, of, sum), "");
  }
  void in_order(const std::string& pointer, double low, double high, const std::string& what) {
    if (low > high * (1 + kRounding) + kRounding) fault(pointer, fmt::format("{:.9g} {}", high, what), "");
  }
  // The interval of a block holds its value.
  void holds(const std::string& block, std::optional<double> value) {
    const auto low = number(block + "/interval/low"), high = number(block + "/interval/high");
    if (!value || !low || !high) return;
    if (*low > *value * (1 + kRounding) || *value > *high * (1 + kRounding))
      fault(block + "/interval", fmt::format("{:.9g} to {:.9g} does not hold {:.9g}", *low, *high, *value), "");
  }
  void adds_up(const std::string& whole, const std::string& parts) {
    const Pointer at(parts);
    if (!r_.contains(at) || !r_[at].is_object() || r_[at].empty()) return;
    Sum sum;
    for (const json& part : r_[at])
      if (part.is_number()) sum.add(part.get<double>());
    same(whole, sum.value(), parts.substr(1));
  }
  void not_negative(const std::string& pointer) {
    const json& node = r_.contains(Pointer(pointer)) ? r_[Pointer(pointer)] : json();
    if (node.is_number() && node.get<double>() < -kRounding)
      fault(pointer, fmt::format("{:g} is below 0", node.get<double>()), "");
    if (node.is_object())
      for (const auto& [key, value] : node.items())
        if (key.find('/') == std::string::npos && key.find('~') == std::string::npos) not_negative(pointer + "/" + key);
  }

  const json& r_;
  const std::string file_, place_;
  Faults& faults_;
};

}  // namespace

std::optional<size_t> check_results(const std::string& text, const std::string& file, Faults& faults) {
  Faults unread;  // told by whoever reads it as a scenario
  const auto parsed = parse_strict_json(text, file, unread);
  if (!parsed) return std::nullopt;
  const bool single = parsed->is_object() && parsed->contains("trainwatt");
  if (!parsed->is_array() && !single) return std::nullopt;
  const json list = single ? json::array({*parsed}) : *parsed;
  if (list.empty()) faults.add({file, "", "holds no result", "what run --json writes"});
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = single ? "" : fmt::format("/{}", i);
    if (!list[i].is_object() || !list[i].contains("scenario"))
      faults.add({file, place, "is no result of a run", "what run --json writes"});
    else if (!list[i].contains("error"))
      ResultCheck(list[i], file, place, faults).run();
  }
  return list.size();
}

}  // namespace tw
