#include "cli/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/text.hpp"

namespace tw::cli {
namespace {

void wrap_line(std::string& out, std::string line, size_t width, size_t indent) {
  const bool command = line.rfind("  ", 0) == 0;
  const std::string next(command ? 6 : indent, ' ');
  while (line.size() > width) {
    const size_t room = command ? width - 2 : width;
    size_t at = line.rfind(' ', room);
    // Not inside the blanks that a line begins with, and not inside quotes of a command.
    const size_t first = line.find_first_not_of(' ');
    if (command)
      while (at != std::string::npos && at > first &&
             std::count(line.begin(), line.begin() + static_cast<long>(at), '"') % 2 == 1)
        at = line.rfind(' ', at - 1);
    if (at == std::string::npos || at <= first) break;
    std::string head = line.substr(0, at);
    head.erase(head.find_last_not_of(' ') + 1);
    out += head + (command ? " \\\n" : "\n");
    line = next + line.substr(line.find_first_not_of(' ', at));
  }
  out += line;
}

}  // namespace

std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  const auto lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    wrap_line(out, lines[i], width, indent);
    if (i + 1 < lines.size()) out += "\n";
  }
  return out;
}

std::string coloured(const std::string& text) {
  constexpr const char *bold = "\x1b[1m", *yellow = "\x1b[33m", *red = "\x1b[31m", *off = "\x1b[0m";
  std::string out;
  const auto lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const bool heading =
        !line.empty() && line.front() != ' ' && (i + 1 < lines.size() && lines[i + 1].rfind("  ", 0) == 0);
    const bool part = line.rfind("  ", 0) == 0 && line.size() > 2 && line[2] != ' ' && i + 1 < lines.size() &&
                      lines[i + 1].rfind("    ", 0) == 0;
    const char* colour = line.rfind("    ! ", 0) == 0                ? yellow
                         : line.find("NOT MET") != std::string::npos ? red
                         : heading || part                           ? bold
                                                                     : nullptr;
    out += colour == nullptr ? line : colour + line + off;
    if (i + 1 < lines.size()) out += "\n";
  }
  return out;
}

bool wants_colour(int descriptor) {
  const char *none = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  return (none == nullptr || *none == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0) &&
         ::isatty(descriptor) == 1;
}

}  // namespace tw::cli
