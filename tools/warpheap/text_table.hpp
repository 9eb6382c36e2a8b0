// A table of text for people: columns as wide as their widest cell, numbers to the right.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace warpheap::tool {

class text_table {
 public:
  /// A column's title; one that starts with '>' has its cells to the right.
  explicit text_table(std::vector<std::string> titles);

  /// One cell a column; missing ones are empty.
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace warpheap::tool
