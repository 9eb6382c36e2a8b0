// SPDX-License-Identifier: Apache-2.0
// Text files of graphs, an edge a line: what their readers share. A line is fields between blanks
// or commas; blank lines and comments count for nothing. Edges are read on all cores.
//
// Only what becomes part of the graph is judged. Weights, times and other fields behind an edge's
// two vertices are not looked at.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// The most vertices of a graph.
inline constexpr u64 most_vertices = 0x7fff'ffff;

/// A text line by line, and in each line field by field.
class line_reader {
 public:
  /// `name` stands for the file in messages. A line that begins with one of `comments` is one.
  line_reader(std::string_view name, std::string_view text, std::string_view comments)
      : name_{name}, comments_{comments}, rest_{text} {}
  /// The part of a file from `rest` on; the line before it has number `line`.
  line_reader(line_reader const& file, std::string_view rest, u64 line)
      : name_{file.name_}, comments_{file.comments_}, rest_{rest}, number_{line} {}

  /// The next line, without its end and the blanks before it; false if there is none.
  bool next();
  /// The next line that is neither blank nor a comment.
  bool next_data();
  /// The next field of the line; empty if there is none.
  std::string_view field();
  /// The next field as a vertex in [first, last], less `first`. `what` is its name in messages.
  u32 vertex(char const* what, u64 first, u64 last);
  /// The next field as a number of things, which `what` names.
  u64 count(char const* what);

  std::string_view line() const { return line_; }
  std::string_view rest() const { return rest_; }
  u64 number() const { return number_; }
  bool is_comment() const { return !line_.empty() && comments_.find(line_.front()) != comments_.npos; }

  [[noreturn]] void fail(std::string const& fault) const;

 private:
  void skip_blanks();

  std::string_view name_;
  std::string_view comments_;
  std::string_view rest_;
  std::string_view line_;
  u64 number_ = 0;
};

/// Text in lower case.
std::string lower(std::string_view text);

/// The edges of all lines of data that follow: `read` takes each from its line. If there are
/// several faults, the one in the first line is thrown. With `promised`, more or fewer edges are a
/// fault.
edges_array read_edges(line_reader const& file, std::optional<u64> promised,
                       std::function<edge(line_reader&)> const& read, parallel_work& work);

}  // namespace warpheap::tool
