// SPDX-License-Identifier: Apache-2.0
// A search of every place that finds nothing, and its answer shared by many calls: how many callers
// are refused at once.
//
// Where nothing counts what is free, a call that finds nothing on its way looks at every place
// once: a pass. A place that the pass found taken, or lost to another caller, was taken at some
// moment of the call. So a pass never starts again. Many callers need not make a pass each: a pass
// that began after a call did answers that call too, since all that the pass saw, it saw during the
// call. Frees notify no thread.
//
//   pass.P1  a pass draws its number by a read-modify-write before its first look. A pass with a
//       larger number began after ours did.
//   pass.P2  outcome(c) = number and size: that pass saw every place, after its number was drawn,
//       and none with room for the size, of class c. 0: no pass has published anything.
//
// The answer's guarantee: room made by a free that happens before the call is found if it stays
// free. The draws are one chain of acquire and release, so that free happens before the looks of
// our pass, and of any with a larger number. A relaxed load never misses a write of the same word
// that happens before it. So looks are relaxed loads, of which a GPU serves several times as many
// as of read-modify-writes. A free that merely came earlier on the clock, without such an order,
// may be missed. docs/design/shared_pass.md.
//
// Cost: an addition a pass to one address, a load now and then.
#pragma once

#include "warp_aggregate.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// What a pass looked for: a size within its class. If there was no room for a size, there was none
/// for any larger one.
///
///    63     20 19      0
///   |  number |  rest   |     an outcome (pass.P2)
struct pass_size {
  static constexpr u32 rest_bits = 20;

  u32 size_class = 0;
  /// the size less the least of its class; if that least is above 2^20, in steps of a 2^20th of it
  u32 rest = 0;

  /// The size of `units` consecutive units: rounded up for a pass that found none, down for a
  /// question.
  WARPHEAP_HOST_DEVICE static constexpr pass_size of_run(u64 units, bool up) {
    u32 const c = log2_floor(units), coarse = c > rest_bits ? c - rest_bits : 0;
    u64 const rest = units - (u64{1} << c);
    return {c, static_cast<u32>((up ? rest + low_mask(coarse) : rest) >> coarse)};
  }

  WARPHEAP_HOST_DEVICE constexpr bool covered_by(u64 outcome) const {
    return outcome != 0 && (outcome & low_mask(rest_bits)) <= rest;
  }
};

/// Draws a pass's number from the word that counts passes (pass.P1). Any lane alone. If it draws
/// for others too, all of them meet in sync_warp() before and after.
WARPHEAP_DEVICE inline u64 draw_pass(atomic_ref<u64> begun) {
  // acq_rel: we learn what callers that drew before us knew, and pass on what we know to callers
  // that draw later. Draws are each other's partners (pass.P1).
  return begun.fetch_add(1, order::acq_rel) + 1;
}

/// Begins a pass and returns its number (pass.P1). All lanes of `active` call, look, and hold the
/// result.
WARPHEAP_DEVICE inline u64 begin_pass(atomic_ref<u64> begun, lane_mask active) {
  simt::sync_warp(active);  // a block that one lane knows to be free, all lanes see
  auto const group = group_of(active);
  u64 const number = broadcast(group, group.leads ? draw_pass(begun) : u64{0});
  simt::sync_warp(active);  // what the leader acquired, all have
  return number;
}

/// View of the words of one heap's passes, zero at first; owns nothing.
template <u32 Classes>
class shared_pass {
 public:
  static constexpr u64 bytes = 8 * (16 + align_up(Classes, 16));

  WARPHEAP_HOST_DEVICE explicit shared_pass(u64* words) : words_{words} {}

  /// begin_pass() of this heap's passes.
  WARPHEAP_DEVICE u64 begin(lane_mask active) const { return begin_pass(begun(), active); }

  /// draw_pass() for a pass that begins, or for a call that first waits for another lane's pass.
  WARPHEAP_DEVICE u64 draw() const { return draw_pass(begun()); }

  /// Whether a pass that began after number `number` was drawn found nothing for `size` (pass.P2).
  /// Any lane alone.
  WARPHEAP_DEVICE bool answers(u64 number, pass_size size) const {
    u64 const seen = look_at(size.size_class);
    return size.covered_by(seen) && seen >> pass_size::rest_bits > number;
  }

  /// Whether there ever was a pass that found nothing for the class: a hint that room is scarce.
  WARPHEAP_DEVICE bool ever_failed(u32 size_class = 0) const { return look_at(size_class) != 0; }

  /// Says that pass `number` has seen every place, and none with room for `size` (pass.P2). Any
  /// lane alone.
  WARPHEAP_DEVICE void publish(u64 number, pass_size size) const {
    if (size.rest >> pass_size::rest_bits != 0) return;  // rounded up past its class: has no code
    // relaxed: a number alone; a caller that believes it drew an earlier one (pass.P1). An older
    // answer may replace a newer one.
    outcome(size.size_class).store(number << pass_size::rest_bits | size.rest, order::relaxed);
  }

 private:
  WARPHEAP_DEVICE atomic_ref<u64> begun() const { return atomic_ref<u64>{words_[0]}; }
  WARPHEAP_DEVICE atomic_ref<u64> outcome(u32 c) const { return atomic_ref<u64>{words_[16 + c]}; }
  /// relaxed: an older answer serves fewer callers.
  WARPHEAP_DEVICE u64 look_at(u32 c) const { return outcome(c).load(order::relaxed); }

  u64* words_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
