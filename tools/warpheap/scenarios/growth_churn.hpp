// SPDX-License-Identifier: Apache-2.0
// Churns of the scenario `growth`: those of the scenarios `churn` and `long_churn` on one heap,
// round by round, so that two heaps can take turns.
#pragma once

#include "churn.hpp"
#include "measure/slot_table.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// A round is a kernel of `rounds` rounds by every thread, which starts and ends with an empty
/// heap.
template <class Allocator>
class churn_of_kernels {
 public:
  static constexpr char const* name = "churn";

  churn_of_kernels(basic_heap<Allocator>& heap, size_range range, u64 threads, request const& asked)
      : heap_{heap},
        draw_{range.least, static_cast<u32>(range.most - range.least + 1), asked.seed},
        rounds_{asked[options::rounds]},
        tallies_(threads) {
    run<true>();
    fault_ = total_of(tallies_).found.fault();
    time();  // warms up
  }

  double time() {
    return watch_.microseconds([&] { run<false>(); });
  }

  /// What the last round did.
  void finish(result& made) const {
    auto const total = total_of(tallies_);
    made.operations = total.calls;
    made.failures = total.found.failures;
    made.fault = fault_.empty() ? fault_of_emptied(heap_) : fault_;
  }

 private:
  template <bool Checked>
  void run() {
    launch(shape_for(tallies_.size()), churn_rounds<Checked>{}, heap_.ref(), draw_, rounds_, tallies_.data(),
           tallies_.size());
    synchronize();
  }

  basic_heap<Allocator>& heap_;
  size_draw draw_;
  u32 rounds_;
  device_buffer<churn_tally> tallies_;
  stopwatch watch_;
  std::string fault_;
};

/// A round is `kernels` steps of a constant load at half of the pool. Blocks live from round to
/// round. Times are those of a step, on average.
template <class Allocator>
class churn_across_kernels {
 public:
  static constexpr char const* name = "long_churn";
  static constexpr double level = 0.5;

  churn_across_kernels(basic_heap<Allocator>& heap, size_range range, u64 kernels, u64 pool_bytes, u64 seed)
      : load_{load_kind::constant, range, pool_bytes, level, 1, seed}, kernels_{kernels}, slots_{heap, load_.slots()} {
    slots_.play_checked(load_.filling());
    slots_.take_refused();
    held_ = slots_.held().blocks;
  }

  double time() {
    auto const times_us = slots_.time(load_, steps_ + 1, kernels_).sums();
    steps_ += kernels_;
    return std::accumulate(times_us.begin(), times_us.end(), 0.0) / static_cast<double>(kernels_);
  }

  /// Frees all blocks.
  void finish(result& made) {
    made.failures = slots_.take_refused();
    u64 const served = steps_ * load_.step(1).mallocs() - made.failures;
    u64 const freed = held_ + served - slots_.held().blocks;
    made.operations = static_cast<double>(served + freed) / static_cast<double>(steps_);
    made.fault = slots_.fault_of_emptying();
  }

 private:
  slot_load load_;
  u64 kernels_;
  slot_table<Allocator> slots_;
  u64 steps_ = 0;
  u64 held_ = 0;  ///< blocks, before the first step
};

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
