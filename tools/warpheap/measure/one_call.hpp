// SPDX-License-Identifier: Apache-2.0
// Threads that call at the same instant: each asks once and stores its pointer, and frees it later.
// The two kernels are timed apart, warm. Rounds that examine the blocks between the two come before
// and after the timed ones: examining writes all the blocks, which would leave nothing of the heap
// in the caches. Where the heap can be reset, the first burst of a fresh heap is timed too: then no
// slab has a class yet, and all are made at once.
#pragma once

#include "blocks.hpp"
#include "measure.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Rounds that are run and not counted.
inline constexpr u32 warm_up_rounds = 2;

/// Kernel: thread i makes call i.
struct allocate_once {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, size_draw draw, void** blocks, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) blocks[i] = heap.malloc(draw.of(i));
  }
};

/// Kernel: thread i frees the block of call i.
struct free_once {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) heap.free(blocks[i]);
  }
};

/// Kernel: the baseline. Every thread stores a pointer, without an allocator.
struct store_once {
  WARPHEAP_DEVICE void operator()(void** blocks, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) blocks[i] = blocks + i;
  }
};

/// Times of the three operations, and what was found on the way.
struct one_call_times {
  std::vector<double> malloc_us, free_us, first_malloc_us;
  u64 failures = 0;        ///< calls of a burst that returned nullptr
  u64 first_failures = 0;  ///< those of a burst on a fresh heap
  std::string fault;

  /// Adds the times of `more`, which was measured after this. Failures and fault are its own.
  void append(one_call_times const& more) {
    auto const add = [](auto& to, auto const& from) { to.insert(to.end(), from.begin(), from.end()); };
    add(malloc_us, more.malloc_us);
    add(free_us, more.free_us);
    add(first_malloc_us, more.first_malloc_us);
    failures = more.failures;
    first_failures = more.first_failures;
    fault = more.fault;
  }
};

/// How often each operation is timed.
struct one_call_rounds {
  u32 repeat;
  bool after_resets = false;  ///< bursts on a fresh heap as well
};

template <class Allocator>
class one_call {
 public:
  one_call(basic_heap<Allocator>& heap, size_draw draw, u64 threads)
      : heap_{heap}, draw_{draw}, blocks_(threads), shape_{shape_for(threads)} {}

  one_call_times measure(one_call_rounds rounds) {
    warm_up();
    for (u32 round = 0; round < rounds.repeat; ++round) timed_round();
    last_round();
    for (u32 round = 0; rounds.after_resets && round < rounds.repeat && sound(); ++round) {
      heap_.reset();
      synchronize();
      first_round();
    }
    return times();
  }

  // The parts of measure(), for heaps that take turns. After a fault they do nothing.

  void warm_up() {
    for (u32 round = 0; round < warm_up_rounds; ++round) examined_round(times_.failures);
    for (u32 round = 0; round < warm_up_rounds && sound(); ++round) {
      ask();
      give_back();
    }
  }

  void timed_round() {
    if (!sound()) return;
    times_.malloc_us.push_back(ask());
    times_.free_us.push_back(give_back());
  }

  /// Examines what the timed rounds have left.
  void last_round() { examined_round(times_.failures); }

  /// On a fresh heap.
  void first_round() {
    if (auto const asking = examined_round(times_.first_failures); sound()) times_.first_malloc_us.push_back(asking);
  }

  /// What was measured. Looks at the emptied heap first.
  one_call_times times() {
    if (sound()) times_.fault = fault_of_emptied(heap_);
    return times_;
  }

 private:
  bool sound() const { return times_.fault.empty(); }

  double ask() {
    return watch_.microseconds(
        [&] { launch(shape_, allocate_once{}, heap_.ref(), draw_, blocks_.data(), blocks_.size()); });
  }

  double give_back() {
    return watch_.microseconds([&] { launch(shape_, free_once{}, heap_.ref(), blocks_.data(), blocks_.size()); });
  }

  /// Every thread asks, the blocks are examined, every thread frees; nothing, if something was
  /// wrong before. Counts the calls that returned nullptr. Returns the time of the asking.
  double examined_round(u64& failures) {
    if (!sound()) return 0;
    auto const asking = ask();
    auto const found = examine<Allocator>(blocks_, draw_);
    failures = found.failures;
    times_.fault = found.fault();
    if (sound()) give_back();
    return asking;
  }

  basic_heap<Allocator>& heap_;
  size_draw draw_;
  device_buffer<void*> blocks_;
  launch_shape shape_;
  stopwatch watch_;
  one_call_times times_;
};

/// The calls of `calls` that were served: a rate counts these alone.
constexpr double served(u64 calls, u64 failures) { return static_cast<double>(calls - failures); }

/// The three results of one set of times. `base_row` has scenario, allocator and parameters; its
/// `bytes` is what one malloc hands out, where a rate of bytes is told.
inline void append_results(std::vector<result>& results, result base_row, one_call_times const& times, u64 threads) {
  base_row.fault = times.fault;
  double const bytes_of_call = base_row.bytes;
  auto const append = [&](char const* operation, std::vector<double> const& times_us, u64 failures, u64 calls,
                          double bytes_of_operation) {
    base_row.operation = operation;
    base_row.times_us = times_us;
    base_row.failures = failures;
    base_row.operations = served(calls, failures);
    base_row.bytes = bytes_of_operation * base_row.operations;
    results.push_back(base_row);
  };
  append("malloc", times.malloc_us, times.failures, threads, bytes_of_call);
  append("free", times.free_us, 0, threads - times.failures, 0);
  if (!times.first_malloc_us.empty())
    append("first_malloc", times.first_malloc_us, times.first_failures, threads, bytes_of_call);
}

/// The baseline: what it takes to store a pointer a thread.
inline result null_result(char const* scenario, u64 threads, u32 repeat) {
  device_buffer<void*> blocks(threads);
  stopwatch watch;
  result baseline{.scenario = scenario, .allocator = "null", .operation = "malloc"};
  baseline.parameters = {{"bytes", 0}, {"threads", threads}};
  baseline.operations = static_cast<double>(threads);
  for (u32 round = 0; round < warm_up_rounds + repeat; ++round) {
    auto const time =
        watch.microseconds([&] { launch(shape_for(threads), store_once{}, blocks.data(), blocks.size()); });
    if (round >= warm_up_rounds) baseline.times_us.push_back(time);
  }
  return baseline;
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
