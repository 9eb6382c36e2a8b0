// SPDX-License-Identifier: Apache-2.0
#include "nearest_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "wrapped_text.hpp"

namespace warpheap::tool {

namespace {

constexpr size_t most_names = 3;
constexpr size_t least_start = 2, least_part = 3;  ///< characters that count as a part of a name

std::string in_small_letters(std::string_view text) {
  std::string made{text};
  std::ranges::transform(made, made.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

/// The least number of typing errors from one text to the other: the optimal string alignment
/// distance, a row of the table for each character of `from`.
size_t errors_between(std::string_view from, std::string_view to) {
  std::vector<size_t> before_last, last, now(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) now[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before_last = std::move(last);
    last = now;
    now[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (from[i - 1] != to[j - 1])});
      bool const is_exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_exchanged) now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
  }
  return now.back();
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view typed, std::vector<std::string> const& known) {
  auto const wanted = in_small_letters(typed);
  auto const errors_of = [&](std::string const& name) {
    auto const plain = in_small_letters(name);
    if (wanted.size() >= least_start && plain.starts_with(wanted)) return size_t{0};
    if (wanted.size() >= least_part && plain.find(wanted) != plain.npos) return size_t{1};
    return errors_between(wanted, plain);
  };
  size_t least = wanted.size() / 3;
  std::vector<std::string> nearest;
  for (auto const& name : known) {
    auto const errors = errors_of(name);
    if (errors > least) continue;
    if (errors < least) nearest.clear();
    least = errors;
    if (nearest.size() < most_names) nearest.push_back(name);
  }
  return nearest;
}

std::string did_you_mean(std::string_view typed, std::vector<std::string> const& known) {
  auto const nearest = nearest_names(typed, known);
  return nearest.empty() ? "" : fmt::format("did you mean {}?", listed(nearest, " or "));
}

std::string names_instead_of(std::string_view typed, std::vector<std::string> const& known) {
  auto const nearest = did_you_mean(typed, known);
  return nearest.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : nearest;
}

}  // namespace warpheap::tool
