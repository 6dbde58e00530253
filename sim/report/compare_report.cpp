#include "report/compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/outputs.hpp"
#include "report/result_json.hpp"

namespace tw::report {
namespace {

constexpr size_t kWidest = 18;  // of a value

std::string shown(const std::optional<std::string>& value) {
  if (!value || *value == "null") return "-";
  char* end = nullptr;
  const double v = std::strtod(value->c_str(), &end);
  const std::string text = *end == '\0' && !value->empty() ? fmt::format("{:.6g}", v) : *value;
  return text.size() <= kWidest ? text : text.substr(0, kWidest - 3) + "...";
}

// Names of runs differ at their ends.
std::string shown_name(const std::string& name) {
  return name.size() <= kWidest ? name : "..." + name.substr(name.size() - (kWidest - 3));
}

constexpr double kSmallest_pct = 0.1;  // of a change that is shown without --all

// The largest share by which the seeds of these runs may move an output.
double noise_of(const std::vector<Comparand>& all) {
  double noise_pct = kSmallest_pct;
  for (size_t i = 1; i < all.size(); ++i)
    if (const auto d = time_difference(all.front(), all[i])) noise_pct = std::max(noise_pct, d->noise_pct);
  return noise_pct;
}

bool within(const Difference& d, double noise_pct) {
  for (size_t i = 1; i < d.values.size(); ++i)
    if (!d.changes_pct[i] ? d.values[i] != d.values[0] : std::abs(*d.changes_pct[i]) >= noise_pct) return false;
  return true;
}

void section(std::string& out, const std::string& title, const std::vector<Comparand>& all, FlatValues Comparand::*part,
             double noise_pct = 0) {
  std::vector<FlatValues> values;
  for (const Comparand& c : all) values.push_back(c.*part);
  std::vector<Difference> list = differences(values);
  const size_t every = list.size();
  list.erase(std::remove_if(list.begin(), list.end(), [&](const Difference& d) { return within(d, noise_pct); }),
             list.end());
  const size_t hidden = every - list.size();
  const std::string left_out = hidden == 0
                                   ? ""
                                   : fmt::format("  ({} that changed by less than {:.2g} % {} left out: --all)\n",
                                                 hidden, noise_pct, hidden == 1 ? "is" : "are");
  if (list.empty() && hidden > 0) {
    out += title + ": nothing beyond noise\n" + left_out;
    return;
  }
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
  for (size_t i = 0; i < all.size(); ++i) out += fmt::format("  {:>{}}", shown_name(all[i].name), widths[i]);
  for (size_t i = 1; i < all.size(); ++i)
    out += fmt::format("  {:>10}", all.size() == 2 ? std::string("change") : fmt::format("{} to 1", i + 1));
  out += "\n";
  for (const Difference& d : list) {
    std::string line = fmt::format("  {:<{}}", d.path, path);
    for (size_t i = 0; i < all.size(); ++i) line += fmt::format("  {:>{}}", shown(d.values[i]), widths[i]);
    for (size_t i = 1; i < all.size(); ++i)
      line += d.changes_pct[i] ? fmt::format("  {:>+8.2f} %", *d.changes_pct[i]) : fmt::format("  {:>10}", "");
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  out += left_out;
}

constexpr double kRounding = 1e-9;  // of a step

// Each against the first: which parts of the step make the difference.
std::string step_section(const std::vector<Comparand>& all) {
  std::string out;
  for (size_t i = 1; i < all.size(); ++i) {
    double change_s = 0;
    const auto parts = step_parts(all.front(), all[i], change_s);
    if (parts.empty()) continue;
    if (std::abs(change_s) < kRounding * parts.front().first_s) change_s = 0;  // parts that make up for one another
    out += fmt::format("What makes the step of {} {} than that of {} (ms)\n", all[i].name,
                       change_s > 0   ? "longer"
                       : change_s < 0 ? "shorter"
                                      : "no longer",
                       all.front().name);
    out += fmt::format("  {:<10}  {:>12}  {:>12}  {:>12}  {:>10}\n", "", "first", "other", "difference", "share");
    for (const StepPart& p : parts)
      out += fmt::format("  {:<10}  {:>12.3f}  {:>12.3f}  {:>+12.3f}  {:>10}\n", p.name, 1e3 * p.first_s,
                         1e3 * p.other_s, 1e3 * p.change_s(),
                         change_s != 0 ? fmt::format("{:+.1f} %", 100 * p.change_s() / std::abs(change_s)) : "");
    out += fmt::format("  {:<10}  {:>12}  {:>12}  {:>+12.3f}\n", "together", "", "", 1e3 * change_s);
  }
  return out;
}

// A step that does not react to what changed says what it is made of.
std::string unmoved_lines(const std::vector<Comparand>& all) {
  std::string out;
  const std::string prefix = "step.breakdown_s.";
  for (size_t i = 1; i < all.size(); ++i) {
    double change_s = 0, whole_s = 0;
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [path, value] : all[i].outputs)
      if (const double part_s = path.rfind(prefix, 0) == 0 ? std::strtod(value.c_str(), nullptr) : 0; part_s > 0) {
        parts.emplace_back(part_s, path.substr(prefix.size()));
        whole_s += part_s;
      }
    step_parts(all.front(), all[i], change_s);
    if (parts.empty() || std::abs(change_s) > kRounding * whole_s ||
        differences({all.front().inputs, all[i].inputs}).empty())
      continue;
    std::sort(parts.rbegin(), parts.rend());
    out += fmt::format("The step of {} stays as it was: ", all[i].name);
    for (size_t k = 0; k < std::min<size_t>(4, parts.size()); ++k)
      out += fmt::format("{}{:.1f} % {}", k > 0 ? ", " : "", 100 * parts[k].first / whole_s, parts[k].second);
    out += "; what changed bounds none of its parts, or works beside them\n";
  }
  return out;
}

// A difference that the next seed may turn round says so.
std::string noise_lines(const std::vector<Comparand>& all) {
  std::string out;
  for (size_t i = 1; i < all.size(); ++i)
    if (const auto d = time_difference(all.front(), all[i]); d && d->within_noise() && d->change_pct != 0)
      out += fmt::format(
          "  the time to train of {} is {:+.2g} % off, less than the {:.2g} % that the seeds of these runs leave open: "
          "--runs N tells more\n",
          all[i].name, d->change_pct, d->noise_pct);
  return out;
}

// Results carry the hash of their inputs, not the inputs.
std::string unknown_inputs(const std::vector<Comparand>& all) {
  const auto hash_of = [](const Comparand& c) {
    for (const auto& [path, text] : c.inputs)
      if (path == "inputs_sha256") return text;
    return std::string();
  };
  for (const Comparand& c : all)
    if (!hash_of(c).empty() && hash_of(c) != hash_of(all.front()))
      return "  (results hold the plan and a hash of their inputs: compare the scenarios to see all that changed)\n";
  return "";
}

}  // namespace

std::string compare_table(const std::vector<Comparand>& all, bool everything) {
  std::string out;
  section(out, "Inputs", all, &Comparand::inputs);
  out += unknown_inputs(all);
  section(out, "Outputs (SI units)", all, &Comparand::outputs, everything ? 0 : noise_of(all));
  out += noise_lines(all);
  return out + step_section(all) + unmoved_lines(all);
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
      row["change_pct"] = described_json(d.changes_pct.back());  // of the last
      row["changes_pct"] = described_json(d.changes_pct);
      out[key].push_back(row);
    }
  }
  out["noise"] = json::array();
  for (size_t i = 1; i < all.size(); ++i)
    if (const auto d = time_difference(all.front(), all[i]))
      out["noise"].push_back({{"name", all[i].name},
                              {"path", "run.time_to_train_s.mean"},
                              {"change_pct", d->change_pct},
                              {"noise_95_pct", d->noise_pct},
                              {"within_noise", d->within_noise()}});
  out["step"] = json::array();
  for (size_t i = 1; i < all.size(); ++i) {
    double change_s = 0;
    json parts = json::array();
    for (const StepPart& p : step_parts(all.front(), all[i], change_s))
      parts.push_back({{"part", p.name}, {"first_s", p.first_s}, {"other_s", p.other_s}, {"change_s", p.change_s()}});
    out["step"].push_back(
        {{"name", all[i].name}, {"change_s", parts.empty() ? json(nullptr) : json(change_s)}, {"parts", parts}});
  }
  return json_text(out);
}

}  // namespace tw::report
