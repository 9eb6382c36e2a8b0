// SPDX-License-Identifier: Apache-2.0
// malloc_warp: one call of a named group of lanes, each with a size of its own, some with none.
#pragma once

#include "blocks.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// All existing lanes of a warp call in one group if `groups` is 1; else lane l calls with the
/// lanes of the same l % groups.
struct allocate_by_warp {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count, u32 groups) const {
    u32 const first = simt::warp_id() * warp_lanes;
    u32 const left = simt::block_dim() - first;
    lane_mask const present = lanes_before(left < warp_lanes ? left : warp_lanes);
    lane_mask mask = 0;
    for (u32 lane = simt::lane_id() % groups; lane < warp_lanes; lane += groups) mask |= lane_bit(lane);
    // One entry a thread, so that no lane of the mask stays away.
    u64 const i = global_thread_index();
    list[i].address = reinterpret_cast<u64>(heap.malloc_warp(mask & present, list[i].bytes));
    static_cast<void>(count);
  }
};

template <class Allocator>
verdict serves_whole_warps(scenario const& with) {
  verdict found;
  for (u32 const groups : {1u, 2u, 5u, warp_lanes}) {
    harness<Allocator> bench{with};
    u64 const most = bench.capped(std::min<u64>(600, with.pool_bytes / 4 / with.lanes()));
    auto requests = uniform(with.lanes(), 1, most, with.seed + groups);
    if (with.seed % 2 == 1) requests = same(with.lanes(), 1 + with.seed % most);
    for (size_t i = 0; i < requests.size(); i += 3 + with.seed % 5) requests[i].bytes = 0;
    auto const list = bench.transform(allocate_by_warp{}, requests, groups);
    auto const blocks = served(list);
    u64 const asked =
        static_cast<u64>(std::count_if(requests.begin(), requests.end(), [](auto r) { return r.bytes != 0; }));
    // Each lane may have made a slab of its class before it saw another's, and a small pool has
    // few.
    bool const one_size = with.seed % 2 == 1;
    found.at_least("blocks served", blocks.size(), one_size ? asked : asked / 2);
    for (auto const& entry : blocks) found.at_least("bytes asked for by a lane that was served", entry.bytes, 1u);
    found.include(keeps_patterns(bench, blocks));
    found.include(accounts_for(bench, blocks));
  }
  return found;
}

/// Whole warps at a heap that runs out: all free blocks go to some of their lanes.
template <class Allocator>
verdict shares_the_last_blocks_among_a_warp(scenario const& with) {
  auto bench = harness<Allocator>::cramped(with);
  verdict found;
  u64 const bytes = bench.capped(4096);
  auto blocks = bench.fill(bytes);
  u64 const free = std::min<u64>(blocks.size(), 1 + with.seed % with.lanes());
  bench.free(split_off(blocks, free));
  auto const back = served(bench.transform(allocate_by_warp{}, same(with.lanes(), bytes), 1u));
  found.equal("lanes served", back.size(), std::min(free, with.lanes()));
  blocks.insert(blocks.end(), back.begin(), back.end());
  found.include(accounts_for(bench, blocks));
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
