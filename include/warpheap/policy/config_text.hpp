// SPDX-License-Identifier: Apache-2.0
// A configuration in words, for people who compare heaps: "page_bytes 4096, waste_factor 2".
#pragma once

#include "../platform/language.hpp"

#if !defined(__CUDACC_RTC__)

#include <string>
#include <type_traits>

namespace warpheap {

/// The fields of a configuration, each by its name and its value:
/// config_text("page_bytes", 4096, "waste_factor", 2).
template <class Value, class... Rest>
std::string config_text(char const* field, Value const& value, Rest const&... rest) {
  std::string text = std::string{field} + ' ';
  if constexpr (std::is_same_v<Value, bool>) text += value ? "true" : "false";
  else if constexpr (requires { std::to_string(value); }) text += std::to_string(value);
  else text += value;
  if constexpr (sizeof...(rest) != 0) text += ", " + config_text(rest...);
  return text;
}

}  // namespace warpheap

#endif
