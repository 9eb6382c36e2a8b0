// SPDX-License-Identifier: Apache-2.0
// What `warpheap stress` is asked, and what it counted.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

struct stress_row;

/// Rounds of kernels on one heap. They end with the first of `rounds` and `seconds`.
struct stress_request {
  u64 pool_bytes = 0;
  u64 seed = 1;
  u64 threads = 0;  ///< of a round's kernels together; 0 means the backend's default
  u32 streams = 1;
  bool misuse = false;
  bool grows = false;  ///< the pool starts with 1 MiB, and has `pool_bytes` at most
  u64 rounds = ~u64{0};
  double seconds = 1e9;
  /// Called after each round with what is done so far. False ends the run.
  std::function<bool(stress_row const&)> proceed = [](stress_row const&) { return true; };
};

/// Calls that kernels made.
struct stress_counts {
  u64 mallocs = 0, callocs = 0, aligned_allocs = 0, warp_mallocs = 0, reallocs = 0, frees = 0;
  u64 handed_over = 0;  ///< frees of a block that came through a mailbox
  u64 misuses = 0;      ///< frees of what is no live block
  u64 refused = 0;      ///< calls that returned nullptr
  u64 verified_bytes = 0;

  static constexpr std::pair<char const*, u64 stress_counts::*> calls[] = {
      {"malloc", &stress_counts::mallocs},
      {"calloc", &stress_counts::callocs},
      {"aligned_alloc", &stress_counts::aligned_allocs},
      {"malloc_warp", &stress_counts::warp_mallocs},
      {"realloc", &stress_counts::reallocs},
      {"free", &stress_counts::frees},
      {"free_handed_over", &stress_counts::handed_over},
      {"free_misuse", &stress_counts::misuses}};

  void add(stress_counts const& more) {
    for (auto const& [name, number] : calls) this->*number += more.*number;
    refused += more.refused;
    verified_bytes += more.verified_bytes;
  }
};

/// What was wrong, by kind.
struct stress_faults {
  u64 damaged = 0;            ///< blocks in which another's bytes were found, also after realloc
  u64 not_zeroed = 0;         ///< blocks of calloc with a byte that is not 0
  u64 misaligned = 0;         ///< blocks that are not aligned as promised, or as asked
  u64 too_small = 0;          ///< blocks with fewer usable bytes than were asked for
  u64 overlapping = 0;        ///< blocks that begin before one below them ends
  u64 refused_too_soon = 0;   ///< calls that got nullptr from a pool that might have grown
  u64 refused_with_room = 0;  ///< blocks that a heap at rest had room for and did not hand out
  u64 miscounted_slots = 0;   ///< blocks that a heap at rest handed out without having said so
  u64 lost_blocks = 0;        ///< live blocks in no slot, or slots that are gone
  u64 broken_invariants = 0;
  u64 miscounted_frees = 0;  ///< frees counted as misuse that were none, or the other way round
  u64 ended_by_error = 0;    ///< runs that an exception ended

  static constexpr std::pair<char const*, u64 stress_faults::*> kinds[] = {
      {"damaged", &stress_faults::damaged},
      {"not_zeroed", &stress_faults::not_zeroed},
      {"misaligned", &stress_faults::misaligned},
      {"too_small", &stress_faults::too_small},
      {"overlapping", &stress_faults::overlapping},
      {"refused_too_soon", &stress_faults::refused_too_soon},
      {"refused_with_room", &stress_faults::refused_with_room},
      {"miscounted_slots", &stress_faults::miscounted_slots},
      {"lost_blocks", &stress_faults::lost_blocks},
      {"broken_invariants", &stress_faults::broken_invariants},
      {"miscounted_frees", &stress_faults::miscounted_frees},
      {"ended_by_error", &stress_faults::ended_by_error}};

  u64 total() const {
    u64 sum = 0;
    for (auto const& [name, kind] : kinds) sum += this->*kind;
    return sum;
  }
};

/// How a pool that grows did. In bytes that have memory, but for the counts.
struct stress_growth {
  u64 initial_bytes = 0, limit_bytes = 0;
  u64 most_bytes = 0;   ///< when kernels had ended
  u64 least_bytes = 0;  ///< after a trim
  u64 growths = 0;      ///< times that memory was mapped while kernels waited for it
  u64 trims = 0;        ///< trims that gave memory back
};

/// One allocator's run.
struct stress_row {
  std::string allocator = {};
  u64 rounds = 0;
  u64 fills = 0;  ///< times that the heap was filled to the last block
  stress_counts counts = {};
  stress_faults faults = {};
  std::vector<std::string> left_out = {};  ///< what the allocator lacks
  double seconds = 0;
  std::optional<stress_growth> growth = {};
  /// The round that failed, its seed, and how; empty if none did.
  std::string fault = {};
};

/// A backend's part: rounds of random calls on one heap, and what was wrong with their results.
struct stress_job {
  stress_row (*run)(std::string const& allocator, stress_request const& asked);
};

}  // namespace warpheap::tool
