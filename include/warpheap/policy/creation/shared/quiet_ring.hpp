// SPDX-License-Identifier: Apache-2.0
// The check of a ring_queue at rest, for the views of heaps that have one (quiet_view.hpp).
#pragma once

#include "../../../structure/ring_queue.hpp"
#include "quiet_view.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Checks the queue `name`, whose words were copied to `words`. Returns a bit for each item, set if
/// the queue has it. `wrong_slot` begins the line of a slot that violates ring_queue.Q5. There may
/// be 2^30 items.
inline std::vector<u32> check_ring(invariant_check& expect, ring_queue const& queue, u32 const* words,
                                   char const* wrong_slot, std::string const& name) {
  u32 const *const ring = words + ring_queue::index_words, count = queue.slot_count();
  u32 const pops = words[ring_queue::pops_word], size = words[ring_queue::pushes_word] - pops;
  expect(words[ring_queue::available_word] == size && size <= queue.items(), "ring_queue.Q1, ring_queue.Q3: counts of ",
         name);
  std::vector<u32> seen((u64{queue.items()} + 31) / 32);
  for (u32 i = 0; i < count; ++i) {
    u32 const held = ring[(pops + i) & (count - 1)], item = held - 1, bit = 1u << item % 32;
    bool const is_item = item < queue.items(), is_new = is_item && !(seen[item / 32] & bit);
    expect(i < size ? is_new : held == 0, wrong_slot, i, " of ", name);
    if (is_item && i < size) seen[item / 32] |= bit;
  }
  return seen;
}

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
