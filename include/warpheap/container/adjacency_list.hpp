// SPDX-License-Identifier: Apache-2.0
// The neighbours of one vertex of a changing graph: ascending numbers without duplicates, in a
// block of a heap. So an edge is found by binary search, and a batch of k edges costs one pass over
// the list instead of k.
//
//   adjacency_list             one thread, or one team, at a time: 16 bytes, as a vector
//   shared_adjacency_list      any threads at the same time, with a mutex: 24 bytes
//
//   if (lists[from].insert(heap, to) == insert_result::refused) …     // no memory: as before
//
// A graph is an array of lists, in memory that is zeroed at first. Group the edges of a batch by
// vertex, in ascending order, and give them to one lane for a short list, to a warp for a long one,
// and to a thread block for a hub's (sync/lane_team.hpp).
#pragma once

#include "../heap/generic_calls.hpp"
#include "../platform/assert.hpp"
#include "../sync/lane_team.hpp"
#include "../sync/spin_mutex.hpp"
#include "../util/bits.hpp"
#include "container_heap.hpp"
#include "insert_result.hpp"

#if !defined(__CUDACC_RTC__)
#include <vector>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace adjacency_parts {

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

/// lower_bound() of several values, whose loads overlap.
WARPHEAP_DEVICE inline void lower_bounds(u32 const* values, u32 size, u32 const (&of)[reads_at_once],
                                         u32 (&places)[reads_at_once]) {
  for (u32 k = 0; k < reads_at_once; ++k) places[k] = 0;
  for (u32 step = size ? 1u << log2_floor(size) : 0; step != 0; step /= 2) {
    u32 seen[reads_at_once];
    for (u32 k = 0; k < reads_at_once; ++k) seen[k] = places[k] + step <= size ? values[places[k] + step - 1] : ~0u;
    for (u32 k = 0; k < reads_at_once; ++k) places[k] += seen[k] < of[k] ? step : 0;
  }
}

/// Which of several values are among ascending ones, and for each the index of the first element
/// that is not below it.
WARPHEAP_DEVICE inline void find(u32 const* values, u32 size, u32 const (&of)[reads_at_once],
                                 u32 (&places)[reads_at_once], bool (&are_there)[reads_at_once]) {
  lower_bounds(values, size, of, places);
  for (u32 k = 0; k < reads_at_once; ++k) are_there[k] = places[k] < size && values[places[k]] == of[k];
}

/// The least capacity for `size` neighbours: a power of two, and at least 16 bytes.
WARPHEAP_DEVICE inline u32 capacity_for(u32 size) { return size <= 4 ? 4 : 1u << log2_ceil(size); }

}  // namespace adjacency_parts

/// What a batch did to a list.
struct batch_result {
  u32 changed;  ///< neighbours inserted, or erased
  u32 lost;     ///< neighbours for which there was no memory
};

/// Up to 2^30 ascending neighbours. A list is copied as bits, like a vector: use only one of the
/// copies. All calls on one list must take heaps that can free each other's blocks.
///
///   adjacency.L1  the neighbours ascend, and none is there twice
///   adjacency.L2  size <= capacity, and the block at `data` has room for `capacity`
///   adjacency.L3  capacity == 0 exactly if there is no block; then `data` is nullptr
class adjacency_list {
 public:
  /// The most neighbours.
  static constexpr u32 most = u32{1} << 30;

  /// No neighbours, no memory.
  constexpr adjacency_list() = default;

  /// Neighbours.
  WARPHEAP_HOST_DEVICE u32 size() const { return size_; }
  /// Neighbours that fit before it has to grow.
  WARPHEAP_HOST_DEVICE u32 capacity() const { return capacity_; }
  /// Whether there are none.
  WARPHEAP_HOST_DEVICE bool empty() const { return size_ == 0; }
  /// The first neighbour; valid until a call that takes the heap.
  WARPHEAP_HOST_DEVICE u32 const* data() const { return data_; }
  /// The first neighbour.
  WARPHEAP_HOST_DEVICE u32 const* begin() const { return data_; }
  /// One past the last.
  WARPHEAP_HOST_DEVICE u32 const* end() const { return data_ + size_; }
  /// Neighbour `index`. One from size() on ends the kernel, except under NDEBUG.
  WARPHEAP_DEVICE u32 operator[](u32 index) const {
    WARPHEAP_ASSERT(index < size_, "adjacency_list: an index past the end");
    return data_[index];
  }

  /// Whether `target` is a neighbour. O(log n).
  WARPHEAP_DEVICE bool contains(u32 target) const {
    u32 const at = adjacency_parts::lower_bound(data_, size_, target);
    return at < size_ && data_[at] == target;
  }

  /// Inserts one neighbour, by one thread. O(n): those above it move.
  template <container_heap Heap>
  WARPHEAP_DEVICE insert_result insert(Heap const& upstream, u32 target, source_site site = source_site::current()) {
    u32 const at = adjacency_parts::lower_bound(data_, size_, target);
    if (at < size_ && data_[at] == target) return insert_result::exists;
    if (size_ == capacity_ && !grow(lone_lane{}, upstream, size_ + 1, site)) return insert_result::refused;
    for (u32 i = size_; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = target;
    ++size_;
    return insert_result::inserted;
  }

  /// Erases one neighbour, by one thread; returns whether it was there. O(n): those above it move.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool erase(Heap const& upstream, u32 target, source_site site = source_site::current()) {
    u32 const at = adjacency_parts::lower_bound(data_, size_, target);
    if (at == size_ || data_[at] != target) return false;
    for (u32 i = at + 1; i < size_; ++i) data_[i - 1] = data_[i];
    --size_;
    shrink(lone_lane{}, upstream, site);
    return true;
  }

  /// Inserts those of the `count` targets that are not yet neighbours, by all lanes of a team. The
  /// targets ascend without duplicates, and `places` has room for as many numbers; both are
  /// overwritten, and all lanes of the team can access them. If memory runs out, the lowest targets
  /// that fit are inserted. Every lane gets the same result. The team calls sync() between a lane's
  /// writes to the list or the batch and this call. O(count log n + n log count).
  template <lane_team Team, container_heap Heap>
  WARPHEAP_DEVICE batch_result insert_sorted(Team team, Heap const& upstream, u32* targets, u32* places, u32 count,
                                             source_site site = source_site::current()) {
    u32 const size = size_;
    u32 const all = keep_new(team, targets, places, count);
    if (all > capacity_ - size) grow(team, upstream, u64{size} + all, site);
    u32 const room = capacity_ - size, fresh = all < room ? all : room;
    make_gaps(team, size, targets, fresh);
    for (u32 i = team.rank(); i < fresh; i += team.size) data_[places[i] + i] = targets[i];
    if (team.rank() == 0) size_ = size + fresh;
    team.sync();  // the list is complete before any lane uses it
    return {fresh, all - fresh};
  }

  /// Erases those of the `count` targets that are neighbours, by all lanes of a team, under the
  /// conditions of insert_sorted(). O(n log count).
  template <lane_team Team, container_heap Heap>
  WARPHEAP_DEVICE batch_result erase_sorted(Team team, Heap const& upstream, u32 const* targets, u32 count,
                                            source_site site = source_site::current()) {
    u32 const size = size_;
    u32 const kept = close_gaps(team, targets, count);
    if (team.rank() == 0) size_ = kept;
    team.sync();  // the list is complete before any lane uses it
    if (kept != size) shrink(team, upstream, site);
    return {size - kept, 0};
  }

  /// Frees all memory: the list is then empty, and may be used again.
  template <container_heap Heap>
  WARPHEAP_DEVICE void destroy(Heap const& upstream, source_site site = source_site::current()) {
    detail::deallocate(upstream, data_, site);
    *this = {};
  }

#if !defined(__CUDACC_RTC__)
  /// The neighbours on the host, once all earlier work of the default stream is done. Call it on a
  /// copy of the list, such as device_buffer's.
  std::vector<u32> to_host() const {
    std::vector<u32> neighbours(size_);
    backend::copy_bytes(neighbours.data(), data_, size_ * sizeof(u32));
    return neighbours;
  }
#endif

 private:
  /// Moves the targets that are no neighbours to the front, and notes where in the list each
  /// belongs. Returns how many there are.
  template <class Team>
  WARPHEAP_DEVICE u32 keep_new(Team team, u32* targets, u32* places, u32 count) const {
    u32 fresh = 0;
    for (u32 base = 0; base < count; base += reads_at_once * team.size) {
      u32 target[reads_at_once], place[reads_at_once];
      bool is_there[reads_at_once];
      for (u32 k = 0; k < reads_at_once; ++k) {
        u32 const i = base + k * team.size + team.rank();
        target[k] = i < count ? targets[i] : 0;
      }
      adjacency_parts::find(data_, size_, target, place, is_there);
      for (u32 k = 0; k < reads_at_once; ++k) {
        bool const is_new = base + k * team.size + team.rank() < count && !is_there[k];
        auto const kept = team.vote(is_new);
        team.sync();  // all have read before any overwrites
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

  /// Moves each neighbour up by the number of new ones below it, from the end, so that nothing is
  /// overwritten unread.
  template <class Team>
  WARPHEAP_DEVICE void make_gaps(Team team, u32 size, u32 const* fresh, u32 count) const {
    u32* const data = data_;
    for (u32 end = count ? size : 0; end > 0;) {
      u32 const begin = end > reads_at_once * team.size ? end - reads_at_once * team.size : 0;
      u32 neighbour[reads_at_once], up[reads_at_once];
      for (u32 k = 0; k < reads_at_once; ++k) {
        u32 const i = begin + k * team.size + team.rank();
        neighbour[k] = i < end ? data[i] : 0;  // above none
      }
      adjacency_parts::lower_bounds(fresh, count, neighbour, up);
      bool moves = false;
      for (u32 const each : up) moves = moves || each != 0;
      bool const any_moves = team.vote(moves).all != 0;
      team.sync();  // all have read before any overwrites
      for (u32 k = 0; k < reads_at_once; ++k)
        if (up[k]) data[begin + k * team.size + team.rank() + up[k]] = neighbour[k];
      end = any_moves ? begin : 0;  // below one that stays, all stay
    }
  }

  /// Moves each neighbour that stays down to where it belongs; returns how many stay.
  template <class Team>
  WARPHEAP_DEVICE u32 close_gaps(Team team, u32 const* targets, u32 count) const {
    u32* const data = data_;
    u32 const size = size_;
    u32 const first = count ? adjacency_parts::lower_bound(data, size, targets[0]) : size;
    u32 kept = first;
    for (u32 base = first; base < size; base += reads_at_once * team.size) {
      u32 neighbour[reads_at_once], place[reads_at_once];
      bool goes[reads_at_once];
      for (u32 k = 0; k < reads_at_once; ++k) {
        u32 const i = base + k * team.size + team.rank();
        neighbour[k] = i < size ? data[i] : 0;
      }
      adjacency_parts::find(targets, count, neighbour, place, goes);
      for (u32 k = 0; k < reads_at_once; ++k) {
        bool const stays = base + k * team.size + team.rank() < size && !goes[k];
        auto const staying = team.vote(stays);
        team.sync();  // all have read before any overwrites
        if (stays) data[kept + staying.before] = neighbour[k];
        kept += staying.all;
      }
    }
    team.sync();
    return kept;
  }

  /// Makes room for a power of two if there is memory for it, else for just enough; false if there
  /// is none.
  template <class Team, class Heap>
  WARPHEAP_DEVICE bool grow(Team team, Heap const& upstream, u64 wanted, source_site site) {
    if (wanted > most) return false;
    auto const least = static_cast<u32>(wanted), ample = adjacency_parts::capacity_for(least);
    return take_room(team, upstream, ample, site) || (least != ample && take_room(team, upstream, least, site));
  }

  /// Moves the list to a block for `capacity` neighbours; false, and leaves it, if there is none.
  /// All lanes of the team copy.
  template <class Team, class Heap>
  WARPHEAP_DEVICE bool take_room(Team team, Heap const& upstream, u32 capacity, source_site site) {
    if constexpr (Team::size == 1) return move(upstream, capacity, site);
    u64 block = 0;
    if (team.rank() == 0) block = reinterpret_cast<u64>(detail::allocate<4>(upstream, capacity * sizeof(u32), site));
    auto* const made = reinterpret_cast<u32*>(team.from_first(block));
    if (!made) return false;
    copy_words(team, made, data_, size_);
    team.sync();  // all have copied before the old block goes
    if (team.rank() == 0) {
      detail::deallocate(upstream, data_, site);
      data_ = made;
      capacity_ = capacity;
    }
    team.sync();  // the list has changed before the others use it
    return true;
  }

  /// take_room() by one lane, which may leave the list in its block.
  template <class Heap>
  WARPHEAP_DEVICE bool move(Heap const& upstream, u32 capacity, source_site site) {
    void* const moved = detail::reallocate<4>(upstream, data_, size_ * sizeof(u32), capacity * sizeof(u32), site);
    if (!moved) return false;
    data_ = static_cast<u32*>(moved);
    capacity_ = capacity;
    return true;
  }

  /// Moves to a smaller block when only a quarter is in use; frees the block when the list is
  /// empty. If there is no smaller block, nothing changes.
  template <class Team, class Heap>
  WARPHEAP_DEVICE void shrink(Team team, Heap const& upstream, source_site site) {
    u32 const size = size_, smaller = adjacency_parts::capacity_for(2 * size);
    if (size != 0) {
      if (size <= capacity_ / 4 && smaller < capacity_) take_room(team, upstream, smaller, site);
      return;
    }
    team.sync();  // all have seen the list before it goes
    if (team.rank() == 0) destroy(upstream, site);
    team.sync();
  }

  u32* data_ = nullptr;
  u32 size_ = 0;
  u32 capacity_ = 0;
};
static_assert(sizeof(adjacency_list) == 16 && __is_trivially_copyable(adjacency_list));

/// A list in device memory that any threads may use at the same time, diverged or not. One of them
/// changes or searches it while the others wait. So insertions into one hub are serial; those of a
/// batch are not.
class shared_adjacency_list {
 public:
  /// Inserts a neighbour.
  template <container_heap Heap>
  WARPHEAP_DEVICE insert_result insert(Heap const& upstream, u32 target, source_site site = source_site::current()) {
    scoped_lock const alone{spin_mutex{mutex_}};
    return list.insert(upstream, target, site);
  }

  /// Erases a neighbour; returns whether it was there.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool erase(Heap const& upstream, u32 target, source_site site = source_site::current()) {
    scoped_lock const alone{spin_mutex{mutex_}};
    return list.erase(upstream, target, site);
  }

  /// Whether `target` is a neighbour.
  WARPHEAP_DEVICE bool contains(u32 target) {
    scoped_lock const alone{spin_mutex{mutex_}};
    return list.contains(target);
  }

  /// The neighbours, to traverse or to change in batches while no thread calls the functions above.
  adjacency_list list;

 private:
  u32 mutex_ = 0;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
