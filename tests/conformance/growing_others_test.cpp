// SPDX-License-Identifier: Apache-2.0
// Other creation policies over a pool that began with little, and that the host grew.
#include "suite.hpp"
#include "warpheap/policy/creation/halloc.hpp"
#include "warpheap/policy/creation/throughput.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

using growing_halloc = growing_allocator_with<oom::return_null, creation::halloc<>>;
using growing_throughput = growing_allocator_with<oom::return_null, creation::throughput<>>;

}}  // namespace warpheap::WARPHEAP_BACKEND

WARPHEAP_CONFORMANCE(growing_halloc, warpheap::growing_halloc, warpheap::conformance::contention::full, 60);
WARPHEAP_CONFORMANCE(growing_throughput, warpheap::growing_throughput, warpheap::conformance::contention::full, 60);
