// SPDX-License-Identifier: Apache-2.0
// A part of a heap whose blocks die together. An arena takes chunks from the heap, each about half
// as large as all before it, and hands out their bytes in sequence. Blocks are not freed one by
// one: reset() empties the arena with a few stores, whatever it holds, and keeps its chunks for the
// next round; drop() returns them to the heap.
//
//   __global__ void step(heap_ref heap, warpheap::arena<>* arenas) {
//     warpheap::arena_ref const scratch{heap, arenas[blockIdx.x]};   // zeroed before: empty
//     … scratch.malloc(bytes) …
//     __syncthreads();
//     if (threadIdx.x == 0) scratch.reset();
//   }
//
// Cost: at most a third of the chunks is allocated ahead of need, and 0.5 KiB for the arena itself.
// All threads add to one word, which takes about a billion additions a second: lanes that request
// the same size at once add together, and an arena for a whole grid has several regions, a word
// each. While a thread takes a chunk from the heap, all others of the region wait: an arena pays
// off when it is reset and reused.
//
//   arena.A1  threads get disjoint ranges of a chunk's bytes: each adds its size to `cursor`. A
//       range is a block if it ends within the chunk.
//   arena.A2  of the ranges taken since the last settlement at most one begins within the chunk,
//       and ends behind it. Its thread settles: it alone writes `total`, `chunks`, `kept` and the
//       next entry, and stores a cursor that lies within its chunk. A thread with a range behind it
//       waits for that thread, which is running, and tries again.
//   arena.A3  an entry is written once, before a cursor names its chunk. Entry 0 is no chunk: so a
//       thread that found the arena empty cannot take the first chunk for its own.
//   arena.A4  additions that the settling store overwrites took ranges behind the chunk's end, so
//       no thread uses those.
//   arena.A5  chunks 1 to `kept` are those of earlier rounds that this one has not begun.
#pragma once

#include "../heap/typed_calls.hpp"
#include "../platform/backoff.hpp"
#include "../sync/warp_aggregate.hpp"
#include "container_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

/// Where a region's next bytes are.
///
///   63     58 57                  0
///  |  chunk  |       offset        |   offset: bytes of the chunk that are taken, and more while
///                                      a thread settles
struct arena_cursor {
  u64 word = 0;

  static constexpr u32 offset_bits = 58;

  WARPHEAP_HOST_DEVICE static constexpr arena_cursor at(u64 chunk, u64 offset) {
    return {chunk << offset_bits | offset};
  }
  WARPHEAP_HOST_DEVICE constexpr u32 chunk() const { return static_cast<u32>(word >> offset_bits); }
  WARPHEAP_HOST_DEVICE constexpr u64 offset() const { return word & ((u64{1} << offset_bits) - 1); }
};

/// A chunk: its address, and the logarithm of its bytes. 0: none.
struct arena_chunk {
  u64 word = 0;

  WARPHEAP_HOST_DEVICE static arena_chunk of(void* memory, u32 log2_bytes) {
    return {reinterpret_cast<u64>(memory) << 6 | log2_bytes};
  }
  WARPHEAP_HOST_DEVICE u8* begin() const { return reinterpret_cast<u8*>(word >> 6); }
  WARPHEAP_HOST_DEVICE u64 bytes() const { return word == 0 ? 0 : u64{1} << (word & 63); }
};

struct arena_region {
  static constexpr u32 most_chunks = 58;

  u64 cursor;
  u64 refused;  ///< bytes of the request whose settlement found no memory; else 0
  u64 total;    ///< bytes of all chunks
  u64 chunks;   ///< how many
  u64 kept;     ///< how many reset() has left for this round
  u64 entries[most_chunks + 1];

  WARPHEAP_DEVICE arena_chunk chunk(u32 index) {
    // relaxed: after an acquiring look at a cursor that names the chunk (arena.A3)
    return {atomic_ref<u64>{entries[index]}.load(order::relaxed)};
  }
};

}  // namespace detail

/// An arena's state, in device memory. Zeroed memory is an empty arena.
///
/// FirstBytes  of the first chunk, a power of two from 16 up
/// Regions     parts that fill independently, chosen by multiprocessor. 1 for the arena of
///             a thread block or a world, 8 to 32 for one that a whole grid shares
template <size_t FirstBytes = 4096, u32 Regions = 1>
struct arena {
  static_assert(FirstBytes >= 16 && (FirstBytes & (FirstBytes - 1)) == 0,
                "arena: the first chunk has a power of two of bytes, 16 or more");
  static_assert(Regions >= 1, "arena: it has a region at least");

  detail::arena_region regions[Regions];  ///< not for callers
};

/// A heap's arena as threads use it, by value; containers can use it as a heap. Must not outlive
/// the heap or the arena's state.
template <container_heap Heap, size_t FirstBytes = 4096, u32 Regions = 1>
class arena_ref : public typed_calls<arena_ref<Heap, FirstBytes, Regions>> {
  using region = detail::arena_region;
  using cursor = detail::arena_cursor;
  using chunk = detail::arena_chunk;

 public:
  /// Larger requests are refused.
  static constexpr size_t largest_bytes = size_t{1} << 38;
  /// Blocks are aligned to 16, if chunks are.
  static constexpr allocator_traits traits{
      .alignment = detail::malloc_aligns<Heap, 16> ? 16 : detail::traits_of<Heap>().alignment};

  /// Serves nothing.
  arena_ref() = default;
  /// `state` must start zeroed, and be used with this heap alone.
  WARPHEAP_HOST_DEVICE arena_ref(Heap upstream, arena<FirstBytes, Regions>& state) : heap_{upstream}, state_{&state} {}

  /// `bytes` bytes, uninitialised, aligned to 16 if the heap's blocks are; nullptr for 0 bytes, and
  /// when the heap has no memory for a chunk. Any thread, at any time except during drop(),
  /// converged or not. One addition for the lanes that request the same size together.
  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    if (bytes == 0 || bytes > largest_bytes) return nullptr;
    u64 const size = align_up(bytes, 16);
    region& mine = state_->regions[Regions == 1 ? 0 : simt::sm_id() % Regions];
    while (true) {
      cursor const at = take(mine, size);
      chunk const here = mine.chunk(at.chunk());
      if (at.offset() + size <= here.bytes()) return here.begin() + at.offset();  // arena.A1
      if (at.offset() <= here.bytes()) return settle(mine, at, size);
      if (!wait_for_settlement(mine, size)) return nullptr;
    }
  }

  /// Does nothing: blocks die with the arena.
  WARPHEAP_DEVICE void free(void*) const {}

  /// `count` objects of `size` bytes, zeroed; nullptr if the product overflows or there is no
  /// memory.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const {
    if (size && count > ~size_t{0} / size) return nullptr;
    void* const memory = malloc(count * size);
    warp_fill_zero<traits.alignment>(memory, memory ? count * size : 0);
    return memory;
  }

  /// A block of `bytes` bytes with the contents of `memory`: `memory` itself if it has room.
  /// nullptr if there is no memory; the old block then stays.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes) const {
    if (memory && bytes <= align_up(old_bytes, 16)) return bytes ? memory : nullptr;
    void* const moved = malloc(bytes);
    warp_copy<traits.alignment>(moved, memory, moved && memory ? old_bytes : 0);
    return moved;
  }

  /// `bytes` bytes at a multiple of `alignment`; nullptr if that is no power of two, or if there is
  /// no memory.
  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes) const {
    if (alignment == 0 || (alignment & (alignment - 1)) || bytes == 0 || bytes > largest_bytes) return nullptr;
    u64 const memory = reinterpret_cast<u64>(malloc(bytes + alignment - 1));
    return reinterpret_cast<void*>(align_up(memory, alignment));
  }

  /// Empties the arena, and keeps its chunks for the next round. One thread calls, while no other
  /// uses the arena, after all use of its blocks.
  WARPHEAP_DEVICE void reset() const {
    for (auto& each : state_->regions) {
      each.cursor = cursor::at(each.chunks, 0).word;
      each.refused = 0;
      each.kept = each.chunks == 0 ? 0 : each.chunks - 1;
    }
  }

  /// Empties the arena and returns its chunks to the heap, one after the other; drop_warp() is
  /// faster.
  WARPHEAP_DEVICE void drop() const { drop_warp(lane_bit(simt::lane_id())); }

  /// drop() by the lanes of `mask` together; all of them call.
  WARPHEAP_DEVICE void drop_warp(lane_mask mask) const {
    auto const group = group_of(mask);
    simt::sync_warp(mask);  // what the lanes did to blocks happens before the frees
    for (auto& each : state_->regions) {
      for (u64 i = 1 + group.rank; i <= each.chunks; i += group.size)
        heap_.free(each.chunk(static_cast<u32>(i)).begin());
      simt::sync_warp(mask);
      if (group.leads) each = region{};
    }
    simt::sync_warp(mask);
  }

  /// Bytes of all chunks that the arena has from the heap. Call it when no thread allocates.
  WARPHEAP_DEVICE u64 bytes() const {
    u64 sum = 0;
    for (auto const& each : state_->regions) sum += each.total;
    return sum;
  }

 private:
  /// The next `size` bytes, for each lane that arrives with the same region and size.
  WARPHEAP_DEVICE static cursor take(region& mine, u64 size) {
    auto const group = group_by(simt::match_any(simt::active_mask(), reinterpret_cast<u64>(&mine)), size);
    u64 first = 0;
    // acquire: pairs with the release in settle(). What the heap's malloc brought, the last owner's
    // accesses, happens before ours, and the entry is there.
    if (group.leads) first = atomic_ref<u64>{mine.cursor}.fetch_add(group.size * size, order::acquire);
    simt::sync_warp(group.mask);  // for all lanes of the group
    return {broadcast(group, first) + group.rank * size};
  }

  /// Finds room for a range of `size` bytes that begins within the current chunk and ends past it;
  /// lets the other threads continue (arena.A2). nullptr if there is no memory.
  WARPHEAP_DEVICE void* settle(region& mine, cursor at, u64 size) const {
    u32 const index = next_chunk(mine, size);
    chunk const taken = mine.chunk(index);
    u64 const left = mine.chunk(at.chunk()).bytes() - at.offset();
    // Without a new chunk, or with more room left in the old one, smaller requests continue in the
    // old one.
    cursor const next = index != 0 && taken.bytes() - size > left ? cursor::at(index, size) : at;
    // relaxed: read behind an acquire of the cursor
    atomic_ref<u64>{mine.refused}.store(index != 0 ? 0 : size, order::relaxed);
    // release: the entry, the bookkeeping and what heap_.malloc acquired happen before the next
    // uses of this cursor; pairs with the acquires in take() and wait_for_settlement(). arena.A4:
    // the ranges that it discards are not in use.
    atomic_ref<u64>{mine.cursor}.store(next.word, order::release);
    return taken.begin();
  }

  /// A chunk of `size` bytes at least that this round has not begun; 0 if there is no memory. Kept
  /// chunks are used from the largest down, so that a round like the last one needs few.
  WARPHEAP_DEVICE u32 next_chunk(region& mine, u64 size) const {
    while (mine.kept != 0) {
      u32 const index = static_cast<u32>(mine.kept--);  // arena.A5
      if (mine.chunk(index).bytes() >= size) return index;
    }
    if (mine.chunks == region::most_chunks) return 0;
    u32 const least = log2_ceil(size > FirstBytes ? size : FirstBytes);
    u32 const half_of_all = mine.total < 2 ? 0 : log2_floor(mine.total / 2);
    u32 bits = half_of_all > least ? half_of_all : least;
    void* memory = heap_.malloc(size_t{1} << bits);
    if (!memory && bits > least) memory = heap_.malloc(size_t{1} << (bits = least));
    if (!memory) return 0;
    mine.total += u64{1} << bits;
    u32 const index = static_cast<u32>(++mine.chunks);
    // relaxed: the cursor's release publishes it (arena.A3)
    atomic_ref<u64>{mine.entries[index]}.store(chunk::of(memory, bits).word, order::relaxed);
    return index;
  }

  /// Waits until the cursor lies within its chunk. False if the settlement found no memory for a
  /// request that was no larger than ours.
  WARPHEAP_DEVICE static bool wait_for_settlement(region& mine, u64 size) {
    backoff wait;
    while (true) {
      // acquire: pairs with the release in settle()
      cursor const seen{atomic_ref<u64>{mine.cursor}.load(order::acquire)};
      if (seen.offset() <= mine.chunk(seen.chunk()).bytes()) break;
      wait.while_working();
    }
    u64 const refused = atomic_ref<u64>{mine.refused}.load(order::relaxed);
    return refused == 0 || refused > size;
  }

  Heap heap_;
  arena<FirstBytes, Regions>* state_ = nullptr;
};

#if !defined(__CUDACC_RTC__)

namespace detail {

/// Kernel: each warp drops arenas, or resets them.
struct end_arenas {
  bool drops;

  template <class Heap, size_t FirstBytes, u32 Regions>
  WARPHEAP_DEVICE void operator()(Heap upstream, arena<FirstBytes, Regions>* arenas, u64 count) const {
    u64 const step = u64{simt::grid_dim()} * simt::block_dim() / warp_lanes;
    for (u64 i = global_thread_index() / warp_lanes; i < count; i += step) {
      arena_ref<Heap, FirstBytes, Regions> const each{upstream, arenas[i]};
      if (drops) each.drop_warp(full_mask);
      else if (simt::lane_id() == 0) each.reset();
    }
  }
};

constexpr launch_shape shape_for_arenas(u64 count) {
  return shape_for((count < 4096 ? count : 4096) * warp_lanes, 8 * warp_lanes);
}

}  // namespace detail

/// Resets `count` arenas of `heap`, in order on stream `on`, by a kernel that may be captured in a
/// CUDA graph; other kernels may use the heap meanwhile, but not these arenas.
template <container_heap Heap, size_t FirstBytes, u32 Regions>
void reset_arenas(stream_view on, Heap upstream, arena<FirstBytes, Regions>* arenas, u64 count) {
  launch(on, detail::shape_for_arenas(count), detail::end_arenas{false}, upstream, arenas, count);
}

/// As reset_arenas(), and returns the chunks to the heap.
template <container_heap Heap, size_t FirstBytes, u32 Regions>
void drop_arenas(stream_view on, Heap upstream, arena<FirstBytes, Regions>* arenas, u64 count) {
  launch(on, detail::shape_for_arenas(count), detail::end_arenas{true}, upstream, arenas, count);
}

#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
