#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tw::report {
namespace {

// White ground, black and grays, as the figures; one column that prints as it stands.
constexpr const char* kStyle = R"(
:root { color: #161616; background: #fff; font: 15px/1.5 "DejaVu Sans", "Segoe UI", Arial, sans-serif; }
body { max-width: 1120px; margin: 0 auto; padding: 24px 28px 60px; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 20px; margin: 44px 0 12px; padding-bottom: 4px; border-bottom: 2px solid #161616; }
h3 { font-size: 16px; margin: 24px 0 8px; }
p { max-width: 84ch; margin: 8px 0; }
.subtitle { color: #555; margin: 4px 0 12px; }
nav a { margin-right: 16px; color: #161616; }
.figures-of-merit { display: grid; grid-template-columns: repeat(auto-fill, minmax(196px, 1fr)); gap: 10px; margin: 14px 0; }
.merit { border: 1px solid #c8c8c8; border-radius: 4px; padding: 8px 12px; break-inside: avoid; }
.merit b { display: block; font-size: 19px; font-weight: 600; }
.merit span { color: #555; font-size: 13px; }
.scroll { overflow-x: auto; margin: 10px 0 18px; }
table { border-collapse: collapse; font-size: 13.5px; }
caption { text-align: left; font-weight: 600; padding: 4px 0; }
th, td { padding: 4px 12px 4px 6px; text-align: left; vertical-align: top; border-bottom: 1px solid #dcdcdc; }
th { border-bottom: 1.5px solid #161616; cursor: pointer; white-space: nowrap; user-select: none; }
th::after { content: " \2195"; color: #a0a0a0; }
th[aria-sort=ascending]::after { content: " \2191"; color: #161616; }
th[aria-sort=descending]::after { content: " \2193"; color: #161616; }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td { overflow-wrap: anywhere; }
td:first-child { overflow-wrap: normal; }
tbody tr:hover { background: #f3f3f3; }
figure { margin: 18px 0 26px; break-inside: avoid; }
figure svg { width: 100%; height: auto; border: 1px solid #e2e2e2; }
figcaption { color: #555; font-size: 13px; }
details { margin: 8px 0; }
summary { cursor: pointer; font-weight: 600; }
pre { background: #f3f3f3; padding: 10px 12px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }
code { font-size: 13px; overflow-wrap: anywhere; }
.warnings li { margin: 6px 0; max-width: 84ch; }
.failed { border-left: 4px solid #161616; padding-left: 12px; }
@page { size: A4; margin: 14mm; }
@media print {
  :root { font-size: 10.5px; } body { max-width: none; padding: 0; } nav { display: none; }
  h2 { break-after: avoid; margin-top: 22px; font-size: 16px; } h1 { font-size: 20px; } h3 { break-after: avoid; font-size: 13px; }
  table { font-size: 9px; } th::after { content: ""; } tr, .merit { break-inside: avoid; }
  th { white-space: normal; } th, td { padding: 2px 6px 2px 3px; } .scroll { overflow: visible; }
  .merit b { font-size: 13px; } .merit span, figcaption, pre, code { font-size: 9px; }
  .figures-of-merit { grid-template-columns: repeat(4, 1fr); }
  thead { display: table-header-group; }
}
)";

// Sorts by exact values where a column has them, else by text; the first click of a numeric column is ascending too.
constexpr const char* kScript = R"(
document.querySelectorAll("th").forEach(function (head) {
  function sort() {
    var table = head.closest("table"), body = table.tBodies[0];
    var column = Array.prototype.indexOf.call(head.parentNode.children, head);
    var down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(function (other) { other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    function value(row) {
      var cell = row.cells[column], exact = cell.getAttribute("data-value");
      return exact === null ? cell.textContent : exact === "null" ? NaN : Number(exact);
    }
    Array.prototype.slice.call(body.rows).sort(function (a, b) {
      var x = value(a), y = value(b);
      if (typeof x === "number" && typeof y === "number") {
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return down ? y - x : x - y;
      }
      return (down ? -1 : 1) * String(x).localeCompare(String(y), "en", { numeric: true });
    }).forEach(function (row) { body.appendChild(row); });
  }
  head.tabIndex = 0;
  head.addEventListener("click", sort);
  head.addEventListener("keydown", function (e) { if (e.key === "Enter") sort(); });
});
)";

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
        out += fmt::format("<td class=\"n\" data-key=\"{}\" data-value=\"{}\" title=\"{}\">{}</td>",
                           html_text(cell.key), html_text(cell.exact), html_text(cell.exact), html_text(cell.text));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_details(const std::string& summary, const std::string& body, bool open) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", html_text(summary), body);
}

std::string html_section(const std::string& id, const std::string& title, const std::string& body) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, html_text(title), body);
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
  // gnuplot names each curve and its sample in the key alike, and nothing refers to them.
  for (const std::string name = " id=\"" + prefix + "gnuplot_plot_"; true;) {
    const size_t at = out.find(name);
    if (at == std::string::npos) break;
    out.erase(at, out.find('"', at + name.size()) + 1 - at);
  }
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
  // The policy keeps even a broken page from asking anybody for anything.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n{}"
      "<script>{}</script>\n</body>\n</html>\n",
      html_text(title), kStyle, html_text(title), html_text(subtitle), body, kScript);
}

}  // namespace tw::report
