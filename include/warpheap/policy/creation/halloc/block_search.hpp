// The certain answer, for lanes of one heap and size for whom no head had room: all slabs are looked at, by the lanes side by
// side, also the busy ones, other rows' heads, and heads of other chunks that are empty; then TBuddy is asked for one more.
// Only if there is nothing, and nobody left any room meanwhile, is there none.
//
//   E1  searches_begun is raised, by a read-modify-write, before a search's first look, which gives the search its number. So
//       a search with a larger number began after ours was called.
//   E2  certificate(size) = e + 1: somebody looked at every slab and asked TBuddy, and found nothing for the size while the
//       epoch was e.   fruitless(size) = n: the same, by search n.
//
// A slab whose words were searched in vain keeps a note of that in its state, until somebody leaves room there: a crowd reads
// words only where something has changed. Why the answer is certain: docs/design/halloc.md.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "chunk_claim.hpp"
#include "slab_supply.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

template <class Table>
class block_search {
  using supply_type = slab_supply<Table>;

 public:
  static constexpr u32 none = slab_set::none;

  WARPHEAP_DEVICE block_search(Table const& table, u32 size)
      : table_{table}, kind_{kind_of(size)}, length_{length_of(size)}, capacity_{table.geometry().capacity(kind_)} {}

  /// A block; nullptr, and then at one instant of the call there was none; or again(), where others of the group got what we
  /// found. All lanes of `mask` call, with the same heap and size.
  WARPHEAP_COLD static void* run(Table table, u32 mask, u32 size) { return block_search{table, size}(mask); }
  WARPHEAP_DEVICE static void* again() { return reinterpret_cast<void*>(~u64{0}); }

  /// Whether it is known that there is nothing for the size. Any lane alone.
  WARPHEAP_DEVICE static bool is_certified(Table const& table, u32 size) {
    // acquire: pairs with the release in publish(); the raises that were counted there happen before we count.
    u64 const certificate = table.certificate(size).load(order::acquire);
    return certificate != 0 && certificate == table.epoch() + 1;
  }

 private:
  WARPHEAP_DEVICE void* operator()(u32 mask) const {
    lane_group const group = group_of(mask);
    // What any of us knows to have been freed, all of us find.
    simt::sync_warp(mask);
    u64 number = 0;
    // acq_rel: what all knew to be freed who came before us, and what we know for all who come later (E1).
    if (group.leads) number = table().searches_begun().fetch_add(1, order::acq_rel) + 1;
    table().add_work(count::searches, group.leads);
    for (backoff nap;; nap.pause()) {
      u64 epoch = 0;
      u32 known = 0;
      if (group.leads) {
        epoch = table().epoch();
        known = is_known(number, epoch);
      }
      if (broadcast(group, known) != 0) return nullptr;
      // The leader's acquire is everybody's: what was said in the epoch, all see.
      simt::sync_warp(mask);
      bool sure = true;
      if (void* const found = look_at_all(group, sure)) return found;
      if (void* const found = take_new(group, number, epoch, sure)) return found;
      // What all of us saw comes before the sum.
      simt::sync_warp(mask);
      u32 certain = 0;
      if (group.leads && sure && (!Table::steps::compares_epochs || table().newest_epoch() == epoch)) {
        publish(number, epoch);
        certain = 1;
      }
      if (broadcast(group, certain) != 0) return nullptr;
    }
  }

  WARPHEAP_DEVICE u32 size() const { return size_of(kind_, length_); }

  WARPHEAP_DEVICE u32 is_known(u64 number, u64 epoch) const {
    // acquire: pairs with the release in publish(). relaxed: numbers alone; E1 has ordered what they say.
    return table().certificate(size()).load(order::acquire) == epoch + 1 ||
           table().fruitless(size()).load(order::relaxed) > number;
  }

  WARPHEAP_DEVICE void publish(u64 number, u64 epoch) const {
    // release: what we know of the epoch is known to who believes us; pairs with the acquire in is_certified(), is_known().
    table().certificate(size()).store(epoch + 1, order::release);
    table().fruitless(size()).store(number, order::relaxed);
  }

  enum class view : u32 { nothing, locked, worth_a_visit };

  /// Blocks for some of the group: a pointer, again() for the others; nullptr for all if there are none. `sure` falls if a slab
  /// was in somebody's hands.
  WARPHEAP_DEVICE void* look_at_all(lane_group const& group, bool& sure) const {
    u32 const slabs = table().slabs(), start = broadcast(group, supply_type::scattered(slabs));
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < slabs; done += group.size) {
      u32 const mine = done + group.rank, ahead = start + mine, slab = ahead < slabs ? ahead : ahead - slabs;
      view const seen = mine < slabs ? inspect(slab) : view::nothing;
      if (simt::ballot(group.mask, seen == view::locked) != 0) sure = false;
      Table::steps::linger_in_search();
      WARPHEAP_NO_UNROLL
      for (u32 rest = simt::ballot(group.mask, seen == view::worth_a_visit); rest != 0; rest &= rest - 1)
        if (void* const got = visit(group, simt::shuffle(group.mask, slab, lowest_bit(rest)), sure)) return got;
    }
    return nullptr;
  }

  /// What a slab looks like. One that is full by its count is marked so (A4).
  WARPHEAP_DEVICE view inspect(u32 slab) const {
    slab_state now = table().load(slab);
    for (;;) {
      if (now.phase() == slab_phase::locked) return view::locked;
      if (now.phase() == slab_phase::free || now.empty()) return view::worth_a_visit;
      if (!now.serves(kind_) || (now.watched() && now.has_no_room(length_))) return view::nothing;
      if (now.room(capacity_, length_) != 0) return view::worth_a_visit;
      u64 const marked = now.word | slab_state::watched_bit | slab_state::no_room_for(length_);
      // acquire: as in look(). The exact word: no room in it.
      if (table().state(slab).compare_exchange(now.word, marked, order::acquire, order::relaxed)) return view::nothing;
    }
  }

  /// As look_at_all(), of one slab.
  WARPHEAP_DEVICE void* visit(lane_group const& group, u32 slab, bool& sure) const {
    u32 promised = 0, outcome = 0;
    if (group.leads) {
      slab_state const now = table().load(slab);
      supply_type const supply{table()};
      bool const locked = now.phase() == slab_phase::free     ? supply.lock_free(slab)
                          : now.empty() && !now.serves(kind_) ? table().lock_empty(slab)
                                                              : false;
      if (locked) promised = open(slab, group.size);
      else outcome = now.serves(kind_) ? 1 : 2;
    }
    promised = broadcast(group, promised);
    outcome = broadcast(group, outcome);
    if (outcome == 2) sure = false;  // others were faster
    u32 word = 0;
    if (outcome == 1) {
      word = look(group, slab, sure);
      if (word == none) return nullptr;
      if (group.leads) promised = promise(slab, group.size);
      promised = broadcast(group, promised);
    }
    return promised != 0 ? collect(group, slab, word, promised) : nullptr;
  }

  /// As look_at_all(), of a slab that TBuddy has. Who waits behind others that find nothing goes with their answer.
  WARPHEAP_DEVICE void* take_new(lane_group const& group, u64 number, u64 epoch, bool& sure) const {
    u32 slab = none, promised = 0, asked = 0;
    if (group.leads) {
      spin_mutex const moving = table().moving();
      backoff nap;
      while (asked == 0 && is_known(number, epoch) == 0) {
        asked = !moving.is_locked() && moving.try_lock();
        if (asked != 0) break;
        nap.pause();
        // Our row has come by a head: we look again, and need not wait in line for a slab of our own. Not by asking the row: a
        // crowd that promises itself what it does not find would keep everybody from being sure.
        if (supply_type{table()}.serves(table().my_entry(size()))) break;
      }
      if (asked != 0) {
        slab = supply_type{table()}.make_alone();
        moving.unlock();
      }
      if (slab != none) promised = open(slab, group.size);
    }
    if (broadcast(group, asked) == 0) sure = false;
    slab = broadcast(group, slab);
    promised = broadcast(group, promised);
    return promised != 0 ? collect(group, slab, 0, promised) : nullptr;
  }

  /// Makes a locked slab one of ours and returns the blocks of it that are promised. One lane.
  WARPHEAP_DEVICE u32 open(u32 slab, u32 wanted) const {
    u32 const room = capacity_ >> length_, promised = wanted < room ? wanted : room;
    supply_type{table()}.publish(slab, size(), promised << length_, false);
    table().set(Table::sparse(kind_)).add(slab);  // A7: from there to where it belongs
    return promised;
  }

  /// The first word that we see with room for a block; `none`, and a note of it in the state, if there is none.
  WARPHEAP_DEVICE u32 look(lane_group const& group, u32 slab, bool& sure) const {
    slab_state now{};
    u32 outcome = 0;
    if (group.leads) {
      now = table().load(slab);
      // acquire: room that was left before this is seen in the words; pairs with the release in subtract(). Of what is left
      // later we are told (A4).
      while (now.serves(kind_) && outcome == 0)
        outcome = table().state(slab).compare_exchange(now.word, now.word | slab_state::watched_bit, order::acquire,
                                                       order::relaxed);
    }
    if (broadcast(group, outcome) == 0) {
      sure = false;
      return none;
    }
    simt::sync_warp(group.mask);
    u32 const words = table().geometry().words(kind_), start = broadcast(group, supply_type::scattered(words));
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < words; done += group.size) {
      u32 const mine = done + group.rank, ahead = start + mine, word = ahead < words ? ahead : ahead - words;
      bool const found = mine < words && starts_in(look_at(table(), slab, word, capacity_), length_) != 0;
      if (u32 const all = simt::ballot(group.mask, found)) return simt::shuffle(group.mask, word, lowest_bit(all));
    }
    simt::sync_warp(group.mask);
    if (group.leads) note_no_room(slab, {now.word | slab_state::watched_bit});
    return none;
  }

  /// `seen` is the state from before we looked: with its version, nobody has left room since.
  WARPHEAP_DEVICE void note_no_room(u32 slab, slab_state seen) const {
    slab_state now = seen;
    while (now.serves(kind_) && now.watched() && now.version() == seen.version() && !now.has_no_room(length_)) {
      u64 const noted = now.word | slab_state::no_room_for(length_);
      // relaxed: who believes it has our raise or our answer to go by.
      if (table().state(slab).compare_exchange(now.word, noted, order::relaxed, order::relaxed)) return;
    }
  }

  WARPHEAP_DEVICE u32 promise(u32 slab, u32 wanted) const {
    slab_state now = table().load(slab);
    while (now.serves(kind_)) {
      u32 const room = now.room(capacity_, length_), kept = wanted < room ? wanted : room;
      if (kept == 0) return 0;
      // acquire: as in promise() of the table.
      if (table().state(slab).compare_exchange(now.word, now.word + (kept << length_), order::acquire, order::relaxed))
        return kept;
    }
    return 0;
  }

  /// Takes the blocks that were promised, from `start` on, and shares them out by rank. again() for who gets none.
  WARPHEAP_DEVICE void* collect(lane_group const& group, u32 slab, u32 start, u32 promised) const {
    u32 const words = table().geometry().words(kind_);
    void* mine = again();
    u32 unserved = group.mask;
    simt::sync_warp(group.mask);
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < words && promised != 0; done += group.size) {
      u32 const turn = done + group.rank, ahead = start + turn, word = ahead < words ? ahead : ahead - words;
      u32 const starts = turn < words ? starts_in(look_at(table(), slab, word, capacity_), length_) : 0;
      WARPHEAP_NO_UNROLL
      for (u32 rest = simt::ballot(group.mask, starts != 0); rest != 0 && promised != 0; rest &= rest - 1) {
        u32 const taker = lowest_bit(rest);
        u32 got = 0, seen = 0;
        if (simt::lane_id() == taker)
          got = take_blocks(table(), slab, word, static_cast<u32>(lowest_bits(starts, promised)), kind_, length_, seen);
        got = simt::shuffle(group.mask, got, taker);
        u32 const at = simt::shuffle(group.mask, word, taker), rank = popcount(unserved & simt::lanes_below());
        if (mine == again() && rank < popcount(got))
          mine = table().address(slab, kind_, word_chunks * at + nth_bit(got, rank));
        unserved = simt::ballot(group.mask, mine == again());
        promised -= popcount(got);
      }
    }
    if (promised != 0 && group.leads) Table::give_back(table(), slab, promised << length_);
    // The takers' acquires are everybody's: what the old owners wrote happens before our return.
    simt::sync_warp(group.mask);
    return mine;
  }

  /// Nothing that follows from its sizes is kept: this is off the common path.
  WARPHEAP_DEVICE Table table() const { return table_.afresh(); }

  Table table_;
  u32 kind_, length_, capacity_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
