// SPDX-License-Identifier: Apache-2.0
// Weak memory: what loads return and where stores go in deterministic mode, when nothing but the
// memory orders and scopes forbids the unexpected. The rules are those of PTX; the seed draws.
//
// Interleaving alone shows each store to every lane at once. Here a location keeps its last four
// messages in coherence order (history.hpp), and each lane has a view (view.hpp): what it must have
// seen.
//
//   load             reads any message that the lane does not know to be overwritten, and raises
//                    the lane's view to it, so a lane never goes back on a location (coherence)
//   store            becomes the newest, or a *late store*: it is placed behind an older message,
//                    after all that the lane knows of, and memory keeps what is newer
//   read-modify-write
//                    reads a message that a load may read, and takes the place right behind it,
//                    if the next message there is not a read-modify-write (they are atomic)
//   failing compare-exchange
//                    is a read-modify-write that leaves the value as it was, as PTX has it; it has
//                    the failure's order, and releases nothing
//   acquire, release the patterns of PTX: knowledge.hpp. A message of a read-modify-write also
//                    carries what the message carried that it read
//   sync_warp, sync_block
//                    the participants share the join of their views
//   release_fence    later stores of the lane carry its view
//   full_fence       also learns what the lane's earlier reads saw, and what every lane knew at its
//                    own last full_fence: PTX has one order of all of them
//   seq_cst          a full_fence first, whatever its scope
//   scope            operations that are not in each other's scope neither synchronize nor are
//                    atomic: two thread blocks lose updates
//   kernel           starts knowing all that came before it
//
// A read-modify-write that leaves the value as it was may even come between another one and the
// message that this one read: it then reads from ours, although it was made earlier. That is
// possible if ours releases nothing, and if nothing that came after the other one has reached our
// lane. (If something has, PTX allows it only where no chain of dependencies does, which nothing
// here can tell.)
//
// A GPU makes a release or a fence by waiting until the lane's stores have arrived where
// read-modify-writes are made. So a read-modify-write that such a release has reached, by whatever
// way, comes behind the stores before it, although PTX demands that only where the way has an
// acquire. A store that releases counts as arrived itself. Otherwise a look by a read-modify-write
// would say nothing of a block whose pointer came by a way that orders nothing.
//
// Promises are not modelled: a store seen by a lane on which it depends (load buffering), and a
// read-modify-write that changes the value and is read by one made earlier.
//
// After a while (by seed, 2 to 32 turns of all lanes) every lane counts as knowing a store: stores
// become visible in finite time. Plain accesses have no part in it; their races are found by
// race_checker.hpp, or by contents.hpp for blocks of memory. A plain store to a word that is
// accessed atomically is noticed when the value differs at the next atomic access, and counts as
// known to all lanes. The views are those of promising semantics without promises (Kang et al.
// 2017), the patterns those of Lustig et al. 2019.
#pragma once

#include <deque>

#include "knowledge.hpp"
#include "memory_words.hpp"
#include "worker.hpp"

namespace warpheap::host::detail {

/// A moment in a lane's life, for others to know or not.
struct moment {
  u64 run = 0;
  u32 clock = 0;
  u64 stamp = 0;
};

class memory_model {
 public:
  explicit memory_model(u64 seed) : run_{++runs_}, window_turns_{2ull << 2 * (draws{seed}.next() % 3)} {}
  memory_model(memory_model const&) = delete;
  memory_model& operator=(memory_model const&) = delete;

  /// The value that the running lane's load returns where memory holds `memory`.
  WARPHEAP_NO_TSAN u64 load(worker& here, access const& what, u64 memory) {
    if (what.how == order::seq_cst) fence(here);
    auto const at = words_.find(views_, what, memory);
    auto const& found = at.place.messages[choose(here, at.place, bound(here, at.place))];
    see(here, at.place, found, what);
    return at.part_of(found.value);
  }

  /// The running lane stores `value` where memory holds `memory`; returns what it holds afterwards.
  WARPHEAP_NO_TSAN u64 store(worker& here, access const& what, u64 memory, u64 value) {
    if (what.how == order::seq_cst) fence(here);
    auto const at = words_.find(views_, what, memory);
    auto& place = at.place;
    u32 index = place.count - 1;
    u64 stamp = 0;
    if (!at.is_half) {
      u64 const known = bound(here, place);
      index = choose(here, place, known);
      stamp = stamp_behind(here, place, index, known, what, false, false);
    }
    if (stamp == 0) {
      index = place.count - 1;
      stamp = next_stamp(here);
    }
    put(here, place, index, stamp, what, at.whole(place.newest().value, value), at.is_half);
    return at.part_of(place.newest().value);
  }

  /// The running lane makes a read-modify-write where memory holds `memory`.
  WARPHEAP_NO_TSAN change modify(worker& here, access const& what, modification const& how, u64 memory) {
    auto const at = words_.find(views_, what, memory);
    auto& place = at.place;
    u64 known = bound(here, place);
    u32 index = choose(here, place, known);
    // A failure has another order, and no fence.
    if (what.how == order::seq_cst && !how.fails_on(at.part_of(place.messages[index].value))) {
      fence(here);
      known = bound(here, place);
      index = choose(here, place, known);
    }
    u64 stamp = 0;
    if (!place.is_newest(index) && !at.is_half) {
      u64 const old = place.messages[index].value;
      bool const silent = place.messages[index + 1].follows && (how.fails_on(old) || result(how, old) == old);
      stamp = stamp_behind(here, place, index, known, what, true, silent);
    }
    if (stamp == 0) index = place.count - 1;
    auto const& read = place.messages[index];
    u64 const old = at.part_of(read.value);
    if (how.fails_on(old)) {
      see(here, place, read, what.with(how.failure));
      return {old, old, memory, true};
    }
    u64 const made = result(how, old);
    receive(here, place, read, what);
    put(here, place, index, stamp != 0 ? stamp : next_stamp(here), what, at.whole(read.value, made), true);
    return {old, made, at.part_of(place.newest().value), false};
  }

  WARPHEAP_NO_TSAN void fence(worker& here) {
    auto& mine = of(here.running());
    mine.acquire_all_reads(views_);
    if (fences_) mine.learn(views_, *fences_);
    views_.drop(fences_);
    fences_ = mine.hand_on();
    mine.release_all(views_);
    note_arrival(here);
  }

  WARPHEAP_NO_TSAN void release_fence(worker& here) {
    of(here.running()).release_all(views_);
    note_arrival(here);
  }

  /// Now, in the running lane's life: its view's entry for a location that is the lane's own clock.
  WARPHEAP_NO_TSAN moment mark(worker& here) {
    lane& self = here.running();
    u32 const clock = self.block->number + self.thread;
    u64 const stamp = next_stamp(here);
    of(self).own(views_).moments.raise(clock, stamp);
    return {run_, clock, stamp};
  }

  /// A moment that stands for what the running lane does from now on until others can learn of it.
  WARPHEAP_NO_TSAN moment epoch(worker& here) {
    auto& mine = of(here.running());
    if (mine.marked == 0) mine.marked = mark(here).stamp;
    return started_epoch(here);
  }

  /// The running lane's epoch(), with the stamp 0 if that would be a new one.
  WARPHEAP_NO_TSAN moment started_epoch(worker const& here) const {
    lane const& self = here.running();
    return {run_, self.block->number + self.thread, self.knows ? self.knows->marked : 0};
  }

  /// Whether the running lane knows all that another one knew at that moment.
  WARPHEAP_NO_TSAN bool knows(worker& here, moment const& then) {
    return then.run != run_ || of(here.running()).known->moments.known(then.clock) >= then.stamp;
  }

  /// The step of the first release or fence of lane `number` of the run that is not before `step`;
  /// the largest u64 if there is none.
  WARPHEAP_NO_TSAN u64 next_release(u32 number, u64 step) const {
    auto const* const steps = number < arrivals_.size() ? arrivals_.begin()[number] : nullptr;
    if (!steps) return ~u64{0};
    u64 const* first = steps->begin();
    for (size_t count = steps->size(); count > 0; count /= 2) {
      u64 const* const middle = first + count / 2;
      if (*middle >= step) continue;
      first = middle + 1;
      --count;
    }
    return first != steps->end() ? *first : ~u64{0};
  }

  /// No message made so far has a later stamp.
  u64 last_stamp() const { return last_stamp_; }

  void join_warp(warp& group, lane_mask mask) { join(group.lanes, warp_lanes, mask); }
  void join_block(thread_block& block) { join(block.lanes, block.of->shape.threads, full_mask); }

  WARPHEAP_NO_TSAN void forget(lane& ended) {
    if (!ended.knows) return;
    ended.knows->clear(views_);
    unused_.push_back(ended.knows);
    ended.knows = nullptr;
  }

 private:
  /// Lanes that were held back may make several operations in one step.
  WARPHEAP_NO_TSAN u64 next_stamp(worker const& here) {
    return last_stamp_ = later(stamp_of(here.steps()), last_stamp_ + stamps_of_a_step / 16);
  }

  WARPHEAP_NO_TSAN static u64 result(modification const& how, u64 old) { return how.result(how.operation, old); }

  /// Up to which stamp everything at `place` is known to the running lane; 0 where that is no
  /// question.
  WARPHEAP_NO_TSAN u64 bound(worker& here, location const& place) {
    if (place.count == 1) return 0;
    return later(place.known_in(*of(here.running()).known), visible(here));
  }

  /// The stamp up to which everything counts as known to all lanes.
  WARPHEAP_NO_TSAN u64 visible(worker& here) const {
    u64 const window = window_turns_ * here.live_lanes();
    return here.steps() > window ? stamp_of(here.steps() - window) : 0;
  }

  /// Index of the message that a load gets: half the time the newest, else any that the lane may
  /// still read.
  WARPHEAP_NO_TSAN static u32 choose(worker& here, location const& place, u64 known) {
    u32 const newest = place.count - 1, oldest = place.oldest_after(known);
    if (oldest == newest) return newest;
    u32 const readable = place.count - oldest;
    u64 const draw = here.choices().below(2 * readable);
    return draw < readable ? oldest + static_cast<u32>(draw) : newest;
  }

  /// The stamp of a change right behind message `index`, which it reads if it is a
  /// read-modify-write; 0 if it cannot be there, or if that is the newest. `silent`: it is one, and
  /// leaves the value as it was; of no matter unless another one comes next.
  WARPHEAP_NO_TSAN u64 stamp_behind(worker& here, location const& place, u32 index, u64 known, access const& what,
                                    bool reads, bool silent) {
    if (place.is_newest(index)) return 0;
    auto const& next = place.messages[index + 1];
    lane const& self = here.running();
    // Of all that came after it: the next one may have been placed there later than what follows.
    bool has_any_arrived = false, has_heard_of_any = false;
    for (u32 i = index + 1; i < place.count; ++i) {
      has_any_arrived = has_any_arrived || (reads && has_arrived(place.messages[i], self.heard));
      has_heard_of_any = has_heard_of_any || self.heard >= place.messages[i].step;
    }
    if (has_any_arrived) return 0;
    if (next.follows && in_scope(self, what, next)) {
      bool const hands_on = what.releases() || of(here.running()).carried_at(place.id);
      bool const scopes_differ = next.block_scope || place.messages[index].block_scope;
      if (!silent || hands_on || scopes_differ) return 0;
      if (has_heard_of_any) return 0;
    }
    return place.stamp_behind(index, known);
  }

  /// What the running lane has stored so far has arrived.
  WARPHEAP_NO_TSAN void note_arrival(worker& here) {
    lane const& self = here.running();
    u32 const number = self.block->number + self.thread;
    if (arrivals_.size() <= number) arrivals_.resize(number + 1);
    auto*& steps = arrivals_[number];
    if (!steps) steps = add_steps();
    if (steps->empty() || steps->back() != here.steps()) steps->push_back(here.steps());
  }
  [[gnu::noinline]] raw_vector<u64>* add_steps() { return &all_steps_.emplace_back(); }

  /// Whether its lane has released after `made`, at a step up to `heard`.
  WARPHEAP_NO_TSAN bool has_arrived(message const& made, u64 heard) const {
    return made.writer != 0 && next_release(made.writer + made.lane, made.step) <= heard;
  }

  /// The lane has read `found`, and stores nothing.
  WARPHEAP_NO_TSAN void see(worker& here, location const& place, message const& found, access const& what) {
    auto& mine = of(here.running());
    if (found.stamp > mine.known->stores.known(place.id)) mine.own(views_).stores.raise(place.id, found.stamp);
    receive(here, place, found, what);
  }

  /// What the lane learns of others by reading `found`.
  WARPHEAP_NO_TSAN void receive(worker& here, location const& place, message const& found, access const& what) {
    lane& self = here.running();
    auto& mine = of(self);
    self.heard = later(self.heard, found.step);
    if (what.acquires()) mine.acquire_reads(views_, place.id);
    if (!found.released || !in_scope(self, what, found)) return;
    if (what.acquires()) mine.learn(views_, *found.released);
    else mine.note_read(views_, place.id, found.released);
  }

  /// A change takes the place behind message `index`; `follows` if it has read that.
  WARPHEAP_NO_TSAN void put(worker& here, location& place, u32 index, u64 stamp, access const& what, u64 value,
                            bool follows) {
    lane& self = here.running();
    auto& mine = of(self);
    auto& known = mine.own(views_).stores;
    known.raise(place.id, stamp);
    if (known.entries.size() > many_entries) known.raise_floor(visible(here));  // for speed alone
    auto const& before = place.messages[index];
    // The lane's knowledge covers what it acquires and releases: host.K1.
    bool const has_learned = what.acquires() && what.releases();
    view* const inherited = follows && !has_learned && in_scope(self, what, before) ? before.released : nullptr;
    if (what.releases()) {
      mine.note_release(views_, place.id);
      note_arrival(here);
    }
    view* const carried = mine.carried_at(place.id);
    place.insert(views_, {value, stamp, here.steps(), views_.joined(carried, inherited), self.block->number,
                          self.thread, what.among == scope::block, follows});
  }

  /// Whether the access and the message's are in each other's scope, so that they synchronize and
  /// are atomic.
  WARPHEAP_NO_TSAN static bool in_scope(lane const& self, access const& what, message const& other) {
    return other.writer == self.block->number || (!other.block_scope && what.among != scope::block);
  }

  WARPHEAP_NO_TSAN knowledge& of(lane& self) {
    if (!self.knows) {
      if (unused_.empty()) unused_.push_back(add_knowledge());
      self.knows = unused_.pop_back();
      self.knows->known = views_.make(self.block->of->start_stamp);
    }
    return *self.knows;
  }

  [[gnu::noinline]] knowledge* add_knowledge() { return &all_.emplace_back(); }

  void join(lane* lanes, u32 count, lane_mask mask) {
    view* const all = views_.make(0);
    auto const meets = [&](u32 i) { return (mask >> i % warp_lanes & 1) != 0 && lanes[i].state != lane_state::exited; };
    for (u32 i = 0; i < count; ++i) {
      if (meets(i)) all->join(*of(lanes[i]).known);
    }
    for (u32 i = 0; i < count; ++i) {
      if (!meets(i)) continue;
      views_.drop(lanes[i].knows->known);
      lanes[i].knows->known = view_store::share(all);
      lanes[i].knows->marked = 0;
    }
    views_.drop(all);
  }

  static constexpr size_t many_entries = 8;  // of a view
  static inline u64 runs_ = 0;

  u64 run_;
  u64 window_turns_;
  u64 last_stamp_ = 0;
  view_store views_;
  memory_words words_;
  view* fences_ = nullptr;  // what lanes knew at their last full_fence
  // by lane of the run: the steps of its releases and fences
  raw_vector<raw_vector<u64>*> arrivals_;
  std::deque<raw_vector<u64>> all_steps_;
  std::deque<knowledge> all_;
  raw_vector<knowledge*> unused_;
};

}  // namespace warpheap::host::detail
