#include "report/report_page.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/files.hpp"
#include "report/hall_report.hpp"
#include "report/numbers.hpp"
#include "report/output_keys.hpp"

namespace tw::report {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

json parsed(const std::string& path) {
  try {
    return json::parse(read_file(path));
  } catch (const json::exception& e) {
    throw InputError({{path, "", "is not what trainwatt wrote: it is no JSON",
                       "a folder made by run, plan, sweep, hall or validate with -o"}});
  }
}

std::string page_of(const std::string& folder) {
  const fs::path at(folder);
  std::error_code ignored;
  if (!fs::is_directory(at, ignored))
    throw InputError({{folder, "", "is no folder", "a folder made by run, plan, sweep, hall or validate with -o"}});
  const auto has = [&](const char* name) { return fs::is_regular_file(at / name, ignored); };
  const json inputs = has("inputs.json") ? parsed((at / "inputs.json").string()) : json::object();
  // One folder may hold several: the study first, since a sweep leaves nothing else.
  if (has("sweep.csv")) return study_page(folder, inputs);
  if (has("hall.json")) return hall_page(folder);
  if (has("plan.json")) return plan_page(folder, parsed((at / "plan.json").string()));
  if (has("result.json")) return run_page(folder, parsed((at / "result.json").string()), inputs);
  if (has("validate.json")) {
    const json how = has("validate-inputs.json") ? parsed((at / "validate-inputs.json").string()) : json::object();
    return validation_page(folder, parsed((at / "validate.json").string()), how);
  }
  throw InputError({{folder, "", "holds no results", "a folder made by run, plan, sweep, hall or validate with -o"}});
}

}  // namespace

std::string report_page(const std::string& folder) {
  try {
    return page_of(folder);
  } catch (const json::exception&) {
    throw InputError({{folder, "", "its results are damaged", "what run, sweep, hall or validate wrote, unchanged"}});
  }
}

std::string figures_html(const std::string& folder, const std::vector<PageFigure>& figures) {
  std::string out;
  for (const PageFigure& figure : figures) {
    const fs::path svg = fs::path(folder) / (figure.stem + ".svg");
    std::error_code ignored;
    if (!fs::is_regular_file(svg, ignored)) continue;
    std::string data;
    if (fs::exists(fs::path(folder) / (figure.stem + ".csv"), ignored))
      data = fmt::format(" Data: <code>{}.csv</code>", html_text(figure.stem));
    out += fmt::format("<figure>\n<div class=\"drawing\">{}</div>\n<figcaption>{}.{}</figcaption></figure>\n",
                       inline_svg(read_file(svg.string()), figure.stem + "-", figure.title), html_text(figure.title),
                       data);
  }
  return out;
}

std::string origins_html(const json& inputs) {
  std::string out;
  if (!inputs.contains("scenarios")) return out;
  for (const json& s : inputs.at("scenarios")) {
    const std::string name = s.value("scenario", ""), file = s.value("file", "");
    std::vector<std::vector<HtmlCell>> own, all;
    for (const json& v : s.at("values")) {
      const std::string origin = v.value("origin", "");
      const std::vector<HtmlCell> row{{v.value("pointer", "")}, {v.value("value", "")}, {origin}};
      if (origin == file || origin.rfind(file + " ", 0) == 0 || origin.rfind("--set", 0) == 0) own.push_back(row);
      all.push_back(row);
    }
    out += fmt::format("<h3>{}</h3>\n<p>{}</p>\n", html_text(name), html_text(s.value("description", "")));
    out += html_table("", {"input", "value", "from"}, own);
    out +=
        html_details(fmt::format("All {} values in effect, with those of the files drawn in and defaults", all.size()),
                     html_table("", {"input", "value", "from"}, all));
  }
  return out;
}

std::string reproduce_html(const json& inputs, const std::vector<std::pair<std::string, std::string>>& hashes) {
  std::string out;
  if (inputs.contains("command"))
    out += "<pre>" + html_text(inputs.value("command", "")) + "</pre>\n";
  else
    out += "<p>The folder holds no inputs.json: it does not say how it was made.</p>\n";
  std::vector<std::vector<HtmlCell>> rows;
  if (inputs.contains("trainwatt")) {
    rows.push_back({{"version"}, {inputs.value("trainwatt", "")}});
    for (const char* key : {"seed", "runs", "level"})
      if (inputs.contains(key)) rows.push_back({{key}, {inputs[key].dump()}});
  }
  for (const auto& [name, hash] : hashes) rows.push_back({{"inputs of " + name}, {"sha256 " + hash}});
  if (!rows.empty()) out += html_table("", {"what", "value"}, rows);
  return out + "<p>The same version, inputs and seed give the same bytes, whatever the number of workers.</p>\n";
}

std::string sections_html(const std::vector<PageSection>& sections) {
  std::string links, out;
  for (const PageSection& s : sections) {
    if (s.body.empty()) continue;
    links += fmt::format("<a href=\"#{}\">{}</a>", s.id, html_text(s.link));
    out += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", s.id,
                       html_text(s.title.empty() ? s.link : s.title), s.body);
  }
  return "<nav>" + links + "</nav>\n" + out;
}

std::string output_text(const std::string& path, double value) {
  const std::string unit = unit_of(path);
  if (path == "step.mfu" || path == "power.shelf_headroom") return plain(100 * value, 3) + " %";
  if (unit == "s" && value >= 0.1) return time_text(value);
  if (unit == "B" && path.rfind("memory.", 0) == 0) return size_text(value);
  if (unit == "%") return percent_text(value);
  if (unit.empty() || unit == "1") return value == std::round(value) ? count_text(value) : plain(value);
  if (unit == "steps" || unit == "samples" || unit == "nodes" || unit == "GPUs") return count_text(value);
  return in_unit(value, unit);
}

HtmlCell number_cell(const json& object, const std::string& key, const std::string& at,
                     const std::function<std::string(double)>& text) {
  if (!object.contains(key) || !object[key].is_number()) return {"-", "null", at + key};
  return {text(object[key].get<double>()), object[key].dump(), at + key};
}

std::string merits_html(const std::vector<std::pair<std::string, HtmlCell>>& merits) {
  std::string out = "<div class=\"figures-of-merit\">\n";
  for (const auto& [label, cell] : merits) {
    // A second line of the label is what the value is uncertain by.
    const size_t line = label.find('\n');
    // "118.0 s (1 min 58 s)": what stands in brackets says the value again, so it stands below.
    const size_t again = std::min(cell.text.find(" ("), cell.text.size());
    const std::string name = label.substr(0, line) + cell.text.substr(again),
                      note =
                          line == std::string::npos ? "" : "<small>" + html_text(label.substr(line + 1)) + "</small>";
    out += fmt::format("<div class=\"merit\"><b{}>{}</b><span>{}</span>{}</div>\n",
                       cell.exact.empty() ? ""
                                          : fmt::format(" data-key=\"{}\" data-value=\"{}\"", html_text(cell.key),
                                                        html_text(cell.exact)),
                       html_text(cell.text.substr(0, again)), html_text(name), note);
  }
  return out + "</div>\n";
}

}  // namespace tw::report
