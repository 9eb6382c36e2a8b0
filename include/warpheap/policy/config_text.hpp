// SPDX-License-Identifier: Apache-2.0
// A configuration in words, for people who compare heaps: "page_bytes 4096, waste_factor 2".
#pragma once

#include "../platform/language.hpp"

#if !defined(__CUDACC_RTC__)

#include <string>

namespace warpheap {

/// Collects the fields of a configuration:
/// config_text{}("page_bytes", 4096)("waste_factor", 2).text.
struct config_text {
  std::string text{};

  template <class Value>
  config_text& operator()(char const* field, Value const& value) {
    if (!text.empty()) text += ", ";
    text += field;
    text += ' ';
    if constexpr (requires { std::to_string(value); }) text += std::to_string(value);
    else text += value;
    return *this;
  }
  config_text& operator()(char const* field, bool value) { return (*this)(field, value ? "true" : "false"); }
};

}  // namespace warpheap

#endif
