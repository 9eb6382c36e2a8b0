// SPDX-License-Identifier: Apache-2.0
// Kernels in CUDA's own words do the same on both backends: what textbooks and NVIDIA's samples
// show, and each function of the header against its definition.
#include "warpheap/platform/cuda_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace cuda_names_test {

using namespace warpheap;

std::vector<u32> some_numbers(u32 count, u32 below) {
  std::vector<u32> numbers(count);
  u32 drawn = 12345;
  for (auto& each : numbers) each = (drawn = drawn * 1'664'525 + 1'013'904'223) / 7 % below;
  return numbers;
}

/// The sum of each thread block, by shuffles within warps and shared memory between them.
__global__ void add_up(unsigned const* in, unsigned* sums, unsigned count) {
  WARPHEAP_SHARED(of_warps, unsigned[32]);
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = i < count ? in[i] : 0;
  for (unsigned by = warpSize / 2; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
  if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x >= warpSize) return;
  sum = threadIdx.x < blockDim.x / warpSize ? of_warps[threadIdx.x] : 0;
  for (unsigned by = warpSize / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
  if (threadIdx.x == 0) atomicAdd(sums, sum);
}

TEST(CudaNames, Reduction) {
  test::for_each_schedule(16, [] {
    auto const numbers = some_numbers(1000, 5000);
    device_buffer<u32> const in{numbers}, sum(1);
    launch(launch_shape_of(8, 128), add_up, in.data(), sum.data(), 1000u);
    EXPECT_EQ(sum[0], std::accumulate(numbers.begin(), numbers.end(), 0u));
  });
}

/// Prefix sums of one thread block, which doubles the distance between two barriers.
__global__ void scan(unsigned* values) {
  auto const from = dynamic_shared<unsigned>();
  unsigned const i = threadIdx.x, n = blockDim.x;
  from[i] = values[i];
  unsigned in = 0;
  for (unsigned by = 1; by < n; by *= 2) {
    __syncthreads();
    from[(1 - in) * n + i] = from[in * n + i] + (i >= by ? from[in * n + i - by] : 0);
    in = 1 - in;
  }
  values[i] = from[in * n + i];
}

TEST(CudaNames, Scan) {
  for (u32 const size : {1u, 33u, 96u, 250u}) {
    test::for_each_schedule(8, [size] {
      auto numbers = some_numbers(size, 100);
      device_buffer<u32> const values{numbers};
      launch(launch_shape_of(1, size, 8 * size), scan, values.data());
      std::partial_sum(numbers.begin(), numbers.end(), numbers.begin());
      EXPECT_EQ(values.to_host(), numbers);
    });
  }
}

__global__ void histogram(unsigned char const* bytes, unsigned count, unsigned* bins) {
  WARPHEAP_SHARED(local, unsigned[64]);
  for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&local[bytes[i] % 64], 1u);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

TEST(CudaNames, Histogram) {
  test::for_each_schedule(16, [] {
    auto const numbers = some_numbers(2000, 256);
    device_buffer<u8> const bytes{std::vector<u8>(numbers.begin(), numbers.end())};
    device_buffer<u32> const bins(64);
    launch(launch_shape_of(3, 96), histogram, static_cast<u8 const*>(bytes.data()), 2000u, bins.data());
    std::vector<u32> expected(64);
    for (u32 const each : numbers) ++expected[each % 64];
    EXPECT_EQ(bins.to_host(), expected);
  });
}

/// Tiles of 16 columns and 16 rows, by thread blocks of 16 times 4 threads.
__global__ void transpose(float const* in, float* out, unsigned width, unsigned height) {
  WARPHEAP_SHARED(tile, float[16][17]);
  unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (unsigned row = 0; row < 16; row += blockDim.y)
    if (x < width && y + row < height) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  for (unsigned row = 0; row < 16; row += blockDim.y)
    if (x < height && y + row < width) out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}

TEST(CudaNames, TransposeInTwoDimensions) {
  test::for_each_schedule(16, [] {
    u32 const width = 37, height = 50;
    std::vector<float> numbers(width * height);
    std::iota(numbers.begin(), numbers.end(), 0.5F);
    device_buffer<float> const in{numbers}, out(numbers.size());
    launch(launch_shape_of({3, 4}, {16, 4}), transpose, static_cast<float const*>(in.data()), out.data(), width,
           height);
    auto const made = out.to_host();
    for (u32 i = 0; i < numbers.size(); ++i) ASSERT_EQ(made[i % width * height + i / width], numbers[i]) << i;
  });
}

__global__ void bitonic_sort(int* keys) {
  auto const local = dynamic_shared<int>();
  unsigned const i = threadIdx.x;
  local[i] = keys[i];
  for (unsigned size = 2; size <= blockDim.x; size *= 2) {
    for (unsigned by = size / 2; by > 0; by /= 2) {
      __syncthreads();
      unsigned const other = i ^ by;
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

TEST(CudaNames, BitonicSort) {
  test::for_each_schedule(8, [] {
    auto const numbers = some_numbers(256, 1000);
    std::vector<int> keys(numbers.begin(), numbers.end());
    device_buffer<int> const on_device{keys};
    launch(launch_shape_of(1, 256, 1024), bitonic_sort, on_device.data());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(on_device.to_host(), keys);
  });
}

/// Counts keys in a table of open addresses, whose empty places hold ~0.
__global__ void count_keys(unsigned const* keys, unsigned count, unsigned* table, unsigned* counts, unsigned places) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (unsigned at = keys[i] * 2'654'435'761u % places;; at = (at + 1) % places) {
    unsigned const seen = atomicCAS(&table[at], ~0u, keys[i]);
    if (seen != ~0u && seen != keys[i]) continue;
    atomicAdd(&counts[at], 1u);
    return;
  }
}

TEST(CudaNames, HashTable) {
  test::for_each_schedule(32, [] {
    auto const keys = some_numbers(300, 90);
    device_buffer<u32> const on_device{keys}, table{std::vector<u32>(101, ~0u)}, counts(101);
    launch(launch_shape_of(4, 80), count_keys, on_device.data(), 300u, table.data(), counts.data(), 101u);
    std::map<u32, u32> found, expected;
    for (u32 const key : keys) ++expected[key];
    auto const in = table.to_host(), times = counts.to_host();
    for (u32 i = 0; i < 101; ++i)
      if (in[i] != ~0u) found[in[i]] += times[i];
    EXPECT_EQ(found, expected);
  });
}

struct node {
  int lock;
  unsigned key;
  unsigned next;  // 0: none
};

/// Inserts a key into a sorted list, hand over hand: at most two nodes are locked.
__global__ void insert_sorted(node* nodes, unsigned const* keys, unsigned count) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  auto const lock = [nodes](unsigned at) {
    while (atomicCAS(&nodes[at].lock, 0, 1) != 0) __nanosleep(100);
    __threadfence();
  };
  auto const unlock = [nodes](unsigned at) {
    __threadfence();
    atomicExch(&nodes[at].lock, 0);
  };
  unsigned const mine = i + 1;
  nodes[mine].key = keys[i];
  unsigned at = 0;
  lock(0);
  for (unsigned next = nodes[0].next; next != 0 && nodes[next].key < keys[i]; next = nodes[at].next) {
    lock(next);
    unlock(at);
    at = next;
  }
  nodes[mine].next = nodes[at].next;
  nodes[at].next = mine;
  unlock(at);
}

TEST(CudaNames, SortedListWithALockEachNode) {
  test::for_each_schedule(16, [] {
    auto keys = some_numbers(60, 500);
    device_buffer<node> const nodes(61);
    device_buffer<u32> const on_device{keys};
    launch(launch_shape_of(2, 33), insert_sorted, nodes.data(), on_device.data(), 60u);
    auto const made = nodes.to_host();
    std::vector<u32> found;
    for (u32 at = made[0].next; at != 0 && found.size() <= 60; at = made[at].next) found.push_back(made[at].key);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(found, keys);
  });
}

/// Adds 1 to `wrong` where a function and its definition differ; a warp of `lanes` lanes.
__global__ void check_warp_functions(unsigned lanes, unsigned* wrong) {
  unsigned const lane = threadIdx.x, all = lanes == 32 ? 0xffffffff : (1u << lanes) - 1;
  auto const expect = [wrong](bool holds) {
    if (!holds) atomicAdd(wrong, 1u);
  };
  expect((__activemask() >> lane & 1) != 0);
  expect(__ballot_sync(all, lane % 3 == 0) == (0x49249249u & all));
  expect(__any_sync(all, lane == lanes - 1) && !__any_sync(all, 0));
  expect(__all_sync(all, 1) && __all_sync(all, lane == 0) == (lanes == 1));
  expect(__match_any_sync(all, static_cast<long long>(lane % 2)) == (all & (lane % 2 ? 0xaaaaaaaa : 0x55555555)));
  int matches = 0;
  expect(__match_all_sync(all, 1.5F, &matches) == all && matches);
  expect(__match_all_sync(all, lane, &matches) == (lanes == 1 ? all : 0) && matches == (lanes == 1));
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  unsigned const sum = lanes * (lanes - 1) / 2;
  expect(__reduce_add_sync(all, lane) == sum);
  expect(__reduce_add_sync(all, -static_cast<int>(lane)) == -static_cast<int>(sum));
  expect(__reduce_min_sync(all, static_cast<int>(lane) - 5) == -5 && __reduce_min_sync(all, lane + 3) == 3);
  expect(__reduce_max_sync(all, lane) == lanes - 1);
  expect(__reduce_max_sync(all, -1 - static_cast<int>(lane)) == -1);
  expect(__reduce_or_sync(all, 1u << lane) == all && __reduce_xor_sync(all, 1u << lane) == all);
  expect(__reduce_and_sync(all, ~(1u << lane)) == ~all);
#endif
  __syncwarp();
  double const value = lane * 1.25;
  unsigned const group = lane & ~7u;
  if (lanes == 32) {
    expect(__shfl_sync(all, value, 9) == 9 * 1.25 && __shfl_sync(all, value, 11, 8) == (group + 3) * 1.25);
    expect(__shfl_up_sync(all, lane, 3, 8) == (lane - group >= 3 ? lane - 3 : lane));
    expect(__shfl_down_sync(all, lane, 3, 8) == (lane - group < 5 ? lane + 3 : lane));
    expect(__shfl_xor_sync(all, lane, 5) == (lane ^ 5));
    expect(__shfl_xor_sync(all, lane, 8, 8) == (lane >= 8 && (lane & 8) ? lane ^ 8 : lane));
  }
  expect(__syncthreads_count(lane % 4 == 0) == static_cast<int>((lanes + 3) / 4));
  expect(__syncthreads_or(lane == 0) && !__syncthreads_or(0));
  expect(__syncthreads_and(1) && __syncthreads_and(lane < 31) == (lanes < 32));
}

TEST(CudaNames, OfWarpsMeanWhatCudaSays) {
  for (u32 const lanes : {1u, 2u, 13u, 31u, 32u}) {
    test::for_each_schedule(24, [lanes] {
      device_buffer<u32> const wrong(1);
#if !defined(__CUDACC__)
      auto partial = host::current_execution();
      partial.refuses_returned_lanes = false;  // __syncwarp() names 32 lanes
      host::scoped_execution const use{partial};
#endif
      launch(launch_shape_of(2, lanes), check_warp_functions, lanes, wrong.data());
      EXPECT_EQ(wrong[0], 0u) << lanes << " lanes";
    });
  }
}

__global__ void check_atomics(unsigned* words, float* floats, unsigned long long* wide, unsigned* wrong) {
  atomicAdd(&words[0], 3u);
  atomicSub(&words[1], 1u);
  atomicMin(&words[2], threadIdx.x + 7);
  atomicMax(&words[3], threadIdx.x);
  atomicAnd(&words[4], ~(1u << threadIdx.x % 32));
  atomicOr(&words[5], 1u << threadIdx.x % 32);
  atomicXor_system(&words[6], threadIdx.x + 1);
  atomicInc(&words[7], 9);
  atomicDec(&words[8], 9);
  atomicAdd(floats, 0.5F);
  atomicMax_block(&wide[blockIdx.x], 1ull << 40 | threadIdx.x);
  if (atomicExch(&words[9], 1u) == 0) atomicAdd(wrong, 1u);
  if (__popc(0xf0f0u) != 8 || __popcll(~0ull) != 64 || __ffs(8) != 4 || __ffsll(1ll << 40) != 41 || __clz(1) != 31 ||
      __clzll(1) != 63 || __clz(0) != 32 || __brev(1u) != 0x80000000u || __ldg(&wide[2]) != 5)
    atomicAdd(wrong, 10u);
  if (gridDim.x != 2 || blockDim.x != 6 || blockDim.y != 2 || blockDim.z != 3 || gridDim.y != 1 || gridDim.z != 1)
    atomicAdd(wrong, 100u);
  atomicAdd(&words[16 + threadIdx.x + 6 * threadIdx.y + 12 * threadIdx.z], 1u + blockIdx.x);
}

TEST(CudaNames, OfAtomicsBitsAndPlacesMeanWhatCudaSays) {
  test::for_each_schedule(24, [] {
    std::vector<u32> start(52);
    start[2] = start[4] = ~0u;
    device_buffer<u32> const words{start}, wrong(1);
    device_buffer<float> const floats(1);
    device_buffer<u64> const wide{std::vector<u64>{0, 0, 5}};
    launch(launch_shape_of(2, {6, 2, 3}), check_atomics, words.data(), floats.data(), wide.data(), wrong.data());
    auto const made = words.to_host();
    EXPECT_EQ(wrong[0], 1u) << "one of all exchanges finds 0";
    std::vector<u32> const expected{216, 0u - 72u, 7, 5, ~0x3fu, 0x3f, 0, 72 % 10, 8, 1};
    EXPECT_EQ((std::vector<u32>{made.begin(), made.begin() + 10}), expected);
    EXPECT_EQ(std::count(made.begin() + 16, made.end(), 3u), 36);
    EXPECT_EQ(floats[0], 36.0F);
    EXPECT_EQ(wide[0], u64{1} << 40 | 5);
  });
}

}  // namespace cuda_names_test
