// SPDX-License-Identifier: Apache-2.0
// What kernels do, declared and not defined: a program that only reads heaps runs none.
#pragma once

#include "../atomic_value.hpp"
#include "../types.hpp"

namespace warpheap::reader {

struct simt {
  static u32 thread_index();
  static u32 block_index();
  static u32 block_dim();
  static u32 grid_dim();
  static u64 grid_id();
  static u32 lane_id();
  static lane_mask lanes_below();
  static u32 warp_id();
  static u32 sm_id();
  static u32 sm_count();
  static u64 clock();
  static u64 nanoseconds();
  static lane_mask active_mask();
  static lane_mask ballot(lane_mask mask, bool predicate);
  static lane_mask match_any(lane_mask mask, u32 key);
  static lane_mask match_any(lane_mask mask, u64 key);
  template <class T>
  static T shuffle(lane_mask mask, T value, u32 lane);
  static u32 reduce_or(lane_mask mask, u32 value);
  static void sync_warp(lane_mask mask);
  static void sync_block();
  static void* dynamic_shared();
  static u32 dynamic_shared_bytes();
  static void pause(u32 nanoseconds);
  static void spin(u32 clocks);
  [[noreturn]] static void trap(char const* reason);
};

template <class T, scope = scope::device>
class atomic_ref {
  using step = typename atomic_detail::atomic_step<T>::type;

 public:
  explicit atomic_ref(T& object);
  T load(order how) const;
  void store(T value, order how) const;
  T exchange(T value, order how) const;
  bool compare_exchange(T& expected, T desired, order success, order failure) const;
  T fetch_add(step value, order how) const;
  T fetch_sub(step value, order how) const;
  T fetch_min(T value, order how) const;
  T fetch_max(T value, order how) const;
  T fetch_or(T value, order how) const;
  T fetch_and(T value, order how) const;
  T fetch_xor(T value, order how) const;
};

word_pair load_pair(u64* words);
void full_fence();
void release_fence();

struct contents {
  static void acquire(void const* begin, size_t bytes);
  static void release(void const* begin, size_t bytes);
  static void forget(void const* begin, size_t bytes);
};

inline constexpr bool tracks_access = false;
void forbid_access(void const* memory, size_t bytes);
void allow_access(void const* memory, size_t bytes);

}  // namespace warpheap::reader
