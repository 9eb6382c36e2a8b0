// SPDX-License-Identifier: Apache-2.0
// workers: what one call costs a thread in cycles while others make it too, by the number of
// threads, from 2 to 16,384. The host draws random numbers. For each it launches a kernel in which
// every worker allocates a block, or one in which every worker frees one, both with a probability
// of 75%. After a while the heap is in a used state; then every call's cycles are read around it.
// The figure is their mean; the times are those of whole launches. Then the same is repeated with
// the creation policy alone (`direct_malloc`, `direct_free`). Sizes: `sizes`; workers: `workers`.
//
// Source: Eckert 2014, section 5.1 and appendix B. Differs: there are at most `most_held`
// generations of blocks, and which one is freed is drawn, so that the heap's fill stays within
// bounds and its holes are spread.
#pragma once

#include <numeric>

#include "measure/direct_calls.hpp"
#include "measure/measure.hpp"
#include "measure/timed_calls.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// One size and number of workers, which call `Calls`: a handle on the heap, or a type with its
/// calls.
template <class Allocator, class Calls>
class concurrent_workers {
 public:
  static constexpr u32 most_held = 16;          ///< generations of blocks that live at a time
  static constexpr u32 warm_up_launches = 24;   ///< of each kernel, before anything is kept
  static constexpr u32 launches_of_a_time = 8;  ///< of each kernel, whose mean one time is

  concurrent_workers(basic_heap<Allocator>& heap, Calls calls, u64 bytes, u64 workers, u64 seed)
      : heap_{heap},
        calls_{calls},
        bytes_{bytes},
        workers_{workers},
        shape_{shape_for(workers, static_cast<u32>(std::min<u64>(workers, 128)))},
        blocks_(most_held * workers),
        cycles_(workers),
        random_{seed} {
    for (u32 slot = 0; slot < most_held; ++slot) empty_.push_back(slot);
  }

  void measure(u32 repeat) {
    play(warm_up_launches);
    examine();
    play(warm_up_launches / 4);  // examining left only the blocks in the caches
    asking_ = freeing_ = {};
    for (u32 round = 0; round < repeat && sound(); ++round) {
      play(launches_of_a_time);
      asking_.keep();
      freeing_.keep();
    }
    examine();
    while (sound() && !held_.empty()) free_one();
    if (sound()) fault_ = fault_of_emptied(heap_);
  }

  /// Two rows, whose operations are called `malloc` and `free`. `base_row` has scenario, allocator
  /// and parameters.
  void append_to(std::vector<result>& results, result base_row, char const* malloc, char const* free) const {
    base_row.operations = served_;
    base_row.fault = fault_;
    base_row.operation = malloc;
    base_row.times_us = asking_.times_us;
    base_row.figures = {{"cycles", asking_.mean_cycles()}};
    base_row.failures = failures_;
    results.push_back(base_row);
    base_row.operation = free;
    base_row.times_us = freeing_.times_us;
    base_row.figures = {{"cycles", freeing_.mean_cycles()}};
    base_row.failures = 0;
    results.push_back(base_row);
  }

  bool sound() const { return fault_.empty(); }

 private:
  /// What the launches of one kernel took.
  struct tally {
    u64 launches = 0;  ///< since the last time was kept
    double microseconds = 0;
    double cycles = 0;  ///< of all calls
    u64 calls = 0;
    std::vector<double> times_us;

    void keep() {
      times_us.push_back(microseconds / static_cast<double>(launches));
      launches = 0;
      microseconds = 0;
    }
    double mean_cycles() const { return calls ? cycles / static_cast<double>(calls) : 0; }
  };

  /// Launches kernels by chance, until each of the two ran at least `launches` times.
  void play(u32 launches) {
    u64 const asked = asking_.launches + launches, freed = freeing_.launches + launches;
    while (sound() && (asking_.launches < asked || freeing_.launches < freed)) {
      if (random_.below(4) != 0 && !empty_.empty()) allocate_one();
      if (random_.below(4) != 0 && !held_.empty()) free_one();
    }
  }

  void allocate_one() {
    u32 const slot = empty_.back();
    empty_.pop_back();
    held_.push_back(slot);
    note(asking_, [&] { launch_timed_asking(calls_, shape_, {bytes_}, blocks_of(slot), cycles_); });
  }

  void free_one() {
    std::swap(held_[random_.below(static_cast<u32>(held_.size()))], held_.back());
    u32 const slot = held_.back();
    held_.pop_back();
    empty_.push_back(slot);
    note(freeing_, [&] { launch_timed_freeing(calls_, shape_, blocks_of(slot), cycles_); });
  }

  template <class Launch>
  void note(tally& into, Launch launch_kernel) {
    into.microseconds += watch_.microseconds(launch_kernel);
    auto const cycles = cycles_.to_host();
    into.cycles += static_cast<double>(std::accumulate(cycles.begin(), cycles.end(), u64{0}));
    into.calls += static_cast<u64>(std::count_if(cycles.begin(), cycles.end(), [](u64 one) { return one != 0; }));
    ++into.launches;
  }

  /// Looks at the blocks of all generations.
  void examine() {
    if (!sound()) return;
    auto const found = bench::examine<Allocator>(blocks_, size_draw{bytes_});
    // generations that were freed hold nullptr
    failures_ = found.failures - empty_.size() * workers_;
    double const live = static_cast<double>(held_.size());
    served_ = static_cast<double>(workers_) - (failures_ ? static_cast<double>(failures_) / live : 0);
    fault_ = found.fault();
  }

  void** blocks_of(u32 slot) const { return blocks_.data() + slot * workers_; }

  basic_heap<Allocator>& heap_;
  Calls calls_;
  u64 bytes_;
  u64 workers_;
  launch_shape shape_;
  device_buffer<void*> blocks_;
  device_buffer<u64> cycles_;
  random_sequence random_;
  std::vector<u32> held_, empty_;  ///< generations
  tally asking_, freeing_;
  stopwatch watch_;
  u64 failures_ = 0;
  double served_ = 0;  ///< calls of a launch, the mean over the generations that live
  std::string fault_;
};

template <class Allocator>
std::vector<result> workers(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 32, 64, 128});
  auto const numbers = asked.get(options::workers, powers(2, default_for_backend(0, 16384, 256), on_gpu ? 2 : 8));
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> results;
  for (u64 const bytes : sizes)
    for (u64 const number : numbers) {
      if (!asked.proceed("workers, " + subject.name, results.size() / 4, sizes.size() * numbers.size())) return results;
      result base_row{.scenario = "workers", .allocator = subject.name};
      base_row.parameters = {{"bytes", bytes}, {"workers", number}, {"pool_bytes", asked.pool_bytes}};
      auto const play = [&](auto calls, char const* malloc, char const* free) {
        concurrent_workers<Allocator, decltype(calls)> workers{heap, calls, bytes, number, asked.seed};
        workers.measure(asked.repeat);
        workers.append_to(results, base_row, malloc, free);
        return workers.sound();
      };
      if (!play(heap.ref(), "malloc", "free") ||
          !play(direct_calls<Allocator>{heap.ref()}, "direct_malloc", "direct_free"))
        return results;
    }
  return results;
}

inline scenario about_workers() {
  return {
      .name = "workers",
      .text = "cycles of one call by the number of threads that make it",
      .rank = 120,
      .uses = {{options::sizes}, {options::workers, "2, 4, 8, ... 16384"}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
