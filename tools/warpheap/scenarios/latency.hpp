// SPDX-License-Identifier: Apache-2.0
// latency: one lane alone, so the cost of a call is its chain of dependent memory operations.
// Cycles are read around every single call, and the figure is their median; the time is that of the
// whole kernel. Sizes: `sizes`.
#pragma once

#include "measure/blocks.hpp"
#include "measure/measure.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Kernel: one lane allocates `calls` blocks.
struct allocate_in_turn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, void** blocks, u64* seen, u64* cycles, u64 calls) const {
    for (u64 i = 0; i < calls; ++i) {
      u64 const start = simt::clock();
      void* const block = heap.malloc(bytes);
      // A store that no compiler moves: the pointer exists before the clock is read. relaxed: no
      // thread reads it.
      atomic_ref<u64>{*seen}.store(reinterpret_cast<u64>(block), order::relaxed);
      cycles[i] = simt::clock() - start;
      blocks[i] = block;
    }
  }
};

/// Kernel: one lane frees them, in the order they came.
struct free_in_turn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64* cycles, u64 calls) const {
    for (u64 i = 0; i < calls; ++i) {
      void* const block = blocks[i];
      u64 const start = simt::clock();
      heap.free(block);
      cycles[i] = simt::clock() - start;
    }
  }
};

/// The median over the calls of one kernel.
inline double median_cycles(device_buffer<u64> const& cycles) {
  auto const each = cycles.to_host();
  return median({each.begin(), each.end()});
}

template <class Allocator>
std::vector<result> latency(test_subject<Allocator> const& subject, request const& asked) {
  constexpr u64 calls = 512;
  auto const sizes = asked.get(options::sizes, std::vector<u64>{64});
  basic_heap<Allocator> heap{asked.pool_bytes};
  device_buffer<void*> blocks(calls);
  device_buffer<u64> cycles(calls), seen(1);
  stopwatch watch;
  std::vector<result> results;
  for (u64 const bytes : sizes) {
    if (!asked.proceed("latency, " + subject.name, results.size() / 2, sizes.size())) break;
    result asking{.scenario = "latency", .allocator = subject.name, .operation = "malloc"};
    asking.parameters = {{"bytes", bytes}, {"threads", 1}, {"calls", calls}, {"pool_bytes", asked.pool_bytes}};
    if (skip(results, asking, unsupported_reason(subject, bytes))) continue;
    result freeing = asking;
    freeing.operation = "free";
    std::vector<double> malloc_cycles, free_cycles;
    for (u32 round = 0; round <= asked.repeat && asking.checked(); ++round) {
      auto const malloc_us = watch.microseconds([&] {
        launch({1, 1}, allocate_in_turn{}, heap.ref(), bytes, blocks.data(), seen.data(), cycles.data(), calls);
      });
      malloc_cycles.push_back(median_cycles(cycles));
      auto const found = examine<Allocator>(blocks, size_draw{bytes});
      asking.failures = found.failures;
      asking.operations = freeing.operations = static_cast<double>(calls - found.failures);
      asking.fault = freeing.fault = found.fault();
      auto const free_us = watch.microseconds([&] {
        launch({1, 1}, free_in_turn{}, heap.ref(), blocks.data(), cycles.data(), calls);
      });
      free_cycles.push_back(median_cycles(cycles));
      if (round == 0) continue;
      asking.times_us.push_back(malloc_us);
      freeing.times_us.push_back(free_us);
    }
    if (asking.checked()) asking.fault = freeing.fault = fault_of_emptied(heap);
    asking.figures = {{"cycles", median(malloc_cycles)}};
    freeing.figures = {{"cycles", median(free_cycles)}};
    results.push_back(asking);
    results.push_back(freeing);
    if (!asking.checked()) break;
  }
  return results;
}

inline scenario about_latency() {
  return {
      .name = "latency",
      .text = "one lane",
      .rank = 100,
      .uses = {{options::sizes}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
