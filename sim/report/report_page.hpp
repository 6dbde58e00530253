// `trainwatt report`: one page of what a folder of results holds.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/html.hpp"

namespace tw::report {

// The page of a folder that `run -o`, `plan -o`, `sweep -o` or `validate -o` wrote: its numbers are those of
// result.json, sweep.csv or validate.json and carry them exactly (data-value) with their place there (data-key: a JSON
// pointer, or "row/column" of the CSV). Throws InputError when the folder holds none of these.
std::string report_page(const std::string& folder);

// Parts that the kinds of page share. Files that are missing leave their part out.
struct PageFigure {
  std::string stem, title;
};
std::string figures_html(const std::string& folder, const std::vector<PageFigure>& figures);
std::string origins_html(const nlohmann::ordered_json& inputs);
std::string reproduce_html(const nlohmann::ordered_json& inputs,
                           const std::vector<std::pair<std::string, std::string>>& hashes);
// Links to all sections, then the sections.
struct PageSection {
  std::string id, link, title, body;  // `title` empty: as the link
};
std::string sections_html(const std::vector<PageSection>& sections);

// A number of an output key in its unit, for people.
std::string output_text(const std::string& path, double value);

// The number at a key of an object, "-" where there is none; `at`: the object's place in the data, as "/jobs/3/".
HtmlCell number_cell(const nlohmann::ordered_json& object, const std::string& key, const std::string& at,
                     const std::function<std::string(double)>& text);

// Cards with the most important numbers: label, cell.
std::string merits_html(const std::vector<std::pair<std::string, HtmlCell>>& merits);

std::string run_page(const std::string& folder, const nlohmann::ordered_json& results,
                     const nlohmann::ordered_json& inputs);
std::string plan_page(const std::string& folder, const nlohmann::ordered_json& search);
std::string study_page(const std::string& folder, const nlohmann::ordered_json& inputs);
std::string validation_page(const std::string& folder, const nlohmann::ordered_json& suites,
                            const nlohmann::ordered_json& inputs);

}  // namespace tw::report
