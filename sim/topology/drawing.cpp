// Drawings of a fabric: Graphviz text, and an SVG that a person can read at 64 nodes.
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <cmath>
#include <map>
#include <sstream>
#include <tuple>

#include "topology/inspect.hpp"

namespace tw {
namespace {

// Cables between the same two vertices, as one line.
struct Bundle {
  int a = 0, b = 0, cables = 0, failed = 0;
  CableKind kind = CableKind::nic;
  double line_Bps = 0;
};

std::vector<Bundle> bundles_of(const Fabric& f) {
  std::map<std::pair<int, int>, Bundle> bundles;
  for (const Cable& c : f.cables) {
    Bundle& b = bundles[{c.a, c.b}];
    b.a = c.a;
    b.b = c.b;
    b.kind = c.kind;
    ++b.cables;
    b.failed +=
        c.failed || f.vertices[static_cast<size_t>(c.a)].failed || f.vertices[static_cast<size_t>(c.b)].failed ? 1 : 0;
    b.line_Bps += c.line_Bps;
  }
  std::vector<Bundle> list;
  for (const auto& [ends, b] : bundles) list.push_back(b);
  return list;
}

std::string bandwidth_text(double Bps) {
  return fmt::format("{:.0f} Gbit/s", Bps * 8e-9);
}

struct Place {
  double x = 0, y = 0;
};

struct Layout {
  std::vector<Place> at;
  double width = 0, height = 0;
  bool ring = false;
};

// Levels as rows, the nodes below; what has no levels as a ring of switches with its nodes outside.
Layout layout_of(const Fabric& f) {
  Layout l;
  l.at.resize(f.vertices.size());
  std::map<int, std::vector<int>> rows;
  int top = 0;
  for (size_t v = 0; v < f.vertices.size(); ++v) {
    rows[f.vertices[v].tier].push_back(static_cast<int>(v));
    top = std::max(top, f.vertices[v].tier);
  }
  l.ring = top < 2 && f.vertices.size() > static_cast<size_t>(f.node_count) + 1 &&
           std::any_of(f.cables.begin(), f.cables.end(),
                       [](const Cable& c) { return c.kind == CableKind::mesh || c.kind == CableKind::global; });
  if (l.ring) {
    const auto& switches = rows[1];
    const double radius = std::max(160.0, 9.0 * static_cast<double>(switches.size()));
    l.width = l.height = 2 * radius + 240;
    std::map<int, double> angle;
    for (size_t i = 0; i < switches.size(); ++i) {
      angle[switches[i]] = 2 * 3.14159265358979 * static_cast<double>(i) / static_cast<double>(switches.size());
      l.at[static_cast<size_t>(switches[i])] = {l.width / 2 + radius * std::cos(angle[switches[i]]),
                                                l.height / 2 + radius * std::sin(angle[switches[i]])};
    }
    std::map<int, int> seen;
    for (int n = 0; n < f.node_count; ++n) {
      const int s = f.nics > 0 ? f.nic_switch(n, 0) : switches.front();
      const double out = radius + 45 + 22 * seen[s]++;
      l.at[static_cast<size_t>(n)] = {l.width / 2 + out * std::cos(angle[s]), l.height / 2 + out * std::sin(angle[s])};
    }
    return l;
  }
  size_t widest = 1;
  for (const auto& [tier, row] : rows) widest = std::max(widest, row.size());
  l.width = std::max(900.0, 24.0 * static_cast<double>(widest) + 80);
  const double row_height = std::clamp(l.width / 7, 170.0, 420.0);
  l.height = row_height * (top + 1) + 60;
  for (const auto& [tier, row] : rows)
    for (size_t i = 0; i < row.size(); ++i)
      l.at[static_cast<size_t>(row[i])] = {
          40 + (l.width - 80) * (static_cast<double>(i) + 0.5) / static_cast<double>(row.size()),
          60 + row_height * (top - tier) + row_height / 2};
  return l;
}

const char* fill_of(const FabricVertex& v) {
  if (v.failed) return "#d62728";
  if (v.kind == VertexKind::node) return "#4c78a8";
  if (v.kind == VertexKind::nvlink_switch) return "#72b7b2";
  if (v.tier == 1) return "#f58518";
  return v.tier == 2 ? "#54a24b" : "#b279a2";
}

const char* stroke_of(CableKind kind) {
  switch (kind) {
    case CableKind::nic:
      return "#4c78a8";
    case CableKind::nvlink:
      return "#72b7b2";
    case CableKind::core:
      return "#b279a2";
    default:
      return "#54a24b";
  }
}

// One path for all alike cables of a vertex to those above it, and one group for all of a kind: a line of its own for
// each cable would make megabytes of a fabric of 512 nodes.
std::string lines_of(const Fabric& f, const Layout& l) {
  struct Fan {
    std::string path, ends;
    size_t count = 0;
  };
  using Style = std::tuple<CableKind, int, bool>;
  std::map<std::tuple<Style, int, double>, Fan> fans;
  const auto name = [&](int v) { return f.vertices[static_cast<size_t>(v)].name; };
  for (const Bundle& b : bundles_of(f)) {
    const Place &p = l.at[static_cast<size_t>(b.a)], &q = l.at[static_cast<size_t>(b.b)];
    Fan& fan = fans[{{b.kind, b.cables, b.failed > 0}, b.a, b.line_Bps / b.cables}];
    // Two at a stroke: to the vertex and away again.
    fan.path += fan.count % 2 == 0 ? fmt::format("M{:.0f},{:.0f}L{:.0f},{:.0f}", q.x, q.y, p.x, p.y)
                                   : fmt::format("L{:.0f},{:.0f}", q.x, q.y);
    if (++fan.count <= 8) fan.ends += (fan.count > 1 ? ", " : "") + name(b.b);
  }
  std::string out;
  const Style* open = nullptr;
  for (const auto& [key, fan] : fans) {
    const auto& [style, from, line_Bps] = key;
    const auto& [kind, cables, broken] = style;
    if (open == nullptr || *open != style)
      out += fmt::format("{}<g fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{}\"{}>\n",
                         open == nullptr ? "" : "</g>\n", broken ? "#d62728" : stroke_of(kind),
                         0.6 + 0.35 * std::log2(static_cast<double>(cables)), kind == CableKind::nic ? 0.7 : 0.35,
                         broken ? " stroke-dasharray=\"4 3\"" : "");
    open = &style;
    out += fmt::format("<path d=\"{}\"><title>{} - {}{}: {} x {}{}</title></path>\n", fan.path, name(from), fan.ends,
                       fan.count > 8 ? fmt::format(" and {} more", fan.count - 8) : "", cables,
                       bandwidth_text(line_Bps), fan.count > 1 ? " to each" : "");
  }
  return out + (open == nullptr ? "" : "</g>\n");
}

}  // namespace

std::string dot_text(const Fabric& f) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Bundle> g(f.vertices.size());
  for (const Bundle& b : bundles_of(f)) boost::add_edge(static_cast<size_t>(b.a), static_cast<size_t>(b.b), b, g);
  std::ostringstream out;
  boost::write_graphviz(
      out, g,
      [&](std::ostream& at, size_t v) { at << " [style=filled, fillcolor=\"" << fill_of(f.vertices[v]) << "\"]"; },
      [&](std::ostream& at, const auto& edge) {
        const Bundle& b = g[edge];
        at << fmt::format("[label=\"{}{}\"{}]", b.cables > 1 ? fmt::format("{} x ", b.cables) : "",
                          bandwidth_text(b.line_Bps / b.cables), b.failed > 0 ? ", color=red, style=dashed" : "");
      },
      [&](std::ostream& at) {
        at << "label=" << boost::escape_dot_string(f.cluster_name) << ";\nrankdir=BT;\nnode [shape=box];\n";
      },
      boost::make_function_property_map<size_t>([&](size_t v) { return f.vertices[v].name; }));
  return out.str();
}

std::string svg_text(const Fabric& f) {
  const Layout l = layout_of(f);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      l.width, l.height);
  out += fmt::format("<text x=\"20\" y=\"30\" font-size=\"20\">{}: {} nodes, {} accelerators</text>\n", f.cluster_name,
                     f.node_count, f.node_count * f.gpus);
  out += lines_of(f, l);
  out += "<g fill=\"white\" text-anchor=\"middle\" dominant-baseline=\"central\">\n";
  std::map<int, int> in_row;
  for (const FabricVertex& v : f.vertices) ++in_row[v.tier];
  for (size_t v = 0; v < f.vertices.size(); ++v) {
    const FabricVertex& x = f.vertices[v];
    const Place& p = l.at[v];
    // Boxes shrink and names turn upright where a row is full.
    const double room = (l.width - 80) / in_row[x.tier];
    const bool upright = !l.ring && room < 80;
    const double w = l.ring    ? 50
                     : upright ? std::clamp(room * 0.7, 6.0, 18.0)
                               : 72,
                 h = upright  ? 72
                     : l.ring ? 16
                              : 24;
    const int font = l.ring ? 8 : upright ? 10 : 12;
    out += fmt::format(
        "<g><title>{}, {} cables{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" "
        "fill=\"{}\"/>",
        x.name, f.ports_used(static_cast<int>(v)), x.ports > 0 ? fmt::format(" of {} ports", x.ports) : "", p.x - w / 2,
        p.y - h / 2, w, h, fill_of(x));
    if (w >= 10)
      out += fmt::format("<text x=\"{0:.1f}\" y=\"{1:.1f}\" font-size=\"{2}\"{3}>{4}</text>", p.x, p.y, font,
                         upright ? fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", p.x, p.y) : "", x.name);
    out += "</g>\n";
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace tw
