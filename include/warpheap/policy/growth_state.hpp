// SPDX-License-Identifier: Apache-2.0
// The state of a heap over a growing pool, in device memory and in words shared with the host: how
// far its memory reaches, and how much calls have requested in vain.
//
//   growth.G1  the pool's first `committed` bytes have memory. The host maps before it raises
//       `mapped`, from which a thread of the device raises `committed`.
//   growth.G2  added <= claimed <= committed. Calls make blocks of the bytes up to `claimed`, each
//       part by the call that claimed it. The first `added` bytes, and no others, are claimed and
//       done, but for their order. A kernel that the host launches adds all that is committed.
//   growth.G3  `unmet` only rises, in both places. The host answers each value that it sees: by
//       `mapped` if there is more memory now, else by `refused`. A refusal comes after all that was
//       mapped. Where no call waits, the host may leave both words: the kernel that it launches
//       raises `committed`.
//   growth.G4  `at_once` is at least what the threads of any kernel lacked at one time since the
//       host added memory: as many requests as the kernel has threads, each of the largest size
//       that was refused. The host maps no more for one answer, because a thread that tries
//       again adds to `unmet` each time.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

/// In device memory. At first `claimed` and `added` are `committed`, and the counts 0.
struct growth_state {
  u64 limit;      ///< bytes that the pool may have
  u64* shared;    ///< the words below; nullptr if no call posts requests
  u64 committed;  ///< bytes
  u64 answer;     ///< of a kernel of trim()
  u64 claimed;    ///< bytes
  u64 added;      ///< bytes, a sum
  u64 polling;    ///< 1: a thread is reading what the host has written
  u64 refused;    ///< as the host wrote it lately
  u64 padding[8];
  u64 unmet;    ///< bytes; apart from the others, because every refused call adds to it
  u64 at_once;  ///< bytes, at most the limit
  u64 more_padding[14];
};
static_assert(sizeof(growth_state) == 256);

/// Of a pool of which the first `committed` bytes have memory, and no call has asked.
WARPHEAP_HOST constexpr growth_state first_growth_state(u64 limit, u64 committed, u64* shared) {
  growth_state first{};
  first.limit = limit;
  first.shared = shared;
  first.committed = first.claimed = first.added = committed;
  return first;
}

/// Words that the host shares with the device: which is where.
namespace growth_word {
inline constexpr u32 unmet = 0;  ///< the device writes this one and the next
inline constexpr u32 at_once = 1;
inline constexpr u32 mapped = 16;  ///< the host writes this one and the next
inline constexpr u32 refused = 17;
inline constexpr u32 count = 32;
}  // namespace growth_word

}  // namespace warpheap
