// SPDX-License-Identifier: Apache-2.0
#include "edge_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "text_file.hpp"

namespace warpheap::tool {

namespace {

constexpr auto separators = " \t,";

/// Lines that one task reads. `first_line` and `first_edge` are how many lines and edges come
/// before.
struct piece {
  std::string_view text;
  u64 first_line = 0;
  u64 first_edge = 0;
};

/// The rest of the file, in pieces. One more piece at the end has no text, and the numbers of all
/// lines and edges.
std::vector<piece> cut_at_lines(line_reader const& file, parallel_work& work) {
  constexpr size_t piece_bytes = size_t{1} << 20;
  std::vector<piece> pieces;
  for (auto rest = file.rest(); !rest.empty();) {
    auto const end = rest.find('\n', std::min(piece_bytes, rest.size()) - 1);
    auto const bytes = end == std::string_view::npos ? rest.size() : end + 1;
    pieces.push_back({rest.substr(0, bytes)});
    rest.remove_prefix(bytes);
  }
  pieces.emplace_back();
  // Each piece counts its own; then those before it are added.
  work.pass(pieces.size() - 1, [&](u64 i) {
    line_reader reader{file, pieces[i].text, 0};
    while (reader.next_data()) ++pieces[i + 1].first_edge;
    pieces[i + 1].first_line = reader.number();
  });
  pieces.front().first_line = file.number();
  for (size_t i = 1; i < pieces.size(); ++i) {
    pieces[i].first_line += pieces[i - 1].first_line;
    pieces[i].first_edge += pieces[i - 1].first_edge;
  }
  return pieces;
}

}  // namespace

bool line_reader::next() {
  if (rest_.empty()) return false;
  auto const end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++number_;
  skip_blanks();
  return true;
}

bool line_reader::next_data() {
  while (next())
    if (!line_.empty() && !is_comment()) return true;
  return false;
}

std::string_view line_reader::field() {
  auto const found = line_.substr(0, line_.find_first_of(separators));
  line_.remove_prefix(found.size());
  skip_blanks();
  return found;
}

u32 line_reader::vertex(char const* what, u64 first, u64 last) {
  auto const text = field();
  if (text.empty()) fail(fmt::format("the line has no {}", what));
  auto const number = whole_number(text);
  if (!number) fail(fmt::format("'{}' is not a {}", excerpt(text), what));
  if (*number < static_cast<i64>(first) || *number > static_cast<i64>(last))
    fail(fmt::format("{} {} is not between {} and {}", what, excerpt(text), first, last));
  return static_cast<u32>(static_cast<u64>(*number) - first);
}

u64 line_reader::count(char const* what) {
  auto const text = field();
  if (text.empty()) fail(fmt::format("the line has no number of {}", what));
  auto const number = whole_number(text);
  if (!number || *number < 0) fail(fmt::format("'{}' is not a number of {}", excerpt(text), what));
  return static_cast<u64>(*number);
}

void line_reader::fail(std::string const& fault) const {
  throw usage_error{fmt::format("{}:{}: {}", name_, std::max<u64>(number_, 1), fault)};
}

void line_reader::skip_blanks() { line_.remove_prefix(std::min(line_.find_first_not_of(separators), line_.size())); }

std::string lower(std::string_view text) {
  std::string made{text};
  std::transform(made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
}

edges_array read_edges(line_reader const& file, std::optional<u64> promised,
                       std::function<edge(line_reader&)> const& read, parallel_work& work) {
  auto const pieces = cut_at_lines(file, work);
  u64 const found = pieces.back().first_edge, most = promised.value_or(found);
  edges_array edges(std::min(most, found));  // a promise alone must not take memory
  std::vector<std::string> faults(pieces.size());
  work.pass(pieces.size(), [&](u64 i) {
    line_reader reader{file, pieces[i].text, pieces[i].first_line};
    try {
      for (u64 next = pieces[i].first_edge; reader.next_data(); ++next) {
        if (next >= most) reader.fail(fmt::format("an entry more than the {} that are promised", most));
        edges[next] = read(reader);
      }
    } catch (usage_error const& fault) {
      faults[i] = fault.what();
    }
  });
  for (auto const& fault : faults)
    if (!fault.empty()) throw usage_error{fault};
  if (found < most)
    line_reader{file, {}, pieces.back().first_line}.fail(
        fmt::format("the file ends after {} of {} entries", found, most));
  return edges;
}

}  // namespace warpheap::tool
