// SPDX-License-Identifier: Apache-2.0
// init: how long it takes to make a heap of the pool's size, including the device's allocation of
// the memory, by the wall's clock; and to reset one, which frees everything at once.
#pragma once

#include "bench/measure.hpp"
#include "bench/one_call.hpp"

namespace warpheap::bench {
inline namespace WARPHEAP_BACKEND {

template <class Allocator>
std::vector<result> init(contender<Allocator> const& subject, request const& asked) {
  result making{.scenario = "init", .allocator = subject.name, .operation = "make"};
  making.parameters = {{"pool_bytes", asked.pool_bytes}};
  making.operations = 1;
  result resetting = making;
  resetting.operation = "reset";
  wall_clock wall;
  stopwatch watch;
  for (u32 round = 0; round <= asked.repeat && making.checked(); ++round) {
    if (!asked.proceed("init, " + subject.name, round, asked.repeat + 1)) return {};
    std::vector<basic_heap<Allocator>> made;
    auto const make_us = wall.microseconds([&] { made.emplace_back(asked.pool_bytes); });
    auto& heap = made.front();
    // A heap with a live block, so that reset has something to free.
    device_buffer<void*> block(1);
    launch({1, 1}, allocate_once{}, heap.ref(), size_draw{64}, block.data(), u64{1});
    making.fault = examine<Allocator>(block, size_draw{64}).fault();
    auto const reset_us = watch.microseconds([&] { heap.reset(); });
    if (subject.resets && making.checked()) making.fault = fault_of_emptied(heap);
    if (!subject.resets) launch({1, 1}, free_once{}, heap.ref(), block.data(), u64{1});
    synchronize();
    if (round == 0) continue;
    making.times_us.push_back(make_us);
    resetting.times_us.push_back(reset_us);
  }
  resetting.fault = making.fault;
  if (!subject.resets) return {making};
  return {making, resetting};
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::bench
