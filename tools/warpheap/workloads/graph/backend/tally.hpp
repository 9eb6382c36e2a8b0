// SPDX-License-Identifier: Apache-2.0
// What lanes of the graph's kernels did, summed over all of them at the end of a kernel.
#pragma once

#include "warpheap/platform/simt.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

struct graph_tally {
  u64 mallocs = 0, frees = 0, failures = 0, lost = 0, inserted = 0, erased = 0;
  u64 live_bytes = 0;                        ///< a difference, modulo 2^64
  u64 messages = 0, messages_to_others = 0;  ///< of members that send each other batches
};

WARPHEAP_DEVICE inline void add(u64& total, u64 part) {
  // relaxed: read after the kernel
  if (part) atomic_ref<u64>{total}.fetch_add(part, order::relaxed);
}

WARPHEAP_DEVICE inline void add(graph_tally& total, graph_tally const& part) {
  add(total.mallocs, part.mallocs);
  add(total.frees, part.frees);
  add(total.failures, part.failures);
  add(total.lost, part.lost);
  add(total.inserted, part.inserted);
  add(total.erased, part.erased);
  add(total.live_bytes, part.live_bytes);
  add(total.messages, part.messages);
  add(total.messages_to_others, part.messages_to_others);
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
