// SPDX-License-Identifier: Apache-2.0
// init: how long it takes to make a heap of the pool's size, including the device's allocation of
// the memory, by the wall's clock; to reset one, which frees everything at once; and to count the
// blocks that an empty one could give, from the host by the wall's clock (`available_slots`), and
// by a warp in a kernel (`available_slots_warp`). Checked, beside the blocks: both counts agree.
#pragma once

#include "measure/measure.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Of the block that is live for a while, and of the slots.
inline constexpr size_t counted_bytes = 64;

/// Kernel: a warp counts the blocks of `bytes` that the heap could give.
struct count_slots_by_warp {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64* slots) const {
    u64 const counted = heap.available_slots_warp(full_mask, bytes);
    if (simt::lane_id() == 0) *slots = counted;
  }
};

/// A heap whose slots can be counted from the host and by a warp.
template <class Heap>
concept counts_its_slots = requires(Heap const& heap) {
  heap.available_slots(counted_bytes);
  heap.ref().available_slots_warp(full_mask, counted_bytes);
};

/// What one heap of its own has shown.
struct heap_times {
  double make_us = 0, reset_us = 0, slots_us = 0, warp_slots_us = 0;
  std::string fault = {};
};

template <counts_its_slots Heap>
void time_counts(Heap const& heap, heap_times& seen) {
  u64 slots = 0;
  device_buffer<u64> slots_of_warp(1);
  seen.slots_us = wall_clock{}.microseconds([&] { slots = heap.available_slots(counted_bytes); });
  seen.warp_slots_us = stopwatch{}.microseconds([&] {
    launch({1, warp_lanes}, count_slots_by_warp{}, heap.ref(), u64{counted_bytes}, slots_of_warp.data());
  });
  if (seen.fault.empty() && slots != slots_of_warp[0])
    seen.fault = "the host counts " + std::to_string(slots) + " slots, a warp " + std::to_string(slots_of_warp[0]);
}

template <class Allocator>
heap_times times_of_a_heap(test_subject<Allocator> const& subject, u64 pool_bytes) {
  stopwatch watch;
  heap_times seen;
  std::vector<basic_heap<Allocator>> made;
  seen.make_us = wall_clock{}.microseconds([&] { made.emplace_back(pool_bytes); });
  auto& heap = made.front();
  // A heap with a live block, so that reset has something to free.
  device_buffer<void*> block(1);
  launch({1, 1}, allocate_once{}, heap.ref(), size_draw{counted_bytes}, block.data(), u64{1});
  seen.fault = examine<Allocator>(block, size_draw{counted_bytes}).fault();
  seen.reset_us = watch.microseconds([&] { heap.reset(); });
  if (subject.resets && seen.fault.empty()) seen.fault = fault_of_emptied(heap);
  if (!subject.resets) launch({1, 1}, free_once{}, heap.ref(), block.data(), u64{1});
  synchronize();
  if constexpr (counts_its_slots<basic_heap<Allocator>>) time_counts(heap, seen);
  return seen;
}

template <class Allocator>
std::vector<result> init(test_subject<Allocator> const& subject, request const& asked) {
  std::vector<heap_times> rounds;
  for (u32 round = 0; round <= asked.repeat && (rounds.empty() || rounds.back().fault.empty()); ++round) {
    if (!asked.proceed("init, " + subject.name, round, asked.repeat + 1)) return {};
    rounds.push_back(times_of_a_heap(subject, asked.pool_bytes));
  }
  std::vector<result> rows;
  auto const append = [&](char const* operation, double heap_times::*time) {
    result row{.scenario = "init", .allocator = subject.name, .operation = operation};
    row.parameters = {{"pool_bytes", asked.pool_bytes}};
    row.operations = 1;
    row.fault = rounds.back().fault;
    for (size_t round = 1; round < rounds.size(); ++round) row.times_us.push_back(rounds[round].*time);
    rows.push_back(std::move(row));
  };
  append("make", &heap_times::make_us);
  if (subject.resets) append("reset", &heap_times::reset_us);
  if constexpr (counts_its_slots<basic_heap<Allocator>>) {
    append("available_slots", &heap_times::slots_us);
    append("available_slots_warp", &heap_times::warp_slots_us);
  }
  return rows;
}

inline scenario about_init() {
  return {
      .name = "init",
      .text = "making and resetting a heap",
      .rank = 110,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
