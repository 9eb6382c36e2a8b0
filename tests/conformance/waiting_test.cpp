// SPDX-License-Identifier: Apache-2.0
// The default allocator over a pool that grows while calls wait.
#include "suite.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

// waiting_allocator, which waits 20 ms, as patient as a busy machine may need.
inline constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_allocator = growing_allocator_with<oom::grow_on_demand<wait_a_minute>>;

}}  // namespace warpheap::WARPHEAP_BACKEND

WARPHEAP_CONFORMANCE(waiting, warpheap::patient_allocator, warpheap::conformance::contention::full, 8);
