// SPDX-License-Identifier: Apache-2.0
// Pools of other processes by pointer: addresses are told from one process to another.
#include "workloads/graph/backend/pe_cluster.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace warpheap::tool::graph { namespace {

/// PE 1's view: its own pool is where it says; the others are mapped elsewhere.
constexpr pool_place places[] = {{0x7000'0000, 0x9000'0000}, {0x5000'0000, 0x5000'0000}, {0x7000'0000, 0x5000'1000}};
constexpr pool_map pools{places, 3};

// graph.R1
TEST(PoolMap, ReachesWhatAnotherPeTellsByItsOwnAddress) {
  EXPECT_EQ(pools.reach(0, 0x7000'0040), 0x9000'0040u);
  EXPECT_EQ(pools.reach(1, 0x5000'0040), 0x5000'0040u);
  EXPECT_EQ(pools.reach(2, 0x7000'0040), 0x5000'1040u);
}

TEST(PeCluster, ReachesMessagesAndBoxes) {
  std::vector<member_boxes> boxes(3);
  boxes[2].messages.capacity = 7;
  pe_cluster const among{1, pools, boxes.data()};
  EXPECT_EQ(among.rank(), 1u);
  EXPECT_EQ(among.size(), 3u);
  EXPECT_EQ(among.boxes(2).messages.capacity, 7u);
  EXPECT_EQ(among.reach(2, reinterpret_cast<message*>(u64{0x7000'0010})), reinterpret_cast<message*>(u64{0x5000'1010}));
}

}}  // namespace warpheap::tool::graph
