// SPDX-License-Identifier: Apache-2.0
// Blocks larger than a slab: runs of consecutive slabs. A scan locks the slabs of each reclaimable
// stretch that is long enough, in ascending order. At a slab that is in use or locked by another
// thread it gives the others back. Then it goes on behind the one in use, or waits for the lock.
//
//   slab.R1  the header of a run's first slab says how long it is; the thread that changes it from
//       run to no header frees the run. It is stored after all slabs have become run, and cleared
//       before the first ceases to be one. So the thread that frees it finds all slabs in kind run.
//   slab.R2  the other slabs keep an old header, harmless because their bitmaps are zero (slab.D7).
//
// nullptr is right: the index names a stretch that stays reclaimable all the time (slab.I2), and
// the scan passes over none that others hold locked. A slab with a reservation in progress is not
// reclaimable.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/lane_random.hpp"
#include "lock.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Allocates and frees runs. Stateless; `table` is the heap.
class slab_runs {
 public:
  /// A run of at least `bytes` bytes, more than 0, at a multiple of `alignment`; nullptr, which is
  /// counted, if none stayed reclaimable. Any lane alone.
  WARPHEAP_COLD static void* create(slab_table table, u64 bytes, u64 alignment) {
    u64 const length = table.geometry().slabs_for(bytes);
    if (length > table.geometry().slabs()) {
      table.add_failures(1, bytes);
      return nullptr;
    }
    // Counted by its slabs: `bytes` would stay in registers all through the scan.
    u32 const run = static_cast<u32>(length);
    void* const memory = slab_runs{table}.create_run(run, alignment);
    if (memory == nullptr) table.add_failures(1, u64{run} << table.geometry().slab_log2());
    return memory;
  }

  /// Frees the run at slab `first`, if its header is still `header`; else that becomes the newest.
  WARPHEAP_DEVICE static bool try_destroy(slab_table const& table, u32 first, slab_header& header) {
    u32 const length = header.length();
    // acq_rel: one thread wins (slab.R1), and all slabs are run by now; pairs with publish_run().
    if (!table.header(first).compare_exchange(header.word, slab_header{}.word, order::acq_rel, order::relaxed))
      return false;
    release_fence();  // the owner's writes, once for all slabs
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < length; ++i) slab_lock::unlock(table, first + i, slab_kind::run, order::fenced);
    return true;
  }

 private:
  static constexpr u32 none = ~0u;

  WARPHEAP_DEVICE explicit slab_runs(slab_table const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_run(u32 run, u64 alignment) const {
    u32 const slabs = table_.geometry().slabs();
    // The lowest run, which leaves the others whole. In a large pool a thread that meets another,
    // or finds none, goes on from a random place, then ahead of it, or all would fight for one run
    // after another. Multiples of the length, so that equal runs leave no gaps.
    bool ends_where_it_meets = slabs > low_end;
    u32 begin = 0, end = ends_where_it_meets ? low_end : slabs;
    WARPHEAP_NO_UNROLL
    for (;;) {
      u32 const first = lock_first(run, alignment, begin, end, ends_where_it_meets);
      if (first != none) {
        publish_run(first, run);
        return table_.data(first);
      }
      if (ends_where_it_meets) {
        ends_where_it_meets = false;
        begin = scale_below(lane_random_bits(), slabs / run) * run;
        end = slabs;
      } else {
        if (begin == 0) return nullptr;
        end = begin + run - 1 < slabs ? begin + run - 1 : slabs;  // the last run ends behind it
        begin = 0;
      }
    }
  }

  static constexpr u32 low_end = 4096;  // slabs that are looked at from the lowest on

  WARPHEAP_DEVICE bool is_aligned(u32 slab, u64 alignment) const {
    return (reinterpret_cast<u64>(table_.data(slab)) & (alignment - 1)) == 0;
  }

  /// Locks the first run in [begin, end). `none`: there is none, or it `ends` at a locked slab.
  WARPHEAP_DEVICE u32 lock_first(u32 length, u64 alignment, u32 begin, u32 end, bool ends) const {
    u32 first = begin;  // [first, slab) may be taken
    u64 named = 0;      // the slabs around, as of the last look
    bool looks = true;
    WARPHEAP_NO_UNROLL
    for (u32 slab = begin; slab < end;) {
      if (looks || slab % 64 == 0) named = table_.index(slab_table::reclaimable).newest(slab);
      looks = false;
      u64 const ahead = named >> (slab % 64);
      if ((ahead & 1) == 0) {
        first = slab = ahead != 0 ? slab + lowest_bit(ahead) : (slab | 63) + 1;
        continue;
      }
      ++slab;
      if (!is_aligned(first, alignment)) first = slab;
      if (slab - first < length) continue;
      u32 const taken = slab_runs{table_.opaque()}.lock_all(first, length, ends);
      if (taken == length) return first;
      if (taken > length) return none;
      slab = first = first + taken + 1;  // behind the one in use
      looks = true;
    }
    return none;
  }

  /// Locks a run's slabs in ascending order. Returns `length`, or which slab was in use. At a slab
  /// that another thread holds it waits, or, if it `ends` there, returns length + 1.
  WARPHEAP_DEVICE u32 lock_all(u32 first, u32 length, bool ends) const {
    u32 taken = 0;
    WARPHEAP_NO_UNROLL
    for (backoff wait; taken < length;) {
      if (slab_lock::take(table_, first + taken)) {
        ++taken;
        continue;
      }
      slab_state const now{table_.state(first + taken).fetch_or(0, order::relaxed)};
      u32 const lost = taken;
      WARPHEAP_NO_UNROLL
      for (; taken > 0; --taken) slab_lock::unlock(table_, first + taken - 1, slab_kind::locked, order::release);
      if (!now.is_reclaimable() && now.kind() != slab_kind::locked) return lost;
      if (ends) return length + 1;
      wait.while_working();  // what others hold, they take or give back
    }
    return length;
  }

  WARPHEAP_DEVICE void publish_run(u32 first, u32 length) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < length; ++i) slab_lock::make_run(table_, first + i);
    // release: all slabs are run before one can be freed (slab.R1); pairs with try_destroy().
    table_.header(first).store(slab_header::of_run(length).word, order::release);
    release_fence();  // slab.F4: the header is there when a pointer arrives that nothing orders
  }

  slab_table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
