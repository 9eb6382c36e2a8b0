// SPDX-License-Identifier: Apache-2.0
#include "text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/printable.hpp"

namespace warpheap::tool {

namespace {

constexpr size_t gap = 2;  ///< between columns

std::string shown_cell(std::string const& cell) { return cell.empty() ? "-" : cell; }

}  // namespace

text_table::text_table(std::vector<std::string> titles, size_t names) : names_{names} {
  for (auto& title : titles) {
    bool const right = !title.empty() && title.front() == '>';
    columns_.push_back({title.substr(right), right});
  }
}

void text_table::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  for (auto& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

void text_table::note(std::string const& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::string text_table::common_value(size_t column) const {
  if (rows_.size() < 2) return {};
  std::string common;
  for (auto const& row : rows_) {
    if (row[column].empty() && column < names_) continue;
    auto const cell = shown_cell(row[column]);
    if (!common.empty() && cell != common) return {};
    common = cell;
  }
  return common;
}

size_t text_table::width(size_t column) const {
  size_t widest = columns_[column].title.size();
  for (auto const& row : rows_) widest = std::max(widest, shown_cell(row[column]).size());
  return widest;
}

std::vector<std::vector<size_t>> text_table::parts(std::vector<size_t> const& shown, size_t line_width) const {
  std::vector<size_t> names;
  size_t width_of_names = 0;
  for (size_t const column : shown)
    if (column < names_) {
      names.push_back(column);
      width_of_names += width(column) + gap;
    }
  std::vector<std::vector<size_t>> made{names};
  size_t used = width_of_names;
  for (size_t const column : shown) {
    if (column < names_) continue;
    if (made.back().size() > names.size() && used + width(column) > line_width) {
      made.push_back(names);
      used = width_of_names;
    }
    made.back().push_back(column);
    used += width(column) + gap;
  }
  return made;
}

std::string text_table::line(std::vector<size_t> const& shown, std::vector<std::string> const& cells) const {
  std::string made;
  for (size_t const column : shown) {
    auto const cell = shown_cell(cells[column]);
    made += columns_[column].right ? fmt::format("{:>{}}", cell, width(column))
                                   : fmt::format("{:<{}}", cell, width(column));
    made += std::string(gap, ' ');
  }
  return made.erase(made.find_last_not_of(' ') + 1) + "\n";
}

std::string text_table::text(std::string const& title, table_layout layout) const {
  std::string common;
  std::vector<size_t> shown;
  std::vector<std::string> titles;
  for (size_t column = 0; column < columns_.size(); ++column) {
    titles.push_back(columns_[column].title);
    auto const value = layout.says_shared_values_once ? common_value(column) : std::string{};
    if (value.empty()) shown.push_back(column);
    else common += fmt::format("{}{} {}", common.empty() ? ": " : ", ", columns_[column].title, value);
  }
  std::string made = wrapped(title + common, gap) + "\n";
  if (shown.empty()) return made + fmt::format("{} rows alike\n", rows_.size());
  for (auto const& part : parts(shown, layout.columns)) {
    made += "\n" + line(part, titles);
    for (auto const& row : rows_) made += line(part, row);
  }
  if (!notes_.empty()) made += "\n";
  for (auto const& each : notes_) made += wrapped(each, gap) + "\n";
  return made;
}

}  // namespace warpheap::tool
