// Blocks larger than a slab: runs of consecutive slabs. One search at a time, under a mutex, because two searches that
// each hold half of what the other needs would both fail. Free and empty slabs are locked in ascending order and rolled
// back when one is lost to a smaller request.
//
//   R1  the role of a run's first slab says how long it is; whoever changes it from run to no role
//       frees the run. It is stored after all slabs have become run, and cleared before the first
//       ceases to be one. So the thread that frees a run finds each of its slabs in kind run,
//       however often and whenever the run is freed.
//   R2  slabs of a run other than the first keep an old role of a class, harmless because their
//       bitmaps are zero (D7).
#pragma once

#include "../../../platform/backoff.hpp"
#include "slab_lock.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Allocates and frees runs. Stateless; `table` is the heap.
class slab_runs {
 public:
  /// A run of `length` slabs whose first starts at a multiple of `alignment` bytes; nullptr if at one instant there was
  /// none. Any lane alone.
  WARPHEAP_COLD static void* create(slab_table table, u64 length, u64 alignment) {
    return slab_runs{table}.create(length, alignment);
  }

  /// Frees the run that starts at slab `first`, if its role is still `role`; if not, `role` becomes
  /// what it is now (R1).
  WARPHEAP_DEVICE static bool try_destroy(slab_table const& table, u32 first, slab_role& role) {
    u32 const length = role.length();
    // acq_rel: one thread wins; the owner's writes are released by the fence below. Acquire: all
    // slabs are run by now; pairs with the release in publish().
    if (!table.role(first).compare_exchange(role.word, slab_role{}.word, order::acq_rel, order::relaxed)) return false;
    recycling_fence();  // once for all slabs, in place of a release of each
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < length; ++i) slab_lock::unlock(table, first + i, slab_kind::run, order::relaxed);
    table.raise_epoch();
    return true;
  }

 private:
  static constexpr u32 none = ~0u;
  static constexpr u32 length_shift = 40;  // of the certificate: epoch sum + 1 below, shortest length not found above

  WARPHEAP_DEVICE explicit slab_runs(slab_table const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create(u64 length, u64 alignment) const {
    if (length > table_.geometry().slabs()) return nullptr;
    u32 const slabs = static_cast<u32>(length);
    bool const certifiable = alignment <= table_.geometry().alignment();
    if (certifiable && is_certified(slabs)) return nullptr;
    lock();
    u32 first = none;
    // Those who waited while somebody certified that there is none need not look again.
    WARPHEAP_NO_UNROLL
    for (backoff wait; !(certifiable && is_certified(slabs)); wait.pause()) {
      first = slab_runs{table_.afresh()}.find_noted(slabs, alignment);
      if (first != none) break;
      u64 const epoch = table_.epoch_sum();
      bool disturbed = false;
      first = slab_runs{table_.afresh()}.find(slabs, alignment, disturbed);
      if (first != none) break;
      if (disturbed || table_.epoch_sum_newest() != epoch) continue;
      if (certifiable) certify(epoch, slabs);
      break;
    }
    if (first != none) publish(first, slabs);
    unlock();
    return first == none ? nullptr : table_.data(first);
  }

  WARPHEAP_DEVICE void lock() const {
    // acquire: pairs with the release in unlock().
    WARPHEAP_NO_UNROLL
    for (backoff wait; table_.run_mutex().exchange(1, order::acquire) != 0;) wait.pause();
  }
  WARPHEAP_DEVICE void unlock() const { table_.run_mutex().store(0, order::release); }

  WARPHEAP_DEVICE static u64 stamp(u64 epoch) { return (epoch + 1) & ((u64{1} << length_shift) - 1); }

  WARPHEAP_DEVICE bool is_certified(u32 length) const {
    // acquire: pairs with the release in certify().
    u64 const seen = table_.run_certificate().load(order::acquire);
    return seen != 0 && length >= (seen >> length_shift) &&
           (seen & ((u64{1} << length_shift) - 1)) == stamp(table_.epoch_sum());
  }

  /// Under the mutex.
  WARPHEAP_DEVICE void certify(u64 epoch, u32 length) const {
    u64 const seen = table_.run_certificate().load(order::relaxed);
    bool const same_epoch = (seen & ((u64{1} << length_shift) - 1)) == stamp(epoch);
    if (same_epoch && (seen >> length_shift) <= length) return;
    // release: what we saw happens before whoever relies on it; pairs with the acquire in is_certified().
    table_.run_certificate().store(u64{length} << length_shift | stamp(epoch), order::release);
  }

  WARPHEAP_DEVICE bool is_aligned(u32 slab, u64 alignment) const {
    return (reinterpret_cast<u64>(table_.data(slab)) & (alignment - 1)) == 0;
  }

  /// Locks a run of slabs that the indexes name as free or empty; `none` if they name none. 64 slabs a look; what the
  /// indexes miss, find() sees.
  WARPHEAP_DEVICE u32 find_noted(u32 length, u64 alignment) const {
    u64* const free = table_.index_words(slab_table::free_slabs);
    u64* const empty = table_.index_words(slab_table::empty_slabs);
    u32 const slabs = table_.geometry().slabs();
    u32 first = 0, seen = 0;  // [first, first + seen) may be taken
    WARPHEAP_NO_UNROLL
    for (u32 slab = 0; slab < slabs;) {
      // relaxed: hints; locking checks them.
      u64 const noted = atomic_ref<u64>{free[slab / 64]}.load(order::relaxed) |
                        atomic_ref<u64>{empty[slab / 64]}.load(order::relaxed);
      u32 const end = slab + 64 < slabs ? slab + 64 : slabs;
      if (noted == 0) {
        seen = 0;
        slab = end;
      }
      WARPHEAP_NO_UNROLL
      for (; slab < end; ++slab) {
        if (seen == 0) first = slab;
        seen = ((noted >> (slab % 64)) & 1) && is_aligned(first, alignment) ? seen + 1 : 0;
        if (seen < length) continue;
        if (try_lock_all(first, length)) return first;
        seen = 0;
      }
    }
    return none;
  }

  /// Locks the first run there is; `none` if we saw none. `disturbed`: a slab was locked by another, or lost to one.
  WARPHEAP_DEVICE u32 find(u32 length, u64 alignment, bool& disturbed) const {
    u32 const slabs = table_.geometry().slabs();
    u32 first = 0, seen = 0;  // [first, first + seen) can be taken
    WARPHEAP_NO_UNROLL
    for (u32 slab = 0; slab < slabs; ++slab) {
      slab_state const now = table_.load(slab);
      disturbed = disturbed || now.kind() == slab_kind::locked;
      if (seen == 0) first = slab;
      seen = now.takeable() && is_aligned(first, alignment) ? seen + 1 : 0;
      if (seen < length) continue;
      if (try_lock_all(first, length)) return first;
      disturbed = true;
      seen = 0;
    }
    return none;
  }

  WARPHEAP_DEVICE bool try_lock_all(u32 first, u32 length) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < length; ++i) {
      if (slab_lock::take_for_run(table_.afresh(), first + i)) continue;
      if (i == 0) return false;
      while (i-- > 0) slab_lock::unlock(table_, first + i, slab_kind::locked, order::release);
      table_.raise_epoch();
      return false;
    }
    return true;
  }

  WARPHEAP_DEVICE void publish(u32 first, u32 length) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < length; ++i) slab_lock::publish_run(table_, first + i);
    // release: all slabs are run before somebody can free them (R1); pairs with the acquire in
    // try_destroy().
    table_.role(first).store(slab_role::of_run(length).word, order::release);
  }

  slab_table table_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
