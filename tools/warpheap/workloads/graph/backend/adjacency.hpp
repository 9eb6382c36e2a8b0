// SPDX-License-Identifier: Apache-2.0
// What a batch of edges does to a vertex's list, and how its calls of the heap are counted.
#pragma once

#include "tally.hpp"
#include "teams.hpp"
#include "warpheap/container/adjacency_list.hpp"
#include "warpheap/heap/allocator.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// A heap for the calls of one list, which are counted.
template <class Heap>
class counting_ref {
 public:
  WARPHEAP_DEVICE counting_ref(Heap const& heap, adjacency_list const& list, graph_tally& tally)
      : heap_{heap}, list_bytes_{u64{list.capacity()} * sizeof(u32)}, tally_{tally} {}

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    void* const memory = heap_.malloc(bytes);
    note_made(memory, bytes);
    return memory;
  }
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes) const {
    u64 const before = bytes_of(memory);
    void* const moved = heap_.realloc(memory, old_bytes, bytes);
    if (moved && moved == memory) {
      tally_.live_bytes += bytes_of(moved, bytes) - before;
      return moved;
    }
    note_made(moved, bytes);
    if (moved) note_freed(memory, before);
    return moved;
  }
  WARPHEAP_DEVICE void free(void* memory) const {
    note_freed(memory, bytes_of(memory));
    heap_.free(memory);
  }

 private:
  WARPHEAP_DEVICE void note_made(void* memory, u64 wanted) const {
    tally_.mallocs += memory != nullptr;
    tally_.failures += memory == nullptr;
    tally_.live_bytes += bytes_of(memory, wanted);
  }
  WARPHEAP_DEVICE void note_freed(void* memory, u64 bytes) const {
    tally_.frees += memory != nullptr;
    tally_.live_bytes -= bytes;
  }
  /// Of the list's block, or of a new one.
  WARPHEAP_DEVICE u64 bytes_of(void* memory) const { return bytes_of(memory, list_bytes_); }
  WARPHEAP_DEVICE u64 bytes_of(void* memory, [[maybe_unused]] u64 wanted) const {
    if (!memory) return 0;
    if constexpr (knows_block_size<typename Heap::creation_type>) return heap_.usable_size(memory);
    else return wanted;
  }

  Heap const& heap_;
  u64 list_bytes_;
  graph_tally& tally_;
};

/// Inserts the edges of a batch that a list does not have yet.
struct insert_edges {
  /// Thread blocks of 128 on a multiprocessor. With eight, and so 64 registers, the four searches
  /// of a lane run one after the other.
  static constexpr u32 resident_blocks = 4;

  /// `targets` are ascending, and `places` has room for as many numbers; both are overwritten. All
  /// lanes of the team call.
  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency_list& list, u32* targets, u32* places,
                                  u32 count, graph_tally& tally) {
    auto const made = list.insert_sorted(team, counting_ref{heap, list, tally}, targets, places, count);
    if (team.rank() != 0) return;
    tally.inserted += made.changed;
    tally.lost += made.lost;
  }
};

/// Erases the edges of a batch that a list has.
struct erase_edges {
  static constexpr u32 resident_blocks = 8;

  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency_list& list, u32 const* targets, u32*,
                                  u32 count, graph_tally& tally) {
    auto const made = list.erase_sorted(team, counting_ref{heap, list, tally}, targets, count);
    if (team.rank() == 0) tally.erased += made.changed;
  }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
