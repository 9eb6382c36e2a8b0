// SPDX-License-Identifier: Apache-2.0
// A heap whose calls wait for memory as long as a busy machine may need. So a call is refused only
// where no more memory comes.
#pragma once

#include "warpheap/heap/growing_heap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};

template <class Creation = creation::slab_bitmap<>>
using patient_allocator = allocator<Creation, distribution::none, oom::grow_on_demand<wait_a_minute>,
                                    reserve_pool::growing, alignment::shrink<16>>;

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
