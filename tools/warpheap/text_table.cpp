#include "text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace warpheap::tool {

text_table::text_table(std::vector<std::string> titles) {
  for (auto& title : titles) {
    right_.push_back(!title.empty() && title.front() == '>');
    if (right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void text_table::add(std::vector<std::string> row) {
  row.resize(right_.size());
  rows_.push_back(std::move(row));
}

std::string text_table::text() const {
  std::vector<size_t> widths(right_.size());
  for (auto const& row : rows_)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string made;
  for (auto const& row : rows_) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      if (column) line += "  ";
      line += right_[column] ? fmt::format("{:>{}}", row[column], widths[column])
                             : fmt::format("{:<{}}", row[column], widths[column]);
    }
    made += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return made;
}

}  // namespace warpheap::tool
