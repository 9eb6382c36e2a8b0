// SPDX-License-Identifier: Apache-2.0
// A crowd that allocates and frees blocks of one size for a while: no slab may get lost on the way
// between live, full, empty and partial. A slab that is empty at the end must be in the index of
// its class, or no scan finds it again.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

#if defined(__CUDACC__)
constexpr size_t pool_bytes = size_t{256} << 20;
constexpr launch_shape crowd{512, 128};
constexpr u32 rounds = 40;
#else
constexpr size_t pool_bytes = size_t{4} << 20;
constexpr launch_shape crowd{8, 64};
constexpr u32 rounds = 12;
#endif

class SlabBitmapStress : public testing::TestWithParam<u32> {};

TEST_P(SlabBitmapStress, EverySlabEndsEmptyAndPartial) {
  heap const owner{pool_bytes};
  device_buffer<lanes_report> const report(1);
  tagged_churn<sizes_between> const body{.rounds = rounds, .sizes = {GetParam(), GetParam()}, .seed = 7};
  launch(crowd, body, owner.ref().creation(), report.data());
  synchronize();
  EXPECT_GT(report[0].served, 0u);
  EXPECT_EQ(report[0].broken, 0u);
  heap_statistics const left = owner.statistics();
  EXPECT_EQ(left.live_blocks, 0u);
  EXPECT_GT(left.empty_slabs, 0u);
  EXPECT_EQ(left.empty_slabs + left.free_slabs, left.slabs);
  // slab.D4 says that the empty ones are on the partial list.
  for (auto const& violated : owner.check_invariants()) ADD_FAILURE() << violated;
}

INSTANTIATE_TEST_SUITE_P(Sizes, SlabBitmapStress, testing::Values(16u, 64u, 256u, 1000u, 1024u, 4096u, 8192u));

}}  // namespace warpheap::test
