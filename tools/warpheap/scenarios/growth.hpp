// SPDX-License-Identifier: Apache-2.0
// growth: what a pool that grows costs. A heap of an eighth of the pool, or 64 MiB, is grown to all
// of it by one call, and trimmed again (wall's clock). Bursts then run on a heap that has grown and
// on one of fixed size: the first one of a heap just made, and later ones, round by round in turn,
// so that a drift of the machine meets both, and with new heaps every few rounds, because the ratio
// differs from one pair of heaps to the next. So do the churns of growth_churn.hpp, on one pair.
// Last, a kernel asks such a small heap for all of the pool, and waits while a host thread maps the
// memory. Sizes: the first of `sizes`, and of churns the first of `ranges`; threads: `threads`;
// rounds of a churn: `rounds`; steps of a round of long churn: `kernels`.
//
// The pool grows by chunks, a 32nd of it each.
#pragma once

#include "growth_churn.hpp"
#include "measure/measure.hpp"
#include "measure/one_call.hpp"
#include "measure/patient_heap.hpp"
#include "scenario.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// `Creation` is slab_bitmap, but for tests.
template <class Creation = creation::slab_bitmap<>>
class growth_scenario {
 public:
  explicit growth_scenario(request const& asked)
      : asked_{asked},
        granule_{reserve_pool::growing::granularity()},
        pool_bytes_{align_up(asked.pool_bytes < 8 * granule_ ? 8 * granule_ : asked.pool_bytes, granule_)},
        threads_{default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13)},
        draw_{asked.get(options::sizes, {64}).front()} {}

  std::vector<result> rows() {
    // What a broken heap says next means nothing.
    for (auto const part : {&growth_scenario::grow_and_trim, &growth_scenario::look_for_requests,
                            &growth_scenario::first_bursts, &growth_scenario::bursts, &growth_scenario::churn,
                            &growth_scenario::long_churn, &growth_scenario::wait_for_memory}) {
      if (!asked_.proceed("growth", parts_done_++, 7)) break;
      (this->*part)();
      if (!rows_.back().checked()) break;
    }
    return rows_;
  }

 private:
  template <class Oom>
  using growing_with =
      basic_heap<allocator<Creation, distribution::none, Oom, reserve_pool::growing, alignment::shrink<16>>>;
  using grown_heap = growing_with<oom::return_null>;
  using requesting_heap = growing_with<oom::grow_on_demand<>>;
  using patient_heap = basic_heap<patient_allocator<Creation>>;
  using fixed_heap = basic_heap<plain_allocator<Creation>>;
  template <class Heap>
  using calls_of = one_call<typename Heap::allocator_type>;

  growth plan(u64 limit) const { return {.initial = std::min<u64>(u64{64} << 20, pool_bytes_ / 8), .limit = limit}; }

  grown_heap make_grown() const {
    grown_heap made{plan(pool_bytes_)};
    made.grow(pool_bytes_);
    return made;
  }

  static result row(std::string const& operation, std::vector<std::pair<std::string, u64>> parameters) {
    return {.scenario = "growth",
            .allocator = "slab_bitmap",
            .operation = operation,
            .parameters = std::move(parameters),
            .operations = 1};
  }
  result row_of_burst(std::string const& operation) const {
    return row(operation, {{"bytes", draw_.least}, {"threads", threads_}, {"pool_bytes", pool_bytes_}});
  }

  void grow_and_trim() {
    grown_heap heap{plan(pool_bytes_)};
    u64 const initial = heap.committed_bytes(), more = pool_bytes_ - initial;
    std::vector<double> grow_us, wait_us, trim_us;
    std::string fault;
    wall_clock wall;
    for (u32 round = 0; round <= asked_.repeat && fault.empty(); ++round) {
      u64 grown = 0, trimmed = 0;
      double call_us = 0;
      auto const whole_us =
          wall.microseconds([&] { call_us = wall.microseconds_of_call([&] { grown = heap.grow(more); }); });
      bool const is_there = heap.available_slots(granule_) == pool_bytes_ / granule_;
      auto const back_us = wall.microseconds([&] { trimmed = heap.trim(); });
      if (!is_there) fault = "memory that was mapped cannot be had";
      else if (grown != more || trimmed != more) fault = "not all of the memory came and went";
      else fault = fault_of_emptied(heap);
      if (round == 0) continue;
      grow_us.push_back(call_us);
      wait_us.push_back(whole_us);
      trim_us.push_back(back_us);
    }
    auto const append = [&](char const* operation, std::vector<double> const& times_us) {
      rows_.push_back(row(operation, {{"initial_bytes", initial}, {"pool_bytes", pool_bytes_}}));
      rows_.back().times_us = times_us;
      rows_.back().fault = fault;
    };
    append("grow", grow_us);
    append("grow and wait", wait_us);
    append("trim", trim_us);
  }

  /// What poll() takes when nothing was requested.
  void look_for_requests() {
    constexpr u32 calls = 1000;
    requesting_heap heap{plan(pool_bytes_)};
    result polling = row("poll", {{"initial_bytes", heap.committed_bytes()}, {"pool_bytes", pool_bytes_}});
    polling.operations = calls;
    wall_clock wall;
    u64 mapped = 0;
    for (u32 round = 0; round <= asked_.repeat; ++round) {
      auto const us = wall.microseconds([&] {
        for (u32 i = 0; i < calls; ++i) mapped += heap.poll();
      });
      if (round != 0) polling.times_us.push_back(us);
    }
    if (mapped != 0) polling.fault = "memory came that nothing had requested";
    rows_.push_back(polling);
  }

  /// Adds the first burst of a heap just made to `seen`.
  template <class Heap>
  void add_first_burst(one_call_times& seen, Heap heap) const {
    calls_of<Heap> calls{heap, draw_, threads_};
    calls.first_round();
    seen.append(calls.times());
  }

  /// A heap that has just grown serves as many calls as one that was made of that size. One heap
  /// lives at a time.
  void first_bursts() {
    one_call_times grown, fixed;
    for (u32 round = 0; round <= asked_.repeat && grown.fault.empty() && fixed.fault.empty(); ++round) {
      if (round == 1) grown.first_malloc_us = fixed.first_malloc_us = {};  // the first warms up
      add_first_burst(grown, make_grown());
      add_first_burst(fixed, fixed_heap{pool_bytes_});
      if (grown.fault.empty() && grown.first_failures > fixed.first_failures)
        grown.fault = std::to_string(grown.first_failures - fixed.first_failures) +
                      " calls refused right after growth, and not by a fixed heap";
    }
    auto const append = [&](char const* operation, one_call_times const& times, std::string const& fault) {
      rows_.push_back(row_of_burst(operation));
      rows_.back().times_us = times.first_malloc_us;
      rows_.back().failures = times.first_failures;
      rows_.back().operations = served(threads_, times.first_failures);
      rows_.back().fault = fault;
    };
    auto const fault = grown.fault.empty() ? fixed.fault : grown.fault;
    append("grown first_malloc", grown, fault);
    if (fault.empty()) rows_.back().figures = {{"ratio", median_ratio(grown.first_malloc_us, fixed.first_malloc_us)}};
    append("fixed first_malloc", fixed, fault);
  }

  /// Calls `measure(grown, fixed)` with both heaps at a time. If the device lacks the memory for
  /// that, returns false, and `first` is a row that was skipped.
  template <class Measure>
  bool with_both_heaps(result const& first, Measure measure) {
    try {
      auto grown = make_grown();
      fixed_heap fixed{pool_bytes_};
      measure(grown, fixed);
    } catch (out_of_memory const& lacking) {
      return !skip(rows_, first, std::string{"not two such heaps at a time: "} + lacking.what());
    }
    return true;
  }

  /// Rounds of the two in turn. Their order alternates too.
  template <class GrownRound, class FixedRound>
  static void take_turns(u32 rounds, GrownRound grown_round, FixedRound fixed_round) {
    for (u32 round = 0; round < rounds; ++round) {
      if (round % 2 == 0) grown_round();
      fixed_round();
      if (round % 2 == 1) grown_round();
    }
  }

  void bursts() {
    constexpr u32 rounds_of_a_pair = 4;
    one_call_times grown_seen, fixed_seen;
    for (u32 done = 0; done < asked_.repeat; done += rounds_of_a_pair) {
      auto const measure = [&](grown_heap& grown_one, fixed_heap& fixed_one) {
        calls_of<grown_heap> grown{grown_one, draw_, threads_};
        calls_of<fixed_heap> fixed{fixed_one, draw_, threads_};
        grown.warm_up();
        fixed.warm_up();
        take_turns(
            std::min(rounds_of_a_pair, asked_.repeat - done), [&] { grown.timed_round(); },
            [&] { fixed.timed_round(); });
        grown.last_round();
        fixed.last_round();
        grown_seen.append(grown.times());
        fixed_seen.append(fixed.times());
      };
      if (!with_both_heaps(row_of_burst("grown malloc"), measure)) return;
      if (!grown_seen.fault.empty() || !fixed_seen.fault.empty()) break;
    }
    append_pair(grown_seen, fixed_seen);
  }

  size_range range(size_range otherwise) const { return asked_.get(options::ranges, {otherwise}).front(); }

  void churn() {
    auto const sizes = range({16, 512});
    u64 const threads = default_for_backend(asked_[options::threads], u64{1} << 18, u64{1} << 12);
    auto const base = row("grown churn", {{"least_bytes", sizes.least},
                                          {"most_bytes", sizes.most},
                                          {"threads", threads},
                                          {"rounds", asked_[options::rounds]},
                                          {"pool_bytes", pool_bytes_}});
    with_both_heaps(base, [&](grown_heap& grown, fixed_heap& fixed) {
      append_churns(base, churn_of_kernels{grown, sizes, threads, asked_},
                    churn_of_kernels{fixed, sizes, threads, asked_});
    });
  }

  void long_churn() {
    auto const sizes = range({16, 4096});
    u64 const kernels = default_for_backend(asked_[options::kernels], 256, 8);
    auto const base = row(
        "grown long_churn",
        {{"least_bytes", sizes.least}, {"most_bytes", sizes.most}, {"kernels", kernels}, {"pool_bytes", pool_bytes_}});
    with_both_heaps(base, [&](grown_heap& grown, fixed_heap& fixed) {
      append_churns(base, churn_across_kernels{grown, sizes, kernels, pool_bytes_, asked_.seed},
                    churn_across_kernels{fixed, sizes, kernels, pool_bytes_, asked_.seed});
    });
  }

  template <class GrownChurn, class FixedChurn>
  void append_churns(result const& base, GrownChurn grown, FixedChurn fixed) {
    result of_grown = base, of_fixed = base;
    of_fixed.operation = std::string{"fixed "} + FixedChurn::name;
    take_turns(
        asked_.repeat, [&] { of_grown.times_us.push_back(grown.time()); },
        [&] { of_fixed.times_us.push_back(fixed.time()); });
    grown.finish(of_grown);
    fixed.finish(of_fixed);
    if (of_grown.checked()) of_grown.fault = of_fixed.fault;
    of_fixed.fault = of_grown.fault;
    if (of_grown.checked()) of_grown.figures = {{"ratio", median_ratio(of_grown.times_us, of_fixed.times_us)}};
    rows_.insert(rows_.end(), {of_grown, of_fixed});
  }

  void append_pair(one_call_times grown, one_call_times fixed) {
    if (grown.fault.empty()) grown.fault = fixed.fault;
    fixed.fault = grown.fault;
    for (auto const& [what, times] : {std::pair{"grown ", &grown}, std::pair{"fixed ", &fixed}}) {
      std::vector<result> made;
      append_results(made, row_of_burst(""), *times, threads_);
      for (auto& each : made) each.operation = what + each.operation;
      if (times == &grown && grown.fault.empty()) {
        made[0].figures = {{"ratio", median_ratio(grown.malloc_us, fixed.malloc_us)}};
        made[1].figures = {{"ratio", median_ratio(grown.free_us, fixed.free_us)}};
      }
      rows_.insert(rows_.end(), made.begin(), made.end());
    }
  }

  /// Every thread asks for its part of the pool, most of which is not there yet.
  void wait_for_memory() {
    // What does not fill the last slab of each multiprocessor is room that the threads may need.
    u64 const limit = align_up(pool_bytes_ + pool_bytes_ / 2, granule_), bytes = pool_bytes_ / threads_;
    result waiting = row("waiting malloc", {{"bytes", bytes}, {"threads", threads_}});
    if (skip(rows_, waiting, bytes < 16 ? "less than 16 bytes of the pool for each thread" : "")) return;
    device_buffer<void*> blocks(threads_);
    stopwatch watch;
    for (u32 round = 0; round <= asked_.repeat && waiting.checked(); ++round) {
      patient_heap heap{plan(limit)};
      if (round == 0) {
        waiting.parameters.emplace_back("initial_bytes", heap.committed_bytes());
        waiting.parameters.emplace_back("pool_bytes", limit);
      }
      growth_service const service{heap};
      auto const us = watch.microseconds(
          [&] { launch(shape_for(threads_), allocate_once{}, heap.ref(), size_draw{bytes}, blocks.data(), threads_); });
      auto const found = examine<typename patient_heap::allocator_type>(blocks, size_draw{bytes});
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
  u64 granule_, pool_bytes_, threads_;
  size_draw draw_;
  u64 parts_done_ = 0;
  std::vector<result> rows_;
};

inline scenario about_growth() {
  return {
      .name = "growth",
      .text = "a pool that grows: mapped at rest and under a kernel that waits, trimmed, and beside a fixed one",
      .kind = scenario_kind::of_default_allocator,
      .rank = 20,
      .uses = {{options::sizes, "the first"},
               {options::ranges, "the first, of its churns"},
               {options::threads, "1048576, and 262144 for its churn"},
               {options::rounds, "of its churn"},
               {options::kernels, "of a round of its long churn"}},
      .baseline = [](request const& asked) { return growth_scenario<>{asked}.rows(); },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
