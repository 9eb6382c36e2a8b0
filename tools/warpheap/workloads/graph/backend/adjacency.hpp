// SPDX-License-Identifier: Apache-2.0
// Adjacency lists as blocks of a heap, and how a batch of edges is inserted into one or erased from
// it. Lists are sorted, so an edge is found by bisection, a batch of k edges costs one pass over
// the list and not k, and no edge is there twice. A list grows by realloc to a power-of-two number
// of entries, shrinks when a quarter full, and is freed when empty.
//
// One team of lanes has a list to itself. Most of the time is that of reads one after the other, so
// a lane has several under way.
#pragma once

#include "tally.hpp"
#include "teams.hpp"
#include "warpheap/heap/allocator.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// One vertex's neighbours, ascending.
struct adjacency {
  u32* neighbours = nullptr;
  u32 degree = 0;
  u32 capacity = 0;
};

/// Index of the first of `size` ascending values that is not below `value`.
WARPHEAP_DEVICE inline u32 lower_bound(u32 const* values, u32 size, u32 value) {
  u32 first = 0;
  while (size) {
    u32 const half = size / 2;
    bool const below = values[first + half] < value;
    first = below ? first + half + 1 : first;
    size = below ? size - half - 1 : half;
  }
  return first;
}

/// lower_bound() of several values, whose reads are under way together.
WARPHEAP_DEVICE inline void lower_bounds(u32 const* values, u32 size, u32 const (&of)[at_once],
                                         u32 (&places)[at_once]) {
  for (u32 k = 0; k < at_once; ++k) places[k] = 0;
  for (u32 step = size ? 1u << log2_floor(size) : 0; step != 0; step /= 2) {
    u32 seen[at_once];
    for (u32 k = 0; k < at_once; ++k) seen[k] = places[k] + step <= size ? values[places[k] + step - 1] : ~0u;
    for (u32 k = 0; k < at_once; ++k) places[k] += seen[k] < of[k] ? step : 0;
  }
}

/// Which of several values are among ascending ones, and the index of the first that is not below.
WARPHEAP_DEVICE inline void find(u32 const* values, u32 size, u32 const (&of)[at_once], u32 (&places)[at_once],
                                 bool (&are_there)[at_once]) {
  lower_bounds(values, size, of, places);
  for (u32 k = 0; k < at_once; ++k) are_there[k] = places[k] < size && values[places[k]] == of[k];
}

/// The least capacity for `degree` neighbours: a power of two, and 16 bytes at least.
WARPHEAP_DEVICE inline u32 capacity_for(u32 degree) { return degree <= 4 ? 4 : 1u << log2_ceil(degree); }

template <class Heap>
WARPHEAP_DEVICE u64 block_bytes(Heap const& heap, adjacency const& list) {
  if (!list.neighbours) return 0;
  if constexpr (knows_block_size<typename Heap::creation_type>) return heap.usable_size(list.neighbours);
  return u64{list.capacity} * sizeof(u32);
}

/// Moves a list to a block for `capacity` neighbours, or leaves it as it is and counts a failure.
template <class Heap>
WARPHEAP_DEVICE bool resize(Heap const& heap, adjacency& list, u32 capacity, graph_tally& tally) {
  u64 const before = block_bytes(heap, list);
  auto* const moved =
      static_cast<u32*>(heap.realloc(list.neighbours, list.degree * sizeof(u32), capacity * sizeof(u32)));
  if (!moved) {
    ++tally.failures;
    return false;
  }
  tally.mallocs += moved != list.neighbours;
  tally.frees += list.neighbours && moved != list.neighbours;
  list.neighbours = moved;
  list.capacity = capacity;
  tally.live_bytes += block_bytes(heap, list) - before;
  return true;
}

/// resize() to more, by a team: all of its lanes copy, where resize() leaves that to one.
template <class Team, class Heap>
WARPHEAP_DEVICE bool enlarge(Team team, Heap const& heap, adjacency& list, u32 capacity, graph_tally& tally) {
  if constexpr (Team::size == 1) return resize(heap, list, capacity, tally);
  u32* const before = list.neighbours;
  u64 block = 0, bytes_before = 0;
  if (team.rank() == 0) {
    bytes_before = block_bytes(heap, list);
    bool const fits = u64{capacity} * sizeof(u32) <= bytes_before;
    block = reinterpret_cast<u64>(fits ? before : heap.malloc(capacity * sizeof(u32)));
    tally.failures += !block;
  }
  auto* const made = reinterpret_cast<u32*>(team.from_first(block));
  if (!made) return false;
  if (made != before) copy_words(team, made, before, list.degree);
  team.sync();  // all have copied before the old block goes
  if (team.rank() == 0) {
    if (made != before) {
      heap.free(before);
      ++tally.mallocs;
      tally.frees += before != nullptr;
    }
    list.neighbours = made;
    list.capacity = capacity;
    tally.live_bytes += block_bytes(heap, list) - bytes_before;
  }
  team.sync();  // the list has changed before the others use it
  return true;
}

template <class Heap>
WARPHEAP_DEVICE void drop(Heap const& heap, adjacency& list, graph_tally& tally) {
  tally.live_bytes -= block_bytes(heap, list);
  ++tally.frees;
  heap.free(list.neighbours);
  list = adjacency{};
}

/// Inserts the edges of a batch that a list does not have yet.
struct insert_edges {
  /// Thread blocks of 128 on a multiprocessor. With eight, and so 64 registers, the four searches
  /// of a lane run one after the other.
  static constexpr u32 resident_blocks = 4;

  /// `targets` are ascending, and `places` has room for as many numbers; both are overwritten. All
  /// lanes of the team call.
  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency& list, u32* targets, u32* places, u32 count,
                                  graph_tally& tally) {
    u32 const degree = list.degree;
    u32 fresh = keep_new(team, list, targets, places, count);
    if (degree + fresh > list.capacity) grow(team, heap, list, degree + fresh, tally);
    u32 const room = list.capacity - degree;
    if (fresh > room) {
      if (team.rank() == 0) tally.lost += fresh - room;
      fresh = room;
    }
    make_gaps(team, list.neighbours, degree, targets, fresh);
    for (u32 i = team.rank(); i < fresh; i += team.size) list.neighbours[places[i] + i] = targets[i];
    if (team.rank() == 0) {
      list.degree = degree + fresh;
      tally.inserted += fresh;
    }
  }

 private:
  /// Moves the targets that the list does not have to the front, and notes where in the list each
  /// belongs. Returns how many there are.
  template <class Team>
  WARPHEAP_DEVICE static u32 keep_new(Team team, adjacency const& list, u32* targets, u32* places, u32 count) {
    u32 fresh = 0;
    for (u32 base = 0; base < count; base += at_once * team.size) {
      u32 target[at_once], place[at_once];
      bool is_there[at_once];
      for (u32 k = 0; k < at_once; ++k) {
        u32 const i = base + k * team.size + team.rank();
        target[k] = i < count ? targets[i] : 0;
      }
      find(list.neighbours, list.degree, target, place, is_there);
      for (u32 k = 0; k < at_once; ++k) {
        bool const is_new = base + k * team.size + team.rank() < count && !is_there[k];
        auto const kept = team.vote(is_new);
        team.sync();  // all have read before anyone overwrites
        if (is_new) {
          targets[fresh + kept.before] = target[k];
          places[fresh + kept.before] = place[k];
        }
        fresh += kept.all;
      }
    }
    team.sync();
    return fresh;
  }

  /// Room for a power of two of entries if there is memory for it, else just enough.
  template <class Team, class Heap>
  WARPHEAP_DEVICE static void grow(Team team, Heap const& heap, adjacency& list, u32 wanted, graph_tally& tally) {
    if (!enlarge(team, heap, list, capacity_for(wanted), tally)) enlarge(team, heap, list, wanted, tally);
  }

  /// Moves each neighbour up by the number of new ones below it, from the end, so that nothing is
  /// overwritten unread.
  template <class Team>
  WARPHEAP_DEVICE static void make_gaps(Team team, u32* neighbours, u32 degree, u32 const* fresh, u32 count) {
    for (u32 end = count ? degree : 0; end > 0;) {
      u32 const begin = end > at_once * team.size ? end - at_once * team.size : 0;
      u32 neighbour[at_once], up[at_once];
      for (u32 k = 0; k < at_once; ++k) {
        u32 const i = begin + k * team.size + team.rank();
        neighbour[k] = i < end ? neighbours[i] : 0;  // above none
      }
      lower_bounds(fresh, count, neighbour, up);
      bool moves = false;
      for (u32 const each : up) moves = moves || each != 0;
      bool const any_moves = team.vote(moves).all != 0;
      team.sync();  // all have read before anyone overwrites
      for (u32 k = 0; k < at_once; ++k)
        if (up[k]) neighbours[begin + k * team.size + team.rank() + up[k]] = neighbour[k];
      end = any_moves ? begin : 0;  // below one that stays, all stay
    }
    team.sync();
  }
};

/// Erases the edges of a batch that a list has.
struct erase_edges {
  static constexpr u32 resident_blocks = 8;

  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency& list, u32 const* targets, u32*, u32 count,
                                  graph_tally& tally) {
    u32 const degree = list.degree;
    u32 const kept = close_gaps(team, list, targets, count);
    if (team.rank() != 0) return;
    tally.erased += degree - kept;
    list.degree = kept;
    if (kept == 0 && list.neighbours) drop(heap, list, tally);
    if (kept && capacity_for(2 * kept) < list.capacity && kept <= list.capacity / 4)
      resize(heap, list, capacity_for(2 * kept), tally);
  }

 private:
  /// Moves each neighbour that stays down to where it belongs; returns how many stay.
  template <class Team>
  WARPHEAP_DEVICE static u32 close_gaps(Team team, adjacency const& list, u32 const* targets, u32 count) {
    u32* const neighbours = list.neighbours;
    u32 const degree = list.degree;
    u32 const first = lower_bound(neighbours, degree, targets[0]);
    u32 kept = first;
    for (u32 base = first; base < degree; base += at_once * team.size) {
      u32 neighbour[at_once], place[at_once];
      bool goes[at_once];
      for (u32 k = 0; k < at_once; ++k) {
        u32 const i = base + k * team.size + team.rank();
        neighbour[k] = i < degree ? neighbours[i] : 0;
      }
      find(targets, count, neighbour, place, goes);
      for (u32 k = 0; k < at_once; ++k) {
        bool const stays = base + k * team.size + team.rank() < degree && !goes[k];
        auto const staying = team.vote(stays);
        team.sync();  // all have read before anyone overwrites
        if (stays) neighbours[kept + staying.before] = neighbour[k];
        kept += staying.all;
      }
    }
    team.sync();
    return kept;
  }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
