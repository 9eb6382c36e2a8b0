// SPDX-License-Identifier: Apache-2.0
// The basis of nullptr: a group's exhaustive scan of the two indexes that miss nothing, reclaimable
// and maybe_available. Each lane looks at words of its own; the leader tries what a lane found.
// Rounds: maybe_available by counts, reclaimable, maybe_available by bits, since over-reservations
// may fill the count of a slab with a free block. A slab whose bits are all set is marked (F), and
// passed until a block of it is freed.
//
//   slab.N1  a block that stays free during the whole call is found (slab_bitmap_proof.md).
//       For another class, or a run, a slab of which a call has blocks reserved is not free.
//   slab.N2  a scan that gets nothing passes each slab once a round, and reads each of its words
//       twice at most for that. It looks again only at a slab that another thread locked or
//       changed, so that one made progress. Any other scan serves a lane: a group makes at most
//       one for each.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "lock.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// One lane's part of a scan in one word. incomplete: lanes were served and left, so another
/// scan follows. turn: slabs passed in this round. start: where all lanes of the group begin.
///
///   63 62      61       60 49 48  24 23   0
///  | round | incomplete |  0 | turn | start |
class scan_cursor {
 public:
  static constexpr u32 none = slab_index::none;

  /// skips_counts: without the round by counts. Of a class whose slabs serve one or two such
  /// requests it would look at every slab that is used up.
  WARPHEAP_DEVICE scan_cursor(u32 start, u32 rank, bool skips_counts)
      : word_{u64{skips_counts ? in_reclaimable : by_count} << round_shift | u64{64 * rank} << turn_shift | start} {}

  WARPHEAP_DEVICE bool has_ended() const { return round() == over; }

  /// At the begin of a round: whether the summary says that the index names nothing. A leader
  /// alone; pass_round() by all lanes then.
  WARPHEAP_DEVICE bool finds_none(slab_table const& table, u32 size_class) const {
    if (turn() != 0) return false;
    u32 const which = round() == in_reclaimable ? slab_table::reclaimable : slab_table::maybe_available(size_class);
    return !may_name_any(table, which, round() != by_count);
  }
  WARPHEAP_DEVICE void pass_round(slab_table const& table) { pass(64 * slab_index::width(table.geometry().slabs())); }

  /// The next slab that may have room, in every `lanes`-th word; `none` at the end of the round.
  // NOLINTNEXTLINE(readability-function-cognitive-complexity): apart, scarcity took 4% longer
  WARPHEAP_DEVICE u32 look(slab_table const& table, u32 size_class, u32 lanes) {
    u32 const words = slab_index::width(table.geometry().slabs());
    u32 const capacity = table.geometry().capacity(size_class);
    WARPHEAP_NO_UNROLL
    for (;;) {
      bool const is_of_class = round() != in_reclaimable;
      slab_index const index =
          table.index(is_of_class ? slab_table::maybe_available(size_class) : slab_table::reclaimable);
      if (turn() >= 64 * words) return none;
      u32 const ahead = start() / 64 + turn() / 64, at = ahead < words ? ahead : ahead - words;
      u32 const first = 64 * at;
      // From start() on: others take the lowest. An answer rests on looks at the newest words.
      u64 const word = round() == by_count ? index.load(first) : index.newest(first);
      u64 const named = rotate_left(word, 0 - start()) & ~low_mask(turn() % 64);
      if (named == 0) {
        if (word == 0) index.clear_stale_word(at);
        pass(64 * lanes - turn() % 64);
        continue;
      }
      pass(lowest_bit(named) - turn() % 64);
      u32 const slab = first + (start() + turn()) % 64;
      slab_state const now = round() == by_count ? table.load_first(slab) : table.newest(slab);
      if (now.is_live() && now.used() != 0 && !(is_of_class && now.serves(size_class))) {
        table.clear_stale(is_of_class ? slab_table::maybe_available(size_class) : slab_table::reclaimable, slab,
                          size_class);
      } else if (now.kind() != slab_kind::run) {
        if (!now.serves(size_class) || now.used() < capacity) return slab;
        // No answer rests on the first round: there one look in eight reads the bits.
        bool const reads = round() == by_bits || (now.used() == capacity && lane_random_bits() % 8 == 0);
        if (!now.is_full() && reads && !mark_if_full(table, slab, capacity, now) && round() == by_bits) return slab;
      }
      pass_slab(lanes);
    }
  }

  /// Reserves up to `wanted` blocks of a slab that a lane found; often none. A leader alone.
  WARPHEAP_DEVICE slab_reservation reserve(slab_table const& table, u32 size_class, u32 wanted, u32 slab) const {
    slab_state const now = table.load(slab);
    slab_reservation taken;
    if (now.serves(size_class)) {
      taken = table.release_excess(slab, size_class, wanted, table.reserve(slab, wanted),
                                   round() == by_bits ? slab_table::no_limit : table.geometry().capacity(size_class));
    } else if (slab_lock::take(table, slab)) {
      taken = slab_lock::publish(table, slab, size_class, wanted, slab_table::no_entry);
    }
    if (taken.blocks() == 0) simt::pause(pause_nanoseconds);  // others change it; look again
    return taken;
  }

  /// Whether a slab of this round that gave nothing is passed all the same: its bits come later.
  WARPHEAP_DEVICE bool is_hasty() const { return round() == by_count; }
  /// After a look of all lanes. served: the group has got blocks; fails: no lane of it has found a
  /// slab; passes: the slab that this lane found is of no more use. sync_warp() must follow.
  WARPHEAP_DEVICE void go_on(bool served, bool fails, bool passes, lane_group const& group) {
    if (served) word_ |= incomplete_bit;
    else if (fails) end_round(group.rank);
    else if (passes) pass_slab(group.size);
  }

  WARPHEAP_DEVICE void pass_slab(u32 lanes) { pass(turn() % 64 != 63 ? 1 : 64 * (lanes - 1) + 1); }

  /// To the next round, or the end, when no lane has found anything. sync_warp() must follow.
  WARPHEAP_DEVICE void end_round(u32 rank) {
    // slab.I4: looks at reclaimable come before those at maybe_available; pairs with publish().
    if (round() == by_count) {
      begin(in_reclaimable, rank);
    } else if (round() == in_reclaimable) {
      full_fence();
      begin(by_bits, rank);
    } else if ((word_ & incomplete_bit) != 0) {
      word_ &= ~incomplete_bit;
      begin(by_count, rank);
    } else {
      begin(over, rank);
    }
  }

 private:
  enum round_of : u32 { over, by_bits, in_reclaimable, by_count };

  static constexpr u32 round_shift = 62, turn_shift = 24;
  static constexpr u64 incomplete_bit = u64{1} << 61;
  static constexpr u32 words_at_once = 4;  // whose latencies overlap
  static constexpr u32 pause_nanoseconds = 128;

  WARPHEAP_DEVICE u32 round() const { return static_cast<u32>(word_ >> round_shift); }
  WARPHEAP_DEVICE u32 turn() const { return static_cast<u32>(word_ >> turn_shift) & ((1u << 25) - 1); }
  WARPHEAP_DEVICE u32 start() const { return static_cast<u32>(word_) & ((1u << 24) - 1); }
  WARPHEAP_DEVICE void begin(u32 round, u32 rank) {
    word_ = (word_ & incomplete_bit) | u64{round} << round_shift | u64{64 * rank} << turn_shift | start();
  }
  WARPHEAP_DEVICE void pass(u32 slabs) { word_ += u64{slabs} << turn_shift; }

  WARPHEAP_COLD static bool may_name_any(slab_table table, u32 which, bool newest) {
    return table.index(which).may_name_any(newest);
  }

  /// Marks the slab full if every bit is seen set and its word is still `now` (slab.D5). Returns
  /// whether every bit was.
  WARPHEAP_DEVICE static bool mark_if_full(slab_table const& table, u32 slab, u32 capacity, slab_state now) {
    bitmap const blocks = table.blocks(slab);
    WARPHEAP_NO_UNROLL
    for (u32 first = 0; 64 * first < capacity; first += words_at_once) {
      u64 free = 0;
      for (u32 word = first; word < first + words_at_once; ++word)
        if (64 * word < capacity)
          free |= ~blocks.load_newest(word, order::relaxed) & slab_table::valid_mask(capacity, word);
      if (free != 0) return false;
    }
    if (!now.is_index_locked()) table.mark_full(slab, now);
    return true;
  }

  u64 word_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
