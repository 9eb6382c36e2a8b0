// SPDX-License-Identifier: Apache-2.0
// Copies and fills by the lanes that happen to be converged: one lane alone moves 16 bytes per
// instruction, a warp 512 in one coalesced access. The group is the lanes that arrive together
// (`active_mask`), so callers may be divergent. Both ends of a copy are aligned like the
// allocator's blocks; if those are aligned to 8 bytes, a lane moves 8 bytes per instruction.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Below this many bytes a lane works alone.
inline constexpr size_t warp_copy_threshold = 256;

namespace detail {

struct alignas(16) quad {
  u64 low, high;
};

/// What a lane moves at a time between addresses that are multiples of `Alignment`.
template <size_t Alignment>
struct unit_of {
  using type = u8;
};
template <size_t Alignment>
  requires(Alignment % 16 == 8)
struct unit_of<Alignment> {
  using type = u64;
};
template <size_t Alignment>
  requires(Alignment % 16 == 0)
struct unit_of<Alignment> {
  using type = quad;
};

/// The part of a copy for lane `rank` of `lanes`: every `lanes`-th unit, then every `lanes`-th of
/// the remaining bytes.
template <class Unit>
struct copy_stripe {
  WARPHEAP_DEVICE static void run(void* to, void const* from, size_t bytes, u32 rank, u32 lanes) {
    size_t const units = bytes / sizeof(Unit);
    for (size_t i = rank; i < units; i += lanes) static_cast<Unit*>(to)[i] = static_cast<Unit const*>(from)[i];
    for (size_t i = units * sizeof(Unit) + rank; i < bytes; i += lanes)
      static_cast<u8*>(to)[i] = static_cast<u8 const*>(from)[i];
  }
};

template <class Unit>
struct zero_stripe {
  WARPHEAP_DEVICE static void run(void* to, void const*, size_t bytes, u32 rank, u32 lanes) {
    size_t const units = bytes / sizeof(Unit);
    for (size_t i = rank; i < units; i += lanes) static_cast<Unit*>(to)[i] = Unit{};
    for (size_t i = units * sizeof(Unit) + rank; i < bytes; i += lanes) static_cast<u8*>(to)[i] = 0;
  }
};

/// Runs every lane's job: a small one by its lane alone, large ones one after the other by all
/// lanes of the group.
template <class Stripe>
WARPHEAP_DEVICE void run_shared(void* to, void const* from, size_t bytes) {
  if (bytes < warp_copy_threshold) return Stripe::run(to, from, bytes, 0, 1);
  lane_mask const mask = simt::active_mask();
  u32 const rank = popcount(mask & simt::lanes_below());
  // Orders memory: what a lane wrote to its own block happens before the others read it. After the
  // loop: what the others wrote happens before the lane reads it.
  simt::sync_warp(mask);
  for (lane_mask rest = mask; rest; rest &= rest - 1) {
    u32 const lane = lowest_bit(rest);
    Stripe::run(simt::shuffle(mask, to, lane), simt::shuffle(mask, from, lane),
                simt::shuffle(mask, static_cast<u64>(bytes), lane), rank, popcount(mask));
  }
  simt::sync_warp(mask);
}

}  // namespace detail

/// Copies `bytes` bytes; the ranges do not overlap and start at multiples of `Alignment`. Any
/// lanes, converged or not.
template <size_t Alignment = 16>
WARPHEAP_DEVICE void warp_copy(void* to, void const* from, size_t bytes) {
  detail::run_shared<detail::copy_stripe<typename detail::unit_of<Alignment>::type>>(to, from, bytes);
}

/// Zeroes `bytes` bytes from a multiple of `Alignment`. Any lanes, converged or not.
template <size_t Alignment = 16>
WARPHEAP_DEVICE void warp_fill_zero(void* to, size_t bytes) {
  detail::run_shared<detail::zero_stripe<typename detail::unit_of<Alignment>::type>>(to, nullptr, bytes);
}

}}  // namespace warpheap::WARPHEAP_BACKEND
