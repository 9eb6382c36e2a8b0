// SPDX-License-Identifier: Apache-2.0
// The blocks of a length that free units have room for (slot_survey.hpp).
#pragma once

#include "runs.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// How many blocks of a length fit in a row of free units. Blocks go to multiples of their length;
/// a row that has no such place and is long enough holds one.
struct run_slots {
  u64 units;

  WARPHEAP_HOST_DEVICE constexpr u64 operator()(u64 first, u64 length) const {
    u64 const pad = run_wish{units}.padding(first);
    u64 const placed = length > pad ? (length - pad) / units : 0;
    return placed != 0 ? placed : length / units;
  }
};

/// Adds the units of a word to `runs`; those in `free` are free.
template <class Runs>
WARPHEAP_HOST_DEVICE constexpr void add_word(Runs& runs, u32 free) {
  for (u32 bit = 0; bit < 32;) {
    u32 const rest = free >> bit;  // the zeros shifted in are no units
    u32 const length = free_at_start(rest), next = rest >> (length % 32);
    u32 taken = 0;
    if (length != 32) taken = next != 0 ? lowest_bit(next) : 32 - bit - length;
    runs.add(length, taken);
    bit += length + taken;
  }
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
