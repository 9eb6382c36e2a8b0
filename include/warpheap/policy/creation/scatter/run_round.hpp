// A round: requests for runs that one search answers. Callers that want runs of one length join the
// open round by an addition, which tells each caller its place. The searcher closes the round,
// opens the next one, lists a run for each place, and publishes how many runs there are. So every
// run of a list belongs to a caller that waits for it, and none is left over.
//
//    63    60 59       54 53        24 23       0
//   | number |  alignment |   length  |   asked  |     the open round
//
//   number     of the round, modulo 16: the next round is not answered before all callers of this
//              one have taken up their runs
//   alignment  of the first page in bytes, its logarithm; 0: any page will do
//   length     pages of each run
//   asked      runs that are wanted; a caller's place is the value that it found here
//
// The answer: how many runs are listed, and the number of the first round that is not answered.
#pragma once

#include "../../../platform/types.hpp"

namespace warpheap {

/// What the callers of one round ask for.
struct run_request {
  u32 length = 0;
  u32 alignment = 0;

  WARPHEAP_HOST_DEVICE constexpr bool operator==(run_request const& other) const {
    return length == other.length && alignment == other.alignment;
  }
};

/// A value of the word; pure, so that every decision can be tested without threads.
struct run_round {
  u64 word = 0;

  static constexpr u32 asked_bits = 24, length_bits = 30, alignment_bits = 6;
  static constexpr u32 length_shift = asked_bits, alignment_shift = length_shift + length_bits;
  static constexpr u32 number_shift = alignment_shift + alignment_bits, numbers = 16;

  WARPHEAP_HOST_DEVICE constexpr u32 number() const { return static_cast<u32>(word >> number_shift); }
  WARPHEAP_HOST_DEVICE constexpr u32 asked() const { return static_cast<u32>(word) & ((1u << asked_bits) - 1); }
  WARPHEAP_HOST_DEVICE constexpr run_request request() const {
    return {static_cast<u32>(word >> length_shift) & ((1u << length_bits) - 1),
            static_cast<u32>(word >> alignment_shift) & ((1u << alignment_bits) - 1)};
  }

  /// Round `number` modulo 16, which nobody has joined yet.
  WARPHEAP_HOST_DEVICE static constexpr run_round of(u32 number, run_request const& request) {
    return {u64{number} << number_shift | u64{request.alignment} << alignment_shift |
            u64{request.length} << length_shift};
  }
};

/// The answer to the last round that a search served.
struct run_answer {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE constexpr u32 listed() const { return static_cast<u32>(word >> 4); }
  /// Whether this is the answer to round `number`; callers that wait for it see no later one.
  WARPHEAP_HOST_DEVICE constexpr bool is_of(u32 number) const { return (word + run_round::numbers - number) % 16 == 1; }

  WARPHEAP_HOST_DEVICE static constexpr run_answer of(u32 number, u32 listed) {
    return {u64{listed} << 4 | (number + 1) % run_round::numbers};
  }
};

static_assert(run_round::of(17, {2, 5}).number() == 1 && run_round::of(17, {2, 5}).request() == run_request{2, 5});
static_assert(run_round{run_round::of(3, {7, 0}).word + 32}.asked() == 32);
static_assert(!run_answer{}.is_of(0) && run_answer::of(0, 9).is_of(0) && !run_answer::of(0, 9).is_of(1));
static_assert(run_answer::of(15, 9).is_of(15) && run_answer::of(15, 9).listed() == 9);

}  // namespace warpheap
