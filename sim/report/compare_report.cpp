#include "report/compare_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/outputs.hpp"
#include "report/result_json.hpp"
#include "report/run_lines.hpp"

namespace tw::report {
namespace {

constexpr size_t kLine = 80, kWidest = 18;  // of a line, of a value
constexpr size_t kChange = 9;               // "+12.50 %"

std::string shown(const std::optional<std::string>& value) {
  if (!value || *value == "null") return "-";
  char* end = nullptr;
  const double v = std::strtod(value->c_str(), &end);
  const std::string text = *end == '\0' && !value->empty() ? fmt::format("{:.6g}", v) : *value;
  return text.size() <= kWidest ? text : text.substr(0, kWidest - 3) + "...";
}

// Names of runs differ at their ends.
std::string shown_name(const std::string& name, size_t width) {
  return name.size() <= width ? name : "..." + name.substr(name.size() - (width - 3));
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

// What seeds leave open, and what says again what the row before says: p5, p50 and p95 of a single run.
void leave_out(std::vector<Difference>& list, double noise_pct) {
  const auto parent = [](const Difference& d) { return d.path.substr(0, d.path.rfind('.')); };
  std::vector<Difference> kept;
  const Difference* before = nullptr;
  for (const Difference& d : list) {
    const bool again = before != nullptr && parent(*before) == parent(d) && before->values == d.values;
    before = &d;
    if (!again && !within(d, noise_pct) && d.path.rfind("warnings", 0) != 0) kept.push_back(d);
  }
  list = std::move(kept);
}

struct CompareLayout {
  size_t path = 4;             // widest that stands beside its values; longer ones stand above them
  std::vector<size_t> widths;  // of the values
  bool one_a_line = false;     // even the values alone are too wide

  CompareLayout(const std::vector<Comparand>& all, const std::vector<Difference>& list) : widths(all.size(), 10) {
    for (const Difference& d : list) {
      path = std::max(path, d.path.size());
      for (size_t i = 0; i < all.size(); ++i) widths[i] = std::max(widths[i], shown(d.values[i]).size());
    }
    size_t values = 2 + (all.size() - 1) * (kChange + 1);
    for (const size_t width : widths) values += width + 1;
    one_a_line = values + 20 > kLine;
    if (!one_a_line) path = std::min(path, kLine - values);
  }
};

std::string change_text(const std::optional<double>& pct) {
  return pct ? fmt::format(" {:>+{}.{}f} %", *pct, kChange - 2, std::abs(*pct) < 1000 ? 2 : 0) : "";
}

void difference_lines(std::string& out, const std::vector<Comparand>& all, const CompareLayout& layout,
                      const Difference& d) {
  if (layout.one_a_line) {
    out += "  " + d.path + "\n";
    for (size_t i = 0; i < all.size(); ++i)
      out += fmt::format("    {:<32} {:>{}}{}\n", shown_name(all[i].name, 32), shown(d.values[i]), kWidest,
                         i > 0 ? change_text(d.changes_pct[i]) : "");
    return;
  }
  const bool above = d.path.size() > layout.path;
  if (above) out += "  " + d.path + "\n";
  std::string line = fmt::format("  {:<{}}", above ? "" : d.path, layout.path);
  for (size_t i = 0; i < all.size(); ++i) line += fmt::format(" {:>{}}", shown(d.values[i]), layout.widths[i]);
  for (size_t i = 1; i < all.size(); ++i) line += fmt::format("{:<{}}", change_text(d.changes_pct[i]), kChange + 1);
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

void section(std::string& out, const std::string& title, const std::vector<Comparand>& all, FlatValues Comparand::*part,
             std::optional<double> noise_pct) {
  std::vector<FlatValues> values;
  for (const Comparand& c : all) values.push_back(c.*part);
  std::vector<Difference> list = differences(values);
  const size_t every = list.size();
  if (noise_pct) leave_out(list, *noise_pct);
  const size_t hidden = every - list.size();
  const std::string left_out =
      hidden == 0 ? ""
                  : fmt::format("  ({} left out: changed by less than {:.2g} %, or as the line before; --all)\n",
                                hidden, *noise_pct);
  if (list.empty() && hidden > 0) {
    out += title + ": nothing beyond noise\n" + left_out;
    return;
  }
  out += title + (list.empty() ? ": the same\n" : "\n");
  if (list.empty()) return;
  const CompareLayout layout(all, list);
  if (!layout.one_a_line) {
    std::string line = fmt::format("  {:<{}}", "", layout.path);
    for (size_t i = 0; i < all.size(); ++i)
      line += fmt::format(" {:>{}}", shown_name(all[i].name, layout.widths[i]), layout.widths[i]);
    for (size_t i = 1; i < all.size(); ++i)
      line += fmt::format(" {:>{}}", all.size() == 2 ? std::string("change") : fmt::format("{} to 1", i + 1), kChange);
    out += line + "\n";
  }
  for (const Difference& d : list) difference_lines(out, all, layout, d);
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
    out += wrapped(fmt::format("What makes the step of {} {} than that of {} (ms)", all[i].name,
                               change_s > 0   ? "longer"
                               : change_s < 0 ? "shorter"
                                              : "no longer",
                               all.front().name),
                   "", "");
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
    std::string text = fmt::format("The step of {} stays as it was: ", all[i].name);
    for (size_t k = 0; k < std::min<size_t>(4, parts.size()); ++k)
      text += fmt::format("{}{:.1f} % {}", k > 0 ? ", " : "", 100 * parts[k].first / whole_s, parts[k].second);
    out += wrapped(text + "; what changed bounds none of its parts, or works beside them", "", "  ");
  }
  return out;
}

// A difference that the next seed may turn round says so.
std::string noise_lines(const std::vector<Comparand>& all) {
  std::string out;
  for (size_t i = 1; i < all.size(); ++i)
    if (const auto d = time_difference(all.front(), all[i]); d && d->within_noise() && d->change_pct != 0)
      out += wrapped(fmt::format("the time to train of {} is {:+.2g} % off, less than the {:.2g} % that the seeds of "
                                 "these runs leave open: --runs N tells more",
                                 all[i].name, d->change_pct, d->noise_pct),
                     "  ", "  ");
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
      return "  (results hold the plan and a hash of their inputs: compare the scenarios to see\n  all that changed)\n";
  return "";
}

}  // namespace

std::string compare_table(const std::vector<Comparand>& all, bool everything) {
  std::string out;
  section(out, "Inputs", all, &Comparand::inputs, std::nullopt);
  out += unknown_inputs(all);
  section(out, "Outputs (SI units)", all, &Comparand::outputs,
          everything ? std::nullopt : std::optional(noise_of(all)));
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
