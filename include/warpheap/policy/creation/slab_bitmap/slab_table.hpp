// The slabs of one heap and every transition between their states. What is not a slab's state (which slab to try, when to
// make one, when to give up) is decided elsewhere.
//
//   transition                   by                                  operation
//   reserve n                    anyone, blindly                     fetch_add; kept only if the old word allows it
//   give back k                  that reserver                       the same subtracted, then settle
//   free k                       the owners' leader                  fetch_sub, then settle
//   unlist                       a reserver that reaches the limit   o = fetch_or(S); o live without S: toggle, settle
//   settle: S, used <= relist    whoever left it so                  o = fetch_and(~S); o live with S: toggle
//   settle: H, used < capacity   whoever left it so                  o = fetch_and(~H); o live with H: toggle, raise
//   settle: used = 0             whoever left it so                  note it as empty, raise
//   takeable -> locked           a taker                             compare-exchange; toggles off where listed
//   locked -> live, run, free    who locked it                       fetch_add of the difference; toggles on
//
// A toggle is an exclusive-or of the slab's bit in an index; toggles commute, so late ones need no second look. "Raise"
// adds to an epoch counter: room has appeared for somebody who found none.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../structure/bitmap.hpp"
#include "../../../structure/bitmap_index.hpp"
#include "descriptor.hpp"
#include "geometry.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Blocks of one slab promised to a caller, who now looks for them in its bitmap. One word, so that it stays in registers.
///
///   63 62      56 55    32 31        24 23          0
///  | X | blocks  |  place  |     0     |    slab     |     X: this reservation reached the soft limit
class slab_reservation {
 public:
  /// `place` when nothing is known of where free blocks are.
  static constexpr u32 anywhere = (1u << 24) - 1;

  slab_reservation() = default;
  WARPHEAP_DEVICE slab_reservation(u32 slab, u32 blocks, u32 place, bool crossed)
      : word_{u64{crossed} << 63 | u64{blocks} << 56 | u64{place} << 32 | slab} {}
  WARPHEAP_DEVICE explicit slab_reservation(u64 word) : word_{word} {}

  WARPHEAP_DEVICE u32 slab() const { return static_cast<u32>(word_); }
  /// Promised and not yet claimed, at most 32; 0: there was no room.
  WARPHEAP_DEVICE u32 blocks() const { return static_cast<u32>(word_ >> 56) & 127; }
  /// Where free blocks are likely.
  WARPHEAP_DEVICE u32 place() const { return static_cast<u32>(word_ >> 32) & anywhere; }
  WARPHEAP_DEVICE bool crossed() const { return word_ >> 63; }
  WARPHEAP_DEVICE u64 word() const { return word_; }

 private:
  u64 word_ = 0;
};

/// View of a heap's slabs; 16 bytes, trivially copyable, owns nothing.
class slab_table {
 public:
  /// Counts that no invariant rests on.
  enum class count : u32 { double_frees, foreign_frees, failures };

  // roles: what free() needs to know of a slab without touching its descriptor (reading the class there cost 30%)
  static constexpr u32 no_role = 0;                 // or 1 + size class
  static constexpr u32 run_head = 1u << 31;         // | slabs of the run

  slab_table() = default;
  WARPHEAP_HOST_DEVICE slab_table(u8* base, slab_geometry geometry) : base_{base}, geometry_{geometry} {}

  WARPHEAP_HOST_DEVICE u8* base() const { return base_; }
  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return geometry_; }

  WARPHEAP_DEVICE atomic_ref<u64> state(u32 slab) const { return atomic_ref<u64>{*record(slab)}; }
  WARPHEAP_DEVICE bitmap blocks(u32 slab) const { return {record(slab) + geometry_.descriptor_bytes() / 8}; }
  WARPHEAP_DEVICE atomic_ref<u32> role(u32 slab) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(base_ + geometry_.roles_offset())[slab]};
  }
  WARPHEAP_DEVICE slab_state load(u32 slab) const { return {state(slab).load(order::relaxed)}; }

  /// Free slabs; exact at rest.
  WARPHEAP_DEVICE bitmap_index free_slabs() const { return index(0); }
  /// Live slabs that were empty when last looked at; a hint.
  WARPHEAP_DEVICE bitmap_index empty_slabs() const { return index(1); }
  /// Live slabs of a class below the soft limit (D4).
  WARPHEAP_DEVICE bitmap_index listed(u32 size_class) const { return index(2 + 2 * size_class); }
  /// Live slabs of a class that are not known to be full (D4).
  WARPHEAP_DEVICE bitmap_index scarce(u32 size_class) const { return index(3 + 2 * size_class); }

  /// Words of `index(which)`, for those who walk it.
  WARPHEAP_DEVICE u64* index_words(u32 which) const {
    return reinterpret_cast<u64*>(base_ + geometry_.indexes_offset()) + which * geometry_.index_words();
  }

  /// Blocks of word `word` that exist in a slab of `capacity` blocks (D7).
  WARPHEAP_HOST_DEVICE static u64 valid_mask(u32 capacity, u32 word) {
    u32 const before = 64 * word;
    return capacity >= before + 64 ? ~u64{0} : low_mask(capacity > before ? capacity - before : 0);
  }

  /// Promises up to `wanted` blocks of the class to the caller if fewer than `limit` are promised. Any lane alone.
  WARPHEAP_DEVICE slab_reservation reserve(u32 slab, u32 size_class, u32 wanted, u32 limit) const {
    // acquire: the slab's role and its empty words happen before we use them; pairs with the release in publish().
    slab_state const old{state(slab).fetch_add(slab_state::promise(wanted), order::acquire)};
    if (!old.serves(size_class) || old.used() >= limit) {
      give_back(slab, wanted);
      return {};
    }
    slab_limits const limits{geometry_.capacity(size_class)};
    u32 const room = limits.capacity - old.used();
    u32 const kept = wanted < room ? wanted : room;
    if (kept < wanted) give_back(slab, wanted - kept);
    return kept_reservation(slab, old, kept, limits);
  }

  /// The same by compare-exchange, for searchers: a slab that has no room is not touched. `now` is what was seen there.
  WARPHEAP_DEVICE slab_reservation try_reserve(u32 slab, u32 size_class, u32 wanted, slab_state now) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    while (now.serves(size_class) && now.used() < limits.capacity) {
      u32 const room = limits.capacity - now.used();
      u32 const kept = wanted < room ? wanted : room;
      // acquire: as in reserve().
      if (state(slab).compare_exchange(now.word, now.word + slab_state::promise(kept), order::acquire, order::relaxed))
        return kept_reservation(slab, now, kept, limits);
    }
    return {};
  }

  /// Takes `blocks` freed blocks off the slab's count, after their bits were cleared (D2).
  WARPHEAP_DEVICE void subtract_freed(u32 slab, u32 blocks) const {
    // relaxed: data travels by the bitmap word; the count only guards.
    slab_state const old{state(slab).fetch_sub(blocks, order::relaxed)};
    settle(slab, {old.word - blocks});
  }

  /// Marks a slab that was seen full, so that searchers pass it by until somebody leaves room (D5).
  WARPHEAP_DEVICE void mark_full(u32 slab, slab_state full) const {
    // relaxed: the exact word, so it is still live, of that class and full.
    if (!full.hard() &&
        state(slab).compare_exchange(full.word, full.word | slab_state::hard_bit, order::relaxed, order::relaxed))
      scarce(full.size_class()).toggle(slab);
  }

  /// Locks a free or empty slab on the way to `size_class`. True if we did; then publish() or unlock() must follow.
  WARPHEAP_DEVICE bool try_lock(u32 slab, u32 size_class) const {
    slab_state now = load(slab);
    if (!now.takeable()) return false;
    if (now.live()) return try_lock_empty(slab, size_class, now);
    // D1: transients stay in the count; each takes its own part back from both fields.
    u64 const locked = slab_state::of(slab_kind::locked, size_class).word + slab_state::promise(now.used());
    // acquire: the last owner's writes happen before ours; pairs with the release in unlock() and publish_free().
    if (!state(slab).compare_exchange(now.word, locked, order::acquire, order::relaxed)) return false;
    free_slabs().toggle(slab);
    return true;
  }

  /// Makes a slab locked for `size_class` live, with `promised` blocks promised to the caller.
  WARPHEAP_DEVICE slab_reservation publish(u32 slab, u32 size_class, u32 promised) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    // relaxed: ordered by the release below.
    role(slab).store(1 + size_class, order::relaxed);
    bool const soft = promised >= limits.soft, hard = promised >= limits.capacity;
    u64 const change = slab_state::of(slab_kind::live, 0).word - slab_state::of(slab_kind::locked, 0).word +
                       slab_state::promise(promised) + (soft ? slab_state::soft_bit : 0) +
                       (hard ? slab_state::hard_bit : 0);
    // release: role and cleared words happen before any reservation; pairs with the acquire in reserve().
    slab_state const old{state(slab).fetch_add(change, order::release)};
    if (!soft) listed(size_class).toggle(slab);
    if (!hard) scarce(size_class).toggle(slab);
    return {slab, promised, old.ever() == 0 ? 0 : slab_reservation::anywhere, soft};
  }

  /// Makes a slab locked for class 0 part of a run.
  WARPHEAP_DEVICE void publish_run(u32 slab) const {
    // release: as in publish(); the run's head is handed out by its locker.
    state(slab).fetch_add(slab_state::of(slab_kind::run, 0).word - slab_state::of(slab_kind::locked, 0).word,
                          order::release);
  }

  /// Gives a slab of kind `from` (locked for class 0, or run) back to the free ones. The caller raises the epoch.
  WARPHEAP_DEVICE void unlock(u32 slab, slab_kind from) const {
    // release: what the owner did happens before the next one's use; pairs with the acquire in try_lock().
    state(slab).fetch_sub(slab_state::of(from, 0).word, order::release);
    free_slabs().toggle(slab);
  }

  /// Says that room has appeared.
  WARPHEAP_DEVICE void raise_epoch() const {
    // release: the room happens before whoever counts this; pairs with the acquire in epoch_sum().
    epoch(simt::sm_id()).fetch_add(1, order::release);
  }

  /// How often room has appeared. Monotonic: two equal sums have no raise between them.
  WARPHEAP_DEVICE u64 epoch_sum() const {
    u64 sum = 0;
    // acquire: pairs with the release in raise_epoch().
    for (u32 i = 0; i < geometry_.epochs(); ++i) sum += epoch(i).load(order::acquire);
    return sum;
  }

  /// The same, certain to see every raise that was made before: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE u64 epoch_sum_newest() const {
    u64 sum = 0;
    for (u32 i = 0; i < geometry_.epochs(); ++i) sum += epoch(i).fetch_add(0, order::acq_rel);
    return sum;
  }

  /// What a row (a multiprocessor, or a few) uses for a class: slab + 1 in the low half, demand in the high one.
  WARPHEAP_DEVICE atomic_ref<u64> hint(u32 size_class) const {
    u32 const row = simt::sm_id() & (geometry_.rows() - 1);
    return atomic_ref<u64>{
        reinterpret_cast<u64*>(base_ + geometry_.hints_offset())[row * geometry_.classes() + size_class]};
  }

  /// Epoch sum + 1 at which nothing was found for a class; 0: never.
  WARPHEAP_DEVICE atomic_ref<u64> certificate(u32 size_class) const {
    return atomic_ref<u64>{control()[16 * geometry_.epochs() + size_class]};
  }
  /// The same for runs, with the length.
  WARPHEAP_DEVICE atomic_ref<u64> run_certificate() const { return certificate(geometry_.classes()); }
  WARPHEAP_DEVICE atomic_ref<u64> run_mutex() const { return certificate(geometry_.classes() + 1); }

  WARPHEAP_DEVICE void add_count(count which, u64 amount) const {
    // relaxed: nobody reads it before the kernel ends.
    certificate(geometry_.classes() + 2 + static_cast<u32>(which)).fetch_add(amount, order::relaxed);
  }

 private:
  WARPHEAP_DEVICE u64* record(u32 slab) const {
    return reinterpret_cast<u64*>(base_ + geometry_.records_offset() + u64{slab} * geometry_.record_bytes());
  }
  WARPHEAP_DEVICE bitmap_index index(u32 which) const { return {index_words(which), geometry_.slabs()}; }
  WARPHEAP_DEVICE u64* control() const { return reinterpret_cast<u64*>(base_ + geometry_.control_offset()); }
  WARPHEAP_DEVICE atomic_ref<u64> epoch(u32 which) const {
    return atomic_ref<u64>{control()[16 * (which & (geometry_.epochs() - 1))]};
  }

  WARPHEAP_DEVICE slab_reservation kept_reservation(u32 slab, slab_state old, u32 kept, slab_limits limits) const {
    bool const reached = old.used() + kept >= limits.soft;
    if (reached && !old.soft()) unlist(slab);
    // While fewer blocks were ever promised than there are, the next ones in order have never been used.
    u32 const place = old.ever() < limits.capacity ? old.ever() : slab_reservation::anywhere;
    return {slab, kept, place, reached && old.used() < limits.soft};
  }

  WARPHEAP_DEVICE void give_back(u32 slab, u32 blocks) const {
    // relaxed: nothing was used on the strength of this promise.
    slab_state const old{state(slab).fetch_sub(slab_state::promise(blocks), order::relaxed)};
    settle(slab, {old.word - slab_state::promise(blocks)});
  }

  WARPHEAP_DEVICE void unlist(u32 slab) const {
    // relaxed: S and the index bit are brought together by toggles alone (D4).
    slab_state const old{state(slab).fetch_or(slab_state::soft_bit, order::relaxed)};
    if (!old.live() || old.soft()) return;
    listed(old.size_class()).toggle(slab);
    settle(slab, {old.word | slab_state::soft_bit});
  }

  /// Puts the slab where it belongs after a change that left it as `now` (D4, D5).
  WARPHEAP_DEVICE void settle(u32 slab, slab_state now) const {
    if (!now.live()) return;
    slab_limits const limits{geometry_.capacity(now.size_class())};
    u64 const lifted = (now.soft() && now.used() <= limits.relist ? slab_state::soft_bit : 0) |
                       (now.hard() && now.used() < limits.capacity ? slab_state::hard_bit : 0);
    if (now.used() == 0)
      settle_empty(slab, now, lifted);
    else if (lifted)
      relist(slab, {state(slab).fetch_and(~lifted, order::relaxed)}, lifted);
  }

  /// Toggles the slab into the indexes that `old`, from which `lifted` was lifted, was off.
  WARPHEAP_DEVICE void relist(u32 slab, slab_state old, u64 lifted) const {
    if (!old.live()) return;
    u64 const changed = old.word & lifted;
    if (changed & slab_state::soft_bit) listed(old.size_class()).toggle(slab);
    if (changed & slab_state::hard_bit) {
      scarce(old.size_class()).toggle(slab);
      raise_epoch();
    }
  }

  /// An empty slab may go to another class, and its next blocks come in order again: one try to set `ever` back.
  WARPHEAP_DEVICE void settle_empty(u32 slab, slab_state now, u64 lifted) const {
    u64 expected = now.word;
    u64 const clean = now.word & ~lifted & (slab_state::ever_unit - 1);
    if (expected == clean || state(slab).compare_exchange(expected, clean, order::relaxed, order::relaxed))
      relist(slab, now, lifted);
    else if (lifted)
      relist(slab, {state(slab).fetch_and(~lifted, order::relaxed)}, lifted);
    note_empty(slab);
    raise_epoch();
  }

  WARPHEAP_DEVICE void note_empty(u32 slab) const {
    // relaxed: a hint; a search that finds nothing looks at the slabs themselves.
    u64 const word = atomic_ref<u64>{index_words(1)[slab / 64]}.load(order::relaxed);
    if (!((word >> (slab % 64)) & 1)) empty_slabs().set(slab);
  }

  /// Locks a live slab that was empty as `now`, and hands its words over: all are claimed, so that every earlier free has
  /// landed, and then cleared. While we hold them they count as promised, so that a block freed twice at this moment
  /// takes nothing that is not there.
  WARPHEAP_DEVICE bool try_lock_empty(u32 slab, u32 size_class, slab_state now) const {
    u32 const old_class = now.size_class();
    u32 const capacity = geometry_.capacity(old_class);
    // D4: S and H go with the lock. A late settler that lifts one from a locked slab would leave its toggle undone.
    u64 const flags = now.word & (slab_state::soft_bit | slab_state::hard_bit);
    u64 const locked = slab_state::of(slab_kind::locked, old_class).word | slab_state::promise(capacity);
    // acquire: pairs with the release in publish(); the old owners' writes come with the words below.
    if (!state(slab).compare_exchange(now.word, locked, order::acquire, order::relaxed)) return false;
    u32 const kept = hand_over(slab, capacity);
    if (kept == not_empty) {
      // release: gives the lock back as it was taken.
      u64 const change = slab_state::of(slab_kind::live, 0).word - slab_state::of(slab_kind::locked, 0).word + flags -
                         slab_state::promise(capacity);
      settle(slab, {state(slab).fetch_add(change, order::release) + change});
      return false;
    }
    // relaxed: published later. The class changes here, under the lock (D3).
    state(slab).fetch_add(slab_state::of(slab_kind::locked, size_class).word -
                              slab_state::of(slab_kind::locked, old_class).word - slab_state::promise(kept),
                          order::relaxed);
    if (!now.soft()) listed(old_class).toggle(slab);
    if (!now.hard()) scarce(old_class).toggle(slab);
    empty_slabs().clear(slab);
    return true;
  }

  /// Claims and clears all words of a locked slab of `capacity` blocks. Returns the blocks that are still ours to
  /// subtract: all, less those that somebody freed a second time meanwhile; `not_empty` if a word was not zero (D7), and
  /// then leaves it as it was.
  WARPHEAP_DEVICE u32 hand_over(u32 slab, u32 capacity) const {
    bitmap const words = blocks(slab);
    u32 const count = (capacity + 63) / 64;
    u32 claimed = 0;
    for (; claimed < count; ++claimed) {
      u64 const valid = valid_mask(capacity, claimed);
      // acquire: what the old owners wrote happens before the next one's use; pairs with the release in
      // bitmap::release().
      u64 const ours = words.try_claim(claimed, valid, order::acquire);
      if (ours == valid) continue;
      words.release(claimed, ours);
      break;
    }
    recycling_fence();
    u32 cleared = 0;
    for (u32 i = 0; i < claimed; ++i) cleared += popcount(words.release(i, valid_mask(capacity, i)));
    return claimed == count ? cleared : not_empty;
  }

  static constexpr u32 not_empty = ~0u;

  u8* base_;
  slab_geometry geometry_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
