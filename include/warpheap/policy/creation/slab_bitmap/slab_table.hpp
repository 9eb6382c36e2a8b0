// The slabs of one heap: where their words lie, and every transition of a live slab. Changes of kind are slab_lock's. What
// is not a slab's state (which slab to try, when to make one, when to give up) is decided elsewhere.
//
//   transition                   by                                  operation
//   reserve n                    anyone, blindly                     fetch_add; kept only as the old word allows
//   give back k                  that reserver                       the same subtracted, then settle
//   free k                       the owners' leader                  fetch_sub, then settle
//   unlist                       a reserver that reaches the limit   o = fetch_or(S); o live without S: toggle, settle
//   settle: S, used <= relist    whoever left it so                  o = fetch_and(~S); o live with S: toggle
//   settle: H, used < capacity   whoever left it so                  raise; compare-exchange without H, and S, from the word
//                                                                    seen: toggle; if it fails, look again
//   settle: used = 0             whoever left it so                  raise; note it as empty; the same with `ever` at 0
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

  /// The same table, of whose sizes the compiler knows nothing from here on.
  WARPHEAP_DEVICE slab_table afresh() const { return {base_, {warpheap::afresh(geometry_.packed)}}; }

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return geometry_; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - geometry_.pool_bytes(); }
  WARPHEAP_HOST_DEVICE u8* data(u32 slab) const { return pool() + (u64{slab} << geometry_.slab_log2()); }

  WARPHEAP_DEVICE atomic_ref<u64> state(u32 slab) const { return atomic_ref<u64>{*record(slab)}; }
  WARPHEAP_DEVICE bitmap blocks(u32 slab) const { return {record(slab) + slab_geometry::bitmap_offset / 8}; }
  WARPHEAP_DEVICE atomic_ref<u32> role(u32 slab) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(record(slab))[slab_geometry::role_offset / 4]};
  }
  /// The role as it is now: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE slab_role newest_role(u32 slab) const {
    // relaxed: the caller checks the role by the bits or by a compare-exchange.
    return {role(slab).fetch_or(0, order::relaxed)};
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

  /// Blocks of word `word` that exist in a slab of `capacity` blocks (D7).
  WARPHEAP_HOST_DEVICE static u64 valid_mask(u32 capacity, u32 word) {
    u32 const before = 64 * word;
    return capacity >= before + 64 ? ~u64{0} : low_mask(capacity > before ? capacity - before : 0);
  }

  /// The first half of a reservation: promises `wanted` blocks blindly and returns what was there before. The whole of it
  /// if the slab serves the class and does not come to its soft limit; else keep() must follow.
  WARPHEAP_DEVICE slab_state promise(u32 slab, u32 wanted) const {
    // acquire: the slab's role and its empty words happen before we use them; pairs with the release in publish().
    return {state(slab).fetch_add(slab_state::promise(wanted), order::acquire)};
  }

  /// The second half: keeps what `old` allows, gives the rest back, and takes the slab off the index at the soft limit.
  /// Any lane alone.
  WARPHEAP_DEVICE slab_reservation keep(u32 slab, u32 size_class, u32 wanted, slab_state old) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    u32 kept = 0;
    // Transients may have filled the slab beyond its capacity.
    if (old.serves(size_class) && old.used() < limits.capacity) {
      u32 const room = limits.capacity - old.used();
      kept = wanted < room ? wanted : room;
    }
    u64 const excess = slab_state::promise(wanted - kept);
    slab_state now{old.word + slab_state::promise(wanted)};
    // relaxed: nothing was used on the strength of what is given back.
    if (excess) now.word = state(slab).fetch_sub(excess, order::relaxed) - excess;
    bool const unlists = kept != 0 && !old.soft() && old.used() + kept >= limits.soft;
    if (unlists) {
      // relaxed: S and the index bit are brought together by toggles alone (D4).
      now.word = state(slab).fetch_or(slab_state::soft_bit, order::relaxed);
      if (!now.soft()) index(listed(size_class)).toggle(slab);
      now.word |= slab_state::soft_bit;
    }
    if (excess || unlists) settle(slab, now);
    return reservation(slab, kept, old, limits);
  }

  /// Promises blocks by compare-exchange, for searchers: a slab that has no room is not touched. A full one is marked, so
  /// that searchers pass it by until somebody leaves room (D5).
  WARPHEAP_DEVICE slab_reservation try_reserve(u32 slab, u32 size_class, u32 wanted) const {
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

  /// Takes `freed` blocks and `promised` ones, which are not used, off the slab's count: freed
  /// after their bits were cleared (D2). settle() must follow, with the result. If that is of
  /// another class than the blocks were taken for, they were others' blocks: until this subtraction
  /// no class can change (D1, D3).
  WARPHEAP_DEVICE slab_state subtract(u32 slab, u32 freed, u32 promised) const {
    u64 const amount = slab_state::promise(promised) + freed;
    // relaxed: data travels by the bitmap word; the count only guards.
    return {state(slab).fetch_sub(amount, order::relaxed) - amount};
  }

  /// Puts a live slab where it belongs after a change that left it as `now` (D4, D5).
  WARPHEAP_DEVICE void settle(u32 slab, slab_state now) const {
    WARPHEAP_NO_UNROLL
    while (now.live() && may_need_settling(now) && !afresh().settle_once(warpheap::afresh(slab), now)) {
    }
  }

  /// Says that room has appeared.
  WARPHEAP_DEVICE void raise_epoch() const {
    // release: the room happens before whoever counts this; pairs with the acquire in epoch_sum().
    epoch(simt::sm_id()).fetch_add(1, order::release);
  }

  /// The same, for who publishes it by a release of his own.
  WARPHEAP_DEVICE void raise_epoch_relaxed() const { epoch(simt::sm_id()).fetch_add(1, order::relaxed); }

  /// How often room has appeared. Monotonic: two equal sums have no raise between them.
  WARPHEAP_DEVICE u64 epoch_sum() const {
    u64 sum = 0;
    // acquire: pairs with the release in raise_epoch().
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < geometry_.epochs(); ++i) sum += epoch(i).load(order::acquire);
    return sum;
  }

  /// The same, certain to see every raise that was made before: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE u64 epoch_sum_newest() const {
    u64 sum = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < geometry_.epochs(); ++i) sum += epoch(i).fetch_add(0, order::acq_rel);
    return sum;
  }

  /// The hint entry of this multiprocessor for a class, one of those it uses (`salt` says which).
  WARPHEAP_DEVICE u32 hint_entry(u32 size_class, u32 salt) const {
    u32 const rows_log2 = geometry_.rows_log2(), most = slab_geometry::max_rows_used_log2;
    u32 const used = salt & ((1u << geometry_.rows_used_log2(size_class)) - 1);
    u32 const row = simt::sm_id() + (used << (rows_log2 > most ? rows_log2 - most : 0));
    return (row & (geometry_.rows() - 1)) * geometry_.classes() + size_class;
  }
  WARPHEAP_DEVICE atomic_ref<u64> hint(u32 entry) const { return atomic_ref<u64>{hint_words(entry)[0]}; }
  /// Makes `slab` the one that a row uses, if `entry` is one.
  WARPHEAP_DEVICE void set_hint(u32 entry, u32 slab) const {
    // relaxed: whoever uses it asks the slab.
    if (entry != no_hint) hint(entry).store(slab_hint::of(slab).word, order::relaxed);
  }
  static constexpr u32 no_hint = ~0u;
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
  /// Of the searches that look at every slab: how many began, and the last that found nothing for a class.
  WARPHEAP_DEVICE atomic_ref<u64> searches_begun() const { return certificate(geometry_.classes() + 8); }
  WARPHEAP_DEVICE atomic_ref<u64> fruitless(u32 size_class) const {
    return certificate(geometry_.classes() + 16 + size_class);
  }
  /// Blocks of a class that were wished for where no slab was known to have room.
  WARPHEAP_DEVICE atomic_ref<u64> wishes(u32 size_class) const {
    return certificate(2 * geometry_.classes() + 16 + size_class);
  }
  /// The same as a certificate for runs, with the length.
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

  WARPHEAP_DEVICE static slab_reservation reservation(u32 slab, u32 kept, slab_state old, slab_limits limits) {
    // While fewer blocks were ever promised than there are, the next ones in order have never been used.
    u32 const place = old.ever() < limits.capacity ? old.ever() : slab_reservation::anywhere;
    return {slab, kept, place, old.used() < limits.soft && old.used() + kept >= limits.soft, old.used() < limits.roomy};
  }

  WARPHEAP_DEVICE static bool may_need_settling(slab_state now) {
    return (now.word & (slab_state::soft_bit | slab_state::hard_bit)) != 0 || now.used() == 0;
  }
  /// S goes from a slab that was seen to have so few blocks promised, whatever it has now: a guide, and no promise.
  WARPHEAP_DEVICE void relist(u32 slab) const {
    slab_state const old{state(slab).fetch_and(~slab_state::soft_bit, order::relaxed)};
    if (old.live() && old.soft()) index(listed(old.size_class())).toggle(slab);
  }
  /// One attempt; false if the word is not `now` any more, which becomes what it is.
  WARPHEAP_DEVICE bool settle_once(u32 slab, slab_state& now) const {
    slab_limits const limits{geometry_.capacity(now.size_class())};
    u64 const lifted = (now.soft() && now.used() <= limits.relist ? slab_state::soft_bit : 0) |
                       (now.hard() && now.used() < limits.capacity ? slab_state::hard_bit : 0);
    bool const empty = now.used() == 0;
    if (!empty && (lifted & slab_state::hard_bit) == 0) {
      if (lifted != 0) relist(slab);
      return true;
    }
    // D9, before H goes: from then on others may take the room that we left, return, and free again without a word, all
    // before we return. And H goes from the very word in which we saw room: had the slab filled again in between, a search
    // that began after our raise could have passed it by.
    raise_epoch();
    if (empty) note_empty(slab);
    // An empty slab's next blocks come in order again: `ever` is set back.
    u64 wished = now.word & ~lifted;
    if (empty) wished &= slab_state::ever_unit - 1;
    if (wished != now.word && !state(slab).compare_exchange(now.word, wished, order::relaxed, order::relaxed))
      return false;
    if (lifted & slab_state::soft_bit) index(listed(now.size_class())).toggle(slab);
    if (lifted & slab_state::hard_bit) index(scarce(now.size_class())).toggle(slab);
    return true;
  }

  WARPHEAP_DEVICE void note_empty(u32 slab) const {
    // relaxed: a hint; a search that finds nothing looks at the slabs themselves.
    u64 const word = atomic_ref<u64>{index_words(empty_slabs)[slab / 64]}.load(order::relaxed);
    if (!((word >> (slab % 64)) & 1)) index(empty_slabs).set(slab);
  }

  u8* base_ = nullptr;
  slab_geometry geometry_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
