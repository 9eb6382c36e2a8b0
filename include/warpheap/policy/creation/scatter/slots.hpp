// SPDX-License-Identifier: Apache-2.0
// The blocks of a size that a heap could give, counted one part of the pages at a time
// (slot_survey.hpp). Says nothing certain while a kernel uses the heap.
#pragma once

#include "../slot_survey.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace scatter_parts {

/// Chunks for the request that a page could still give.
template <creation::scatter_config Config>
WARPHEAP_HOST_DEVICE u32 slots_of_page(page_word seen, chunk_request const& request) {
  using layout = page_layout<Config>;
  if (seen.is_free()) return request.capacity;
  if (!seen.has_chunks() || !request.suits(seen.units())) return 0;
  return layout::capacity(seen.units()) - (layout::is_flat(seen.units()) ? popcount(seen.low()) : seen.low());
}

/// The chunks for the request in the pages of [first, end).
template <creation::scatter_config Config>
WARPHEAP_COLD slot_part count_chunks(table<Config> table, chunk_request request, u32 first, u32 end) {
  slot_part part;
  WARPHEAP_NO_UNROLL
  for (u32 page = first; page < end; ++page) part.count += slots_of_page<Config>(table.load(page), request);
  return part;
}

/// The runs of `length` pages in the pages of [first, end).
template <creation::scatter_config Config>
WARPHEAP_COLD slot_part count_runs(table<Config> table, u64 length, u32 first, u32 end) {
  free_runs runs{first, slots_of_length{length}};
  WARPHEAP_NO_UNROLL
  for (u32 page = first; page < end; ++page) {
    bool const free = table.load(page).is_free();
    runs.add(free, !free);
  }
  return runs.part();
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::scatter_parts
