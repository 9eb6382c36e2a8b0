// SPDX-License-Identifier: Apache-2.0
// Text for people, broken into lines at spaces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warpheap::tool {

/// Columns of a line of tables and of help.
inline constexpr size_t line_columns = 120;

/// `text` in lines that end at column `columns` at the latest. Lines after the first begin with
/// `indent` spaces, and the last has no line end. `first` columns are already taken on the first
/// line. A word that is longer has a line of its own. Line ends in `text` stay.
std::string wrapped(std::string_view text, size_t indent = 0, size_t first = 0, size_t columns = line_columns);

/// "a", "a and b", "a, b and c".
std::string listed(std::vector<std::string> const& names, char const* last = " and ");

}  // namespace warpheap::tool
