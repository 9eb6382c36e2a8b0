// SPDX-License-Identifier: Apache-2.0
// How lanes that ask for one size get their blocks: from the head of their row, at the places of
// their numbers. If that fails, each step makes more effort: other places of the head, the next
// head, and a search of everything.
//
// On the quick path a leader makes two additions. One, to the row's word, numbers the requests and
// names the head; the other, to the head's state, promises the chunks. Then one lane takes each run
// of places for all the lanes that have a part of it.
// Source: Adinetz and Pleiter 2014. Differs: the promise before the bits, runs in place of single
// bits, bounded probes.
#pragma once

#include "search.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// Serves requests of a heap's sizes. Stateless; `table` is the heap.
template <class Table>
class block_service {
 public:
  WARPHEAP_DEVICE explicit block_service(Table const& table) : table_{table} {}

  /// Blocks of one size for the lanes of a group. All lanes of `active` call together, each with
  /// its group in it. The groups share the collectives of `active`: collectives of many masks
  /// would be served one after the other.
  WARPHEAP_DEVICE void* serve(lane_mask active, lane_group const& group, u32 size) const {
    u32 const entry = table_.my_entry(size), length = length_of(size);
    // Read before the additions, which invalidate what is cached.
    place_rule const rule = table_.rule(entry);
    lead got{};
    if (group.leads) got = ask_head(entry, rule, size, group.size);
    // The leader's acquire covers all lanes: the slab as its maker left it.
    simt::sync_warp(active);
    u32 const where = simt::shuffle(active, got.packed(), group.leader);
    u32 const number = simt::shuffle(active, got.number, group.leader) + group.rank;
    u32 const slab = lead::slab_of(where), blocks = lead::blocks_of(where);
    bool const promised = group.rank < blocks;

    // One lane takes a run of places: the lowest of the lanes that have a part of it.
    hash_probe const probe = rule.probe;
    u32 const chunk = probe.first(number) << length, in_word = chunk % word_chunks;
    bool const first =
        promised && (group.rank == 0 || (number % hash_probe::max_numbers & low_mask32(probe.run_log2)) == 0);
    lane_mask const firsts = simt::ballot(active, first) & group.mask, below = simt::lanes_below();
    u32 const my_first = highest_bit((firsts & (below | (below + 1))) | 1);
    u32 got_starts = 0;
    if (first) {
      lane_mask const later = firsts & ~(below | (below + 1));
      u32 const rank_after = later != 0 ? popcount(group.mask & lanes_before(lowest_bit(later))) : group.size;
      u32 const last = rank_after < blocks ? rank_after : blocks;
      u32 const starts = starts_in(static_cast<u32>(low_mask((last - group.rank) << length)), length) << in_word;
      u32 seen;
      got_starts = take_blocks(table_, slab, chunk / word_chunks, starts, kind_of(size), length, seen);
    }
    // The acquire of that lane covers the others, which also see the length of their blocks.
    simt::sync_warp(active);
    got_starts = simt::shuffle(active, got_starts, promised ? my_first : simt::lane_id());
    bool const mine = promised && (got_starts >> in_word & 1) != 0;
    lane_mask const unserved = simt::ballot(active, !mine) & group.mask;
    if (got.replaces != 0) slab_supply<Table>::replace(table_, entry, got.replaces);
    if (mine) return table_.address(slab, kind_of(size), chunk);
    table_.add_work(count::probes, promised);
    return serve_slowly(table_, unserved, size, slab, number, promised);
  }

  /// Counts a refusal of the whole group. All of its lanes call.
  WARPHEAP_DEVICE void* refuse(lane_group const& group) const {
    if (group.leads) table_.add_count(count::failures, group.size);
    return nullptr;
  }

 private:
  /// What a leader was promised for its group.
  struct lead {
    u32 slab = 0;
    u32 blocks = 0;    ///< promised; or `refused`: there is nothing
    u32 number = 0;    ///< of the group's first request, for the hash
    u32 replaces = 0;  ///< the head to be replaced, + 1

    static constexpr u32 refused = 2 * warp_lanes - 1, slab_bits = warp_lanes == 32 ? 26 : 25,
                         refusal = refused << slab_bits;

    WARPHEAP_DEVICE static lead none() {
      lead made;
      made.blocks = refused;
      return made;
    }
    WARPHEAP_DEVICE u32 packed() const { return slab | blocks << slab_bits; }
    WARPHEAP_DEVICE static u32 slab_of(u32 packed) { return packed & low_mask32(slab_bits); }
    WARPHEAP_DEVICE static u32 blocks_of(u32 packed) { return packed >> slab_bits; }
  };

  /// Draws numbers for `wanted` requests, and promises blocks of the head to as many as it has room
  /// for. Any lane alone.
  WARPHEAP_DEVICE lead ask_head(u32 entry, place_rule const& rule, u32 size, u32 wanted) const {
    // relaxed: the numbers are distinct, and the slab's state says what the head is.
    u64 const before = table_.head(entry).fetch_add(u64{wanted} << head_bits, order::relaxed);
    u32 const head = head_of(before), length = length_of(size);
    lead got;
    got.number = number_of(before);
    if (head == 0) return got;
    got.slab = head - 1;
    slab_state const old = table_.promise(got.slab, wanted << length);
    if (old.serves(kind_of(size))) {
      u32 const room = old.room(rule.capacity, length);
      got.blocks = wanted < room ? wanted : room;
    }
    if (got.blocks != wanted) Table::give_back(table_, got.slab, (wanted - got.blocks) << length);
    u32 const used = old.used() + (got.blocks << length);
    if (got.blocks != 0 && old.used() < rule.replace_at && used >= rule.replace_at) got.replaces = head;
    return got;
  }

  /// The rest of serve(), for the lanes of `mask`, none of which has a block yet; some have a
  /// promise of `slab`.
  WARPHEAP_COLD static void* serve_slowly(Table table, lane_mask mask, u32 size, u32 slab, u32 number, bool promised) {
    u64 call = 0;  // its number, drawn when it is needed by the lane that leads then
    WARPHEAP_NO_UNROLL
    for (u32 in_vain = 0;;) {
      void* mine = promised ? block_service{table.opaque()}.probe(slab, size, number) : nullptr;
      // A promise without a block is given back: in a slab of mixed lengths there may be no block.
      u32 const broken = popcount(simt::ballot(mask, promised && !mine));
      if (broken != 0 && group_of(mask).leads) Table::give_back(table, slab, broken << length_of(size));
      mask = simt::ballot(mask, !mine);
      if (mine) return mine;
      lead got{};
      if (group_of(mask).leads && in_vain < most_in_vain)
        got = block_service{table.opaque()}.ask_rows(size, popcount(mask), call);
      u32 const where = simt::shuffle(mask, got.packed(), lowest_bit(mask));
      if (where == lead::refusal) return block_service{table}.refuse(group_of(mask));
      slab = lead::slab_of(where);
      number = simt::shuffle(mask, got.number, lowest_bit(mask)) + popcount(mask & simt::lanes_below());
      promised = popcount(mask & simt::lanes_below()) < lead::blocks_of(where);
      // The leader's acquire covers all lanes.
      simt::sync_warp(mask);
      if (lead::blocks_of(where) == 0) return block_search<Table>::run(table, mask, size, call);
      ++in_vain;
    }
  }
  static constexpr u32 most_in_vain = 3;

  /// A block for a lane that has a promise, at the places of its number; nullptr if it met none.
  /// Any lane alone.
  WARPHEAP_DEVICE void* probe(u32 slab, u32 size, u32 number) const {
    place_rule const rule = table_.rule(table_.my_entry(size));
    u32 const length = length_of(size), first = rule.probe.first(number);
    u32 vain = 0;
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < Table::config.probes; ++turn, ++vain) {
      u32 const chunk = (turn == 0 ? first : rule.probe.next(first, turn)) << length, word = chunk / word_chunks;
      u32 free = look_at(table_, slab, word, rule.capacity);
      while (u32 const starts = starts_in(free, length)) {
        // Our own place if it is free, else a scattered one: all lanes of a warp would try the
        // lowest.
        u32 const own = starts & 1u << chunk % word_chunks;
        u32 const any = nth_bit(starts, scale_below(simt::lane_id() * 0x9e37'79b9u, popcount(starts)));
        u32 const wanted = own != 0 ? own : 1u << any;
        u32 seen = 0;
        if (take_blocks(table_, slab, word, wanted, kind_of(size), length, seen) != 0) {
          table_.add_work(count::probes, vain);
          return table_.address(slab, kind_of(size), word_chunks * word + lowest_bit(wanted));
        }
        free &= ~seen;
        ++vain;
      }
      // Now and then a look at the slab's note: a search may have found that there is no room.
      if (turn % Table::config.check_every == Table::config.check_every - 1 &&
          table_.is_noted_full(slab, table_.load(slab), length))
        break;
    }
    table_.add_work(count::probes, vain);
    return nullptr;
  }

  /// Promises blocks of this row's head, or of the next one, to as many of us as it has room for.
  /// No blocks: a search must follow. Refused: a search that began after our call has found
  /// nothing, and the call has a number then. Any lane alone; waits a while for threads that
  /// replace the head.
  // NOLINTNEXTLINE(readability-function-cognitive-complexity)
  WARPHEAP_DEVICE lead ask_rows(u32 size, u32 wanted, u64& call) const {
    u32 const entry = table_.my_entry(size), kind = kind_of(size), length = length_of(size);
    place_rule const rule = table_.rule(entry);
    backoff nap{64, 1024};
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0, naps = 0, headless = 0; turn - naps < most_turns && naps < most_naps; ++turn) {
      // relaxed: hints, both this and the next load; the promise checks them.
      bool const held = (table_.lock_of(entry).load(order::relaxed) & row_lock) != 0;
      u32 const head = head_of(table_.head(entry).load(order::relaxed));
      // A row without a head found none when it looked, so a thread is about to search. Its answer
      // will do for us, if we called before it began.
      if (head == 0) {
        if (call == 0) call = table_.pass().draw();
        if (table_.is_answered(Table::pass_for_size(size), call)) return lead::none();
      }
      if (head == 0 && naps != 0 && !held) {
        // The thread that replaced the head while we waited found none, and is about to search. We
        // wait for its answer instead of queueing for a try of our own.
        if (++headless == most_headless) return {};
        ++naps;
        nap.while_working();
        continue;
      }
      if (head != 0) {
        slab_state const now = table_.load(head - 1);
        if (now.serves(kind) && now.room(rule.capacity, length) != 0 && !table_.is_noted_full(head - 1, now, length)) {
          lead const got = ask_head(entry, rule, size, wanted);
          if (got.replaces != 0) slab_supply<Table>::replace(table_, entry, got.replaces);
          if (got.blocks != 0) return got;
        }
      }
      auto const outcome = slab_supply<Table>::replace(table_, entry, head);
      if (outcome == replaced::none_found) return {};
      if (outcome != replaced::by_others) continue;
      // The thread that replaces the head runs, and may have to wait for TBuddy. If we did not wait
      // for it, each warp would cost a slab.
      ++naps;
      nap.while_working();
      table_.add_work(count::waits, 1);
    }
    return {};
  }
  static constexpr u32 most_turns = 64, most_naps = 1024, most_headless = 16;

  Table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
