// Pieces of a page that needs nothing from elsewhere: text, tables that sort, figures as inline SVG.
#pragma once

#include <string>
#include <vector>

namespace tw::report {

std::string html_text(const std::string& text);  // escaped

// A cell shows `text`; a number carries its exact value, as its source writes it, and where it stands there.
struct HtmlCell {
  std::string text;
  std::string exact = {};  // empty: a text
  std::string key = {};
};
// Columns sort on a click. `title` is the caption, empty for none.
std::string html_table(const std::string& title, const std::vector<std::string>& columns,
                       const std::vector<std::vector<HtmlCell>>& rows);

std::string html_details(const std::string& summary, const std::string& body, bool open = false);

// An SVG file as part of a page: ids made unique by `prefix`, sized by the page, with `label` for readers.
std::string inline_svg(const std::string& svg, const std::string& prefix, const std::string& label);

std::string html_page(const std::string& title, const std::string& subtitle, const std::string& body);

}  // namespace tw::report
