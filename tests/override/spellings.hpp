// SPDX-License-Identifier: Apache-2.0
// That every spelling of device allocation is of one heap, for the programs of this folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace override_test {

/// Blocks by each spelling are the heap's: live in between, and none foreign when they are freed.
template <class Heap>
void expect_each_spelling_of(Heap const& heap) {
  constexpr unsigned threads = 1000;
#if defined(__CUDACC_RDC__)
  constexpr int end = static_cast<int>(spelling::end);
#else
  constexpr int end = static_cast<int>(spelling::cuda_malloc);
#endif
  warpheap::device_buffer<void*> const memory(threads);
  for (int number = 0; number < end; ++number) {
    auto const how = static_cast<spelling>(number);
    ASSERT_EQ(allocate_as(how, threads, memory.data()), cudaSuccess) << number;
    EXPECT_THAT(memory.to_host(), testing::Each(testing::NotNull())) << number;
    EXPECT_EQ(heap.statistics().live_blocks, threads) << number;
    ASSERT_EQ(free_as(how, threads, memory.data()), cudaSuccess) << number;
    auto const now = heap.statistics();
    EXPECT_EQ(now.live_blocks, 0u) << number;
    EXPECT_EQ(now.foreign_frees, 0u) << number;
    EXPECT_EQ(now.double_frees, 0u) << number;
  }
}

}  // namespace override_test
