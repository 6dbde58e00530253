#include "report/compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace tw::report {
namespace {

constexpr size_t kWidest = 20;  // of a value

std::string shown(const std::optional<std::string>& value) {
  if (!value || *value == "null") return "-";
  char* end = nullptr;
  const double v = std::strtod(value->c_str(), &end);
  const std::string text = *end == '\0' && !value->empty() ? fmt::format("{:.6g}", v) : *value;
  return text.size() <= kWidest ? text : text.substr(0, kWidest - 3) + "...";
}

void section(std::string& out, const std::string& title, const std::vector<Comparand>& all,
             FlatValues Comparand::*part) {
  std::vector<FlatValues> values;
  for (const Comparand& c : all) values.push_back(c.*part);
  const std::vector<Difference> list = differences(values);
  out += title + (list.empty() ? ": the same\n" : "\n");
  if (list.empty()) return;
  size_t path = 4;
  std::vector<size_t> widths;
  for (const Comparand& c : all) widths.push_back(std::min(kWidest, c.name.size()));
  for (const Difference& d : list) {
    path = std::max(path, d.path.size());
    for (size_t i = 0; i < all.size(); ++i) widths[i] = std::max(widths[i], shown(d.values[i]).size());
  }
  out += fmt::format("  {:<{}}", "", path);
  for (size_t i = 0; i < all.size(); ++i) out += fmt::format("  {:>{}}", shown(all[i].name), widths[i]);
  out += "     change\n";
  for (const Difference& d : list) {
    out += fmt::format("  {:<{}}", d.path, path);
    for (size_t i = 0; i < all.size(); ++i) out += fmt::format("  {:>{}}", shown(d.values[i]), widths[i]);
    out += d.change_pct ? fmt::format("  {:>+8.2f} %\n", *d.change_pct) : "\n";
  }
}

}  // namespace

std::string compare_table(const std::vector<Comparand>& all) {
  std::string out;
  section(out, "Inputs", all, &Comparand::inputs);
  section(out, "Outputs (SI units)", all, &Comparand::outputs);
  return out;
}

std::string compare_json(const std::vector<Comparand>& all) {
  using json = nlohmann::ordered_json;
  json out = {{"names", json::array()}, {"inputs", json::array()}, {"outputs", json::array()}};
  for (const Comparand& c : all) out["names"].push_back(c.name);
  for (const auto& [key, part] : {std::pair{"inputs", &Comparand::inputs}, std::pair{"outputs", &Comparand::outputs}}) {
    std::vector<FlatValues> values;
    for (const Comparand& c : all) values.push_back(c.*part);
    for (const Difference& d : differences(values)) {
      json row = {{"path", d.path}, {"values", json::array()}};
      for (const auto& v : d.values) {
        json value = nullptr;
        if (v) {
          value = json::parse(*v, nullptr, false);
          if (value.is_discarded()) value = *v;
        }
        row["values"].push_back(value);
      }
      row["change_pct"] = d.change_pct ? json(*d.change_pct) : json(nullptr);
      out[key].push_back(row);
    }
  }
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tw::report
