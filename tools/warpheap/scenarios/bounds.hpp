// SPDX-License-Identifier: Apache-2.0
// bounds: what __launch_bounds__ makes of kernels that allocate. The same calls under five bounds:
// none, (1024), (1024, 1), (256, 4) and (256, 8). `malloc` and `free` are a burst, one call of each
// thread for the first of `sizes`; `churn` is rounds of churn with sizes of the first of `ranges`.
// Thread blocks have 256 threads. The allocator is always the default one: a bound limits
// registers, and most of them are the allocator's.
//
// Figures: the kernel's registers a thread, its stack in bytes, and the threads that fit on a
// multiprocessor. Blocks of the burst are stamped and looked at; the heap must be whole after all
// was freed. On the host backend a bound means nothing, and only the row without one is measured.
#pragma once

#include "churn.hpp"
#include "measure/bounded_kernel.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"
#include "warpheap/heap/default_heap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 bounds_thread_block = 256;

/// All calls under one bound. Before each that is timed, the heap is made new and warmed up: where
/// warps then find their slabs is a matter of chance, and stays so until the heap is reset.
template <class Allocator, launch_bound Bound>
class bounded_calls {
 public:
  bounded_calls(basic_heap<Allocator>& heap, std::string const& name, request const& asked)
      : heap_{heap}, name_{name}, asked_{asked} {}

  std::vector<result> measure() {
    burst();
    if (rows_.front().checked()) churn();
    return rows_;
  }

 private:
  using ask = bounded_kernel<Bound, allocate_once, Allocator, size_draw, void**, u64>;
  using give_back = bounded_kernel<Bound, free_once, Allocator, void* const*, u64>;
  using rounds = bounded_kernel<Bound, churn_rounds<false>, Allocator, size_draw, u32, churn_tally*, u64>;

  /// Whether the blocks of a call are looked at before they are freed.
  enum class round_kind { timed, examined };

  result base_row(char const* operation, size_range sizes, u64 threads) const {
    result made{.scenario = "bounds", .allocator = name_, .operation = operation};
    made.parameters = {
        {"bound_threads", Bound.threads}, {"bound_blocks", Bound.blocks}, {"least_bytes", sizes.least},
        {"most_bytes", sizes.most},       {"threads", threads},           {"pool_bytes", asked_.pool_bytes}};
    return made;
  }

  void burst() {
    u64 const bytes = asked_.get(options::sizes, {64}).front();
    u64 const threads = default_for_backend(asked_[options::threads], u64{1} << 20, u64{1} << 13);
    size_draw const draw{bytes};
    device_buffer<void*> const blocks(threads);
    auto const shape = shape_for(threads, bounds_thread_block);
    result asking = base_row("malloc", {bytes, bytes}, threads), freeing = base_row("free", {bytes, bytes}, threads);
    auto const call = [&](round_kind kind) {
      auto const malloc_us =
          watch_.microseconds([&] { ask::launch_on(shape, heap_.ref(), draw, blocks.data(), threads); });
      if (kind == round_kind::examined) {
        auto const found = examine<Allocator>(blocks, draw);
        asking.failures = found.failures;
        asking.fault = freeing.fault = found.fault();
      }
      auto const free_us =
          watch_.microseconds([&] { give_back::launch_on(shape, heap_.ref(), blocks.data(), threads); });
      return std::pair{malloc_us, free_us};
    };
    call(round_kind::examined);
    for (u32 round = 0; round < asked_.repeat && asking.checked(); ++round) {
      heap_.reset();
      for (u32 warm_up = 0; warm_up < warm_up_rounds; ++warm_up) call(round_kind::timed);
      auto const [malloc_us, free_us] = call(round_kind::timed);
      asking.times_us.push_back(malloc_us);
      freeing.times_us.push_back(free_us);
    }
    add(asking, served(threads, asking.failures), ask::figures(bounds_thread_block));
    add(freeing, served(threads, asking.failures), give_back::figures(bounds_thread_block));
  }

  void churn() {
    auto const range = asked_.get(options::ranges, {{16, 512}}).front();
    u64 const threads = default_for_backend(asked_[options::threads], u64{1} << 18, u64{1} << 12);
    size_draw const draw{range.least, static_cast<u32>(range.most - range.least + 1), asked_.seed};
    device_buffer<churn_tally> const tallies(threads);
    result made = base_row("churn", range, threads);
    made.parameters.emplace_back("rounds", asked_[options::rounds]);
    auto const call = [&] {
      return watch_.microseconds([&] {
        rounds::launch_on(shape_for(threads, bounds_thread_block), heap_.ref(), draw, asked_[options::rounds],
                          tallies.data(), threads);
      });
    };
    for (u32 round = 0; round < asked_.repeat; ++round) {
      heap_.reset();
      call();
      made.times_us.push_back(call());
    }
    auto const total = total_of(tallies);
    made.failures = total.found.failures;
    add(made, total.calls, rounds::figures(bounds_thread_block));
  }

  void add(result row, double operations, std::vector<std::pair<std::string, double>> figures) {
    row.operations = operations;
    row.figures = std::move(figures);
    if (row.checked()) row.fault = fault_of_emptied(heap_);
    rows_.push_back(std::move(row));
  }

  basic_heap<Allocator>& heap_;
  std::string const& name_;
  request const& asked_;
  stopwatch watch_;
  std::vector<result> rows_;
};

/// The five, in turn.
template <class Allocator>
std::vector<result> bounds(test_subject<Allocator> const& subject, request const& asked) {
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> rows;
  u32 done = 0;
  bool ended = false;
  auto const measure = [&]<launch_bound Bound>() {
    // what a broken heap says next means nothing
    if (!rows.empty() && !rows.back().checked()) return;
    if (ended || (ended = !asked.proceed("bounds, " + subject.name, done++, 5))) return;
    result unmeasured{.scenario = "bounds", .allocator = subject.name, .operation = "malloc"};
    unmeasured.parameters = {{"bound_threads", Bound.threads}, {"bound_blocks", Bound.blocks}};
    if (skip(rows, unmeasured, on_gpu || Bound.threads == 0 ? "" : "the host backend has no registers to bound"))
      return;
    for (auto const& row : bounded_calls<Allocator, Bound>{heap, subject.name, asked}.measure()) rows.push_back(row);
  };
  measure.template operator()<launch_bound{}>();
  measure.template operator()<launch_bound{1024}>();
  measure.template operator()<launch_bound{1024, 1}>();
  measure.template operator()<launch_bound{256, 4}>();
  measure.template operator()<launch_bound{256, 8}>();
  return rows;
}

inline scenario about_bounds() {
  return {
      .name = "bounds",
      .text = "burst and churn in kernels with five launch bounds, with their registers",
      .kind = scenario_kind::of_default_allocator,
      .rank = 10,
      .uses = {{options::sizes, "the first"},
               {options::ranges, "the first"},
               {options::threads, "1048576, and 262144 for its churn"},
               {options::rounds}},
      .baseline =
          [](request const& asked) {
            return bounds(test_subject<default_allocator>{.name = default_allocator::creation_type::name}, asked);
          },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
