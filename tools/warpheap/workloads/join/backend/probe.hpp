// SPDX-License-Identifier: Apache-2.0
// The kernel that `warpheap join` measures: every lane looks up one probe tuple, and every pair
// found goes to an output page.
//
// Each lane walks its chain alone up to its next match, and then the warp writes the matches of all
// its lanes together. A lane without more matches stays, with nothing to write, until no lane has
// any. So all lanes are there whenever a page is taken.
//
// Source: the join of Pham et al. 2022, section 5.2.3. Differs: each warp fills a page of its own,
// and thread blocks gather nothing in shared memory; hash tables are in device memory.
#pragma once

#include "hash_table.hpp"
#include "output.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

/// Kernel: thread i looks up probe tuple i; chains[c] becomes what the c-th warp or thread wrote.
template <class Writer>
struct probe_tuples {
  static constexpr u32 most_threads = block_threads, resident_blocks = resident_thread_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, hash_table_view table, table_view probe, u64 page_bytes, chain* chains,
                                  u64* failures) const {
    u64 const i = global_thread_index();
    bool const mine = i < probe.size;
    u32 const key = mine ? probe.keys[i] : 0, payload = mine ? probe.payloads[i] : 0;
    u32 const* const bucket = mine ? table.bucket_of(key) : nullptr;
    u32 link = bucket ? *bucket : 0;
    Writer output{page_bytes};
    for (;;) {
      link = table.find(link, key);
      u32 const found = simt::ballot(full_mask, link != 0);
      if (!found) break;
      u32 const partner = link ? table.tuples.payloads[link - 1] : 0;
      if (!output.write(heap, failures, found, key, partner, payload)) break;
      if (link) link = table.next[link - 1];
    }
    // All lanes of a chain know it, and its first lane stores it. The grid's last warps may have no
    // chain.
    if (mine && i % Writer::lanes_a_chain == 0) chains[i / Writer::lanes_a_chain] = output.written();
  }
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
