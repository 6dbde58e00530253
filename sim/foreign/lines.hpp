// Text of other tools line by line, so that a fault names the line where a reader has to look.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::foreign {

struct Line {
  size_t number = 0;  // from 1
  std::string text;   // without its end
};
std::vector<Line> lines_of(const std::string& text);
std::string line_place(size_t number);  // "line 3"

std::string trimmed(std::string_view text);
std::string lower(std::string_view text);
bool contains(std::string_view text, std::string_view part);
bool starts_with(std::string_view text, std::string_view part);
// Does an object of JSON begin it, after // comments?
bool begins_object(std::string_view text);

// A finite number that fills the whole text.
std::optional<double> number_of(std::string_view text);

// "node-2" before "node-10": runs of digits count as numbers.
bool natural_less(const std::string& a, const std::string& b);

// Fields of one line of a table; `separator` inside quotes is text, a doubled quote is one.
std::vector<std::string> fields_of(const std::string& line, char separator);
// Which of comma, semicolon and tab a first line is divided by.
char separator_of(const std::string& first_line);

// "node[00-02,7],head" -> node00, node01, node02, node7, head; nothing where brackets or numbers are wrong, or more
// than a million names would come out (Slurm's hostlist expressions).
std::optional<std::vector<std::string>> host_names(std::string_view list);

}  // namespace tw::foreign
