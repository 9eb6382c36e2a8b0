// SPDX-License-Identifier: Apache-2.0
// policy_overhead: what the layer of policies costs. Every thread allocates once and later frees,
// as in burst, through the composed allocator (`malloc`, `free`) and through its creation policy
// alone (`direct_malloc`, `direct_free`). The two alternate from launch to launch, so that a drift
// of the machine meets both; `ratio` is the median of composed over direct within a round. Sizes:
// `sizes` and `ranges`; threads: `threads`.
//
// A launch takes tens of microseconds, and an event resolves one. So each of a round's times is the
// mean of several. A few percent of noise are left. So the rows `direct_churn` and `churn` compare
// something longer: a round of churn (churn.hpp; its rounds and threads), which is milliseconds of
// nothing but calls.
#pragma once

#include "churn.hpp"
#include "measure/direct_calls.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
class policy_overhead_at {
 public:
  static constexpr u32 turns = 8;  ///< launches of each that one time is the mean of

  policy_overhead_at(basic_heap<Allocator>& heap, size_draw draw, u64 threads)
      : heap_{heap}, draw_{draw}, blocks_(threads), shape_{shape_for(threads)} {}

  void measure(u32 repeat) {
    for (u32 round = 0; round < warm_up_rounds && sound(); ++round) {
      examine_round(heap_.ref());
      examine_round(direct_calls<Allocator>{heap_.ref()});
    }
    for (u32 round = 0; round < 1 + repeat && sound(); ++round) {
      times composed, direct;
      for (u32 turn = 0; turn < turns; ++turn) {
        // The order of the two alternates too.
        if (turn % 2 == 0) run(heap_.ref(), composed);
        run(direct_calls<Allocator>{heap_.ref()}, direct);
        if (turn % 2 == 1) run(heap_.ref(), composed);
      }
      if (round > 0) keep(composed, direct);
    }
    examine_round(heap_.ref());
    if (sound()) fault_ = fault_of_emptied(heap_);
  }

  /// Four rows. `base_row` has scenario, allocator and parameters.
  void append_to(std::vector<result>& results, result base_row) const {
    base_row.operations = served(blocks_.size(), failures_);  // and as many frees
    base_row.fault = fault_;
    auto const append = [&](char const* operation, std::vector<double> const& times_us, u64 failures) {
      base_row.operation = operation;
      base_row.times_us = times_us;
      base_row.failures = failures;
      results.push_back(base_row);
    };
    append("direct_malloc", direct_malloc_us_, failures_);
    append("direct_free", direct_free_us_, 0);
    base_row.figures = {{"direct_median_us", median(direct_malloc_us_)}, {"ratio", median(malloc_ratios_)}};
    append("malloc", malloc_us_, failures_);
    base_row.figures = {{"direct_median_us", median(direct_free_us_)}, {"ratio", median(free_ratios_)}};
    append("free", free_us_, 0);
  }

  bool sound() const { return fault_.empty(); }

 private:
  struct times {
    double malloc_us = 0, free_us = 0;
  };

  template <class Calls>
  void run(Calls calls, times& sum) {
    sum.malloc_us +=
        watch_.microseconds([&] { launch(shape_, allocate_once{}, calls, draw_, blocks_.data(), blocks_.size()); });
    sum.free_us += watch_.microseconds([&] { launch(shape_, free_once{}, calls, blocks_.data(), blocks_.size()); });
  }

  void keep(times const& composed, times const& direct) {
    malloc_us_.push_back(composed.malloc_us / turns);
    free_us_.push_back(composed.free_us / turns);
    direct_malloc_us_.push_back(direct.malloc_us / turns);
    direct_free_us_.push_back(direct.free_us / turns);
    malloc_ratios_.push_back(composed.malloc_us / direct.malloc_us);
    free_ratios_.push_back(composed.free_us / direct.free_us);
  }

  template <class Calls>
  void examine_round(Calls calls) {
    if (!sound()) return;
    launch(shape_, allocate_once{}, calls, draw_, blocks_.data(), blocks_.size());
    auto const found = examine<Allocator>(blocks_, draw_);
    failures_ = found.failures;
    fault_ = found.fault();
    if (sound()) launch(shape_, free_once{}, calls, blocks_.data(), blocks_.size());
    synchronize();
  }

  basic_heap<Allocator>& heap_;
  size_draw draw_;
  device_buffer<void*> blocks_;
  launch_shape shape_;
  stopwatch watch_;
  std::vector<double> malloc_us_, free_us_, direct_malloc_us_, direct_free_us_, malloc_ratios_, free_ratios_;
  u64 failures_ = 0;
  std::string fault_;
};

/// Two rows, `direct_churn` and `churn`: the same rounds of churn through either, in turn.
template <class Allocator>
void append_churn(std::vector<result>& results, basic_heap<Allocator>& heap, request const& asked, result base_row) {
  constexpr u32 least = 16, most = 512;
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 18, u64{1} << 12);
  base_row.parameters = {{"least_bytes", least},
                         {"most_bytes", most},
                         {"threads", threads},
                         {"rounds", asked[options::rounds]},
                         {"pool_bytes", asked.pool_bytes}};
  size_draw const draw{least, most - least + 1, asked.seed};
  device_buffer<churn_tally> tallies(threads);
  stopwatch watch;
  auto const time = [&](auto calls, auto rounds_of) {
    return watch.microseconds(
        [&] { launch(shape_for(threads), rounds_of, calls, draw, asked[options::rounds], tallies.data(), threads); });
  };
  time(heap.ref(), churn_rounds<true>{});
  auto total = total_of(tallies);
  base_row.fault = total.found.fault();
  std::vector<double> composed, direct, ratios;
  for (u32 round = 0; round <= asked.repeat && base_row.fault.empty(); ++round) {
    double const first = time(heap.ref(), churn_rounds<false>{});
    double const straight = time(direct_calls<Allocator>{heap.ref()}, churn_rounds<false>{});
    if (round == 0) continue;
    composed.push_back(first);
    direct.push_back(straight);
    ratios.push_back(first / straight);
  }
  total = total_of(tallies);
  base_row.operations = total.calls;
  base_row.failures = total.found.failures;
  if (base_row.fault.empty()) base_row.fault = fault_of_emptied(heap);
  base_row.operation = "direct_churn";
  base_row.times_us = direct;
  results.push_back(base_row);
  base_row.figures = {{"direct_median_us", median(direct)}, {"ratio", median(ratios)}};
  base_row.operation = "churn";
  base_row.times_us = composed;
  results.push_back(base_row);
}

template <class Allocator>
std::vector<result> policy_overhead(test_subject<Allocator> const& subject, request const& asked) {
  auto ranges = sizes_and_ranges(asked);
  if (ranges.empty()) ranges = {{16, 16}, {64, 64}, {256, 256}, {1024, 1024}, {16, 1024}};
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 12);
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> results;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!asked.proceed("policy_overhead, " + subject.name, i, ranges.size() + 1)) return results;
    auto const [least, most] = ranges[i];
    size_draw const draw{least, static_cast<u32>(most - least + 1), asked.seed};
    policy_overhead_at<Allocator> at_size{heap, draw, threads};
    at_size.measure(asked.repeat);
    result base_row{.scenario = "policy_overhead", .allocator = subject.name};
    base_row.parameters = {
        {"least_bytes", least}, {"most_bytes", most}, {"threads", threads}, {"pool_bytes", asked.pool_bytes}};
    at_size.append_to(results, base_row);
    if (!at_size.sound()) return results;
  }
  if (!asked.proceed("policy_overhead, " + subject.name, ranges.size(), ranges.size() + 1)) return results;
  append_churn(results, heap, asked, {.scenario = "policy_overhead", .allocator = subject.name});
  return results;
}

inline scenario about_policy_overhead() {
  return {
      .name = "policy_overhead",
      .text = "the composed allocator against its creation policy called directly",
      .rank = 130,
      .uses = {{options::sizes}, {options::ranges}, {options::threads, "1048576"}, {options::rounds}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
