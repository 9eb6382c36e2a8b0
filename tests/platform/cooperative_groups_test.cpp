// SPDX-License-Identifier: Apache-2.0
// Cooperative groups do on both backends what CUDA says of them.
#include "warpheap/platform/cooperative_groups.hpp"

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace cooperative_groups_test {

using namespace warpheap;
namespace cg = cooperative_groups;

/// Where faults are counted.
struct checks {
  WARPHEAP_DEVICE void operator()(bool holds) const {
    if (!holds) atomicAdd(wrong, 1u);
  }

  unsigned* wrong;
};

__global__ void check_blocks(unsigned* wrong) {
  checks const expect{wrong};
  auto const block = cg::this_thread_block();
  WARPHEAP_SHARED(ranks, unsigned[72]);
  ranks[block.thread_rank()] = block.thread_rank() + 100 * block.group_index().x;
  block.sync();
  unsigned const other = 71 - block.thread_rank();
  expect(ranks[other] == other + 100 * blockIdx.x && block.size() == 72 && block.num_threads() == 72);
  expect(block.thread_rank() == block.thread_index().x + block.dim_threads().x * block.thread_index().y);
  auto const grid = cg::this_grid();
  expect(grid.thread_rank() == blockIdx.x * 72 + block.thread_rank() && grid.size() == 144);
}

template <unsigned Size>
__global__ void check_tiles(unsigned* wrong) {
  checks const expect{wrong};
  auto const block = cg::this_thread_block();
  auto const tile = cg::tiled_partition<Size>(block);
  unsigned const rank = tile.thread_rank(), first = threadIdx.x - rank, all = 0xffffffff >> (32 - Size);
  expect(rank == threadIdx.x % Size && tile.size() == Size && tile.meta_group_rank() == threadIdx.x / Size);
  expect(tile.meta_group_size() == blockDim.x / Size);
  expect(tile.shfl(threadIdx.x, 0) == first && tile.shfl(threadIdx.x, Size - 1) == first + Size - 1);
  expect(tile.shfl_up(rank, 1) == (rank > 0 ? rank - 1 : 0) &&
         tile.shfl_down(rank, 1) == (rank + 1 < Size ? rank + 1 : rank));
  expect(tile.shfl_xor(rank, Size / 2) == (rank ^ Size / 2));
  expect(tile.ballot(rank % 2 == 0) == (0x55555555 & all) &&
         tile.match_any(rank % 2) == ((rank % 2 ? 0xaaaaaaaa : 0x55555555) & all));
  expect(tile.any(rank == Size - 1) && !tile.any(0) && tile.all(1) && tile.all(rank == 0) == (Size == 1));
  expect(cg::reduce(tile, static_cast<int>(rank), cg::plus<int>{}) == static_cast<int>(Size * (Size - 1) / 2));
  expect(cg::reduce(tile, rank + 5, cg::less<unsigned>{}) == 5 &&
         cg::reduce(tile, rank, cg::greater<unsigned>{}) == Size - 1);
  expect(cg::inclusive_scan(tile, rank) == rank * (rank + 1) / 2);
  expect(cg::exclusive_scan(tile, rank + 1, cg::plus<unsigned>{}) == rank * (rank + 1) / 2);
  if constexpr (Size >= 4) {
    auto const part = cg::tiled_partition<Size / 2>(tile);
    expect(part.thread_rank() == rank % (Size / 2) && part.shfl(rank, 0) == rank / (Size / 2) * (Size / 2));
  }
  tile.sync();
}

__global__ void check_coalesced(unsigned* wrong, unsigned* members) {
  checks const expect{wrong};
  if (threadIdx.x % 3 != 1) return;
  auto const group = cg::coalesced_threads();
  unsigned const rank = group.thread_rank(), size = group.size(), all = 0xffffffff >> (32 - size);
  expect(rank < size && group.shfl(rank, size - 1) == size - 1 && group.shfl(threadIdx.x, 0) <= threadIdx.x);
  expect(group.ballot(1) == all && group.match_any(7) == all && group.any(rank == 0) && group.all(rank < size));
  expect(group.shfl_up(rank, 1) == (rank > 0 ? rank - 1 : 0) &&
         group.shfl_down(rank, 2) == (rank + 2 < size ? rank + 2 : rank));
  expect(cg::reduce(group, 1, cg::plus<int>{}) == static_cast<int>(size) && cg::inclusive_scan(group, 1u) == rank + 1);
  group.sync();
  if (rank == 0) atomicAdd(members, size);
}

TEST(CooperativeGroups, OfAThreadBlockAndTheGrid) {
  test::for_each_schedule(24, [] {
    device_buffer<u32> const wrong(1);
    launch(launch_shape_of(2, {24, 3}), check_blocks, wrong.data());
    EXPECT_EQ(wrong[0], 0u);
  });
}

template <unsigned... Sizes>
void expect_tiles() {
  test::for_each_schedule(8, [] {
    device_buffer<u32> const wrong(1);
    (launch(launch_shape_of(2, 96), check_tiles<Sizes>, wrong.data()), ...);
    EXPECT_EQ(wrong[0], 0u);
  });
}
TEST(CooperativeGroups, OfTiles) { expect_tiles<1, 2, 4, 8, 16, 32>(); }

TEST(CooperativeGroups, OfLanesThatAreTogether) {
  test::for_each_schedule(48, [] {
    device_buffer<u32> const wrong(1), members(1);
    launch(launch_shape_of(3, 75), check_coalesced, wrong.data(), members.data());
    EXPECT_EQ(wrong[0], 0u);
    EXPECT_EQ(members[0], 75u);
  });
}

}  // namespace cooperative_groups_test
