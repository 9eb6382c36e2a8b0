// SPDX-License-Identifier: Apache-2.0
// Blocks of a class that a part of a heap of bins could give, counted by the threads of a kernel.
#pragma once

#include "../../slot_survey.hpp"
#include "recycler.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

template <class Layout, class Supply, class Faults = no_faults>
class slot_counter {
 public:
  WARPHEAP_HOST_DEVICE explicit slot_counter(table<Layout> const& table) : table_{table} {}

  /// To be called before count(): returns the empty bins of a part's arenas to their chunks. Any
  /// lane alone.
  WARPHEAP_DEVICE void gather(slot_share share) const {
    for (u64 arena = share.part; arena < table_.arenas(); arena += share.parts)
      recycler<Layout, Supply, Faults>::sweep(table_.as_far(), static_cast<u32>(arena));
  }
  /// Blocks of a class that could be allocated from a part's arenas and, with the first part, from
  /// the supply.
  WARPHEAP_DEVICE slot_part count(u32 size_class, slot_share share) const {
    u64 const capacity = Layout::capacity(size_class);
    u32 const pages = Layout::pages(size_class);
    slot_part part;
    for (u64 i = share.part; i < table_.arenas(); i += share.parts) {
      u32 const arena = static_cast<u32>(i);
      part.count += table_.semaphore(arena, size_class).available();
      part.count += capacity * page_store<Layout, Supply>{table_.as_far(), arena}.bins_available(pages);
    }
    if (share.part == 0) part.count += Supply{table_.as_far()}.chunks_available() * capacity * bins_of_chunk(pages);
    return part;
  }

 private:
  /// Bins of `pages` pages in an empty chunk.
  WARPHEAP_HOST_DEVICE u32 bins_of_chunk(u32 pages) const {
    u32 bins = 0;
    for (u32 word = 0; word < 2; ++word)
      bins += page_store<Layout, Supply>::runs_in(page_bits::unusable(table_.chunk(), word), pages);
    return bins;
  }

  table<Layout> table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
