// SPDX-License-Identifier: Apache-2.0
// The owner's side of a mailbox: frees what lies in it, by passes over its regions.
// Refused calls divide one pass, and all wait for its end. So each of them knows that what was
// posted before its call has been freed, and not only taken out by a thread that is about to free
// it.
//
//   pass      63      32 31       0
//            |  number  |   next   |    regions below `next` are claimed; `next` may lie beyond all
//
//   drain.D1  a pass has each region once: claimed by an addition to `next`, drained, then counted
//       in `finished`. The call that counts the last one resets `finished` and begins the next
//       pass, by an exchange. So one group of lanes at a time drains a region.
//   drain.D2  a call draws by a read-modify-write of `pass`. Only such operations change it, so
//       what happens before a draw happens before all claims after it: the draw releases, and
//       claims acquire. If no region was claimed yet, that pass serves the call, else the next one
//       does.
//   drain.D3  quiet: every root word was seen 0, and after that a pass of which nothing was
//       claimed. What was posted before the call has been freed. The drain that cleared a bit had
//       claimed its region before, and the look at the root acquired that; so the pass seen later
//       is one that began after that drain's had ended.
//
// No call waits but for groups that have claimed regions, and these wait for nothing.
// Source: ours; passes that answer many calls: shared_pass.hpp.
#pragma once

#include "../platform/backoff.hpp"
#include "mailbox.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// One group of lanes that call all functions together; only threads of the owner's GPU may.
template <class Mailbox>
class mailbox_drain {
 public:
  /// All lanes of `active` hold one `box`. A pointer, because a copy took 12 registers more of
  /// kernels that call malloc (nvcc 13.0, sm_90).
  WARPHEAP_DEVICE mailbox_drain(Mailbox const* box, lane_mask active) : box_{box}, active_{active} {}

  /// Calls `free(address)` for what is in the mailbox, together with all that call it at the same
  /// time. When it returns, what was posted before the call is freed. Returns false if that is for
  /// certain nothing, and never was.
  template <class Free>
  WARPHEAP_DEVICE bool operator()(Free free) const {
    simt::sync_warp(active_);  // a post that one lane knows, all lanes know
    activity const seen = look();
    if (seen != busy) return seen == had_passes;
    u64 const drawn = from_leader(leads() ? draw() : u64{0});
    u32 const target = next_of(drawn) == 0 ? number_of(drawn) : following(number_of(drawn));
    backoff wait;
    WARPHEAP_NO_UNROLL
    for (;;) {
      // acquire: all frees of the passes that have ended; pairs with the exchange in finish().
      u64 const now = from_leader(leads() ? pass().load(order::acquire) : u64{0});
      if (static_cast<i32>(number_of(now) - target) > 0) break;
      if (next_of(now) < box_->regions()) drain_some(now, free);
      else wait.while_working();
    }
    simt::sync_warp(active_);  // what the leader acquired, all have
    return true;
  }

 private:
  /// What a look finds; the first two are quiet (drain.D3).
  enum activity : u32 { never_used, had_passes, busy };

  WARPHEAP_DEVICE static u32 number_of(u64 pass) { return static_cast<u32>(pass >> 32); }
  WARPHEAP_DEVICE static u32 next_of(u64 pass) { return static_cast<u32>(pass); }
  /// The pass after `number`. Only the first of all has number 0.
  WARPHEAP_DEVICE static u32 following(u32 number) { return number + 1 != 0 ? number + 1 : 1; }
  WARPHEAP_DEVICE bool leads() const { return group_of(active_).leads; }
  WARPHEAP_DEVICE u32 rank() const { return group_of(active_).rank; }
  WARPHEAP_DEVICE u32 size() const { return popcount(active_); }
  template <class T>
  WARPHEAP_DEVICE T from_leader(T value) const {
    return broadcast(group_of(active_), value);
  }
  WARPHEAP_DEVICE u32 root_words() const { return (box_->regions() + 63) / 64; }

  WARPHEAP_DEVICE atomic_ref<u64> pass() const { return atomic_ref<u64>{box_->state()->pass}; }
  WARPHEAP_DEVICE static atomic_ref<u64, scope::system> shared(u64& word) {
    return atomic_ref<u64, scope::system>{word};
  }

  /// Whether anything was pending or in progress, to all lanes.
  WARPHEAP_DEVICE activity look() const {
    u64 pending = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = rank(); i < root_words(); i += size())
      // acquire: the claim of the drain that cleared a bit; pairs with the release in take_root().
      pending |= shared(box_->state()->root[i]).load(order::acquire);
    // acquire: the frees of the passes before; pairs with the exchange in finish().
    u64 const seen = pass().load(order::acquire);
    lane_mask const found_work = simt::ballot(active_, pending != 0 || next_of(seen) != 0);
    lane_mask const found_numbers = simt::ballot(active_, number_of(seen) != 0);
    simt::sync_warp(active_);  // what each has acquired, all have
    if (found_work != 0) return busy;
    return found_numbers != 0 ? had_passes : never_used;
  }

  /// By the leader: a place in the chain of drain.D2.
  WARPHEAP_DEVICE u64 draw() const {
    // release: the posts that we know, for all claims after this (drain.D2).
    return pass().fetch_add(0, order::release);
  }

  /// Claims regions of the pass that was seen as `now`, and drains them. None may be left.
  template <class Free>
  WARPHEAP_DEVICE void drain_some(u64 now, Free free) const {
    u64 claimed = 0;
    u32 count = 0;
    if (leads()) {
      count = regions_to_claim(now);
      // acquire: the draws and passes before, so that no post of theirs is missed (drain.D2).
      WARPHEAP_POINT("drain.before_claim");
      claimed = pass().fetch_add(count, order::acquire);
    }
    claimed = from_leader(claimed);
    u32 const first = next_of(claimed), end = first + from_leader(count), last = box_->regions();
    if (first >= last) return;
    drain_regions(first, end < last ? end : last, free);
    simt::sync_warp(active_);  // the frees of all of us come before the leader's count
    if (leads()) finish(number_of(claimed), (end < last ? end : last) - first);
  }

  /// By the leader: regions up to one with something pending, within its root word. One, if others
  /// claim just now: bits that they have cleared are not nothing to do.
  WARPHEAP_DEVICE u32 regions_to_claim(u64 now) const {
    u32 const next = next_of(now);
    // acquire: the claim of the drain that cleared a bit, so that the load of `pass` shows it;
    // pairs with the release in take_root(). For speed alone: any count is right.
    u64 const rest = shared(box_->state()->root[next / 64]).load(order::acquire) >> (next % 64);
    if (pass().load(order::relaxed) != now) return 1;
    return rest != 0 ? lowest_bit(rest) + 1 : 64 - next % 64;
  }

  /// By the leader: counts `regions` regions of pass `number`, and begins the next one (drain.D1).
  WARPHEAP_DEVICE void finish(u32 number, u32 regions) const {
    atomic_ref<u64> const finished{box_->state()->finished};
    // acq_rel: the frees of all come before the exchange; partners of each other.
    if (finished.fetch_add(regions, order::acq_rel) + regions != box_->regions()) return;
    // relaxed: the next addition comes after a claim that acquires the exchange.
    finished.store(0, order::relaxed);
    // release: pairs with the loads in operator() and look(), and with claims.
    pass().exchange(u64{following(number)} << 32, order::release);
  }

  template <class Free>
  WARPHEAP_DEVICE void drain_regions(u32 first, u32 end, Free free) const {
    WARPHEAP_NO_UNROLL
    for (u32 word = first / 64; 64 * word < end; ++word) {
      u64 const below = 64 * word < first ? low_mask(first % 64) : 0;
      u64 const upto = end - 64 * word < 64 ? low_mask(end - 64 * word) : ~u64{0};
      u64 set = from_leader(leads() ? take_root(word, upto & ~below) : u64{0});
      // mailbox.M3: the clear, and the claim, come before what the other lanes do.
      simt::sync_warp(active_);
      WARPHEAP_NO_UNROLL
      for (; set != 0; set &= set - 1) drain_region(64 * word + lowest_bit(set), free);
    }
  }

  /// By the leader: those of `mask` that are set, which are cleared.
  WARPHEAP_DEVICE u64 take_root(u32 word, u64 mask) const {
    auto const root = shared(box_->state()->root[word]);
    // relaxed: the claim acquired every post that this pass must not miss (drain.D2).
    u64 const set = root.load(order::relaxed) & mask;
    // release: the claim comes before; pairs with the acquire in look() (drain.D3).
    if (set != 0) root.fetch_and(~set, order::release);
    WARPHEAP_POINT("drain.before_summary");
    return set;
  }

  template <class Free>
  WARPHEAP_DEVICE void drain_region(u32 region, Free free) const {
    u32 const first = region << box_->span_log2(), end = first + (1u << box_->span_log2());
    WARPHEAP_NO_UNROLL
    for (u32 base = first; base < end; base += size()) {
      u32 const mine = base + rank();
      // release: what we cleared in the root (mailbox.M4); pairs with a post's acquire of this
      // word.
      u64 const rows = mine < end ? shared(box_->summary()[mine]).exchange(0, order::release) : 0;
      WARPHEAP_POINT("drain.before_bitmap");
      lane_mask rest = simt::ballot(active_, rows != 0);
      // mailbox.M3: these clears come before what the other lanes do.
      simt::sync_warp(active_);
      WARPHEAP_NO_UNROLL
      for (; rest != 0; rest &= rest - 1) {
        u32 const lane = lowest_bit(rest);
        drain_rows(simt::shuffle(active_, mine, lane), simt::shuffle(active_, rows, lane), free);
      }
    }
  }

  /// The rows of one word of the summary. A lane to a word, and its lanes' frees together.
  template <class Free>
  WARPHEAP_DEVICE void drain_rows(u32 summary_word, u64 rows, Free free) const {
    WARPHEAP_NO_UNROLL
    for (; rows != 0; rows &= rows - 1) {
      u32 const row = box_->row_of(64 * summary_word + lowest_bit(rows));
      WARPHEAP_NO_UNROLL
      for (u32 i = rank(); i < Mailbox::row_words; i += size()) {
        u32 const word = row * Mailbox::row_words + i;
        // acquire: what was done to the blocks (mailbox.M5). release: what we cleared in the
        // summary (mailbox.M3). Both pair with the fetch_or of posts.
        u64 bits = shared(box_->bitmap()[word]).exchange(0, order::acq_rel);
        WARPHEAP_NO_UNROLL
        for (; bits != 0; bits &= bits - 1) free(box_->address(word, lowest_bit(bits)));
      }
    }
  }

  Mailbox const* box_;
  lane_mask active_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
