// SPDX-License-Identifier: Apache-2.0
// Kernels in CUDA's own words do the same on both backends: what textbooks and NVIDIA's samples
// show, and each function of the header against its definition.
#include "warpheap/platform/cuda_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "planted/kernels.hpp"
#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace cuda_names_test {

using namespace warpheap;

TEST(CudaNames, ReductionByShuffles) {
  test::for_each_schedule(16, [] { EXPECT_TRUE(planted::reduction()); });
}
TEST(CudaNames, ScanInSharedMemory) {
  for (u32 const size : {1u, 33u, 96u, 250u})
    test::for_each_schedule(8, [size] { EXPECT_TRUE(planted::prefix_sums(size)) << size; });
}
TEST(CudaNames, HistogramInSharedMemory) {
  test::for_each_schedule(16, [] { EXPECT_TRUE(planted::histograms()); });
}
TEST(CudaNames, TransposeInTwoDimensions) {
  test::for_each_schedule(16, [] { EXPECT_TRUE(planted::transposes()); });
}
TEST(CudaNames, BitonicSort) {
  test::for_each_schedule(8, [] { EXPECT_TRUE(planted::sorts()); });
}
TEST(CudaNames, HashTable) {
  test::for_each_schedule(32, [] { EXPECT_TRUE(planted::hash_tables()); });
}
TEST(CudaNames, SortedListWithALockEachNode) {
  test::for_each_schedule(16, [] { EXPECT_TRUE(planted::sorted_lists()); });
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
  float4 const four = make_float4(min(1.0F, 2.0F), static_cast<float>(max(-3, 2)), rsqrtf(4.0F), 0);
  if (four.x != 1 || four.y != 2 || four.z != 0.5F || min(~0u, 7u) != 7 || max(1ll << 40, 2ll) != 1ll << 40 ||
      __float_as_int(1.0F) != 0x3f800000 || __uint_as_float(0x40000000) != 2 || __umulhi(~0u, 16u) != 15 ||
      alignof(float4) != 16 || alignof(float3) != 4 || alignof(double2) != 16 || alignof(int2) != 8)
    atomicAdd(wrong, 1000u);
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
