// SPDX-License-Identifier: Apache-2.0
// The contract of a lane on an NVIDIA GPU, sm_75 and later: independent thread scheduling, so lanes
// of a warp may be anywhere and every collective names its mask.
#pragma once

#include "../types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdio>
#endif

namespace warpheap::cuda_backend {

/// Nothing tracks accesses from here: compute-sanitizer takes no word from kernels.
inline constexpr bool tracks_access = false;
WARPHEAP_HOST_DEVICE inline void forbid_access(void const*, size_t) {}
WARPHEAP_HOST_DEVICE inline void allow_access(void const*, size_t) {}

struct simt {
  WARPHEAP_DEVICE static u32 thread_index() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  WARPHEAP_DEVICE static u32 block_index() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
  WARPHEAP_DEVICE static u32 block_dim() { return blockDim.x * blockDim.y * blockDim.z; }
  WARPHEAP_DEVICE static u32 grid_dim() { return gridDim.x * gridDim.y * gridDim.z; }
  WARPHEAP_DEVICE static u64 grid_id() {
    u64 grid;
    asm("mov.u64 %0, %%gridid;" : "=l"(grid));
    return grid;
  }
  WARPHEAP_DEVICE static u32 lane_id() {
    u32 lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  WARPHEAP_DEVICE static lane_mask lanes_below() {
    u32 below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    return below;
  }
  WARPHEAP_DEVICE static u32 warp_id() { return thread_index() / warp_lanes; }
  // volatile: a preempted thread may come back on another multiprocessor.
  WARPHEAP_DEVICE static u32 sm_id() {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
  }
  WARPHEAP_DEVICE static u32 sm_count() {
    u32 count;
    asm("mov.u32 %0, %%nsmid;" : "=r"(count));
    return count;
  }
  WARPHEAP_DEVICE static u64 clock() { return static_cast<u64>(clock64()); }
  WARPHEAP_DEVICE static u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

  WARPHEAP_DEVICE static lane_mask active_mask() { return own_value(__activemask()); }
  WARPHEAP_DEVICE static lane_mask ballot(lane_mask mask, bool predicate) {
    return own_value(__ballot_sync(mask, predicate));
  }
  WARPHEAP_DEVICE static lane_mask match_any(lane_mask mask, u32 key) { return own_value(__match_any_sync(mask, key)); }
  WARPHEAP_DEVICE static lane_mask match_any(lane_mask mask, u64 key) { return own_value(__match_any_sync(mask, key)); }
  template <class T>
  WARPHEAP_DEVICE static T shuffle(lane_mask mask, T value, u32 lane) {
    return __shfl_sync(mask, value, static_cast<int>(lane));
  }
  template <class T>
  WARPHEAP_DEVICE static T* shuffle(lane_mask mask, T* value, u32 lane) {
    return reinterpret_cast<T*>(shuffle(mask, reinterpret_cast<u64>(value), lane));
  }
  WARPHEAP_DEVICE static u32 reduce_or(lane_mask mask, u32 value) {
#if __CUDA_ARCH__ >= 800
    return own_value(__reduce_or_sync(mask, value));
#else
    u32 all = 0;
    for (lane_mask rest = mask; rest; rest &= rest - 1)
      all |= __shfl_sync(mask, value, __ffs(static_cast<int>(rest)) - 1);
    return all;
#endif
  }
  WARPHEAP_DEVICE static void sync_warp(lane_mask mask) { __syncwarp(mask); }
  WARPHEAP_DEVICE static void sync_block() { __syncthreads(); }
  WARPHEAP_DEVICE static u32 dynamic_shared_bytes() {
    u32 bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
  }
  WARPHEAP_DEVICE static void* dynamic_shared() {
    extern __shared__ __align__(128) u8 warpheap_dynamic_shared[];
    return warpheap_dynamic_shared;
  }
  WARPHEAP_DEVICE static void pause(u32 nanoseconds) { __nanosleep(nanoseconds); }
  WARPHEAP_DEVICE static void spin(u32 clocks) {
    u64 const begin = clock();
    while (clock() - begin < clocks) {
    }
  }

  WARPHEAP_DEVICE static void trap(char const* reason) {
    printf("warpheap: %s (thread block %u, thread %u)\n", reason, block_index(), thread_index());
    __trap();
  }

 private:
  /// `mask`, as a value of this lane alone. ptxas assumes that votes and matches have the same
  /// result in all lanes that it expects to be together, and keeps the result in one register of
  /// the warp. Lanes that were apart when they voted then went on with one another's masks (seen
  /// with CUDA 13.0 on an H200 as a search that never ended). No lane is both below and above
  /// itself, so `none` is 0, but ptxas does not know that.
  WARPHEAP_DEVICE static lane_mask own_value(lane_mask mask) {
    // volatile, and in one statement: else the compiler would keep both masks in registers to the
    // end.
    u32 none;
    asm volatile(
        "{ .reg .u32 below, above; mov.u32 below, %%lanemask_lt; mov.u32 above, %%lanemask_gt; "
        "and.b32 %0, below, above; }"
        : "=r"(none));
    return mask | none;
  }
};

}  // namespace warpheap::cuda_backend
