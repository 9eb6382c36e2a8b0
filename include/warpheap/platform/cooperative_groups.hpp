// SPDX-License-Identifier: Apache-2.0
// The usual part of CUDA's cooperative groups on both backends: thread_block, thread_block_tile,
// coalesced_group, and reduce() and scans over the latter two. Under nvcc this is CUDA's header.
// grid_group tells places and does not sync(): launch() starts no cooperative kernels.
#pragma once

#include "cuda_names.hpp"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#else

namespace cooperative_groups {

namespace detail {

/// Bit `rank` among those that `mask` has: the lane of a group's member.
inline unsigned lane_of(unsigned mask, unsigned rank) {
  for (; rank > 0; --rank) mask &= mask - 1;
  return mask == 0 ? warpheap::warp_lanes : static_cast<unsigned>(__builtin_ctz(mask));
}

/// The bits of `lanes` that `mask` has, side by side.
inline unsigned packed(unsigned lanes, unsigned mask) {
  unsigned ranks = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1, ++rank)
    if ((lanes & mask & -mask) != 0) ranks |= 1u << rank;
  return ranks;
}

/// Lanes of a warp, by rank. Every member calls each of these functions but for the first three.
class lane_group {
 public:
  unsigned thread_rank() const { return static_cast<unsigned>(__popc(mask_ & warpheap::simt::lanes_below())); }
  unsigned num_threads() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned size() const { return num_threads(); }

  void sync() const { __syncwarp(mask_); }
  template <class T>
  T shfl(T value, unsigned rank) const {
    return warpheap::simt::shuffle(mask_, value, lane_of(mask_, rank % size()));
  }
  template <class T>
  T shfl_up(T value, unsigned by) const {
    return shfl(value, thread_rank() >= by ? thread_rank() - by : thread_rank());
  }
  template <class T>
  T shfl_down(T value, unsigned by) const {
    return shfl(value, thread_rank() + by < size() ? thread_rank() + by : thread_rank());
  }
  bool any(int predicate) const { return __any_sync(mask_, predicate) != 0; }
  bool all(int predicate) const { return __all_sync(mask_, predicate) != 0; }
  unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate), mask_); }
  template <class T>
  unsigned match_any(T value) const {
    return packed(__match_any_sync(mask_, value), mask_);
  }
  template <class T>
  unsigned match_all(T value, int& all_match) const {
    return packed(__match_all_sync(mask_, value, &all_match), mask_);
  }

 protected:
  explicit lane_group(unsigned mask) : mask_{mask} {}

  unsigned mask_;
};

}  // namespace detail

class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return warpheap::simt::thread_index(); }
  static unsigned num_threads() { return warpheap::simt::block_dim(); }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
  static dim3 group_dim() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static unsigned long long thread_rank() { return warpheap::global_thread_index(); }
  static unsigned long long num_threads() { return num_blocks() * warpheap::simt::block_dim(); }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long block_rank() { return warpheap::simt::block_index(); }
  static unsigned long long num_blocks() { return warpheap::simt::grid_dim(); }
  static dim3 block_index() { return blockIdx; }
  static dim3 dim_blocks() { return gridDim; }
};
inline grid_group this_grid() { return {}; }

/// `Size` neighbours of a warp: a power of two.
template <unsigned Size, class Parent = void>
class thread_block_tile : public detail::lane_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile() : lane_group{first_lanes << (warpheap::simt::lane_id() & ~(Size - 1))} {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned meta_group_rank() { return warpheap::simt::thread_index() / Size; }
  static unsigned meta_group_size() { return (warpheap::simt::block_dim() + Size - 1) / Size; }
  template <class T>
  T shfl_xor(T value, unsigned bits) const {
    return this->shfl(value, this->thread_rank() ^ bits);
  }

 private:
  static constexpr unsigned first_lanes = 0xffffffff >> (32 - Size);
};
template <unsigned Size>
thread_block_tile<Size, thread_block> tiled_partition(thread_block const&) {
  return {};
}
template <unsigned Size, unsigned Outer, class Parent>
thread_block_tile<Size, thread_block_tile<Outer, Parent>> tiled_partition(thread_block_tile<Outer, Parent> const&) {
  static_assert(Size <= Outer, "a tile of a tile is no larger");
  return {};
}

/// Lanes that are here together. Which ones is the schedule's choice.
class coalesced_group : public detail::lane_group {
 public:
  coalesced_group() : lane_group{__activemask()} {}
};
inline coalesced_group coalesced_threads() { return {}; }

template <class Group>
void sync(Group const& group) {
  group.sync();
}

// What reduce() and the scans combine by.
template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

/// All members' values, combined in the order of ranks; the same for all of them.
template <class Group, class T, class Combine>
T reduce(Group const& group, T value, Combine combine) {
  T all = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) all = combine(all, group.shfl(value, rank));
  return all;
}

/// Those of the members up to ours.
template <class Group, class T, class Combine>
T inclusive_scan(Group const& group, T value, Combine combine) {
  T all = value;
  for (unsigned by = 1; by < group.size(); by *= 2) {
    T const before = group.shfl_up(all, by);
    if (group.thread_rank() >= by) all = combine(before, all);
  }
  return all;
}
template <class Group, class T>
T inclusive_scan(Group const& group, T value) {
  return inclusive_scan(group, value, plus<T>{});
}

/// Those of the members before ours; T{} for the first.
template <class Group, class T, class Combine>
T exclusive_scan(Group const& group, T value, Combine combine) {
  T const before = group.shfl_up(inclusive_scan(group, value, combine), 1);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
T exclusive_scan(Group const& group, T value) {
  return exclusive_scan(group, value, plus<T>{});
}

}  // namespace cooperative_groups

#endif
