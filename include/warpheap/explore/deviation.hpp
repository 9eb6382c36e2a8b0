// SPDX-License-Identifier: Apache-2.0
// A schedule in words: the decisions at which another lane ran than by default.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../platform/types.hpp"

namespace warpheap::explore {

/// At decision `decision` lane `lane` runs, against the default.
struct deviation {
  u32 decision;
  u32 lane;
  bool operator==(deviation const&) const = default;
};

/// As "12:1,40:2", by decision; "-" if there are none.
inline std::string text_of(std::vector<deviation> const& deviations) {
  std::string text;
  for (auto const& each : deviations)
    text += (text.empty() ? "" : ",") + std::to_string(each.decision) + ":" + std::to_string(each.lane);
  return text.empty() ? "-" : text;
}

/// What text_of() made of them; nothing if it did not make this text.
inline std::optional<std::vector<deviation>> deviations_in(std::string_view text) {
  std::vector<deviation> deviations;
  if (text == "-") return deviations;
  auto const number = [&text](u32& value) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc{};
  };
  for (;;) {
    deviation each{};
    if (!number(each.decision) || text.empty() || text.front() != ':') return std::nullopt;
    text.remove_prefix(1);
    if (!number(each.lane)) return std::nullopt;
    deviations.push_back(each);
    if (text.empty()) return deviations;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace warpheap::explore
