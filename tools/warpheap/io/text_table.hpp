// SPDX-License-Identifier: Apache-2.0
// A table of text for people: columns as wide as their widest cell, numbers to the right, and no
// line longer than a limit unless a single column is.
//
// A value that all rows share is said once, above, unless the layout says otherwise. Columns that
// do not fit beside the others come in further parts below, each of which begins with the columns
// that name a row.
#pragma once

#include <string>
#include <vector>

#include "cli/wrapped_text.hpp"

namespace warpheap::tool {

/// How a table is laid out; as a report, if nothing else is said.
struct table_layout {
  size_t columns = line_columns;        ///< of a line
  bool says_shared_values_once = true;  ///< above the rows
};

class text_table {
 public:
  /// Titles of the columns; the cells under one that starts with '>' are aligned right. The first
  /// `names` of them name a row. They have a value in every row that they apply to, so an empty
  /// cell of theirs is no other value.
  explicit text_table(std::vector<std::string> titles, size_t names = 1);

  /// One cell a column; missing ones are empty, which is shown as '-'.
  void add(std::vector<std::string> row);
  /// A line below the table, written once however often it is added.
  void note(std::string const& text);
  /// The table; the values that all rows share are in a line that begins with `title`.
  std::string text(std::string const& title, table_layout layout = {}) const;

 private:
  struct column {
    std::string title;
    bool right;
  };

  /// The value of every row in this column; empty if rows differ, or there is but one.
  std::string common_value(size_t column) const;
  size_t width(size_t column) const;
  /// The columns to show, cut into parts, each as wide as a line.
  std::vector<std::vector<size_t>> parts(std::vector<size_t> const& shown, size_t line_width) const;
  std::string line(std::vector<size_t> const& shown, std::vector<std::string> const& cells) const;

  std::vector<column> columns_;
  size_t names_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> notes_;
};

}  // namespace warpheap::tool
