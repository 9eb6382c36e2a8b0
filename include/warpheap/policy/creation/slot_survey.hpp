// SPDX-License-Identifier: Apache-2.0
// How many blocks of a size a heap could give, counted by several threads side by side: the lanes
// of a warp, or a grid. A policy counts one part of its places, which are slabs, pages, words or
// arenas; the parts are put together here.
//
// Blocks within one place add up. A block of several places in a row may lie across the border of
// two parts, so a part says how many free places it has at both ends, and slots only of the runs in
// between:
//
//   places of a part    . . # . . . # # . . # .       # taken, . free
//                       before 2           after 1    the runs of 3 and 2 are counted in the part
//
// A policy has
//
//   slot_places()                          places; more parts than these are of no use
//   count_slots(bytes, share)              one part; any lane alone
//   slots_of_run(bytes, first, length)     blocks of a run of free places; only with such runs
//   gather_slots(bytes, share)             before the count: puts free pieces together; optional
//
// Exact when the heap is quiet.
#pragma once

#include "../../sync/warp_aggregate.hpp"

#if !defined(__CUDACC_RTC__)
#include "../../platform/device_buffer.hpp"
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Part `part` of `parts` equal ones.
struct slot_share {
  u64 part = 0;
  u64 parts = 1;

  /// Of `places` places, the first of the part, and the first of the next one.
  WARPHEAP_HOST_DEVICE constexpr u64 first(u64 places) const {
    return part * div_ceil(places, parts) < places ? part * div_ceil(places, parts) : places;
  }
  WARPHEAP_HOST_DEVICE constexpr u64 end(u64 places) const { return slot_share{part + 1, parts}.first(places); }
};

/// What was found in a part.
struct slot_part {
  u64 count = 0;   ///< within places, or in runs that end on both sides within the part
  u64 places = 0;  ///< of the part, where runs matter
  u64 before = 0;  ///< free places at its beginning; all of them if none is taken
  u64 after = 0;   ///< free places at its end
};

/// Blocks of `length` places in a row, wherever it starts.
struct slots_of_length {
  u64 length;

  WARPHEAP_HOST_DEVICE constexpr u64 operator()(u64, u64 places) const { return places / length; }
};

/// Finds the runs of a part, place by place. `SlotsOfRun(first, length)` says how many blocks a run
/// has.
template <class SlotsOfRun>
class free_runs {
 public:
  /// `first`: the first place of the part.
  WARPHEAP_HOST_DEVICE constexpr free_runs(u64 first, SlotsOfRun slots_of_run)
      : first_{first}, slots_of_run_{slots_of_run} {}

  /// The next places: `free` free ones, then `taken` that are not.
  WARPHEAP_HOST_DEVICE constexpr void add(u64 free, u64 taken) {
    run_ += free;
    part_.places += free;
    if (taken == 0) return;
    if (all_free_) part_.before = run_;
    else part_.count += slots_of_run_(first_ + part_.places - run_, run_);
    all_free_ = false;
    run_ = 0;
    part_.places += taken;
  }

  WARPHEAP_HOST_DEVICE constexpr slot_part part() const {
    slot_part whole = part_;
    if (all_free_) whole.before = run_;
    whole.after = run_;
    return whole;
  }

 private:
  slot_part part_;
  u64 first_;
  u64 run_ = 0;
  bool all_free_ = true;
  SlotsOfRun slots_of_run_;
};

/// Puts parts together, in the order of their places.
class slot_sum {
 public:
  template <class SlotsOfRun>
  WARPHEAP_HOST_DEVICE constexpr void add(slot_part const& part, SlotsOfRun slots_of_run) {
    slots_ += part.count;
    run_ += part.before;
    if (part.before != part.places) {
      slots_ += slots_of_run(at_ + part.before - run_, run_);
      run_ = part.after;
    }
    at_ += part.places;
  }

  template <class SlotsOfRun>
  WARPHEAP_HOST_DEVICE constexpr u64 total(SlotsOfRun slots_of_run) const {
    return slots_ + slots_of_run(at_ - run_, run_);
  }

 private:
  u64 slots_ = 0;
  u64 at_ = 0;
  u64 run_ = 0;  ///< free places right before `at_`
};

/// A creation policy whose slots can be counted in parts.
template <class P>
concept counts_slots_in_parts = requires(P policy, size_t bytes, slot_share share) {
  policy.slot_places();
  policy.count_slots(bytes, share);
};

/// How many blocks of `bytes` a run of free places has.
template <class Creation>
struct slots_of_runs {
  Creation heap;
  size_t bytes;

  WARPHEAP_HOST_DEVICE u64 operator()([[maybe_unused]] u64 first, [[maybe_unused]] u64 length) const {
    if constexpr (requires(Creation policy) { policy.slots_of_run(bytes, first, length); })
      return length != 0 ? heap.slots_of_run(bytes, first, length) : 0;
    else return 0;
  }
};

template <class Creation>
concept gathers_slots = requires(Creation heap, size_t bytes, slot_share share) {
  heap.gather_slots(bytes, share);
};

/// Blocks of `bytes` bytes that could be allocated now. One lane looks at all.
template <class Creation>
WARPHEAP_COLD u64 count_slots_alone(Creation heap, size_t bytes) {
  if constexpr (gathers_slots<Creation>) heap.gather_slots(bytes, slot_share{});
  slots_of_runs<Creation> const runs{heap, bytes};
  slot_sum sum;
  sum.add(heap.count_slots(bytes, slot_share{}), runs);
  return sum.total(runs);
}

/// Counts as count_slots_alone() does, by the lanes of `mask` side by side. All of them call, with
/// the same heap and size, and get the sum.
template <class Creation>
WARPHEAP_COLD u64 count_slots_together(Creation heap, lane_mask mask, size_t bytes) {
  lane_group const group = group_of(mask);
  slot_share const share{group.rank, group.size};
  // Every lane sees each free that a lane of the group knows.
  simt::sync_warp(mask);
  if constexpr (gathers_slots<Creation>) {
    heap.gather_slots(bytes, share);
    simt::sync_warp(mask);
  }
  slot_part const mine = heap.count_slots(bytes, share);
  slots_of_runs<Creation> const runs{heap, bytes};
  slot_sum sum;
  WARPHEAP_NO_UNROLL
  for (lane_mask rest = mask; rest != 0; rest &= rest - 1) {
    u32 const lane = lowest_bit(rest);
    slot_part const next{simt::shuffle(mask, mine.count, lane), simt::shuffle(mask, mine.places, lane),
                         simt::shuffle(mask, mine.before, lane), simt::shuffle(mask, mine.after, lane)};
    sum.add(next, runs);
  }
  return sum.total(runs);
}

#if !defined(__CUDACC_RTC__)

/// Kernels: a part for each thread.
struct gather_slot_parts {
  template <class Creation>
  WARPHEAP_DEVICE void operator()(Creation heap, size_t bytes) const {
    heap.gather_slots(bytes, {global_thread_index(), u64{simt::grid_dim()} * simt::block_dim()});
  }
};
struct count_slot_parts {
  template <class Creation>
  WARPHEAP_DEVICE void operator()(Creation heap, size_t bytes, slot_part* parts) const {
    u64 const me = global_thread_index();
    parts[me] = heap.count_slots(bytes, {me, u64{simt::grid_dim()} * simt::block_dim()});
  }
};

/// A grid that looks at a whole heap.
template <class Creation>
launch_shape survey_shape(Creation const& heap) {
  constexpr u64 places_a_thread = 8, most_threads = 16384;
  u64 const wanted = div_ceil(heap.slot_places(), places_a_thread);
  if (wanted == 0) return shape_for(1, 128);
  return shape_for(wanted < most_threads ? wanted : most_threads, 128);
}

/// Puts free pieces together, as before a count, by a whole grid that the host launches.
template <class Creation>
void gather_slots_by_grid(Creation const& heap, size_t bytes) {
  launch(survey_shape(heap), gather_slot_parts{}, heap, bytes);
}

/// Counts as count_slots_alone() does, by a whole grid that the host launches and waits for.
template <class Creation>
u64 count_slots_by_grid(Creation const& heap, size_t bytes) {
  launch_shape const shape = survey_shape(heap);
  device_buffer<slot_part> const parts(u64{shape.blocks} * shape.threads);
  if constexpr (gathers_slots<Creation>) gather_slots_by_grid(heap, bytes);
  launch(shape, count_slot_parts{}, heap, bytes, parts.data());
  synchronize();
  slots_of_runs<Creation> const runs{heap, bytes};
  slot_sum sum;
  for (auto const& part : parts.to_host()) sum.add(part, runs);
  return sum.total(runs);
}

#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
