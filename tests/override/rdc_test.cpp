// SPDX-License-Identifier: Apache-2.0
// What only -rdc=true can break: calls from units that do not know the header, bounds of kernels,
// and variables of units and libraries that the linker puts together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels.hpp"
#include "warpheap/heap/override.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace override_test { namespace {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u32 threads = 1000;

// "abi": callers keep values in registers that our functions used.
// override.N1, override.N2
TEST(RelocatableDropIn, abi_CallersKeepTheirValues) {
  override_heap made{64_MiB};
  std::vector<u32> values(threads);
  std::iota(values.begin(), values.end(), 12345u);
  device_buffer<u32> const in(threads);
  ASSERT_EQ(cudaMemcpy(in.data(), values.data(), threads * sizeof(u32), cudaMemcpyHostToDevice), cudaSuccess);
  device_buffer<void*> const memory(threads);
  device_buffer<tally> const counts(1);
  for (auto const what : {held_call::malloc, held_call::free, held_call::make, held_call::destroy,
                          held_call::make_aligned, held_call::destroy_aligned}) {
    ASSERT_EQ(hold_values(what, threads, in.data(), memory.data(), counts.data()), cudaSuccess) << int(what);
    EXPECT_EQ(counts[0].wrong, 0u) << int(what);
    bool const allocates = int(what) % 2 == 0;
    EXPECT_EQ(made.heap().statistics().live_blocks, allocates ? threads : 0u) << int(what);
  }
  EXPECT_EQ(counts[0].made, 6 * threads);  // `free` leaves the pointers there
  EXPECT_EQ(made.heap().statistics().foreign_frees, 0u);
}

// "inc" and "const": the second and third unit's variables were lost.
TEST(RelocatableDropIn, inc_const_EachUnitHasItsHeap) {
  override_heap made{64_MiB};
  device_buffer<void*> const memory(threads);
  device_buffer<tally> const counts(1);
  EXPECT_EQ(allocate_in_unit<1>(threads, memory.data(), counts.data()), cudaSuccess);
  EXPECT_EQ(allocate_in_unit<2>(threads, memory.data(), counts.data()), cudaSuccess);
  EXPECT_EQ(allocate_in_unit<3>(threads, memory.data(), counts.data()), cudaSuccess);
  EXPECT_EQ(counts[0].made, 3 * threads);
  EXPECT_EQ(made.heap().statistics().live_blocks, 3 * threads);
}

// Libraries whose device code was linked on its own: each has a malloc and variables of its own.
TEST(RelocatableDropIn, EachLibraryHasItsHeap) {
  override_heap made{64_MiB};
  device_buffer<void*> const memory(threads);
  device_buffer<tally> const counts(1);
  EXPECT_EQ(allocate_in_unit<4>(threads, memory.data(), counts.data()), cudaSuccess);
  EXPECT_EQ(allocate_in_unit<5>(threads, memory.data(), counts.data()), cudaSuccess);
  EXPECT_EQ(counts[0].made, 2 * threads);
  EXPECT_EQ(made.heap().statistics().live_blocks, 2 * threads);
}

__device__ void allocate_both_ways(heap_ref heap, void** memory, tally* counts) {
  u32 const me = blockIdx.x * blockDim.x + threadIdx.x;
  heap.free(heap.malloc(16 + me % 1000));
  free(malloc(16 + me % 1000));
  bool const by_heap = me % 64 == 1;
  memory[me] = by_heap ? heap.malloc(300'000) : malloc(40);  // runs of slabs, and single blocks
  if (memory[me]) atomicAdd(&counts->made, 1);
  if (by_heap) heap.free(memory[me]);
  else free(memory[me]);
}

__global__ void allocate_unbounded(heap_ref heap, void** m, tally* c) { allocate_both_ways(heap, m, c); }
__global__ void __launch_bounds__(1024) allocate_1024(heap_ref heap, void** m, tally* c) {
  allocate_both_ways(heap, m, c);
}
__global__ void __launch_bounds__(512, 4) allocate_512(heap_ref heap, void** m, tally* c) {
  allocate_both_ways(heap, m, c);
}
__global__ void __launch_bounds__(256, 8) allocate_256(heap_ref heap, void** m, tally* c) {
  allocate_both_ways(heap, m, c);
}

TEST(RelocatableDropIn, KernelsOfEachBoundAllocate) {
  override_heap made{64_MiB};
  basic_heap<heap_ref> other{256_MiB};
  device_buffer<void*> const memory(1024);
  device_buffer<tally> const counts(1);
  for (auto* const kernel : {allocate_unbounded, allocate_1024, allocate_512, allocate_256})
    kernel<<<4, 256>>>(other.ref(), memory.data(), counts.data());
  allocate_1024<<<1, 1024>>>(other.ref(), memory.data(), counts.data());
  synchronize();
  EXPECT_EQ(counts[0].made, 5 * 1024u);
  for (auto const& now : {made.heap().statistics(), other.statistics()}) {
    EXPECT_EQ(now.live_blocks, 0u);
    EXPECT_EQ(now.foreign_frees, 0u);
    EXPECT_EQ(now.double_frees, 0u);
  }
  EXPECT_THAT(other.check_invariants(), testing::IsEmpty());
}

}}  // namespace override_test
