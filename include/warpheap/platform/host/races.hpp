// SPDX-License-Identifier: Apache-2.0
// Races of plain accesses, if the program is compiled for it; else everything here is empty.
#pragma once

#if defined(WARPHEAP_HOST_RACES)
#include "race_hooks.hpp"
#else
#include "memory_model.hpp"

namespace warpheap::host::detail {

inline constexpr size_t memory_alignment = 256;

struct race_scope {
  race_scope(worker&, memory_model*) {}
};

inline void forget_races(void const*, size_t) {}

struct atomic_touch {
  explicit atomic_touch(access const&) {}
  void note(bool, void const*) {}
};

}  // namespace warpheap::host::detail
#endif
