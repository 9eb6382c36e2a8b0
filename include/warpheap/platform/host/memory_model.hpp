// Stale reads: what loads may return in deterministic mode when nothing but the memory orders
// forbids older values.
//
// Interleaving alone shows each store to every lane at once. Here a location keeps its last four
// values, each lane has a view (view.hpp), and a load may return any value that the lane does not
// know to be overwritten; the seed draws which.
//
//   load             raises the lane's view to what it read, so a lane never goes back on a
//                    location (coherence)
//   acquire          joins the view that the value's store released
//   release          the stored value carries the lane's view
//   read-modify-write
//                    reads the newest, and passes on what that value carried (a release sequence)
//   sync_warp, sync_block
//                    the participants share the join of their views
//   fenced           the stored value carries the view that the lane had at its last release_fence:
//                    none if there was none
//   full_fence, seq_cst
//                    the lane knows all stores made so far, and its later stores carry as much:
//                    stronger than the fence is, so that nothing is reported that a GPU could not
//                    do
//   kernel           starts knowing all that came before it
//
// After a while (by seed, 2 to 32 turns of all lanes) every lane counts as knowing a store: stores
// become visible in finite time. Stores are never seen early, so load buffering does not show.
// Plain accesses are not tracked. A plain store to such a word is noticed when the value differs at
// the next atomic access, and counts as known to all lanes. The views are those of promising
// semantics without promises (Kang et al. 2017), restricted to C++'s release sequences.
#pragma once

#include "history.hpp"
#include "worker.hpp"

namespace warpheap::host::detail {

/// An atomic access.
struct access {
  u64 address;
  u32 bytes;
  order how;
  scope among;

  bool acquires() const { return how == order::acquire || how == order::acq_rel || how == order::seq_cst; }
  bool releases() const { return how == order::release || how == order::acq_rel || how == order::seq_cst; }
};

class memory_model {
 public:
  explicit memory_model(u64 seed) : window_turns_{2ull << 2 * (draws{seed}.next() % 3)} {}

  /// The value that the running lane's load returns where memory holds `newest`.
  u64 load(worker& here, access const& what, u64 newest) {
    lane& self = here.running();
    if (what.how == order::seq_cst) fence(here);
    auto& word = history_.word_of(what.address);
    auto& place = part_of(word, what, newest);
    u32 const chosen = word.accessed == word_history::width::mixed ? place.count - 1 : choose(here, self, place);
    auto const& found = place.messages[chosen];
    see(self, place, found, what);
    return chosen + 1 == place.count ? newest : found.value;
  }

  /// The running lane's store or read-modify-write replaced `before` by `after`.
  void change(worker& here, operation kind, access const& what, u64 before, u64 after) {
    lane& self = here.running();
    if (what.how == order::seq_cst) fence(here);
    auto& word = history_.word_of(what.address);
    auto& place = part_of(word, what, before);
    bool const mixed = word.accessed == word_history::width::mixed;
    bool const reads = kind != operation::store || mixed;
    if (reads) see(self, place, place.newest(), what);
    if (kind == operation::compare_exchange_failed) return;
    own(self).raise(place.id, here.steps());
    push(place,
         {after, here.steps(), released_by(self, what, reads ? &place.newest() : nullptr), self.block,
          what.among == scope::block},
         mixed);
  }

  void fence(worker& here) {
    lane& self = here.running();
    own(self).raise_floor(here.steps());
    self.fenced = here.steps();
  }

  void release_fence(worker& here) {
    lane& self = here.running();
    views_.drop(self.to_release);
    self.to_release = view_store::share(&own_view(self));
  }

  void join_warp(warp& group, u32 mask) { join(group.lanes, warp_lanes, mask); }
  void join_block(thread_block& block) { join(block.lanes, block.of->shape.threads, full_mask); }
  void forget(lane& ended) {
    views_.drop(ended.known);
    views_.drop(ended.to_release);
    ended.known = ended.to_release = nullptr;
  }

 private:
  /// Index of the message that a load gets: half the time the newest, else any that the lane may
  /// still read.
  u32 choose(worker& here, lane& self, location const& place) {
    u64 const window = window_turns_ * here.live_lanes();
    u64 const visible = here.steps() > window ? here.steps() - window : 0;
    u64 const bound = std::max(own_view(self).known(place.id), visible);
    u32 oldest = place.count - 1;
    while (oldest > 0 && place.messages[oldest].step > bound) --oldest;
    u32 const readable = place.count - oldest;
    if (readable == 1) return oldest;
    u64 const draw = here.choices().below(2 * readable);
    return draw < readable ? oldest + static_cast<u32>(draw) : place.count - 1;
  }

  /// The lane has read `found`.
  void see(lane& self, location const& place, message const& found, access const& what) {
    if (found.step > own_view(self).known(place.id)) own(self).raise(place.id, found.step);
    bool const in_scope = found.writer == self.block || (!found.block_scope && what.among != scope::block);
    if (what.acquires() && found.released && in_scope) own(self).join(*found.released);
  }

  /// What a store by `self` carries; `replaced` is what a read-modify-write read.
  view* released_by(lane& self, access const& what, message const* replaced) {
    bool const inherits = replaced && replaced->released && (!replaced->block_scope || replaced->writer == self.block);
    view* const inherited = inherits ? replaced->released : nullptr;
    view* const fenced = what.how == order::fenced ? self.to_release : nullptr;
    if (!what.releases() && !fenced && !self.fenced) return view_store::share(inherited);
    view* made = what.releases() ? view_store::share(&own_view(self))
                 : fenced        ? view_store::share(fenced)
                                 : views_.make(self.fenced);
    if (!inherited || (what.acquires() && what.releases())) return made;
    view* const joined = views_.copy(*made);
    views_.drop(made);
    joined->join(*inherited);
    return joined;
  }

  /// The location of an access. If a plain store changed it, its newest value is corrected first.
  location& part_of(word_history& word, access const& what, u64 actual) {
    using width = word_history::width;
    auto const wanted = what.bytes == 8 ? width::wide : width::narrow;
    if (word.accessed == width::unknown) word.accessed = wanted;
    if (word.accessed != wanted && word.accessed != width::mixed) mix(word);
    auto& place = word.parts[word.accessed == width::narrow && what.address & 4 ? 1 : 0];
    bool const plainly_stored = place.count && word.accessed != width::mixed && place.newest().value != actual;
    if (plainly_stored) clear(place);
    if (!place.count) place.messages[place.count++] = {actual, 0, nullptr, nullptr, false};
    return place;
  }

  /// From now on the word is accessed in both widths: it is one location, with one message that
  /// carries all the views released there.
  void mix(word_history& word) {
    word.accessed = word_history::width::mixed;
    view* const all = views_.make(0);
    u64 step = 0;
    for (auto& part : word.parts) {
      if (!part.count) continue;
      if (part.newest().released) all->join(*part.newest().released);
      step = std::max(step, part.newest().step);
      clear(part);
    }
    word.parts[0].messages[0] = {0, step, all, nullptr, false};
    word.parts[0].count = 1;
  }

  void push(location& place, message const& made, bool alone) {
    if (alone) clear(place);
    if (place.count == location::depth) {
      views_.drop(place.messages[0].released);
      std::copy(place.messages + 1, place.messages + place.count, place.messages);
      --place.count;
    }
    place.messages[place.count++] = made;
  }

  void clear(location& place) {
    for (u32 i = 0; i < place.count; ++i) views_.drop(place.messages[i].released);
    place.count = 0;
  }

  view& own_view(lane& self) {
    if (!self.known) self.known = views_.make(self.block->of->start_step);
    return *self.known;
  }

  /// The lane's view for a change: a copy of its own.
  view& own(lane& self) {
    view& known = own_view(self);
    if (known.holders == 1) return known;
    self.known = views_.copy(known);
    views_.drop(&known);
    return *self.known;
  }

  void join(lane* lanes, u32 count, u32 mask) {
    view* const all = views_.make(0);
    for (u32 i = 0; i < count; ++i) {
      if (mask >> i % warp_lanes & 1) all->join(own_view(lanes[i]));
    }
    for (u32 i = 0; i < count; ++i) {
      if (!(mask >> i % warp_lanes & 1)) continue;
      views_.drop(lanes[i].known);
      lanes[i].known = view_store::share(all);
    }
    views_.drop(all);
  }

  u64 window_turns_;
  view_store views_;
  history_table history_;
};

}  // namespace warpheap::host::detail
