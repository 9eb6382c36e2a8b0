// SPDX-License-Identifier: Apache-2.0
// The chain of dependent operations that no free can avoid in the protocol of slab_bitmap, without
// an allocator: a baseline for the cost of a free. Another protocol may have a shorter chain.
//
//   thread   its stored pointer -> the header of the pointer's slab, a byte of a small table that
//            never changes
//   warp     sync_warp of all lanes
//   leader   fetch_and (release) on a bitmap word of the warp's own -> what it cleared, fetch_sub
//            on the slab's counter -> whether that was the slab's last
//
// An arrow is a dependency. Pointers are offsets into 8 GiB: those of a warp lie 64 bytes apart, as
// consecutive blocks of 64 bytes do; the warps are spread evenly and in order. Nothing is read or
// written there. A slab has 256 KiB. The 8,192 counters lie 128 bytes apart and serve 1 MiB each,
// so with 2^20 threads four consecutive warps share one.
#pragma once

#include "blocks.hpp"
#include "measure.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

struct free_chain {
  static constexpr u64 range_bytes = u64{8} << 30;
  static constexpr u64 block_bytes = 64;
  static constexpr u32 slab_log2 = 18;
  static constexpr u32 counter_log2 = 20;
  static constexpr u64 slabs = range_bytes >> slab_log2;
  static constexpr u64 counters = range_bytes >> counter_log2;
  static constexpr u64 counter_words = 128 / sizeof(u64);  ///< from one to the next
  static constexpr u8 header = 1;
  static constexpr u64 first_count = u64{1} << 40;

  u64* pointers;
  u8* headers;
  u64* words;
  u64* counts;
  /// pointers of slabs without a header, and frees of more than there was: there are none, but the
  /// compiler cannot know that
  u64* strays;
};

/// Kernel: the pointers; every lane of the last warp has one.
struct fill_free_chain {
  WARPHEAP_DEVICE void operator()(free_chain chain, u64 warps) const {
    u64 const warp = global_thread_index() / warp_lanes;
    constexpr u64 places = free_chain::range_bytes / (warp_lanes * free_chain::block_bytes);
    u64 const place = warps < places ? warp * (places / warps) : warp % places;
    chain.pointers[global_thread_index()] = (place * warp_lanes + simt::lane_id()) * free_chain::block_bytes;
  }
};

/// Kernel: one pass through the chain. Thread blocks hold whole warps.
struct run_free_chain {
  WARPHEAP_DEVICE void operator()(free_chain chain) const {
    u64 const i = global_thread_index();
    u64 const pointer = chain.pointers[i];
    if (chain.headers[pointer >> free_chain::slab_log2] != free_chain::header) count(*chain.strays);
    simt::sync_warp(full_mask);
    if (simt::lane_id() != 0) return;
    u64 const bits = low_mask(warp_lanes) << (pointer / free_chain::block_bytes % 64);
    // release: as a free does, so that it costs the same. No thread acquires.
    u64 const before = atomic_ref<u64>{chain.words[i / warp_lanes]}.fetch_and(~bits, order::release);
    auto* const counter = chain.counts + (pointer >> free_chain::counter_log2) * free_chain::counter_words;
    u64 const freed = popcount(before & bits);
    // relaxed: a count.
    if (atomic_ref<u64>{*counter}.fetch_sub(freed, order::relaxed) < freed) count(*chain.strays);
  }
};

/// The row of `scenario` for `threads` frees.
inline result free_baseline(char const* scenario, u64 threads, u32 warm_up, u32 repeat) {
  auto const shape = shape_for(threads);
  u64 const pointers = u64{shape.blocks} * shape.threads, warps = pointers / warp_lanes;
  device_buffer<u64> const stored(pointers), words(warps), strays(1);
  device_buffer<u64> const counts(
      std::vector<u64>(free_chain::counters * free_chain::counter_words, free_chain::first_count));
  device_buffer<u8> const headers(std::vector<u8>(free_chain::slabs, free_chain::header));
  free_chain const chain{stored.data(), headers.data(), words.data(), counts.data(), strays.data()};
  launch(shape, fill_free_chain{}, chain, warps);

  result baseline{.scenario = scenario, .allocator = "null", .operation = "free"};
  baseline.parameters = {{"bytes", 0}, {"threads", threads}};
  baseline.operations = static_cast<double>(threads);
  stopwatch watch;
  for (u32 round = 0; round < warm_up + repeat; ++round) {
    backend::fill_bytes(words.data(), 0xff, words.size_bytes());
    auto const time = watch.microseconds([&] { launch(shape, run_free_chain{}, chain); });
    if (round >= warm_up) baseline.times_us.push_back(time);
  }
  u64 freed = 0;
  for (u64 const left : counts.to_host()) freed += free_chain::first_count - left;
  if (freed != pointers * (warm_up + repeat) || strays[0])
    baseline.fault = std::to_string(freed) + " blocks counted for " + std::to_string(pointers * (warm_up + repeat));
  return baseline;
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
