// Pools of other processes by pointer: addresses are told from one process to another, and a block
// is freed by its name where it is another PE's.
#include "workloads/graph/backend/pe_cluster.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace warpheap::tool::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr u64 pool_bytes = 0x1000;
/// PE 1's view: its own pool is where it says; the others are mapped elsewhere.
constexpr pool_place places[] = {{0x7000'0000, 0x9000'0000}, {0x5000'0000, 0x5000'0000}, {0x7000'0000, 0x5000'1000}};
constexpr pool_map pools{places, 3, pool_bytes};

TEST(PoolMap, ReachesWhatAnotherPeTellsByItsOwnAddress) {
  EXPECT_EQ(pools.reach(0, 0x7000'0040), 0x9000'0040u);
  EXPECT_EQ(pools.reach(1, 0x5000'0040), 0x5000'0040u);
  EXPECT_EQ(pools.reach(2, 0x7000'0040), 0x5000'1040u);
}

TEST(PoolMap, NamesABlockByWhereItIsMapped) {
  for (u32 pe = 0; pe < 3; ++pe)
    for (u64 const offset : {u64{0}, u64{0x40}, pool_bytes - 1})
      EXPECT_EQ(pools.name_of(pools.reach(pe, places[pe].there + offset)), (remote_ptr{pe, offset})) << pe << offset;
}

TEST(PoolMap, NamesNothingOutsideOfThePools) {
  for (u64 const address : {u64{0}, u64{0x7000'0040}, places[0].here - 1, places[0].here + pool_bytes,
                            places[1].here - 1, places[2].here + pool_bytes, ~u64{0}})
    EXPECT_FALSE(pools.name_of(address)) << address;
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

/// PE 1's heap: notes what is freed, and how.
struct noting_heap {
  std::vector<void*>* by_address;
  std::vector<remote_ptr>* by_name;

  static bool contains(void const* memory) { return reinterpret_cast<u64>(memory) - places[1].here < pool_bytes; }
  noting_heap const& local() const { return *this; }
  void free(void* memory) const { by_address->push_back(memory); }
  void free(remote_ptr block) const { by_name->push_back(block); }
};

TEST(PeHeap, FreesItsOwnBlocksByAddressAndThoseOfOtherPesByName) {
  std::vector<void*> by_address;
  std::vector<remote_ptr> by_name;
  pe_heap const heap{noting_heap{&by_address, &by_name}, pools};
  auto* const own = reinterpret_cast<void*>(places[1].here + 0x80);
  heap.free(own);
  EXPECT_THAT(by_address, ElementsAre(own));
  EXPECT_THAT(by_name, IsEmpty());
  heap.free(reinterpret_cast<void*>(places[2].here));
  heap.free(reinterpret_cast<void*>(places[0].here + 0xff0));
  EXPECT_THAT(by_address, ElementsAre(own));
  EXPECT_THAT(by_name, ElementsAre(remote_ptr{2, 0}, remote_ptr{0, 0xff0}));
}

}  // namespace
}  // namespace warpheap::tool::graph
