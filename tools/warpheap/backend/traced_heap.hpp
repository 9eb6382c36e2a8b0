// SPDX-License-Identifier: Apache-2.0
// The heap of jobs that are recorded.
#pragma once

#include "warpheap/adaptor/trace.hpp"
#include "warpheap/heap/default_heap.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// Room for 4 million records, which take 96 MiB.
inline constexpr traced_config job_records{.most_records = u64{1} << 22};
using traced_heap = traced<heap, job_records>;

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
