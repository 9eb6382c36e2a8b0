// SPDX-License-Identifier: Apache-2.0
// A random_walk heap of a few words of a few pages, so that a few lanes can fill it, empty it and
// fight over it.
#pragma once

#include <algorithm>

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

using creation::walk_kind;

/// With walks so short that most lanes end up looking at every word.
constexpr creation::random_walk_config tiny_walk(walk_kind kind, u32 word_pages = 4, u32 walk_steps = 2) {
  return {.kind = kind, .page_bytes = 64, .word_pages = word_pages, .walk_steps = walk_steps, .counts_steps = true};
}
constexpr creation::random_walk_config tiny_plain = tiny_walk(walk_kind::plain);
constexpr creation::random_walk_config tiny_bitmap = tiny_walk(walk_kind::bitmap);
constexpr creation::random_walk_config tiny_shared = tiny_walk(walk_kind::collaborative);

/// Owns the memory of a heap of `pages` pages of 64 bytes.
template <class Walk>
class walk_pool : public quiet_pool<Walk> {
 public:
  static constexpr u64 page_bytes = 64;
  explicit walk_pool(u32 pages) : quiet_pool<Walk>{pages * page_bytes} {}
};

/// Every lane takes a page, writes its tag, waits a little, finds it, and frees the page; again and
/// again. Every lane holds one page at most.
struct walk_churn {
  static constexpr u32 words = 16;

  template <class Walk>
  WARPHEAP_DEVICE void operator()(Walk heap, u32 rounds, lanes_report* report) const {
    u32 const tag = static_cast<u32>(global_thread_index()) + 1;
    for (u32 round = 0; round < rounds; ++round) {
      auto* const page = static_cast<u32*>(heap.create(64));
      atomic_ref<u32>{page ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!page) continue;
      // Atomic, so that a mutant that gives a page to two lanes makes no undefined behaviour of it.
      atomic_ref<u32>{page[round % words]}.store(tag, order::relaxed);
      if (tag % 3 == 0) simt::pause(100);
      if (atomic_ref<u32>{page[round % words]}.load(order::relaxed) != tag)
        atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      heap.destroy(page);
    }
  }
};

}  // namespace warpheap::test
