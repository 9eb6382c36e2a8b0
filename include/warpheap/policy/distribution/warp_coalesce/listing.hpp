// SPDX-License-Identifier: Apache-2.0
// The live sub-blocks of created blocks, listed for the host when the heap is quiet.
#pragma once

#include "sub_block.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <vector>

#include "../../../platform/device_buffer.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// One live sub-block as the host sees it; address 0 if there is none.
struct listed_sub_block {
  u64 address;
  u64 bytes;
};

/// Writes the live sub-blocks of block i to the 32 entries from 32 i of `found`, which are zero.
struct list_sub_blocks {
  WARPHEAP_DEVICE void operator()(u64 const* created, u64 count, listed_sub_block* found) const {
    u64 const i = global_thread_index();
    if (i >= count) return;
    auto const* header = reinterpret_cast<sub_block_header const*>(created[i]);
    if (header->is_live() && header->points_on())
      header = reinterpret_cast<sub_block_header const*>(created[i] + header->bytes());
    u32 const last = header->last();
    for (u32 index = 0; index <= last; ++index) {
      // a block that its owner has not framed
      if (!header->is_live() && !header->was_live()) return;
      if (header->is_live())
        found[i * sub_block_header::most + index] = {reinterpret_cast<u64>(header->sub_block()), header->bytes()};
      // coalesce.P4
      header = reinterpret_cast<sub_block_header const*>(header->sub_block() + header->bytes());
    }
  }
};

/// Calls visit(address, bytes) for every live sub-block of the blocks that start at `created`, in
/// their order.
template <class Visitor>
void for_each_live_sub_block(std::vector<u64> const& created, Visitor visit) {
  constexpr size_t at_once = 16384;
  for (size_t first = 0; first < created.size(); first += at_once) {
    size_t const count = (std::min)(at_once, created.size() - first);
    device_buffer<u64> const blocks{
        {created.begin() + static_cast<i64>(first), created.begin() + static_cast<i64>(first + count)}};
    device_buffer<listed_sub_block> const found(count * sub_block_header::most);
    launch(shape_for(count), list_sub_blocks{}, static_cast<u64 const*>(blocks.data()), u64{count}, found.data());
    synchronize(stream_view{});
    for (auto const& each : found.to_host())
      if (each.address) visit(reinterpret_cast<void*>(each.address), static_cast<size_t>(each.bytes));
  }
}

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
