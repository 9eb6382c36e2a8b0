// SPDX-License-Identifier: Apache-2.0
// A heap's words, and the transitions of a live slab.
//
//   transition        by                              operation
//   reserve n         anyone, blindly                 fetch_add; kept as far as the old word allows
//   release, free k   that reserver; owners' leader   fetch_sub, then fix up
//   unlist            reservers at the high watermark o = fetch_or(U); o live, no U: xor; fix up
//   fix up            the thread that left it so      U: relist(); F/C: lift_full(); 0: reclaimable
//   mark full         a scan that saw all bits set    compare-exchange to C; clear bit; C -> F
//   clear stale       a scan that finds a bit wrong   C; clear that bit; C away
//
// An xor, or xor update, is one of the slab's bit in an index. A scan may rely on two indexes:
//
//   slab.I1  live, of class c, not F => its bit in maybe_available(c) is set, or a call that made
//       it so still runs.
//   slab.I2  free, or live with used = 0 => its bit in reclaimable is set, or the same.
//   slab.I3  These bits are cleared only under the lock or under C. A call that frees a block or
//       leaves the slab empty, and finds C, waits until C is gone (two atomics), then sets the bit.
//   slab.I4  The bit of a slab of class c in reclaimable is cleared, by the thread that takes the
//       slab or by clear_stale, after the bit in maybe_available(c) was set: a scan that looks at
//       maybe_available(c) last misses none.
//   slab.I5  T is set => the slab is live, and its bit in reclaimable is set. T goes by the lock,
//       or under C, with a new generation: a fix-up that set the bit before sets no T after.
#pragma once

#include "../../../platform/point.hpp"
#include "../../../platform/simt.hpp"
#include "../../../structure/bitmap.hpp"
#include "geometry.hpp"
#include "index.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// View of a heap's slabs; 16 bytes, trivially copyable, owns nothing.
class slab_table {
 public:
  /// No invariant rests on these. The last one is a maximum.
  enum class count : u32 { double_frees, foreign_frees, failures, largest_failed_bytes };

  slab_table() = default;
  WARPHEAP_HOST_DEVICE slab_table(u8* base, slab_geometry geometry) : base_{base}, geometry_{geometry} {}

  /// This table, its sizes opaque to the compiler.
  WARPHEAP_DEVICE slab_table opaque() const { return {base_, {warpheap::opaque(geometry_.packed)}}; }

  /// `lane`'s table. All lanes of `mask` call.
  WARPHEAP_DEVICE slab_table of_lane(lane_mask mask, u32 lane) const {
    u64 const base = simt::shuffle(mask, reinterpret_cast<u64>(base_), lane);
    return {reinterpret_cast<u8*>(base), {simt::shuffle(mask, geometry_.packed, lane)}};
  }

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return geometry_; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return geometry_.metadata_bytes(); }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - geometry_.pool_bytes(); }
  WARPHEAP_HOST_DEVICE u64 pool_bytes() const { return geometry_.pool_bytes(); }
  /// From the pool's start to the metadata.
  WARPHEAP_HOST_DEVICE u64 pool_span() const { return pool_bytes(); }
  WARPHEAP_HOST_DEVICE u64 pool_alignment() const { return geometry_.alignment(); }
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool()) < pool_bytes();
  }
  WARPHEAP_HOST_DEVICE u8* data(u32 slab) const {
    // Counted from the end of the pool, which is `base_`: one multiplication.
    return base_ + i64{static_cast<i32>(slab - geometry_.slabs())} * static_cast<i32>(geometry_.slab_bytes());
  }

  WARPHEAP_DEVICE atomic_ref<u64> state(u32 slab) const { return atomic_ref<u64>{*record(slab)}; }
  WARPHEAP_DEVICE bitmap blocks(u32 slab) const { return {record(slab) + slab_geometry::bitmap_offset / 8}; }
  WARPHEAP_DEVICE atomic_ref<u64> header(u32 slab) const {
    return atomic_ref<u64>{record(slab)[slab_geometry::header_offset / 8]};
  }
  WARPHEAP_DEVICE slab_header newest_header(u32 slab) const {
    // The newest, by a read-modify-write. relaxed: bits or a compare-exchange check the header.
    return {header(slab).fetch_or(0, order::relaxed)};
  }
  WARPHEAP_DEVICE slab_state load(u32 slab) const { return {state(slab).load(order::relaxed)}; }
  /// The newest word, by a read-modify-write. acquire: the index bit was cleared before we set it
  /// (slab.I3), and bits are looked at after it (slab.D5); pairs with the release in mark_full(),
  /// clear_stale().
  WARPHEAP_DEVICE slab_state newest(u32 slab) const { return {state(slab).fetch_or(0, order::acquire)}; }
  /// A recent word. acquire: for bits, as in newest().
  WARPHEAP_DEVICE slab_state load_first(u32 slab) const { return {state(slab).load(order::acquire)}; }

  // Guides, exact at rest (slab.D4): free_slabs; partial: live, below the high watermark. A scan
  // may rely on reclaimable, what may be free or empty (slab.I2), and maybe_available, what is live
  // and may have room (slab.I1).
  static constexpr u32 free_slabs = 0;
  static constexpr u32 reclaimable = 1;
  WARPHEAP_HOST_DEVICE static constexpr u32 partial(u32 size_class) { return 2 + 2 * size_class; }
  WARPHEAP_HOST_DEVICE static constexpr u32 maybe_available(u32 size_class) { return 3 + 2 * size_class; }
  WARPHEAP_DEVICE slab_index index(u32 which) const { return {index_words(which), geometry_.slabs()}; }

  WARPHEAP_DEVICE u64* index_words(u32 which) const {
    return reinterpret_cast<u64*>(base_ + geometry_.indexes_offset()) + which * geometry_.index_words();
  }

  /// Sets the slab's bit in reclaimable or maybe_available(c).
  WARPHEAP_DEVICE void add(u32 which, u32 slab) const {
    opaque().index(which).set(slab);
    WARPHEAP_POINT("index.before_summary");
    opaque().index(which).tell(slab);
  }

  /// Blocks of word `word` that exist in a slab of `capacity` blocks (slab.D7).
  WARPHEAP_HOST_DEVICE static u64 valid_mask(u32 capacity, u32 word) {
    u32 const before = 64 * word;
    if (capacity >= before + 64) return ~u64{0};
    return low_mask(capacity > before ? capacity - before : 0);
  }

  /// Reserves `wanted` blocks blindly; returns the old word. release_excess() must follow, or
  /// subtract(), unless that word serves the class, has room, and crosses no high watermark.
  WARPHEAP_DEVICE slab_state reserve(u32 slab, u32 wanted) const {
    // acquire: header and empty words come before our use; pairs with the release in publish().
    return {state(slab).fetch_add(slab_state::reservation(wanted), order::acquire)};
  }

  /// After reserve(): keeps what fits, if fewer than `limit` blocks were reserved before; releases
  /// the rest, and unlists at the high watermark. No limit: keeps all, for a look bit by bit. Any
  /// lane alone.
  static constexpr u32 no_limit = ~0u;
  WARPHEAP_DEVICE slab_reservation release_excess(u32 slab, u32 size_class, u32 wanted, slab_state old,
                                                  u32 limit) const {
    slab_limits const limits{geometry_.capacity(size_class)};
    u32 kept = 0;
    // Over-reservations may exceed the capacity.
    u32 const room = old.used() < limits.capacity ? limits.capacity - old.used() : 0;
    if (old.serves(size_class) && old.used() < limit) kept = wanted < room || limit == no_limit ? wanted : room;
    slab_state now{old.word + slab_state::reservation(wanted)};
    bool const reaches_high = kept != 0 && old.used() < limits.high && old.used() + kept >= limits.high;
    // Also without room: the quick path fills slabs and unlists none. Our reservation keeps the
    // class.
    bool const unlists = old.serves(size_class) && !old.is_unlisted() && old.used() + kept >= limits.high;
    if (unlists) {
      // relaxed: xor updates alone bring U and the index bit together (slab.D4).
      now.word = state(slab).fetch_or(slab_state::unlisted_bit, order::relaxed);
      WARPHEAP_POINT("release_excess.before_toggle");
      if (!now.is_unlisted()) index(partial(size_class)).xor_bit(slab);
      now.word |= slab_state::unlisted_bit;
    }
    if (kept < wanted) now = subtract(slab, 0, wanted - kept);
    if (kept < wanted || unlists) fix_up_reservation(slab, now);
    if (kept == 0) return {};
    return slab_reservation{slab, kept, old.bump()}.with(
        {.is_new = old.bump() < limits.capacity, .reaches_high = reaches_high});
  }

  /// Takes `freed` blocks, whose bits are cleared already (slab.D2), and `reserved` unused ones off
  /// the count. fix_up() must follow. A result of another class: they were others' blocks (slab.D1,
  /// slab.D3).
  WARPHEAP_DEVICE slab_state subtract(u32 slab, u32 freed, u32 reserved) const {
    u64 const amount = slab_state::reservation(reserved) + freed;
    // relaxed: data travels by the bitmap word; the count only guards.
    return {state(slab).fetch_sub(amount, order::relaxed) - amount};
  }

  /// Puts a live slab where it belongs after a free that left it as `now` (slab.D4, slab.D5,
  /// slab.I1, slab.I2).
  WARPHEAP_DEVICE void fix_up(u32 slab, slab_state now) const {
    if ((now.low() & (slab_state::full_bit | slab_state::index_lock_bit)) != 0) return call_fix_up(*this, slab, now);
    fix_up_reservation(slab, now);
  }

  /// Releases reserved blocks that were not claimed. The cold call also waits for C.
  WARPHEAP_DEVICE void release(u32 slab, u32 blocks) const {
    slab_state const now = subtract(slab, 0, blocks);
    if (now.is_live() && (now.is_unlisted() || now.used() == 0)) call_fix_up(*this, slab, now.without_full());
  }

  /// As fix_up(), after a change of reservations alone. No bit was cleared, so a scan that saw all
  /// of them set is right: F stays, and C matters to an empty slab's bit in reclaimable alone.
  WARPHEAP_DEVICE void fix_up_reservation(u32 slab, slab_state now) const {
    if (!now.is_live()) return;
    if (now.is_unlisted() && now.used() <= slab_limits{geometry_.capacity(now.size_class())}.low) now = relist(slab);
    if (!now.is_live() || now.used() != 0) return;
    if (!now.is_in_reclaimable() || now.is_index_locked()) return call_fix_up_empty(*this, slab, now);
    // Blocks of an empty slab come in order again, once a quarter was reserved. relaxed: a guess.
    if (now.bump() > geometry_.capacity(now.size_class()) / 4)
      state(slab).compare_exchange(now.word, now.next_generation(), order::relaxed, order::relaxed);
  }

  /// Sets F if the word still is `now`: live, no C, from before all bits were seen set (slab.D5).
  WARPHEAP_DEVICE void mark_full(u32 slab, slab_state now) const {
    WARPHEAP_POINT("mark_full.before_mark");
    // A new generation: a free that is about to lift an earlier F must not lift this one.
    u64 const held = (now.word | slab_state::index_lock_bit) + slab_state::generation_unit;
    // acquire: the bit was set before we clear it; pairs with lift_full() and publish().
    // release: the looks at the bits came before.
    if (!state(slab).compare_exchange(now.word, held, order::acq_rel, order::relaxed)) return;
    WARPHEAP_POINT("mark_full.before_clear");
    index(maybe_available(now.size_class())).clear(slab, order::relaxed);
    // release: the bit is cleared before C is gone; pairs with the acquire in newest().
    state(slab).fetch_xor(slab_state::index_lock_bit | slab_state::full_bit, order::release);
  }

  /// Clears the bit of a slab that index `which`, reclaimable or of `size_class`, names in vain.
  WARPHEAP_DEVICE void clear_stale(u32 which, u32 slab, u32 size_class) const {
    // acquire: as in mark_full().
    slab_state const was{state(slab).fetch_or(slab_state::index_lock_bit, order::acquire)};
    if (was.is_index_locked()) return;
    bool const in_vain = which == reclaimable ? was.used() != 0 : !was.serves(size_class);
    WARPHEAP_POINT("clear_stale.before_clear");
    // release: slab.I4, by what the acquire above has seen; pairs with the fence in end_round().
    bool const clears = was.is_live() && in_vain;
    if (clears) index(which).clear(slab, order::release);
    // A new generation: slab.I5. release: as in mark_full().
    u64 const begun =
        clears && which == reclaimable ? slab_state::generation_unit - (was.word & slab_state::reclaimable_bit) : 0;
    state(slab).fetch_add(begun - slab_state::index_lock_bit, order::release);
  }

  /// An entry of this multiprocessor for a class; `salt` picks one of its caches.
  WARPHEAP_DEVICE u32 cache_entry(u32 size_class, u32 salt) const {
    u32 const used_log2 = geometry_.sm_caches_used_log2(size_class);
    u32 const cache = (simt::sm_id() << used_log2) + (salt & ((1u << used_log2) - 1));
    return (cache & geometry_.sm_cache_mask()) * geometry_.classes() + size_class;
  }
  WARPHEAP_DEVICE atomic_ref<u64> cached(u32 entry) const { return atomic_ref<u64>{cache_words(entry)[0]}; }
  WARPHEAP_DEVICE void set_active(u32 entry, u32 slab) const {
    // relaxed: a thread that uses the active slab asks it.
    if (entry != no_entry) cached(entry).store(sm_cache_entry::of(slab).word, order::relaxed);
  }
  static constexpr u32 no_entry = ~0u;
  /// Of the entry's class, constant: capacity << 32 | high watermark.
  WARPHEAP_DEVICE u64 cached_limits(u32 entry) const {
    return atomic_ref<u64>{cache_words(entry)[1]}.load(order::relaxed);
  }
  WARPHEAP_DEVICE u64* cache_words(u32 entry) const {
    return reinterpret_cast<u64*>(base_ + wide_product(geometry_.slabs(), geometry_.record_bytes())) + 2 * u64{entry};
  }

  // relaxed, here and below: hints and counts.
  WARPHEAP_DEVICE sm_cache_entry load_cached(u32 entry) const { return {cached(entry).load(order::relaxed)}; }
  /// Adds to the demand for the cache's next slab, and returns the entry as it was.
  WARPHEAP_DEVICE sm_cache_entry add_demand(u32 entry, u32 blocks) const {
    return {cached(entry).fetch_add(sm_cache_entry::demand_of(blocks), order::relaxed)};
  }
  /// Of an entry in which `slab` was seen to be active in vain.
  WARPHEAP_DEVICE void clear_active(u32 entry, u32 slab) const {
    if (entry != no_entry && load_cached(entry).active() == slab + 1) cached(entry).store(0, order::relaxed);
  }

  /// Adds `blocks` to the demand of a class. Returns whether the caller must open a slab for the
  /// class and then call end_opening(): no other thread is doing so, or these blocks begin a slab's
  /// worth; with `plenty` half of one, but not where slabs have few blocks.
  WARPHEAP_DEVICE bool begin_opening(u32 size_class, u32 blocks, bool plenty) const {
    u32 const capacity = geometry_.capacity(size_class);
    u32 const worth = 1u << log2_floor(plenty && capacity >= 64 ? capacity / 2 : capacity);
    slab_supply const old{supply(size_class).fetch_add(slab_supply::demand_of(blocks), order::relaxed)};
    u32 const begun = old.demand() % worth;
    if (begun == 0 || begun + blocks > worth) {
      supply(size_class).fetch_add(1, order::relaxed);
      return true;
    }
    if (old.openers() != 0) return false;
    // One of the callers begins the next slab's worth.
    u64 seen = old.word + slab_supply::demand_of(blocks);
    u64 const next = seen + slab_supply::demand_of(worth - begun) + 1;
    return supply(size_class).compare_exchange(seen, next, order::relaxed, order::relaxed);
  }
  WARPHEAP_DEVICE void end_opening(u32 size_class) const { supply(size_class).fetch_sub(1, order::relaxed); }
  WARPHEAP_DEVICE bool is_opening(u32 size_class) const {
    return slab_supply{supply(size_class).load(order::relaxed)}.openers() != 0;
  }
  WARPHEAP_DEVICE atomic_ref<u64> supply(u32 size_class) const { return atomic_ref<u64>{control()[size_class]}; }

  WARPHEAP_DEVICE void add_count(count which, u64 amount) const { call_add_count(*this, which, amount); }

  /// Counts `calls` calls that get nullptr in place of a block of `bytes` bytes.
  WARPHEAP_DEVICE void add_failures(u64 calls, u64 bytes) const {
    add_count(count::failures, calls);
    // relaxed: as above. Loads run side by side, where read-modify-writes of a crowd would queue.
    atomic_ref<u64> const largest = count_word(count::largest_failed_bytes);
    if (largest.load(order::relaxed) < bytes) largest.fetch_max(bytes, order::relaxed);
  }

  WARPHEAP_DEVICE u64 read_count(count which) const { return count_word(which).load(order::relaxed); }

 private:
  WARPHEAP_DEVICE atomic_ref<u64> count_word(count which) const {
    return supply(geometry_.classes() + static_cast<u32>(which));
  }

  WARPHEAP_DEVICE u64* record(u32 slab) const {
    return reinterpret_cast<u64*>(base_ + wide_product(slab, geometry_.record_bytes()));
  }
  WARPHEAP_DEVICE u64* control() const { return reinterpret_cast<u64*>(base_ + geometry_.control_offset()); }

  /// Takes U from a slab that was seen at or below the low watermark; returns the word after it.
  WARPHEAP_DEVICE slab_state relist(u32 slab) const {
    // relaxed: as in release_excess().
    slab_state const old{state(slab).fetch_and(~slab_state::unlisted_bit, order::relaxed)};
    WARPHEAP_POINT("relist.before_toggle");
    if (old.is_live() && old.is_unlisted()) index(partial(old.size_class())).xor_bit(slab);
    return {old.word & ~slab_state::unlisted_bit};
  }

  WARPHEAP_COLD static void call_add_count(slab_table table, count which, u64 amount) {
    // relaxed: a figure, on which nothing depends.
    table.count_word(which).fetch_add(amount, order::relaxed);
  }

  WARPHEAP_COLD static void call_fix_up(slab_table table, u32 slab, slab_state now) {
    table.opaque().lift_full(slab, now);
    table.opaque().fix_up_reservation(slab, now.without_full());
  }

  /// Sets the bit of an empty slab in reclaimable, and T.
  WARPHEAP_COLD static void call_fix_up_empty(slab_table table, u32 slab, slab_state now) {
    WARPHEAP_NO_UNROLL
    for (; now.is_live() && now.used() == 0; now = table.opaque().newest(slab)) {
      WARPHEAP_POINT("fix_up.before_reclaimable");
      if (now.is_index_locked()) {
        simt::pause(pause_nanoseconds);
        continue;
      }
      if (!now.is_in_reclaimable()) table.add(reclaimable, slab);
      // release: the bit is set before T is. From the very word: a thread that took the slab
      // changed it (slab.I5). If T was set already, the word is as fix_up() saw it.
      u64 const next = now.bump() > table.geometry_.capacity(now.size_class()) / 4 ? now.next_generation() : now.word;
      table.state(slab).compare_exchange(now.word, next | slab_state::reclaimable_bit, order::release, order::relaxed);
      return;
    }
  }

  /// Takes F from a slab in which a block was freed, or waits while another is about to set it.
  WARPHEAP_DEVICE void lift_full(u32 slab, slab_state seen) const {
    WARPHEAP_NO_UNROLL
    while (seen.is_live() && (seen.is_full() || seen.is_index_locked())) {
      if (seen.is_index_locked()) {
        simt::pause(pause_nanoseconds);
        seen = newest(slab);
        continue;
      }
      add(maybe_available(warpheap::opaque(seen.size_class())), warpheap::opaque(slab));
      WARPHEAP_POINT("fix_up.before_lift");
      // From the very word seen before we set the bit: if the bit was cleared since, the word
      // changed (slab.D5). release: the bit is set before F is gone; pairs with mark_full(),
      // newest().
      if (state(slab).compare_exchange(seen.word, seen.word & ~slab_state::full_bit, order::release, order::relaxed))
        return;
    }
  }
  static constexpr u32 pause_nanoseconds = 64;

  u8* base_ = nullptr;  // end of the pool, begin of the metadata
  slab_geometry geometry_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
