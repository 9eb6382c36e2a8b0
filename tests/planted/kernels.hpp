// SPDX-License-Identifier: Apache-2.0
// Kernels as textbooks and NVIDIA's samples show them, with one planted fault each: FAULT names it,
// and 0 is none. Each has a function that launches it and says whether the result is right.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

#include "warpheap/platform/cuda_names.hpp"
#include "warpheap/platform/device_buffer.hpp"

#ifndef FAULT
#define FAULT 0
#endif

// clang-format off
#define NO_BARRIER_IN_REDUCTION   1
#define HALF_A_MASK               2
#define ONE_BUFFER_IN_SCAN        3
#define PLAIN_INCREMENT           4
#define BINS_NOT_CLEARED          5
#define ROW_PAST_THE_END          6
#define BARRIER_IN_A_BRANCH       7
#define STORE_FOR_CAS             8
#define LOST_UNLOCK               9
#define NO_FENCE_IN_LOCK         10
#define USE_AFTER_FREE           11
#define DOUBLE_FREE              12
// clang-format on

namespace planted { namespace {

using namespace warpheap;

inline bool check(bool holds, char const* what) {
  if (!holds) std::printf("wrong result: %s\n", what);
  return holds;
}

inline __global__ void add_up(unsigned const* in, unsigned* sums, unsigned count) {
  WARPHEAP_SHARED(of_warps, unsigned[32]);
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x, mask = FAULT == HALF_A_MASK ? 0xffff : 0xffffffff;
  unsigned sum = i < count ? in[i] : 0;
  for (unsigned by = 16; by > 0; by /= 2) sum += __shfl_down_sync(mask, sum, by);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
#if FAULT != NO_BARRIER_IN_REDUCTION
  __syncthreads();
#endif
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += of_warps[warp];
  atomicAdd(sums, sum);
}

inline bool reduction() {
  std::vector<u32> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 5u);
  device_buffer<u32> const in{numbers}, sum(1);
  launch(launch_shape_of(8, 128), add_up, in.data(), sum.data(), 1000u);
  synchronize();
  return check(sum[0] == std::accumulate(numbers.begin(), numbers.end(), 0u), "a sum");
}

inline __global__ void scan(unsigned* values) {
  auto const from = dynamic_shared<unsigned>();
  unsigned const i = threadIdx.x, n = blockDim.x;
  from[i] = values[i];
  unsigned in = 0;
  for (unsigned by = 1; by < n; by *= 2) {
    __syncthreads();
    unsigned const out = FAULT == ONE_BUFFER_IN_SCAN ? in : 1 - in;
    from[out * n + i] = from[in * n + i] + (i >= by ? from[in * n + i - by] : 0);
    in = out;
  }
  values[i] = from[in * n + i];
}

inline bool prefix_sums(u32 size = 96) {
  std::vector<u32> numbers(size, 3);
  device_buffer<u32> const values{numbers};
  launch(launch_shape_of(1, size, 2 * 4 * size), scan, values.data());
  synchronize();
  std::partial_sum(numbers.begin(), numbers.end(), numbers.begin());
  return check(values.to_host() == numbers, "prefix sums");
}

inline __global__ void histogram(unsigned char const* bytes, unsigned count, unsigned* bins) {
  WARPHEAP_SHARED(local, unsigned[16]);
#if FAULT != BINS_NOT_CLEARED
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
#endif
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
#if FAULT == PLAIN_INCREMENT
    ++local[bytes[i] % 16];
#else
    atomicAdd(&local[bytes[i] % 16], 1u);
#endif
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

inline bool histograms() {
  device_buffer<u8> const bytes{std::vector<u8>(960, 7)};
  device_buffer<u32> const bins(16);
  launch(launch_shape_of(3, 64), histogram, static_cast<u8 const*>(bytes.data()), 960u, bins.data());
  synchronize();
  return check(bins[7] == 960 && bins[6] == 0, "a histogram");
}

inline __global__ void transpose(float const* in, float* out, unsigned width, unsigned height) {
  WARPHEAP_SHARED(tile, float[16][17]);
  unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  bool const is_inside = y < width && (FAULT == ROW_PAST_THE_END ? x <= height : x < height);
  if (is_inside) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

inline bool transposes() {
  u32 const width = 21, height = 30;  // 1,024 threads: each takes ThreadSanitizer 1.3 ms
  std::vector<float> numbers(width * height);
  std::iota(numbers.begin(), numbers.end(), 0.5F);
  device_buffer<float> const in{numbers}, out(numbers.size());
  launch(launch_shape_of({2, 2}, {16, 16}), transpose, static_cast<float const*>(in.data()), out.data(), width, height);
  synchronize();
  auto const made = out.to_host();
  for (u32 i = 0; i < numbers.size(); ++i)
    if (made[i % width * height + i / width] != numbers[i]) return check(false, "a transposed matrix");
  return true;
}

inline __global__ void bitonic_sort(int* keys) {
  auto const local = dynamic_shared<int>();
  unsigned const i = threadIdx.x;
  local[i] = keys[i];
  for (unsigned size = 2; size <= blockDim.x; size *= 2) {
    for (unsigned by = size / 2; by > 0; by /= 2) {
      unsigned const other = i ^ by;
#if FAULT == BARRIER_IN_A_BRANCH
      if (other <= i) continue;
#endif
      __syncthreads();
      if (other > i && (local[i] > local[other]) == ((i & size) == 0)) {
        int const key = local[i];
        local[i] = local[other];
        local[other] = key;
      }
    }
  }
  __syncthreads();
  keys[i] = local[i];
}

inline bool sorts() {
  std::vector<int> keys(128);
  for (int i = 0; i < 128; ++i) keys[static_cast<u32>(i)] = i * 37 % 128;
  device_buffer<int> const on_device{keys};
  launch(launch_shape_of(1, 128, 512), bitonic_sort, on_device.data());
  synchronize();
  std::sort(keys.begin(), keys.end());
  return check(on_device.to_host() == keys, "a sorted list");
}

inline __global__ void count_keys(unsigned const* keys, unsigned count, unsigned* table, unsigned* counts,
                                  unsigned places) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (unsigned at = keys[i] * 2'654'435'761u % places;; at = (at + 1) % places) {
#if FAULT == STORE_FOR_CAS
    unsigned const seen = table[at];
    if (seen == ~0u) table[at] = keys[i];
#else
    unsigned const seen = atomicCAS(&table[at], ~0u, keys[i]);
#endif
    if (seen != ~0u && seen != keys[i]) continue;
    atomicAdd(&counts[at], 1u);
    return;
  }
}

inline bool hash_tables() {
  std::vector<u32> keys(200);
  for (u32 i = 0; i < 200; ++i) keys[i] = i * 7 % 60;
  device_buffer<u32> const on_device{keys}, table{std::vector<u32>(101, ~0u)}, counts(101);
  launch(launch_shape_of(4, 64), count_keys, on_device.data(), 200u, table.data(), counts.data(), 101u);
  synchronize();
  std::map<u32, u32> found, expected;
  for (u32 const key : keys) ++expected[key];
  for (u32 i = 0; i < 101; ++i)
    if (table[i] != ~0u) found[table[i]] += counts[i];
  return check(found == expected, "counts of keys");
}

struct node {
  int lock;
  unsigned key;
  unsigned next;  // 0: none
};

/// Inserts keys into a sorted list, hand over hand; a key that is there is left out.
inline __global__ void insert_sorted(node* nodes, unsigned const* keys, unsigned count) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  auto const lock = [nodes](unsigned at) {
    while (atomicCAS(&nodes[at].lock, 0, 1) != 0) __nanosleep(100);
#if FAULT != NO_FENCE_IN_LOCK
    __threadfence();
#endif
  };
  auto const unlock = [nodes](unsigned at) {
#if FAULT != NO_FENCE_IN_LOCK
    __threadfence();
#endif
    atomicExch(&nodes[at].lock, 0);
  };
  unsigned const mine = i + 1;
  nodes[mine].key = keys[i];
  unsigned at = 0;
  lock(0);
  for (unsigned next = nodes[0].next; next != 0 && nodes[next].key <= keys[i]; next = nodes[at].next) {
#if FAULT == LOST_UNLOCK
    if (nodes[next].key == keys[i]) return;
#endif
    lock(next);
    unlock(at);
    at = next;
  }
  if (at == 0 || nodes[at].key != keys[i]) {
    nodes[mine].next = nodes[at].next;
    nodes[at].next = mine;
  }
  unlock(at);
}

inline bool sorted_lists() {
  std::vector<u32> keys(60);
  for (u32 i = 0; i < 60; ++i) keys[i] = 1 + i * 11 % 50;
  device_buffer<node> const nodes(61);
  device_buffer<u32> const on_device{keys};
  launch(launch_shape_of(2, 32), insert_sorted, nodes.data(), on_device.data(), 60u);
  synchronize();
  auto const made = nodes.to_host();
  std::vector<u32> found;
  for (u32 at = made[0].next; at != 0 && found.size() <= 60; at = made[at].next) found.push_back(made[at].key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return check(found == keys, "a sorted list without duplicates");
}

}}  // namespace planted
