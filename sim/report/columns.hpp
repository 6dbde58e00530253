// Tables for a terminal: columns as wide as what stands in them, lines of at most 80 characters.
#pragma once

#include <string>
#include <vector>

namespace tw::report {

struct TableColumn {
  std::string head;
  bool left = false;  // texts stand left, numbers right
};

// Lines of the table, its head first, each behind two blanks. Where a line would be too long, heads break at blanks and
// behind underscores; where that is not enough, the first `leading` columns of a row stand on a line above the others.
// A row may end early.
std::string columns_text(const std::vector<TableColumn>& columns, const std::vector<std::vector<std::string>>& rows,
                         size_t leading);

}  // namespace tw::report
