// SPDX-License-Identifier: Apache-2.0
// Where a call stands in the source: a default argument of device functions.
//
// std::source_location does not serve: its members are host functions to nvcc, and NVRTC lacks the
// header. The built-ins behind it are known to all three compilers, and are evaluated where the
// outermost call stands. The text of the file's name lies in the module's memory: a kernel can read
// it, the host cannot.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

/// A line of a file, or a name that a library gives to its allocations.
struct source_site {
  char const* file = nullptr;  ///< readable where the call was made; nullptr: unknown
  u32 line = 0;                ///< 0: `file` is a name that was given

  /// An unknown place.
  source_site() = default;
  /// A name in place of a line; a string literal, or a text that outlives the heap.
  WARPHEAP_HOST_DEVICE constexpr source_site(char const* name) : file{name} {}
  /// Line `at` of the file `in`.
  WARPHEAP_HOST_DEVICE constexpr source_site(char const* in, u32 at) : file{in}, line{at} {}

  /// The line of the call in which this is a default argument.
  WARPHEAP_HOST_DEVICE static constexpr source_site current(char const* file = __builtin_FILE(),
                                                            u32 line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace warpheap
