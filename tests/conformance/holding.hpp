// SPDX-License-Identifier: Apache-2.0
// What a test holds: blocks of memory with the sizes that were asked for, and the pattern that the
// holder writes over all of its block. A pattern is derived from the holder, so a block with two
// holders cannot keep both patterns.
#pragma once

#include <vector>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

/// One request and, once served, where its memory starts; address 0 if it was refused or not asked
/// yet.
struct holding {
  u64 address = 0;
  u64 bytes = 0;

  WARPHEAP_HOST_DEVICE void* memory() const { return reinterpret_cast<void*>(address); }
};

using holdings = std::vector<holding>;

/// `count` requests for `bytes` bytes each.
inline holdings same(u64 count, u64 bytes) { return holdings(count, holding{0, bytes}); }

/// `count` requests for random sizes in [least, most].
inline holdings uniform(u64 count, u64 least, u64 most, u64 seed) {
  holdings requests(count);
  random_sequence random{seed};
  for (auto& request : requests) request.bytes = least + random.next() % (most - least + 1);
  return requests;
}

/// One request for every `step`-th size in [first, last].
inline holdings every(u64 first, u64 last, u64 step = 1) {
  holdings requests;
  for (u64 bytes = first; bytes <= last; bytes += step) requests.push_back({0, bytes});
  return requests;
}

/// What holder `tag` writes into word `index` of a block.
WARPHEAP_HOST_DEVICE constexpr u64 pattern(u64 tag, u64 index) { return mix(tag + 1) + index * 0x9e37'79b9'7f4a'7c15u; }

/// The words of a block that lane `rank` of `lanes` looks after; the bytes behind the last whole
/// word belong to lane 0.
struct stripe {
  u64 rank = 0;
  u64 lanes = 1;
};

/// Byte `index` of what holder `tag` writes: its words, lowest byte first, so that a part of a
/// pattern is a pattern.
WARPHEAP_HOST_DEVICE constexpr u8 pattern_byte(u64 tag, u64 index) {
  return static_cast<u8>(pattern(tag, index / sizeof(u64)) >> 8 * (index % sizeof(u64)));
}

/// Writes `tag`'s pattern over all of a block's stripe.
WARPHEAP_DEVICE inline void write_pattern(holding block, u64 tag, stripe part = {}) {
  u64 const words = block.bytes / sizeof(u64);
  for (u64 i = part.rank; i < words; i += part.lanes) static_cast<u64*>(block.memory())[i] = pattern(tag, i);
  if (part.rank != 0) return;
  for (u64 i = words * sizeof(u64); i < block.bytes; ++i) static_cast<u8*>(block.memory())[i] = pattern_byte(tag, i);
}

/// Whether all of a block's stripe holds `tag`'s pattern.
WARPHEAP_DEVICE inline bool holds_pattern(holding block, u64 tag, stripe part = {}) {
  u64 const words = block.bytes / sizeof(u64);
  bool intact = true;
  for (u64 i = part.rank; i < words; i += part.lanes)
    intact &= static_cast<u64 const*>(block.memory())[i] == pattern(tag, i);
  if (part.rank != 0) return intact;
  for (u64 i = words * sizeof(u64); i < block.bytes; ++i)
    intact &= static_cast<u8 const*>(block.memory())[i] == pattern_byte(tag, i);
  return intact;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
