// SPDX-License-Identifier: Apache-2.0
#include "wrapped_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace warpheap::tool {

std::string wrapped(std::string_view text, size_t indent, size_t first, size_t columns) {
  std::string made;
  size_t used = first;
  bool line_has_words = false;
  auto const break_line = [&] {
    made += '\n' + std::string(indent, ' ');
    used = indent;
    line_has_words = false;
  };
  for (size_t start = 0; start < text.size();) {
    if (text[start] == ' ' || text[start] == '\n') {
      if (text[start++] == '\n') break_line();
      continue;
    }
    auto const end = std::min(text.find_first_of(" \n", start), text.size());
    auto const word = text.substr(start, end - start);
    start = end;
    if (line_has_words && used + 1 + word.size() > columns) break_line();
    if (line_has_words) made += ' ';
    made += word;
    used += word.size() + line_has_words;
    line_has_words = true;
  }
  return made;
}

std::string listed(std::vector<std::string> const& names, char const* last) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{}{}{}", fmt::join(names.begin(), names.end() - 1, ", "), last, names.back());
}

}  // namespace warpheap::tool
