// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp whose vectors grow at the same time call the heap together, whatever their sizes.
// On the host backend, where a schedule says which lanes active_mask() finds.
#include <gtest/gtest.h>

#include "warpheap/container/string.hpp"
#include "warpheap/container/vector.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace vector_growth_test {

using namespace warpheap;

/// Notes how many lanes ask for memory at the same place.
struct watching_ref {
  heap_ref upstream;
  u32* most;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    u32 const together = popcount(simt::active_mask());
    if (*most < together) *most = together;
    return upstream.malloc(bytes);
  }
  WARPHEAP_DEVICE void free(void* memory) const { upstream.free(memory); }
};

/// Kernel: full vectors of several sizes, and then an element more in each.
struct fill_and_push {
  WARPHEAP_DEVICE void operator()(watching_ref heap, u32* most_before) const {
    u32 const me = simt::lane_id(), count = 4u << me % 5;
    vector<u32> mine;
    if (mine.reserve(heap.upstream, count)) mine.extend(heap.upstream, count);
    if (me == 0) *most_before = *heap.most;
    simt::sync_warp(full_mask);
    mine.push_back(heap, 1);
    mine.destroy(heap);
  }
};

/// Kernel: each lane writes another text.
struct write_texts {
  WARPHEAP_DEVICE void operator()(watching_ref heap, u32*) const {
    string mine;
    mine.append(heap, simt::lane_id() * 1000);
    mine.destroy(heap);
  }
};

template <class Kernel>
void expect_together(Kernel kernel) {
  host::scoped_execution const use{
      {.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal, .seed = 1}};
  heap const heap{size_t{1} << 22};
  device_buffer<u32> const most(2);
  launch({1, warp_lanes}, kernel, watching_ref{heap.ref(), most.data()}, most.data() + 1);
  synchronize();
  EXPECT_EQ(most[1], 0u);
  EXPECT_EQ(most[0], warp_lanes);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(VectorGrowth, IsOneCallForTheLanesThatAreTogether) { expect_together(fill_and_push{}); }
TEST(StringGrowth, IsOneCallForTheLanesThatAreTogether) { expect_together(write_texts{}); }

}  // namespace vector_growth_test
