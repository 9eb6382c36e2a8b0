// SPDX-License-Identifier: Apache-2.0
// tracing: what it costs that a heap records its calls. Of the default allocator alone. A traced
// heap and a plain one take turns: bursts, in which every thread asks once and later frees, and
// kernels with other work, in which every thread asks, computes for `rounds` times 64 steps, writes
// its block and frees it. `over_plain` is the median of traced over plain within a round. Size: the
// first of `sizes`; threads: `threads`.
//
// Before each traced round the records are forgotten, since a full trace costs less. A round whose
// trace lacks a call, or has one that cannot be, is a fault.
#pragma once

#include "measure/one_call.hpp"
#include "scenario.hpp"
#include "warpheap/adaptor/trace.hpp"
#include "warpheap/heap/default_heap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Kernel: thread i asks, works, and frees.
struct work_with_block {
  static constexpr u32 steps_a_round = 64;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u32 rounds, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    auto* const block = static_cast<u64*>(heap.malloc(bytes));
    u64 value = i;
    for (u64 step = 0; step < u64{rounds} * steps_a_round; ++step) value = mix(value + step);
    if (block) *block = value;
    heap.free(block);
  }
};

template <class Heap>
class traced_turns {
 public:
  traced_turns(Heap& heap, u64 bytes, u32 rounds, u64 threads)
      : heap_{heap}, bytes_{bytes}, rounds_{rounds}, blocks_(threads), shape_{shape_for(threads)} {}

  /// One round: microseconds of malloc, free and work.
  void round(double (&times_us)[3]) {
    forget();
    times_us[0] = watch_.microseconds([&] { ask(); });
    times_us[1] = watch_.microseconds([&] { give_back(); });
    forget();
    times_us[2] = watch_.microseconds(
        [&] { launch(shape_, work_with_block{}, heap_.ref(), bytes_, rounds_, u64{blocks_.size()}); });
  }

  /// A burst that is examined. Returns what is wrong.
  std::string fault() {
    forget();
    ask();
    auto const found = examine<default_allocator>(blocks_, size_draw{bytes_});
    failures_ = found.failures;
    if (auto const fault = found.fault(); !fault.empty()) return fault;
    give_back();
    synchronize();
    if (auto const fault = fault_of_emptied(heap_); !fault.empty()) return fault;
    return fault_of_records();
  }

  u64 failures() const { return failures_; }

 private:
  static constexpr bool records = requires(Heap const heap) { heap.trace(); };

  void ask() { launch(shape_, allocate_once{}, heap_.ref(), size_draw{bytes_}, blocks_.data(), u64{blocks_.size()}); }
  void give_back() { launch(shape_, free_once{}, heap_.ref(), blocks_.data(), u64{blocks_.size()}); }
  void forget() {
    if constexpr (records) heap_.forget();
  }

  /// Of a burst: two kernels, whose calls are all there.
  std::string fault_of_records() {
    if constexpr (records) {
      auto const trace = heap_.trace();
      u64 const there = trace.calls.size(), expected = 2 + 2 * blocks_.size() - failures_;
      if (trace.lost || trace.unmatched_frees || trace.unseen_frees || there != expected)
        return "the trace has " + std::to_string(there) + " of " + std::to_string(expected) + " records";
      return fault_of(trace);
    }
    return {};
  }

  Heap& heap_;
  u64 bytes_;
  u32 rounds_;
  device_buffer<void*> blocks_;
  launch_shape shape_;
  stopwatch watch_;
  u64 failures_ = 0;
};

/// Records of a burst of this many threads, and of its frees.
inline constexpr u64 most_traced_threads = u64{1} << 21;
inline constexpr traced_config records_of_a_burst{.most_records = 2 * most_traced_threads};

/// Times of both heaps, operation by operation.
struct tracing_times {
  std::vector<double> plain_us[3], traced_us[3], ratios[3];

  void add(double const (&plain)[3], double const (&traced)[3]) {
    for (u32 i = 0; i < 3; ++i) {
      plain_us[i].push_back(plain[i]);
      traced_us[i].push_back(traced[i]);
      ratios[i].push_back(traced[i] / plain[i]);
    }
  }
};

/// Two rows for each operation.
inline std::vector<result> tracing_rows(result row, tracing_times const& times, u64 failures) {
  constexpr char const* operations[] = {"malloc", "free", "work"};
  std::vector<result> rows;
  for (u32 i = 0; i < 3; ++i) {
    row.failures = i == 1 ? 0 : failures;
    row.operation = std::string{"plain "} + operations[i];
    row.times_us = times.plain_us[i];
    row.figures = {};
    rows.push_back(row);
    row.operation = std::string{"traced "} + operations[i];
    row.times_us = times.traced_us[i];
    row.figures = {{"over_plain", median(times.ratios[i])}};
    rows.push_back(row);
  }
  return rows;
}

/// Six rows, of a plain heap and of `Traced`.
template <class Traced = traced<heap, records_of_a_burst>>
std::vector<result> tracing(request const& asked) {
  u64 const bytes = asked.get(options::sizes, {64}).front();
  u64 const threads =
      std::min(default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 12), most_traced_threads);
  heap plain_heap{asked.pool_bytes};
  Traced traced_heap{asked.pool_bytes};
  traced_turns<heap> plain{plain_heap, bytes, asked[options::rounds], threads};
  traced_turns<Traced> recorded{traced_heap, bytes, asked[options::rounds], threads};
  result row{.scenario = "tracing", .allocator = "slab_bitmap"};
  row.parameters = {
      {"bytes", bytes}, {"threads", threads}, {"rounds", asked[options::rounds]}, {"pool_bytes", asked.pool_bytes}};
  row.fault = plain.fault();
  if (row.checked()) row.fault = recorded.fault();
  tracing_times times;
  for (u32 i = 0; i <= asked.repeat && row.checked(); ++i) {
    if (!asked.proceed("tracing", i, asked.repeat + 1)) return {};
    double plain_us[3], traced_us[3];
    plain.round(plain_us);
    recorded.round(traced_us);
    if (i > 0) times.add(plain_us, traced_us);
  }
  if (row.checked()) row.fault = recorded.fault();
  row.operations = served(threads, recorded.failures());
  return tracing_rows(row, times, recorded.failures());
}

inline scenario about_tracing() {
  return {
      .name = "tracing",
      .text = "a heap that records its calls, against one that does not",
      .kind = scenario_kind::of_default_allocator,
      .uses = {{options::sizes, "the first"},
               {options::threads, "1048576"},
               {options::rounds, "of 64 steps of other work"}},
      .baseline = [](request const& asked) { return tracing(asked); },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
