// SPDX-License-Identifier: Apache-2.0
// What churn of large blocks leaves of a heap. Every thread holds one block, and together they hold
// half of the pool. Sizes are drawn evenly over six doublings: 256 KiB to 16 MiB, or less in a
// small pool, where the largest is a sixteenth of it. In every round a quarter of the threads,
// chosen at random, free their block in one kernel and ask for one of another size in the next.
// After `rounds` rounds one thread asks for blocks of the largest size until it is refused.
// `large_share` is what it got, over the bytes that no block holds: the rest was taken by rounding
// and by holes between live blocks.
//
// The time of a run is that of all these kernels; a run that took over 100 ms is the last one.
// After each round the addresses of all blocks are compared. At the end of a run all blocks are
// written, looked at and freed.
#pragma once

#include <bit>

#include "measure/call_list.hpp"
#include "options.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// A measurement that took longer is not repeated, in microseconds.
inline constexpr double long_enough_us = 100e3;

/// Sizes whose doubling is drawn first, then the size within it: there are as many blocks of 256 to
/// 512 KiB as of 8 to 16 MiB.
struct doubling_draw {
  static constexpr u32 doublings = 6;

  u64 least = 0;
  u64 seed = 0;

  u64 of(u64 call) const {
    u64 const random = mix(seed + call);
    u64 const start = least << scale_below(static_cast<u32>(random >> 32), doublings);
    return start + scale_below(static_cast<u32>(random), static_cast<u32>(start));
  }
  constexpr u64 most() const { return least << doublings; }
  constexpr u64 mean() const { return least * 3 * ((u64{1} << doublings) - 1) / (2 * doublings); }
};

/// The runs on one heap.
template <class Allocator>
class large_churn {
 public:
  large_churn(basic_heap<Allocator>& heap, test_subject<Allocator> const& subject, request const& asked)
      : heap_{heap}, resets_{subject.resets}, pool_bytes_{asked.pool_bytes}, rounds_{asked[options::rounds]} {
    constexpr u64 most = u64{16} << 20;
    u64 const largest = std::bit_floor(std::min(most, asked.pool_bytes / 16));
    draw_ = {largest >> doubling_draw::doublings, asked.seed};
    threads_ = asked.pool_bytes / 2 / draw_.mean();
    row_ = result{.scenario = "crowd", .allocator = subject.name, .operation = "churn"};
    row_.parameters = {{"threads", threads_},
                       {"pool_bytes", asked.pool_bytes},
                       {"least_bytes", draw_.least},
                       {"most_bytes", draw_.most()},
                       {"rounds", rounds_}};
  }

  u64 largest_bytes() const { return draw_.most(); }
  result const& row() const { return row_; }

  void measure(u32 repeat) {
    double live = 0, had = 0;
    u32 refused = 0, runs = 0;
    while (runs < repeat && row_.checked() && (runs == 0 || row_.times_us.back() <= long_enough_us)) {
      run();
      live += live_share_;
      had += large_share_;
      refused += was_refused_;
      ++runs;
      draw_.seed = mix(draw_.seed + 1);
    }
    row_.figures = {{"live_share", live / runs}};
    // An allocator without a limit was stopped by us, so its share says nothing.
    if (refused == runs) row_.figures.emplace_back("large_share", had / runs);
  }

 private:
  void run() {
    if (resets_) heap_.reset();
    held_.assign(threads_, {});
    row_.operations = 0;
    row_.failures = 0;
    double time = 0;
    for (u32 round = 0; round <= rounds_ && row_.checked(); ++round) {
      auto const kernels_us = turn_over(round);
      if (round > 0) time += kernels_us;
      row_.fault = fault_of_places(held_);
    }
    note_live_bytes();
    if (row_.checked()) ask_for_the_rest();
    if (row_.checked()) row_.fault = fault_of_blocks<Allocator>(held_);
    if (row_.checked()) give_back();
    row_.times_us.push_back(time);
  }

  /// One thread in four frees its block and asks for another. Each thread that was refused before
  /// asks again. In the first round every thread asks, and nothing counts.
  double turn_over(u32 round) {
    std::vector<u64> threads, wanted;
    std::vector<void*> leaving;
    for (u64 i = 0; i < threads_; ++i) {
      u64 const call = round * threads_ + i;
      if (held_[i].block && mix(~(draw_.seed + call)) % 4 != 0) continue;
      threads.push_back(i);
      wanted.push_back(draw_.of(call));
      leaving.push_back(held_[i].block);
    }
    if (threads.empty()) return 0;
    device_buffer<void*> const blocks(leaving);
    device_buffer<u64> const bytes(wanted);
    double time = 0;
    if (round > 0) time = watch_.microseconds([&] { launch_freeing(heap_, blocks, blocks.size()); });
    time += watch_.microseconds([&] { launch_asking(heap_, bytes, blocks, blocks.size()); });
    auto const came = blocks.to_host();
    for (size_t i = 0; i < threads.size(); ++i) {
      held_[threads[i]] = {came[i], wanted[i]};
      if (round > 0) note(leaving[i], came[i]);
    }
    return time;
  }

  /// Counts a free, if there was one, and a call of malloc.
  void note(void const* left, void const* came) {
    row_.operations += static_cast<double>((left != nullptr) + (came != nullptr));
    row_.failures += came == nullptr;
  }

  void note_live_bytes() {
    live_bytes_ = bytes_of(held_);
    live_share_ = static_cast<double>(live_bytes_) / static_cast<double>(pool_bytes_);
  }

  /// One thread asks for blocks of the largest size until it is refused, or has more than there can
  /// be.
  void ask_for_the_rest() {
    u64 const free_bytes = pool_bytes_ - std::min(live_bytes_, pool_bytes_), bytes = draw_.most();
    auto const rest = ask_until_refused(heap_, bytes, free_bytes / bytes + 1, {.calls = 1});
    append(held_, rest.blocks);
    was_refused_ = rest.refused > 0;
    large_share_ = static_cast<double>(bytes_of(rest.blocks)) / static_cast<double>(std::max<u64>(free_bytes, 1));
  }

  void give_back() {
    free_listed(heap_, held_);
    row_.fault = fault_of_emptied(heap_);
  }

  basic_heap<Allocator>& heap_;
  bool resets_;
  u64 pool_bytes_;
  u32 rounds_;
  doubling_draw draw_;
  u64 threads_ = 0;
  std::vector<asked_block> held_;  ///< by thread; then those of the largest size
  u64 live_bytes_ = 0;
  double live_share_ = 0, large_share_ = 0;  ///< of the last run
  bool was_refused_ = false;
  stopwatch watch_;
  result row_;
};

template <class Allocator>
std::vector<result> churn_of_large_blocks(basic_heap<Allocator>& heap, test_subject<Allocator> const& subject,
                                          request const& asked) {
  large_churn<Allocator> churn{heap, subject, asked};
  std::vector<result> rows;
  if (skip(rows, churn.row(), unsupported_reason(subject, churn.largest_bytes()))) return rows;
  churn.measure(asked.repeat);
  return {churn.row()};
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
