// SPDX-License-Identifier: Apache-2.0
// crowd: many threads that each ask for a large block at once. Most allocators are made for blocks
// up to a slab or a page. Larger ones come from elsewhere, often behind a lock, where crowds queue.
//
//   malloc, free              every thread asks for a block of the same size; every thread frees it
//   mixed malloc, mixed free  one thread in four asks for a large block, the others for 16 to 512 B
//   churn                     large blocks of many sizes come and go: large_churn.hpp
//
// Sizes: `sizes`; numbers of threads: `workers`. A crowd is measured if its blocks fit in nine
// tenths of the pool. Kernels are those of listed_calls.hpp. A heap that can be reset is reset
// before each crowd. In the first round every block is written and looked at; in every round the
// blocks' addresses are compared. A round that took over 100 ms is the last one, and counts even if
// it is a warm-up round.
#pragma once

#include <numeric>

#include "large_churn.hpp"
#include "measure/large_blocks.hpp"
#include "measure/listed_calls.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What thread i asks for.
struct crowd_draw {
  /// Of a mixed crowd, one thread in `period` asks for a large block.
  static constexpr u32 period = 4;

  u64 large_bytes = 0;
  bool mixed = false;
  size_draw small = {16, 497, 1};

  u64 of(u64 i) const { return !mixed || i % period == 0 ? large_bytes : small.of(i); }

  std::vector<u64> of_each(u64 threads) const {
    std::vector<u64> bytes;
    for (u64 i = 0; i < threads; ++i) bytes.push_back(of(i));
    return bytes;
  }
  /// Bytes that a crowd asks for, all together.
  u64 of_all(u64 threads) const {
    auto const bytes = of_each(threads);
    return std::accumulate(bytes.begin(), bytes.end(), u64{0});
  }
};

/// One size and number of threads.
template <class Allocator>
class large_burst {
 public:
  large_burst(basic_heap<Allocator>& heap, crowd_draw draw, u64 threads)
      : heap_{heap}, asked_{draw.of_each(threads)}, bytes_(asked_), blocks_(threads) {}

  one_call_times measure(u32 repeat) {
    bool is_last = false;
    for (u32 done = 0; done < warm_up_rounds + repeat && times_.fault.empty() && !is_last; ++done) {
      auto const [malloc_us, free_us] = round(done == 0);
      is_last = std::max(malloc_us, free_us) > long_enough_us;
      if (done < warm_up_rounds && !is_last) continue;
      times_.malloc_us.push_back(malloc_us);
      times_.free_us.push_back(free_us);
    }
    if (times_.fault.empty()) times_.fault = fault_of_emptied(heap_);
    return times_;
  }

 private:
  struct pair_of_times {
    double malloc_us = 0, free_us = 0;
  };

  /// Every thread asks, then every thread frees. Does nothing if something was wrong before.
  pair_of_times round(bool writes) {
    if (!times_.fault.empty()) return {};
    pair_of_times made;
    made.malloc_us = watch_.microseconds([&] { launch_asking(heap_, bytes_, blocks_, blocks_.size()); });
    auto const list = listed();
    times_.failures = failures_among(list);
    times_.fault = writes ? fault_of_blocks<Allocator>(list) : fault_of_places(list);
    if (!times_.fault.empty()) return {};
    made.free_us = watch_.microseconds([&] { launch_freeing(heap_, blocks_, blocks_.size()); });
    return made;
  }

  std::vector<asked_block> listed() const {
    std::vector<asked_block> list;
    for (void* const block : blocks_.to_host()) list.push_back({block, asked_[list.size()]});
    return list;
  }

  basic_heap<Allocator>& heap_;
  std::vector<u64> asked_;  ///< bytes, by thread
  device_buffer<u64> bytes_;
  device_buffer<void*> blocks_;
  stopwatch watch_;
  one_call_times times_;
};

/// One allocator, all sizes and numbers of threads.
template <class Allocator>
class crowd_rows {
 public:
  crowd_rows(test_subject<Allocator> const& subject, request const& asked)
      : subject_{subject},
        asked_{asked},
        sizes_{asked.get(options::sizes, {u64{256} << 10, u64{1} << 20, u64{16} << 20, u64{64} << 20, u64{1} << 30})},
        numbers_{asked.get(options::workers, {1, 16, 256, 1024, 4096, 16384})},
        heap_{asked.pool_bytes},
        steps_{sizes_.size() * numbers_.size() + 1} {}

  std::vector<result> measure() {
    for (u64 const bytes : sizes_)
      if (!measure_size(bytes)) return rows_;
    if (proceed())
      for (auto const& row : churn_of_large_blocks(heap_, subject_, asked_)) rows_.push_back(row);
    return rows_;
  }

 private:
  /// False: no more rows.
  bool measure_size(u64 bytes) {
    if (auto const reason = reason_against(bytes); skip(rows_, base_row(bytes, numbers_.front()), reason)) {
      step_ += numbers_.size();
      return true;
    }
    for (u64 const threads : numbers_) {
      if (!proceed()) return false;
      for (bool const mixed : {false, true})
        if (!measure_crowd({.large_bytes = bytes, .mixed = mixed, .small = {16, 497, asked_.seed}}, threads))
          return false;
    }
    return true;
  }

  bool measure_crowd(crowd_draw draw, u64 threads) {
    if (!fits(draw, threads) || (draw.mixed && threads < crowd_draw::period)) return true;
    if (subject_.resets) heap_.reset();
    auto const times = large_burst<Allocator>{heap_, draw, threads}.measure(asked_.repeat);
    size_t const before = rows_.size();
    append_results(rows_, base_row(draw.large_bytes, threads), times, threads);
    if (draw.mixed)
      for (size_t row = before; row < rows_.size(); ++row) rows_[row].operation.insert(0, "mixed ");
    return times.fault.empty();  // what a broken heap says next means nothing
  }

  bool fits(crowd_draw draw, u64 threads) const { return draw.of_all(threads) <= asked_.pool_bytes / 10 * 9; }

  /// Why no crowd asks for blocks of this size; empty if some do.
  std::string reason_against(u64 bytes) const {
    auto const refusal = unsupported_reason(subject_, bytes);
    bool const any = std::any_of(numbers_.begin(), numbers_.end(), [&](u64 threads) {
      return fits({.large_bytes = bytes}, threads) ||
             (threads >= crowd_draw::period && fits({.large_bytes = bytes, .mixed = true}, threads));
    });
    if (!refusal.empty() || any) return refusal;
    return "no crowd's blocks of " + std::to_string(bytes) + " bytes fit in nine tenths of the pool";
  }

  result base_row(u64 bytes, u64 threads) const {
    result made{.scenario = "crowd", .allocator = subject_.name, .operation = "malloc"};
    made.parameters = {{"bytes", bytes}, {"threads", threads}, {"pool_bytes", asked_.pool_bytes}};
    return made;
  }

  bool proceed() { return asked_.proceed("crowd, " + subject_.name, step_++, steps_); }

  test_subject<Allocator> const& subject_;
  request const& asked_;
  std::vector<u64> sizes_, numbers_;
  basic_heap<Allocator> heap_;
  u64 step_ = 0, steps_;
  std::vector<result> rows_;
};

template <class Allocator>
std::vector<result> crowd(test_subject<Allocator> const& subject, request const& asked) {
  return crowd_rows<Allocator>{subject, asked}.measure();
}

inline scenario about_crowd() {
  return {
      .name = "crowd",
      .text = "large blocks by many threads at once, among small ones too, and what churn of them leaves to be had",
      .rank = 180,
      .uses = {{options::sizes, "default 256KiB,1MiB,16MiB,64MiB,1GiB"},
               {options::workers, "1, 16, 256, 1024, 4096, 16384"},
               {options::rounds, "of its churn, two kernels each"}},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
