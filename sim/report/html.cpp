#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/files.hpp"

namespace tw::report {
namespace {

// A file of pages/, found as all data are.
std::string part_of_page(const std::string& name) {
  const auto path = find_input_file("pages/" + name, "");
  if (!path) throw InputError({{"pages/" + name, "", "is missing: no page can be made", ""}});
  return read_file(*path);
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string html_table(const std::string& title, const std::vector<std::string>& columns,
                       const std::vector<std::vector<HtmlCell>>& rows) {
  std::string out = "<div class=\"scroll\"><table>\n";
  if (!title.empty()) out += "<caption>" + html_text(title) + "</caption>\n";
  out += "<thead><tr>";
  for (const std::string& c : columns) out += "<th scope=\"col\" aria-sort=\"none\">" + html_text(c) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const HtmlCell& cell : row) {
      if (cell.exact.empty())
        out += "<td>" + html_text(cell.text) + "</td>";
      else
        out += fmt::format("<td class=\"n\"{} data-value=\"{}\">{}</td>",
                           cell.key.empty() ? "" : fmt::format(" data-key=\"{}\"", html_text(cell.key)),
                           html_text(cell.exact), html_text(cell.text));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_details(const std::string& summary, const std::string& body, bool open) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", html_text(summary), body);
}

std::string inline_svg(const std::string& svg, const std::string& prefix, const std::string& label) {
  const size_t begin = svg.find("<svg");
  if (begin == std::string::npos) return "";
  std::string out = svg.substr(begin);
  // Two figures of a page would share the names of their points.
  for (const char quote : {'\'', '"'}) {
    const std::string q(1, quote);
    replace_all(out, " id=" + q, " id=" + q + prefix);
    replace_all(out, "href=" + q + "#", "href=" + q + "#" + prefix);
    replace_all(out, q + "url(#", q + "url(#" + prefix);
  }
  replace_all(out, "<title>Gnuplot</title>", "");
  // The page sets the size; the drawing keeps its proportions by its viewBox.
  const size_t end = out.find('>');
  std::string head = out.substr(0, end);
  for (const char* name : {"width=\"", "height=\""}) {
    const size_t at = head.find(std::string(" ") + name);
    if (at == std::string::npos) continue;
    const size_t close = head.find('"', at + 1 + std::string(name).size());
    head.erase(at, close - at + 1);
  }
  return head + fmt::format(" role=\"img\" aria-label=\"{}\"", html_text(label)) + out.substr(end);
}

std::string html_page(const std::string& title, const std::string& subtitle, const std::string& body) {
  return fmt::format(fmt::runtime(part_of_page("page.html")), fmt::arg("title", html_text(title)),
                     fmt::arg("subtitle", html_text(subtitle)), fmt::arg("body", body),
                     fmt::arg("style", part_of_page("page.css")), fmt::arg("script", part_of_page("page.js")));
}

}  // namespace tw::report
