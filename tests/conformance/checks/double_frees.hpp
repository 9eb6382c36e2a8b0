// SPDX-License-Identifier: Apache-2.0
// Blocks freed twice while other lanes ask and free. A second free may hit a block that was handed
// out again in between. It then ends that life, and the owner's own free later is one more double
// free. So nothing is claimed of contents, or of which calls are served. But the heap's own data
// stays right, no call waits for ever, and no memory is lost.
#pragma once

#include "misuse.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// What the lanes of free_twice did.
struct double_free_report {
  u64 served = 0;
  u64 freed_again = 0;
};

/// Every lane asks and frees, and frees once more: its own last block, another lane's, one that all
/// active lanes free at once, or an address where no block need start. Lanes of a warp ask for one
/// size, so that they are served together where the allocator does that; each frees its part when
/// it likes. No lane writes to a block, as it may not be its own.
struct free_twice {
  u64 seed;
  u64 rounds;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* sizes, u32 size_count, u64* freed,
                                  double_free_report* report) const {
    u64 const me = global_thread_index();
    random_sequence mine{seed + 2 * me}, warps{seed + 2 * (me - simt::lane_id()) + 1};
    holding held;
    u64 served = 0, again = 0;
    for (u64 round = 0; round < rounds; ++round) {
      u64 const bytes = sizes[warps.below(size_count)];
      holding const got{reinterpret_cast<u64>(heap.malloc(bytes)), bytes};
      served += got.address != 0;
      for (u32 pauses = mine.below(4); pauses != 0; --pauses) simt::pause(1);
      bool const keeps = mine.below(2) == 0;
      holding const gone = keeps ? held : got;
      if (keeps) held = got;
      heap.free(gone.memory());
      // relaxed: to free a block of another warp's lane is a double free, whatever that lane sees.
      atomic_ref<u64>{freed[me]}.store(gone.address, order::relaxed);
      u64 const twice = second_time(gone, freed, mine, warps);
      again += twice != 0;
      heap.free(reinterpret_cast<void*>(twice));
    }
    if (me % 2 == 0) heap.free(held.memory());  // the others leave theirs to be listed
    atomic_ref<u64>{report->served}.fetch_add(served, order::relaxed);
    atomic_ref<u64>{report->freed_again}.fetch_add(again, order::relaxed);
  }

 private:
  /// The address to free a second time.
  WARPHEAP_DEVICE u64 second_time(holding gone, u64* freed, random_sequence& mine, random_sequence& warps) const {
    u64& place = freed[mine.below(static_cast<u32>(grid_threads()))];
    u64 const others = atomic_ref<u64>{place}.load(order::relaxed);
    switch (warps.below(4)) {
      case 0: return gone.address;
      case 1: return others;
      case 2: return the_leaders(others);
      default:
        return gone.address != 0 ? gone.address + 16 * mine.below(static_cast<u32>(div_ceil(gone.bytes, 16))) : 0;
    }
  }

  /// The value of the lowest active lane, for all active lanes.
  WARPHEAP_DEVICE u64 the_leaders(u64 value) const {
    lane_mask const active = simt::active_mask();
    return simt::shuffle(active, value, lowest_bit(active));
  }
};

/// Sizes that lanes ask for together: small blocks of several classes, blocks of one class, blocks
/// that take up whole pages and slabs, and all kinds at once. On the host only the set that the
/// seed picks.
inline std::vector<std::vector<u64>> traffic_sizes(scenario const& with) {
  std::vector<std::vector<u64>> const all{
      {16, 1000, 20'000}, {16, 48, 112}, {256, 512, 1024}, {1024}, {4096, 20'000, 70'000}};
#if defined(__CUDACC__)
  return all;
#else
  return {all[with.seed % all.size()]};
#endif
}

/// The live blocks, in the order of their addresses, that were not live when `before` was listed.
template <class Allocator>
holdings live_blocks(harness<Allocator>& bench, holdings const& before = {}) {
  auto const lower = [](holding const& a, holding const& b) { return a.address < b.address; };
  holdings live;
  bench.heap().for_each_live([&](void* block, size_t bytes) { live.push_back({reinterpret_cast<u64>(block), bytes}); });
  std::erase_if(live,
                [&](auto const& block) { return std::binary_search(before.begin(), before.end(), block, lower); });
  std::sort(live.begin(), live.end(), lower);
  return live;
}

/// No more lanes than a heap that is mostly full answers soon: on a GPU a search that finds nothing
/// is slow while others free.
inline scenario in_traffic(scenario const& wide) { return wide.lanes() > 2048 ? wide.with_shape({16, 128}) : wide; }

/// Whatever lanes free twice: afterwards the heap is sound. Once the remaining blocks are freed, it
/// is as good as new.
template <class Allocator>
verdict survives_double_frees_under_traffic(scenario const& wide) {
  scenario const with = in_traffic(wide);
  verdict found;
  for (auto sizes : traffic_sizes(with)) {
    auto bench = harness<Allocator>::cramped(with);
    auto const ballast = live_blocks(bench);
    for (u64& bytes : sizes) bytes = bench.capped(bytes);
    device_buffer<u64> const asked{sizes}, freed(with.lanes());
    device_buffer<double_free_report> const report(1);
    bench.run(free_twice{with.seed, u64{8}}, bench.ref(), static_cast<u64 const*>(asked.data()),
              static_cast<u32>(sizes.size()), freed.data(), report.data());
    found.at_least("blocks served", report[0].served, 1u);
    found.at_least("blocks freed again", report[0].freed_again, 1u);
    found.include(bench.sound());
    if (!found.ok()) return found;
    auto const left = live_blocks(bench, ballast);
    found.include(apart_and_aligned(left, {.alignment = bench.traits.alignment}));
    bench.free(left);
    found.include(bench.empty());
    auto fresh = harness<Allocator>::cramped(with);
    for (u64 const bytes : {bench.capped(4096), bench.capped(20'000)}) {
      auto const again = bench.fill(bytes), wanted = fresh.fill(bytes);
      found.equal("blocks that fill the heap afterwards", again.size(), wanted.size());
      found.include(keeps_patterns(bench, again));
      found.include(accounts_for(bench, again));
      fresh.free(wanted);
    }
  }
  return found;
}

/// How a pointer comes to the lane that frees it: by a shuffle, or by a word that nothing orders.
enum class passage { shuffle, mailbox };

/// Every lane asks, passes on what it got, and frees what it is given. The caller frees what is
/// left in the boxes, of which each lane has one.
template <passage How>
struct pass_on {
  u64 seed;
  u64 rounds;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* sizes, u32 size_count, u64* boxes, u64* served) const {
    u64 const me = global_thread_index();
    random_sequence mine{seed + 2 * me}, warps{seed + 2 * (me - simt::lane_id()) + 1};
    u64 count = 0;
    for (u64 round = 0; round < rounds; ++round) {
      u64 pointer = reinterpret_cast<u64>(heap.malloc(sizes[warps.below(size_count)]));
      count += pointer != 0;
      if constexpr (How == passage::shuffle) {
        // From the next active lane above; the highest lane gets that of the lowest.
        lane_mask const active = simt::active_mask(), above = active & ~lanes_before(simt::lane_id() + 1);
        pointer = simt::shuffle(active, pointer, lowest_bit(above != 0 ? above : active));
      } else {
        u64& box = boxes[mine.below(static_cast<u32>(grid_threads()))];
        // relaxed: the claim is that no order is needed.
        pointer = atomic_ref<u64>{box}.exchange(pointer, order::relaxed);
      }
      heap.free(reinterpret_cast<void*>(pointer));
    }
    atomic_ref<u64>{*served}.fetch_add(count, order::relaxed);
  }
};

/// The lane that frees a block need not have learned of it in order: no memory is lost, and no
/// block is taken for foreign.
template <passage How, class Allocator>
verdict frees_what_came_without_order(scenario const& wide) {
  scenario const with = in_traffic(wide);
  verdict found;
  for (auto sizes : traffic_sizes(with)) {
    auto bench = harness<Allocator>::cramped(with);
    for (u64& bytes : sizes) bytes = bench.capped(bytes);
    device_buffer<u64> const asked{sizes}, boxes(with.lanes()), served(1);
    bench.run(pass_on<How>{with.seed, u64{8}}, bench.ref(), static_cast<u64 const*>(asked.data()),
              static_cast<u32>(sizes.size()), boxes.data(), served.data());
    found.at_least("blocks served", served[0], 1u);
    holdings left;
    for (u64 const address : boxes.to_host())
      if (address != 0) left.push_back({address, 1});
    bench.free(left);
    found.equal("misuse counted", misuse_counted(bench), 0u);
    found.include(bench.empty());
  }
  return found;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
