// SPDX-License-Identifier: Apache-2.0
// Blocks under test: the size that each call asks for, and what is written into a block to prove
// that it has no other owner.
//
// Every granule of a block gets a word that depends on the owner and on the place. A granule is the
// allocator's alignment, so two blocks that overlap share the start of one. All owners write, then
// all look: of two blocks that overlap, the one written first has lost words. This runs in kernels
// of its own, outside what is timed.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "warpheap/heap/allocator.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The size that call number `index` asks for: `least`, or uniform in [least, least + span), a pure
/// function of the index.
struct size_draw {
  u64 least = 0;
  u32 span = 1;
  u64 seed = 0;

  WARPHEAP_HOST_DEVICE u64 of(u64 index) const {
    if (span == 1) return least;
    return least + scale_below(static_cast<u32>(mix(seed + index) >> 32), span);
  }
  WARPHEAP_HOST_DEVICE u64 mean() const { return least + span / 2; }
};

/// What a look at the blocks found.
struct findings {
  u64 failures = 0;    ///< calls that had returned nullptr
  u64 misaligned = 0;  ///< blocks whose address breaks the allocator's promise
  u64 damaged = 0;     ///< blocks in which another owner's words were found

  std::string fault() const {
    if (damaged) return std::to_string(damaged) + " blocks overlap another";
    if (misaligned) return std::to_string(misaligned) + " blocks are not aligned as promised";
    return {};
  }
};

WARPHEAP_DEVICE inline void count(u64& counter) { atomic_ref<u64>{counter}.fetch_add(1, order::relaxed); }

/// What an allocator promises of its blocks' addresses. Kernels that look at blocks take it as an
/// argument, and so are compiled once for all allocators.
struct block_promise {
  u64 alignment = 1;
  u64 self_aligned_up_to = 0;  ///< powers of two up to here are multiples of themselves

  template <class Allocator>
  WARPHEAP_HOST_DEVICE static constexpr block_promise of() {
    return {Allocator::traits.alignment, Allocator::traits.self_aligned_up_to};
  }

  WARPHEAP_DEVICE bool is_kept_by(void const* block, u64 bytes) const {
    u64 const address = reinterpret_cast<u64>(block);
    bool const to_itself = (bytes & (bytes - 1)) == 0 && bytes <= self_aligned_up_to;
    return address % alignment == 0 && (!to_itself || address % bytes == 0);
  }
  /// Bytes from one stamped word to the next.
  WARPHEAP_DEVICE constexpr u64 granule() const { return alignment < sizeof(u64) ? sizeof(u64) : alignment; }

  /// Writes owner `tag`'s words; a block of under 8 bytes gets single bytes.
  WARPHEAP_DEVICE void stamp(void* block, u64 bytes, u64 tag) const {
    if (bytes < sizeof(u64))
      for (u64 i = 0; i < bytes; ++i) static_cast<u8*>(block)[i] = static_cast<u8>(tag);
    u64 const mark = mix(tag);
    for (u64 at = 0; at + sizeof(u64) <= bytes; at += granule())
      *reinterpret_cast<u64*>(static_cast<u8*>(block) + at) = mark + at;
  }

  /// Whether all of owner `tag`'s words are still there.
  WARPHEAP_DEVICE bool is_stamped(void const* block, u64 bytes, u64 tag) const {
    bool intact = true;
    if (bytes < sizeof(u64))
      for (u64 i = 0; i < bytes; ++i) intact &= static_cast<u8 const*>(block)[i] == static_cast<u8>(tag);
    u64 const mark = mix(tag);
    for (u64 at = 0; at + sizeof(u64) <= bytes; at += granule())
      intact &= *reinterpret_cast<u64 const*>(static_cast<u8 const*>(block) + at) == mark + at;
    return intact;
  }
};

// The calls of block_promise, for kernels that are compiled for one allocator.

template <class Allocator>
WARPHEAP_DEVICE bool is_aligned(void const* block, u64 bytes) {
  return block_promise::of<Allocator>().is_kept_by(block, bytes);
}

template <class Allocator>
WARPHEAP_DEVICE void stamp(void* block, u64 bytes, u64 tag) {
  block_promise::of<Allocator>().stamp(block, bytes, tag);
}

template <class Allocator>
WARPHEAP_DEVICE bool holds_stamp(void const* block, u64 bytes, u64 tag) {
  return block_promise::of<Allocator>().is_stamped(block, bytes, tag);
}

/// Kernel: stamps block `i` of the list, asked for as call `i`.
struct stamp_blocks {
  WARPHEAP_DEVICE void operator()(block_promise promise, size_draw draw, void* const* blocks, u64 total) const {
    u64 const i = global_thread_index();
    if (i < total && blocks[i]) promise.stamp(blocks[i], draw.of(i), i);
  }
};

/// Kernel: looks at block `i` of the list.
struct inspect_blocks {
  WARPHEAP_DEVICE void operator()(block_promise promise, size_draw draw, void* const* blocks, u64 total,
                                  findings* found) const {
    u64 const i = global_thread_index();
    if (i >= total) return;
    void const* const block = blocks[i];
    if (!block) return count(found->failures);
    if (!promise.is_kept_by(block, draw.of(i))) return count(found->misaligned);
    if (!promise.is_stamped(block, draw.of(i), i)) count(found->damaged);
  }
};

/// Stamps and looks at every block of a list. Call `i` asked for `draw.of(i)` bytes.
template <class Allocator>
findings examine(device_buffer<void*> const& blocks, size_draw draw) {
  auto const promise = block_promise::of<Allocator>();
  device_buffer<findings> found(1);
  launch(shape_for(blocks.size()), stamp_blocks{}, promise, draw, blocks.data(), blocks.size());
  launch(shape_for(blocks.size()), inspect_blocks{}, promise, draw, blocks.data(), blocks.size(), found.data());
  synchronize();
  return found[0];
}

/// Address range of blocks over the bytes asked for; 0 of none.
inline double range_over_asked(std::vector<void*> const& blocks, u64 bytes) {
  u64 lowest = ~u64{0}, highest = 0, asked = 0;
  for (void* const block : blocks) {
    if (!block) continue;
    lowest = std::min(lowest, reinterpret_cast<u64>(block));
    highest = std::max(highest, reinterpret_cast<u64>(block) + bytes);
    asked += bytes;
  }
  return asked ? static_cast<double>(highest - lowest) / static_cast<double>(asked) : 0;
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
