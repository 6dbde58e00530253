// A list of cables as CSV: from, port, to, port, speed.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "foreign/lines.hpp"
#include "foreign/wiring.hpp"

namespace tw::foreign {
namespace {

// Where the columns stand; -1: absent.
struct Columns {
  int from = -1, from_port = -1, to = -1, to_port = -1, speed = -1, count = -1;
  double bare_Bps = 0;  // of a speed without unit, by the column's name
};

bool one_of_names(const std::string& name, std::initializer_list<const char*> known) {
  return std::any_of(known.begin(), known.end(), [&](const char* k) { return name == k; });
}

Columns columns_of(const std::string& header) {
  Columns c;
  const auto names = fields_of(header, separator_of(header));
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = lower(names[i]);
    std::replace(name.begin(), name.end(), ' ', '_');
    const int place = static_cast<int>(i);
    if (one_of_names(name, {"from", "source", "src", "a", "a_device", "source_device", "from_device", "device_a"})) {
      c.from = place;
    } else if (one_of_names(name, {"to", "target", "dst", "destination", "b", "b_device", "destination_device",
                                   "to_device", "device_b"})) {
      c.to = place;
    } else if (contains(name, "port")) {
      const bool second = c.from_port >= 0 || starts_with(name, "to") || starts_with(name, "dest") ||
                          starts_with(name, "b_") || (c.to >= 0 && c.from < c.to);
      (second ? c.to_port : c.from_port) = place;
    } else if (starts_with(name, "speed") || starts_with(name, "bandwidth") || starts_with(name, "rate")) {
      c.speed = place;
      if (contains(name, "gbps") || contains(name, "gbit") || contains(name, "gb/s")) c.bare_Bps = 1e9 / 8;
      if (contains(name, "mbps") || contains(name, "mbit")) c.bare_Bps = 1e6 / 8;
    } else if (one_of_names(name, {"count", "cables", "links"})) {
      c.count = place;
    }
  }
  return c;
}

// The first line that is neither blank nor a comment.
std::optional<Line> header_of(const std::vector<Line>& lines) {
  for (const Line& line : lines)
    if (const std::string text = trimmed(line.text); !text.empty() && text.front() != '#') return line;
  return std::nullopt;
}

bool is_cable_list(const Source& s) {
  const auto header = header_of(lines_of(s.text.substr(0, 4096)));
  if (!header) return false;
  const Columns c = columns_of(header->text);
  return c.from >= 0 && c.to >= 0;
}

// By the names that people give switches; `prefix` tells nodes where it is given.
bool is_switch(const std::string& name, const std::string& prefix) {
  if (!prefix.empty()) return !starts_with(name, prefix);
  const std::string low = lower(name);
  for (const char* word :
       {"leaf", "spine", "core", "super", "sw", "tor", "agg", "edge", "ib-sw", "ibsw", "qm", "mqm", "sn", "router"})
    if (starts_with(low, word)) return true;
  return contains(low, "switch") || contains(low, "leaf") || contains(low, "spine");
}

Reading read_cables(const Source& s, const Options& options, Faults& faults) {
  const auto lines = lines_of(s.text);
  const Line header = *header_of(lines);
  const char separator = separator_of(header.text);
  const size_t width = fields_of(header.text, separator).size();
  const Columns c = columns_of(header.text);
  if (c.speed < 0) {
    faults.add({s.name, line_place(header.number), "has no column of speeds", "from, port, to, port, speed"});
    return {};
  }
  Wiring w;
  for (const Line& line : lines) {
    const std::string text = trimmed(line.text);
    if (line.number <= header.number || text.empty() || text.front() == '#') continue;
    const auto refuse = [&](const std::string& what, const std::string& allowed) {
      faults.add({s.name, line_place(line.number), what, allowed});
    };
    const auto fields = fields_of(line.text, separator);
    if (fields.size() != width) {
      refuse(fmt::format("{} fields where the first line has {}", fields.size(), width), "");
      continue;
    }
    const auto field = [&](int column) { return column < 0 ? std::string() : fields[static_cast<size_t>(column)]; };
    WiredCable cable{field(c.from), field(c.to), 0, 1, line.number, field(c.from_port), field(c.to_port)};
    if (cable.from.empty() || cable.to.empty()) refuse("an end of the cable has no name", "");
    const auto speed = speed_of(field(c.speed), c.bare_Bps);
    if (!speed)
      refuse(fmt::format("\"{}\" is no speed", printable(field(c.speed), 40)),
             "a number with its unit, such as \"400 Gbit/s\", 400G or NDR");
    cable.bandwidth_Bps = speed.value_or(0);
    if (c.count >= 0) {
      const auto count = number_of(field(c.count));
      if (!count || *count < 1 || *count > 4096 || *count != static_cast<int>(*count))
        refuse(fmt::format("\"{}\" is no count of cables", printable(field(c.count), 40)), "a whole number, 1 to 4096");
      else
        cable.count = static_cast<int>(*count);
    }
    for (const std::string* end : {&cable.from, &cable.to})
      (is_switch(*end, options.node_prefix) ? w.switches : w.nodes).push_back(*end);
    w.cables.push_back(std::move(cable));
  }
  if (!faults.empty()) return {};
  if (w.switches.empty() || w.nodes.empty()) {
    faults.add({s.name, "",
                w.nodes.empty() ? "no end of a cable is a node by its name" : "no end is a switch by its name",
                "--node-names PREFIX: names that begin so are nodes"});
    return {};
  }
  ClusterParts parts;
  parts.base = options.base.empty() ? kDefaultBase : options.base;
  parts.description = fmt::format("Cabled as {} lists it", s.name);
  std::vector<std::string> said;
  if (options.node_prefix.empty()) said.push_back("which names are switches: by their usual beginnings (--node-names)");
  put_wiring(s, std::move(w), parts, said, faults);
  if (!faults.empty()) return {};
  return cluster_reading(s, options, std::move(parts), std::move(said), faults);
}

}  // namespace

extern const Kind cables_kind{"CSV of cables (from, port, to, port, speed)", "a cluster", is_cable_list, read_cables};

}  // namespace tw::foreign
