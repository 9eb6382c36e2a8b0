// SPDX-License-Identifier: Apache-2.0
// A trace replayed on one allocator: once with every block looked at, once to warm up, and then as
// often as asked, timed. A time is that of all rounds, which are launched one after the other
// without a wait. After each pass the blocks that the program left are freed.
#pragma once

#include <numeric>

#include "calls.hpp"
#include "measure/measure.hpp"
#include "workloads/replay/settings.hpp"

namespace warpheap::tool::replay { inline namespace WARPHEAP_BACKEND {

/// The plan's arrays on the device, and what a pass changes.
class device_plan {
 public:
  explicit device_plan(replay_plan const& plan)
      : plan_{plan}, calls_{plan.calls}, steps_{plan.steps}, warps_{plan.warps}, blocks_(plan.blocks), counts_(1) {}

  plan_view view() const { return {calls_.data(), steps_.data(), warps_.data(), blocks_.data(), counts_.data()}; }

  /// Puts all rounds on the default stream. `reset(heap)` frees everything.
  template <bool Checks, class Heap, class Reset>
  void launch_rounds(Heap heap, bench::block_promise promise, Reset reset) const {
    for (auto const& round : plan_.rounds) {
      if (round.after_reset) reset();
      launch({round.thread_blocks, round.warps_a_block * warp_lanes}, make_calls<Checks>{}, heap, view(),
             round.first_warp, promise);
    }
  }

  template <class Heap>
  void launch_freeing(Heap heap) const {
    launch(shape_for(blocks_.size()), free_the_rest{}, heap, blocks_.data(), u64{blocks_.size()});
  }

  /// Looks at the blocks that are left.
  void inspect(bench::block_promise promise) const {
    std::vector<u64> bytes(plan_.blocks);
    for (auto const& call : plan_.calls)
      if (call.kind != call_kind::free && !call.refused) bytes[call.made] = call.bytes;
    device_buffer<u64> const asked{bytes};
    launch(shape_for(blocks_.size()), inspect_the_rest{}, block_checks{promise, counts_.data()}, blocks_.data(),
           asked.data(), u64{blocks_.size()});
    synchronize();
  }

  /// Names no block any more.
  void forget_blocks() const { warpheap::backend::fill_bytes(blocks_.data(), 0, blocks_.size_bytes()); }

  /// The counts since the last call.
  tally take_counts() {
    synchronize();
    tally const now = counts_[0];
    counts_ = device_buffer<tally>(1);
    return now;
  }

 private:
  replay_plan const& plan_;
  device_buffer<replay_call> calls_;
  device_buffer<replay_step> steps_;
  device_buffer<replay_warp> warps_;
  device_buffer<void*> blocks_;
  device_buffer<tally> counts_;
};

/// A row without times.
inline bench::result row_of(std::string const& allocator, replay_settings const& settings) {
  bench::result row{.scenario = "replay", .allocator = allocator, .operation = "replay"};
  row.parameters = {{"calls", settings.plan->calls.size()},
                    {"kernels", settings.plan->kernels},
                    {"rounds", settings.plan->rounds.size()},
                    {"pool_bytes", settings.pool_bytes}};
  row.operations = static_cast<double>(settings.plan->calls.size());
  return row;
}

template <class Allocator>
class replayer {
 public:
  replayer(bench::test_subject<Allocator> const& subject, replay_settings const& settings)
      : subject_{subject},
        settings_{settings},
        heap_{settings.pool_bytes},
        plan_{*settings.plan},
        row_{row_of(subject.name, settings)} {}

  bench::result run() {
    checked_pass();
    for (u32 pass = 0; pass <= settings_.repeat && row_.checked(); ++pass) {
      settings_.report("replay, " + subject_.name, pass + 1, settings_.repeat + 2);
      double const time = timed_pass();
      if (pass > 0) row_.times_us.push_back(time);
    }
    if (row_.checked()) row_.fault = bench::fault_of_emptied(heap_);
    return row_;
  }

 private:
  void checked_pass() {
    settings_.report("replay, " + subject_.name, 0, settings_.repeat + 2);
    launch_rounds<true>();
    plan_.inspect(promise_);
    auto const found = plan_.take_counts();
    row_.fault = found.fault();
    if (!row_.checked()) return;  // blocks with two owners must not be freed
    plan_.launch_freeing(heap_.ref());
    row_.fault = bench::fault_of_emptied(heap_);
  }

  double timed_pass() {
    double const time = watch_.microseconds([&] { launch_rounds<false>(); });
    plan_.launch_freeing(heap_.ref());
    auto const found = plan_.take_counts();
    row_.failures = found.refused;
    row_.operations = static_cast<double>(settings_.plan->calls.size() - found.refused - found.missing);
    row_.figures = {{"calls_not_made", static_cast<double>(found.missing)}};
    return time;
  }

  template <bool Checks>
  void launch_rounds() {
    plan_.launch_rounds<Checks>(heap_.ref(), promise_, [&] { free_everything(); });
  }

  /// As the program's heap was reset.
  void free_everything() {
    if (!subject_.resets) return plan_.launch_freeing(heap_.ref());
    heap_.reset();
    plan_.forget_blocks();
  }

  bench::test_subject<Allocator> subject_;
  replay_settings const& settings_;
  basic_heap<Allocator> heap_;
  bench::block_promise promise_ = bench::block_promise::of<Allocator>();
  device_plan plan_;
  bench::stopwatch watch_;
  bench::result row_;
};

/// The baseline: the same kernels, whose calls do nothing.
inline bench::result baseline_of(replay_settings const& settings) {
  device_plan plan{*settings.plan};
  bench::stopwatch watch;
  auto row = row_of("null", settings);
  for (u32 pass = 0; pass <= settings.repeat; ++pass) {
    double const time = watch.microseconds([&] { plan.launch_rounds<false>(no_calls{}, {}, [] {}); });
    if (pass > 0) row.times_us.push_back(time);
  }
  return row;
}

}}  // namespace warpheap::tool::replay::WARPHEAP_BACKEND
