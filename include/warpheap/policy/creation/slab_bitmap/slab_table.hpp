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
// Functions off the common path are calls that take everything by value (WARPHEAP_COLD), and do not call one another:
// nested calls add their registers up.
//
// A toggle is an exclusive-or of the slab's bit in an index; toggles commute, so late ones need no second look. "Raise"
// adds to an epoch counter: room has appeared for somebody who found none.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../structure/bitmap.hpp"
#include "../../../structure/bitmap_index.hpp"
#include "descriptor.hpp"
#include "geometry.hpp"
#include "hint.hpp"
#include "role.hpp"
#include "slab_reservation.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// View of a heap's slabs; 16 bytes, trivially copyable, owns nothing.
class slab_table {
 public:
  /// Counts that no invariant rests on.
  enum class count : u32 { double_frees, foreign_frees, failures };

  slab_table() = default;
  /// `base` is where the pool ends and the metadata begins.
  WARPHEAP_HOST_DEVICE slab_table(u8* base, slab_geometry geometry) : base_{base}, geometry_{geometry} {}

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return geometry_; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - geometry_.pool_bytes(); }
  WARPHEAP_HOST_DEVICE u8* data(u32 slab) const { return pool() + (u64{slab} << geometry_.slab_log2()); }

  WARPHEAP_DEVICE atomic_ref<u64> state(u32 slab) const { return atomic_ref<u64>{*record(slab)}; }
  WARPHEAP_DEVICE bitmap blocks(u32 slab) const { return {record(slab) + geometry_.bitmap_offset() / 8}; }
  WARPHEAP_DEVICE atomic_ref<u32> role(u32 slab) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(record(slab))[geometry_.role_offset() / 4]};
  }
  WARPHEAP_DEVICE slab_state load(u32 slab) const { return {state(slab).load(order::relaxed)}; }

  // indexes
  static constexpr u32 free_slabs = 0;   // exact at rest (D4)
  static constexpr u32 empty_slabs = 1;  // live slabs that were empty when last looked at: a hint
  /// Live slabs of a class below the soft limit (D4).
  WARPHEAP_HOST_DEVICE static constexpr u32 listed(u32 size_class) { return 2 + 2 * size_class; }
  /// Live slabs of a class that are not known to be full (D4).
  WARPHEAP_HOST_DEVICE static constexpr u32 scarce(u32 size_class) { return 3 + 2 * size_class; }

  WARPHEAP_DEVICE bitmap_index index(u32 which) const { return {index_words(which), geometry_.slabs()}; }

  /// Words of `index(which)`, for those who walk it.
  WARPHEAP_DEVICE u64* index_words(u32 which) const {
    return reinterpret_cast<u64*>(base_ + geometry_.indexes_offset()) + which * geometry_.index_words();
  }

  /// A slab in an index, near `start`; bitmap_index::none if it saw none.
  WARPHEAP_COLD static u32 find(slab_table table, u32 which, u32 start) { return table.index(which).find(start); }

  /// Blocks of word `word` that exist in a slab of `capacity` blocks (D7).
  WARPHEAP_HOST_DEVICE static u64 valid_mask(u32 capacity, u32 word) {
    u32 const before = 64 * word;
    return capacity >= before + 64 ? ~u64{0} : low_mask(capacity > before ? capacity - before : 0);
  }

  /// The first half of a reservation: promises `wanted` blocks blindly and returns what was there before. The whole of it
  /// if the slab serves the class and stays below its soft limit; else finish_reserve() must follow.
  WARPHEAP_DEVICE slab_state promise(u32 slab, u32 wanted) const {
    // acquire: the slab's role and its empty words happen before we use them; pairs with the release in publish().
    return {state(slab).fetch_add(slab_state::promise(wanted), order::acquire)};
  }

  /// The second half: keeps what `old` allows, gives the rest back, and takes the slab off the index at the soft limit.
  /// Keeps nothing if `limit` blocks were promised (no_limit: the capacity). Any lane alone.
  WARPHEAP_COLD static slab_reservation finish_reserve(slab_table table, u32 slab, u32 size_class, u32 wanted,
                                                       u32 limit, u64 old) {
    return table.finish(slab, size_class, wanted, limit, slab_state{old});
  }

  static constexpr u32 no_limit = ~0u;

  /// Promises blocks by compare-exchange, for searchers: a slab that has no room is not touched. A full one is marked, so
  /// that searchers pass it by until somebody leaves room (D5).
  WARPHEAP_COLD static slab_reservation try_reserve(slab_table table, u32 slab, u32 size_class, u32 wanted) {
    return table.exchange_reserve(slab, size_class, wanted);
  }

  /// Takes `blocks` freed blocks off the slab's count, after their bits were cleared (D2).
  WARPHEAP_DEVICE void subtract_freed(u32 slab, u32 blocks) const {
    // relaxed: data travels by the bitmap word; the count only guards.
    slab_state const now{state(slab).fetch_sub(blocks, order::relaxed) - blocks};
    if (now.live() && may_need_settling(now)) settle(*this, slab, now.word);
  }

  /// Takes a free slab for the class, promises `wanted` blocks to the caller, and makes it the slab that hint
  /// `hinted` uses, unless that is no_hint, or with nothing wanted the one it uses next. Nothing taken if the slab is not free, or somebody else was faster.
  WARPHEAP_COLD static slab_reservation make(slab_table table, u32 slab, u32 size_class, u32 wanted, u32 hinted) {
    if (!table.lock_free(slab, size_class)) return {};
    return table.publish(slab, size_class, wanted, hinted);
  }

  /// The same with an empty slab of any class.
  WARPHEAP_COLD static slab_reservation recycle(slab_table table, u32 slab, u32 size_class, u32 wanted, u32 hinted) {
    if (table.lock_empty(slab, size_class)) return table.publish(slab, size_class, wanted, hinted);
    table.drop_note(slab);
    return {};
  }
  static constexpr u32 no_hint = ~0u;

  /// The first slab from `from` on that may have room for the class, or scan_end; with scan_unsure if one on the way was
  /// locked. Looks without touching: searchers would feed each other's restarts. All lanes of `group_mask` call together,
  /// side by side over the slabs; all hold the result.
  WARPHEAP_COLD static u32 scan(slab_table table, u32 group_mask, u32 size_class, u32 from) {
    u32 const rank = popcount(group_mask & low_mask32(simt::lane_id())), lanes = popcount(group_mask);
    u32 const slabs = table.geometry_.slabs();
    u32 unsure = 0;
    for (; from < slabs; from += lanes) {
      slab_state const now = from + rank < slabs ? table.load(from + rank) : slab_state::of(slab_kind::run, 0);
      // A slab of the class is worth a look if it has room, or is full and not marked.
      u32 const worth = simt::ballot(group_mask, now.takeable() || (now.serves(size_class) && !now.hard()));
      u32 const locked = simt::ballot(group_mask, now.kind() == slab_kind::locked);
      if (locked) unsure = scan_unsure;
      if (worth) return (from + popcount(group_mask & low_mask32(lowest_bit(worth)))) | unsure;
    }
    return scan_end | unsure;
  }
  static constexpr u32 scan_unsure = 1u << 31;
  static constexpr u32 scan_end = scan_unsure - 1;

  /// Locks a free or empty slab for a run. True if we did; then publish_run() or unlock() must follow.
  WARPHEAP_COLD static bool lock_for_run(slab_table table, u32 slab) {
    if (table.lock_free(slab, 0) || table.lock_empty(slab, 0)) return true;
    table.drop_note(slab);
    return false;
  }

  /// Makes a slab locked for a run part of it.
  WARPHEAP_DEVICE void publish_run(u32 slab) const {
    // relaxed: nobody reads anything on the strength of it; the locker hands the run out.
    state(slab).fetch_add(slab_state::of(slab_kind::run, 0).word - slab_state::of(slab_kind::locked, 0).word,
                          order::relaxed);
  }

  /// Gives a slab of kind `from` (locked for a run, or run) back to the free ones. The caller raises the epoch.
  WARPHEAP_DEVICE void unlock(u32 slab, slab_kind from, order how) const {
    // how: release, or relaxed after recycling_fence(): what the owner did happens before the next one's use; pairs with
    // the acquire in lock_free().
    state(slab).fetch_sub(slab_state::of(from, 0).word, how);
    index(free_slabs).toggle(slab);
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

  /// The hint entry of this multiprocessor for a class, one of those it uses (`salt` says which).
  WARPHEAP_DEVICE u32 hint_entry(u32 size_class, u32 rows_used_log2, u32 salt) const {
    u32 const spread = geometry_.rows_log2() > slab_geometry::max_rows_used_log2
                           ? geometry_.rows_log2() - slab_geometry::max_rows_used_log2
                           : 0;
    u32 const row = simt::sm_id() + ((salt & ((1u << rows_used_log2) - 1)) << spread);
    return (row & (geometry_.rows() - 1)) * geometry_.classes() + size_class;
  }
  WARPHEAP_DEVICE atomic_ref<u64> hint(u32 entry) const { return atomic_ref<u64>{hint_words(entry)[0]}; }
  /// Makes `slab` the one that a hint uses, or the next one. One try: it is only a hint.
  WARPHEAP_DEVICE void set_hint(u32 entry, u32 slab, bool as_next) const {
    // relaxed: whoever uses it asks the slab.
    slab_hint seen{hint(entry).load(order::relaxed)};
    if (as_next && seen.next() != 0) return;
    u64 const wished = as_next ? seen.followed_by(slab).word : seen.using_slab(slab).word;
    hint(entry).compare_exchange(seen.word, wished, order::relaxed, order::relaxed);
  }
  /// Soft limit in the low half, capacity in the high one: of the entry's class, never changes.
  WARPHEAP_DEVICE u64 hint_limits(u32 entry) const {
    return atomic_ref<u64>{hint_words(entry)[1]}.load(order::relaxed);
  }
  WARPHEAP_DEVICE u64* hint_words(u32 entry) const {
    return reinterpret_cast<u64*>(base_ + geometry_.hints_offset()) + 2 * u64{entry};
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
    return reinterpret_cast<u64*>(base_ + u64{slab} * geometry_.record_bytes());
  }
  WARPHEAP_DEVICE u64* control() const { return reinterpret_cast<u64*>(base_ + geometry_.control_offset()); }
  WARPHEAP_DEVICE atomic_ref<u64> epoch(u32 which) const {
    return atomic_ref<u64>{control()[16 * (which & (geometry_.epochs() - 1))]};
  }

  WARPHEAP_DEVICE slab_reservation finish(u32 slab, u32 size_class, u32 wanted, u32 limit, slab_state old) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    u32 kept = 0;
    // Transients may have filled the slab beyond its capacity.
    if (old.serves(size_class) && old.used() < limit && old.used() < limits.capacity) {
      u32 const room = limits.capacity - old.used();
      kept = wanted < room ? wanted : room;
    }
    slab_state now{old.word + slab_state::promise(wanted)};
    // relaxed: nothing was used on the strength of what is given back.
    if (u64 const excess = slab_state::promise(wanted - kept))
      now.word = state(slab).fetch_sub(excess, order::relaxed) - excess;
    bool const reached = kept != 0 && old.used() + kept >= limits.soft;
    if (reached && !old.soft()) {
      // relaxed: S and the index bit are brought together by toggles alone (D4).
      now.word = state(slab).fetch_or(slab_state::soft_bit, order::relaxed);
      if (!now.soft()) index(listed(size_class)).toggle(slab);
      now.word |= slab_state::soft_bit;
    }
    if (now.live() && may_need_settling(now)) settle_live(slab, now);
    return reservation(slab, kept, old, limits);
  }

  WARPHEAP_DEVICE slab_reservation exchange_reserve(u32 slab, u32 size_class, u32 wanted) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    slab_state now = load(slab);
    u32 kept = 0;
    while (now.serves(size_class) && (now.used() < limits.capacity || !now.hard())) {
      u32 const room = limits.capacity > now.used() ? limits.capacity - now.used() : 0;
      kept = wanted < room ? wanted : room;
      bool const reaches = now.used() + kept >= limits.soft;
      u64 const flags = (reaches ? slab_state::soft_bit : 0) | (kept == room ? slab_state::hard_bit : 0);
      u64 const wished = (now.word + slab_state::promise(kept)) | flags;
      // acquire: as in promise(). The exact word: still live, of that class, and listed as its flags say.
      if (!state(slab).compare_exchange(now.word, wished, order::acquire, order::relaxed)) continue;
      u64 const raised = flags & ~now.word;
      if (raised & slab_state::soft_bit) index(listed(size_class)).toggle(slab);
      if (raised & slab_state::hard_bit) index(scarce(size_class)).toggle(slab);
      return reservation(slab, kept, now, limits);
    }
    return {};
  }

  WARPHEAP_DEVICE static slab_reservation reservation(u32 slab, u32 kept, slab_state old, slab_limits limits) {
    // While fewer blocks were ever promised than there are, the next ones in order have never been used.
    u32 const place = old.ever() < limits.capacity ? old.ever() : slab_reservation::anywhere;
    bool const moves_on = old.used() < limits.soft && old.used() + kept >= limits.soft;
    return {slab, kept, place, slab_limits::looks_ahead(limits.capacity, old.ever(), kept), moves_on};
  }

  WARPHEAP_DEVICE static bool may_need_settling(slab_state now) {
    return (now.word & (slab_state::soft_bit | slab_state::hard_bit)) != 0 || now.used() == 0;
  }
  WARPHEAP_COLD static void settle(slab_table table, u32 slab, u64 now) { table.settle_live(slab, slab_state{now}); }

  /// Puts a live slab where it belongs after a change that left it as `now` (D4, D5).
  WARPHEAP_DEVICE void settle_live(u32 slab, slab_state now) const {
    slab_limits const limits{geometry_.capacity(now.size_class())};
    u64 const lifted = (now.soft() && now.used() <= limits.relist ? slab_state::soft_bit : 0) |
                       (now.hard() && now.used() < limits.capacity ? slab_state::hard_bit : 0);
    bool const empty = now.used() == 0;
    slab_state old = now;  // the word that `lifted` was lifted from
    // An empty slab's next blocks come in order again: one try to set `ever` back.
    u64 const clean = now.word & ~lifted & (slab_state::ever_unit - 1);
    bool const cleaned =
        empty && clean != now.word && state(slab).compare_exchange(now.word, clean, order::relaxed, order::relaxed);
    if (!cleaned && lifted) old.word = state(slab).fetch_and(~lifted, order::relaxed);
    u64 const changed = old.live() ? old.word & lifted : 0;
    if (changed & slab_state::soft_bit) index(listed(old.size_class())).toggle(slab);
    if (changed & slab_state::hard_bit) index(scarce(old.size_class())).toggle(slab);
    if (empty) note_empty(slab);
    if (empty || (changed & slab_state::hard_bit)) raise_epoch();
  }

  WARPHEAP_DEVICE void note_empty(u32 slab) const {
    // relaxed: a hint; a search that finds nothing looks at the slabs themselves.
    u64 const word = atomic_ref<u64>{index_words(empty_slabs)[slab / 64]}.load(order::relaxed);
    if (!((word >> (slab % 64)) & 1)) index(empty_slabs).set(slab);
  }

  /// Locks a free slab on the way to `size_class`.
  WARPHEAP_DEVICE bool lock_free(u32 slab, u32 size_class) const {
    slab_state was = load(slab);
    if (was.kind() != slab_kind::free) return false;
    // D1: transients stay in the count; each takes its own part back from both fields.
    u64 const locked = slab_state::of(slab_kind::locked, size_class).word + slab_state::promise(was.used());
    // acquire: the last owner's writes happen before ours; pairs with the release in unlock().
    if (!state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed)) return false;
    index(free_slabs).toggle(slab);
    return true;
  }

  /// Locks an empty slab of another class, or of the same, on the way to `size_class`.
  WARPHEAP_DEVICE bool lock_empty(u32 slab, u32 size_class) const {
    slab_state was = load(slab);
    if (!was.live() || was.used() != 0) return false;
    u32 const capacity = geometry_.capacity(was.size_class());
    // D1: the words are claimed below and count as promised while they are, so that a block freed twice at this moment
    // takes nothing that is not there. D4: S and H go with the lock: a late settler that lifted one from a locked slab
    // would leave its toggle undone.
    u64 const locked = slab_state::of(slab_kind::locked, was.size_class()).word + slab_state::promise(capacity);
    // acquire: pairs with the release in publish(); the old owners' writes come with the words below.
    if (!state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed)) return false;
    u32 const handed = hand_over(slab, capacity);
    u32 const kept = handed & ~not_empty;
    // Back as it was taken, or on to the new class, here under the lock (D3).
    u64 const wished = handed & not_empty ? was.word : slab_state::of(slab_kind::locked, size_class).word;
    u64 const change = wished - slab_state::of(slab_kind::locked, was.size_class()).word - slab_state::promise(kept);
    // release: gives the lock back; where it is kept, publish() releases.
    state(slab).fetch_add(change, order::release);
    if (handed & not_empty) return false;
    if (!was.soft()) index(listed(was.size_class())).toggle(slab);
    if (!was.hard()) index(scarce(was.size_class())).toggle(slab);
    drop_note(slab);
    return true;
  }

  /// Makes a slab that we locked for `size_class` live.
  WARPHEAP_DEVICE slab_reservation publish(u32 slab, u32 size_class, u32 wanted, u32 hinted) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    u32 const promised = wanted < limits.capacity ? wanted : limits.capacity;
    bool const soft = promised >= limits.soft, hard = promised >= limits.capacity;
    // relaxed: ordered by the release below.
    role(slab).store(slab_role::of_class(size_class).word, order::relaxed);
    u64 const change = slab_state::of(slab_kind::live, 0).word - slab_state::of(slab_kind::locked, 0).word +
                       slab_state::promise(promised) + (soft ? slab_state::soft_bit : 0) +
                       (hard ? slab_state::hard_bit : 0);
    // release: role and cleared words happen before any reservation; pairs with the acquire in promise().
    slab_state const old{state(slab).fetch_add(change, order::release)};
    if (hinted != no_hint) set_hint(hinted, slab, wanted == 0);  // before the indexes: others wait for it
    if (!soft) index(listed(size_class)).toggle(slab);
    if (!hard) index(scarce(size_class)).toggle(slab);
    u32 const place = old.ever() == 0 ? 0 : slab_reservation::anywhere;
    return {slab, promised, place, slab_limits::looks_ahead(limits.capacity, old.ever(), promised), soft};
  }

  /// Takes a slab out of `empty_slabs`, unless it has become empty again.
  WARPHEAP_DEVICE void drop_note(u32 slab) const {
    index(empty_slabs).clear(slab);
    slab_state const now = load(slab);
    if (now.live() && now.used() == 0) index(empty_slabs).set(slab);
  }

  /// Claims and clears all words of a locked slab of `capacity` blocks. Returns the blocks that are still ours to
  /// subtract: all, less those that somebody freed a second time meanwhile. With not_empty if a word was not zero (D7);
  /// its bits are left as they were.
  WARPHEAP_DEVICE u32 hand_over(u32 slab, u32 capacity) const {
    bitmap const words = blocks(slab);
    u32 const count = (capacity + 63) / 64;
    u32 kept = capacity, claimed = 0;
    for (; claimed < count; ++claimed) {
      u64 const valid = valid_mask(capacity, claimed);
      // acquire: what the old owners wrote happens before the next one's use; pairs with the release in
      // bitmap::release().
      u64 const ours = words.try_claim(claimed, valid, order::acquire);
      if (ours == valid) continue;
      kept -= popcount(ours) - popcount(words.release(claimed, ours));
      break;
    }
    recycling_fence();
    for (u32 i = 0; i < claimed; ++i) {
      u64 const valid = valid_mask(capacity, i);
      kept -= popcount(valid) - popcount(words.release(i, valid));
    }
    return claimed == count ? kept : kept | not_empty;
  }

  static constexpr u32 not_empty = 1u << 31;

  u8* base_;
  slab_geometry geometry_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
