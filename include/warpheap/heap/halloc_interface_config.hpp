// SPDX-License-Identifier: Apache-2.0
// The configuration of the halloc heap behind hamalloc: creation::halloc's defaults, unless the
// program specialises this template before it includes halloc_interface.hpp. A specialisation after
// that does not compile. It belongs in a header of the program's own that every unit includes:
//
//   #include <warpheap/heap/halloc_interface_config.hpp>
//   template <>
//   struct warpheap::halloc_interface_config<> {
//     static constexpr creation::halloc_config value{.replace_at = 870, .split_percent = 75};
//   };
//   #include <warpheap/heap/halloc_interface.hpp>
#pragma once

#include "../policy/creation/halloc.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// All units of a program must have one value.
template <class Program = void>
struct halloc_interface_config {
  static constexpr creation::halloc_config value{};
};

}}  // namespace warpheap::WARPHEAP_BACKEND
