// SPDX-License-Identifier: Apache-2.0
// Kernels that know nothing of Warpheap allocate from a heap that grows between them. Built twice.
// In one build every unit is compiled with override_growing.hpp. In the other, with -rdc=true, this
// one alone is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels.hpp"
#include "spellings.hpp"
#include "warpheap/heap/override_growing.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace override_test { namespace {

using namespace warpheap;

size_t const granule = reserve_pool::growing::granularity();
constexpr u32 threads = 1000;

TEST(GrowingDropIn, ServesMallocFromWhatCameSinceItWasRefused) {
  override_heap made{growth{.initial = granule, .limit = 64 * granule, .chunk = granule}};
  tally const nothing;
  device_buffer<tally> const counts(std::vector<tally>{nothing, nothing});
  ASSERT_EQ(exhaust(threads, 4096, counts.data()), cudaSuccess);
  EXPECT_GE(counts[0].made, granule / 4096) << "more where a thread frees while another still asks";
  EXPECT_EQ(counts[0].failed, threads);
  EXPECT_EQ(made.heap().requested_bytes(), threads * u64{4096});
  size_t const came = made.heap().poll();
  EXPECT_EQ(came, (threads * size_t{4096} + granule - 1) / granule * granule);
  ASSERT_EQ(exhaust(threads, 4096, counts.data() + 1), cudaSuccess);
  EXPECT_GE(counts[1].made, made.heap().committed_bytes() / 4096);
  EXPECT_THAT(made.heap().check_invariants(), testing::IsEmpty());
  EXPECT_EQ(made.heap().trim(), came);
}

TEST(GrowingDropIn, ServesEverySpellingOfDeviceAllocation) {
  override_heap const made{growth{.initial = 16 * granule, .limit = 64 * granule, .chunk = granule}};
  expect_each_spelling_of(made.heap());
}

TEST(GrowingDropIn, GrowsUnderListsOfOtherUnits) {
  override_heap made{growth{.initial = granule, .limit = 64 * granule, .chunk = granule}};
  device_buffer<node*> const lists(threads), more(threads);
  device_buffer<u32> const sums(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 10), cudaSuccess);
  EXPECT_EQ(made.heap().grow(16 * granule), 16 * granule);
  // More than the heap had room for at first.
  u32 const length = static_cast<u32>(4 * granule / (threads * sizeof(node)));
  ASSERT_EQ(build_lists(threads, more.data(), length), cudaSuccess);
  EXPECT_EQ(made.heap().statistics().live_blocks, (10 + u64{length}) * threads);
  EXPECT_EQ(made.heap().requested_bytes(), 0u);
  ASSERT_EQ(sum_and_free_lists(threads, lists.data(), sums.data()), cudaSuccess);
  EXPECT_THAT(sums.to_host(), testing::Each(45u));
  ASSERT_EQ(sum_and_free_lists(threads, more.data(), sums.data()), cudaSuccess);
  EXPECT_THAT(sums.to_host(), testing::Each(length * (length - 1) / 2));
  EXPECT_EQ(made.heap().statistics().live_blocks, 0u);
  EXPECT_EQ(made.heap().trim(), 16 * granule);
}

}}  // namespace override_test
