// growth: what a pool that grows costs. A heap of an eighth of the pool, or 64 MiB, is grown to all
// of it by one call, and trimmed again (wall's clock). A burst then runs on a heap that has grown
// and on one of fixed size. Last, a kernel asks such a small heap for all of the pool, and waits
// while a host thread maps the memory. Sizes: the first of `sizes`; threads: `threads`.
#pragma once

#include "bench/measure.hpp"
#include "bench/one_call.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench {
inline namespace WARPHEAP_BACKEND {

/// As long as a busy machine may need.
inline constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_heap = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_a_minute>>>;

class growth_scenario {
 public:
  explicit growth_scenario(request const& asked)
      : asked_{asked},
        granule_{reserve_pool::growing::granularity()},
        pool_bytes_{align_up(asked.pool_bytes < 8 * granule_ ? 8 * granule_ : asked.pool_bytes, granule_)},
        initial_bytes_{std::min<u64>(u64{64} << 20, pool_bytes_ / 8)},
        threads_{default_for_backend(asked.threads, u64{1} << 20, u64{1} << 13)} {}

  std::vector<result> rows() {
    grow_and_trim();
    look_for_requests();
    u64 const bytes = asked_.sizes.empty() ? 64 : asked_.sizes.front();
    burst<growing_heap>("grown", bytes, [&] {
      growing_heap heap{plan()};
      heap.grow(pool_bytes_);
      return heap;
    });
    burst<heap>("fixed", bytes, [&] { return heap{pool_bytes_}; });
    wait_for_memory();
    return rows_;
  }

 private:
  growth plan() const { return {.initial = initial_bytes_, .limit = pool_bytes_}; }

  bool proceed(char const* task) { return asked_.proceed(std::string{"growth, "} + task, rows_.size(), 9); }

  result row(char const* operation) const {
    result made{.scenario = "growth", .allocator = "slab_bitmap", .operation = operation};
    made.parameters = {{"initial_bytes", initial_bytes_}, {"pool_bytes", pool_bytes_}};
    made.operations = 1;
    return made;
  }

  void grow_and_trim() {
    if (!proceed("grow and trim")) return;
    result growing = row("grow"), trimming = row("trim");
    wall_clock wall;
    growing_heap heap{plan()};
    u64 const more = pool_bytes_ - heap.committed_bytes();
    for (u32 round = 0; round <= asked_.repeat && growing.checked(); ++round) {
      u64 grown = 0, trimmed = 0;
      auto const grow_us = wall.microseconds([&] { grown = heap.grow(more); });
      if (heap.available_slots(granule_) < pool_bytes_ / granule_)
        growing.fault = "memory that was mapped cannot be had";
      auto const trim_us = wall.microseconds([&] { trimmed = heap.trim(); });
      if (grown != more || trimmed != more) growing.fault = "not all of the memory came and went";
      if (growing.checked()) growing.fault = fault_of_emptied(heap);
      if (round == 0) continue;
      growing.times_us.push_back(grow_us);
      trimming.times_us.push_back(trim_us);
    }
    trimming.fault = growing.fault;
    rows_.push_back(growing);
    rows_.push_back(trimming);
  }

  /// What poll() takes when nothing was requested.
  void look_for_requests() {
    if (!proceed("poll")) return;
    constexpr u32 calls = 1000;
    result polling = row("poll");
    polling.operations = calls;
    polled_heap heap{plan()};
    wall_clock wall;
    for (u32 round = 0; round <= asked_.repeat; ++round) {
      auto const us = wall.microseconds([&] {
        for (u32 i = 0; i < calls; ++i) heap.poll();
      });
      if (round != 0) polling.times_us.push_back(us);
    }
    rows_.push_back(polling);
  }

  template <class Heap, class Make>
  void burst(std::string const& what, u64 bytes, Make make) {
    if (!proceed(what.c_str())) return;
    Heap heap = make();
    result base = row("");
    base.parameters = {{"bytes", bytes}, {"threads", threads_}, {"pool_bytes", pool_bytes_}};
    auto const times = one_call<typename Heap::allocator_type>{heap, size_draw{bytes}, threads_}.measure(
        {.repeat = asked_.repeat, .after_resets = true});
    auto const before = rows_.size();
    append_results(rows_, base, times, threads_);
    for (auto i = before; i < rows_.size(); ++i) rows_[i].operation = what + " " + rows_[i].operation;
  }

  /// Every thread asks for its part of the pool, most of which is not there yet.
  void wait_for_memory() {
    if (!proceed("waiting")) return;
    // What does not fill the last slab of each multiprocessor is room that the crowd may need.
    u64 const limit = align_up(pool_bytes_ + pool_bytes_ / 2, granule_), bytes = pool_bytes_ / threads_;
    result waiting = row("waiting malloc");
    waiting.parameters = {
        {"bytes", bytes}, {"threads", threads_}, {"initial_bytes", initial_bytes_}, {"pool_bytes", limit}};
    waiting.operations = static_cast<double>(threads_);
    device_buffer<void*> blocks(threads_);
    stopwatch watch;
    for (u32 round = 0; round <= asked_.repeat && waiting.checked(); ++round) {
      patient_heap heap{growth{.initial = initial_bytes_, .limit = limit}};
      growth_service const service{heap};
      auto const us = watch.microseconds(
          [&] { launch(shape_for(threads_), allocate_once{}, heap.ref(), size_draw{bytes}, blocks.data(), threads_); });
      auto const found = examine<patient_heap::allocator_type>(blocks, size_draw{bytes});
      waiting.failures = found.failures;
      waiting.operations = served(threads_, found.failures);
      waiting.fault = found.fault();
      waiting.figures = {{"committed_bytes", static_cast<double>(heap.committed_bytes())}};
      launch(shape_for(threads_), free_once{}, heap.ref(), static_cast<void* const*>(blocks.data()), threads_);
      synchronize();
      if (waiting.checked()) waiting.fault = fault_of_emptied(heap);
      if (round != 0) waiting.times_us.push_back(us);
    }
    rows_.push_back(waiting);
  }

  request const& asked_;
  u64 granule_, pool_bytes_, initial_bytes_, threads_;
  std::vector<result> rows_;
};

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::bench
