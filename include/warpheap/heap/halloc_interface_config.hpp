// How the halloc heap behind hamalloc is tuned: as creation::halloc is by default, unless a program
// says otherwise by an explicit specialisation before it includes halloc_interface.hpp. Where that
// comes too late, it does not compile. A header of the program's own is the place, in every unit:
//
//   #include <warpheap/heap/halloc_interface_config.hpp>
//   template <>
//   struct warpheap::halloc_interface_config<> {
//     static constexpr creation::halloc_config value{.replace_at = 870, .split_percent = 75};
//   };
//   #include <warpheap/heap/halloc_interface.hpp>
#pragma once

#include "../policy/creation/halloc.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// All units of a program must have one value.
template <class Program = void>
struct halloc_interface_config {
  static constexpr creation::halloc_config value{};
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
