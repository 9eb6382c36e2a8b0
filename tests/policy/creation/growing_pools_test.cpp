// SPDX-License-Identifier: Apache-2.0
// Units whose memory comes and goes, of every policy whose pool may grow: uncommitted ones serve no
// call, whatever else runs, and none is lost or there twice.
#include <gmock/gmock.h>

#include "partial_pool_fixture.hpp"

namespace growing_pools_test {

using namespace warpheap;
using test::partial_pool;

template <class Policy>
class UnitPresence : public testing::Test {};
using policies = testing::Types<creation::tbuddy<creation::tbuddy_config{.page_bytes = 262144}>, creation::tbuddy<>,
                                creation::halloc<>, creation::throughput<>, creation::slab_bitmap<>>;

class policy_names {
 public:
  template <class Policy>
  static std::string GetName(int which) {  // NOLINT(readability-identifier-naming): GoogleTest calls it
    return Policy::name + std::string{which == 0 ? "_large_pages" : ""};
  }
};
TYPED_TEST_SUITE(UnitPresence, policies, policy_names);

TYPED_TEST(UnitPresence, AbsentUnitsServeNobody) {
  for (u32 const units : {1u, 3u, 8u})
    for (u32 const committed : {0u, 1u, units / 2, units - 1, units}) {
      SCOPED_TRACE(std::to_string(committed) + " of " + std::to_string(units));
      partial_pool<TypeParam> const pool{units, committed};
      pool.expect_committed(committed);
    }
}

TYPED_TEST(UnitPresence, NothingAtAnAbsentUnitIsABlock) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{6, 2};
  std::vector<u64> strange;
  for (u32 unit = 2; unit < 6; ++unit)
    for (u64 const inside : {u64{0}, u64{4096}, unit_bytes / 2})
      strange.push_back(pool.begin() + unit * unit_bytes + inside);
  test::free_addresses(pool, strange);
  EXPECT_EQ(pool.allocator().snapshot().statistics().foreign_frees, strange.size());
  pool.expect_committed(2, strange.size());
}

TYPED_TEST(UnitPresence, GrowthMakesExactlyTheNewUnitsFree) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{70, 2};
  auto const held = test::allocate(pool, {1, 2}, unit_bytes);
  for (u32 const to : {3u, 64u, 70u}) {
    pool.extend(pool.committed(), to);
    synchronize();
    EXPECT_EQ(pool.committed(), to);
    pool.expect_quiet(2);
    EXPECT_EQ(pool.free_units(), to - 2);
  }
  test::release(pool, held);
  pool.expect_committed(70);
}

// tbuddy.P3
TYPED_TEST(UnitPresence, GrowthAgainChangesNothing) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{6, 2};
  pool.extend(2, 6);
  synchronize();
  auto const held = test::allocate(pool, {1, 6}, unit_bytes);
  EXPECT_EQ(std::count(held.begin(), held.end(), nullptr), 0);
  pool.extend(2, 6);
  pool.extend(0, 3);
  synchronize();
  EXPECT_EQ(pool.committed(), 6u);
  pool.expect_quiet(6);
  EXPECT_EQ(test::allocate(pool, {1, 1}, 16)[0], nullptr);
  test::release(pool, held);
  pool.expect_committed(6);
}

// slab.R4
TYPED_TEST(UnitPresence, AResetKeepsWhatIsPresent) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{6, 2};
  test::allocate(pool, {1, 2}, unit_bytes);
  pool.extend(2, 4);
  pool.initialize();
  pool.expect_committed(4);
}

/// Each lane asks again and again, for blocks of a unit and less, keeps every second block that
/// it gets, and frees the others.
struct ask_often {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 unit_bytes, u32 rounds, void** kept) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = round % 3 == 2 ? 500 : unit_bytes >> ((me + round) % 4);
      void* const block = heap.create(bytes);
      if (round % 2 == 0) heap.destroy(block);
      else kept[me * rounds + round] = block;
      simt::pause(1);
    }
  }
};

/// One lane adds bytes, some of which are there, as a call does that has asked the host for them.
struct add_bytes {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 first, u64 end) const {
    heap.add_committed(first, end);
  }
};

constexpr launch_shape asking{2, 7};
constexpr u32 rounds = 6;

TYPED_TEST(UnitPresence, WhoWasRefusedIsServedOnceAUnitHasCome) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  for (bool const by_a_call : {false, true})
    for (u64 const bytes : {u64{300}, unit_bytes / 2, unit_bytes}) {
      SCOPED_TRACE(std::to_string(bytes) + (by_a_call ? " bytes, added by a call" : " bytes"));
      partial_pool<TypeParam> const pool{2, 0};
      for (u32 again = 0; again < 3; ++again) EXPECT_EQ(test::allocate(pool, {1, 1}, bytes)[0], nullptr);
      if (by_a_call) launch({1, 1}, add_bytes{}, pool.allocator(), u64{0}, unit_bytes);
      else pool.extend(0, 1);
      EXPECT_NE(test::allocate(pool, {1, 1}, bytes)[0], nullptr);
    }
}

TYPED_TEST(UnitPresence, UnitsComeWhileLanesAsk) {
  u64 beyond = 0;
  test::for_each_schedule(300, [&] {
    partial_pool<TypeParam> const pool{5, 1};
    device_buffer<void*> const kept(asking.blocks * asking.threads * rounds);
    stream const ours, theirs, others;
    launch(ours, asking, ask_often{}, pool.allocator(), pool.unit_bytes, rounds, kept.data());
    pool.extend(1, 5, theirs);
    launch(others, {1, 1}, add_bytes{}, pool.allocator(), u64{0}, 4 * pool.unit_bytes);
    synchronize();
    auto held = kept.to_host();
    std::erase(held, nullptr);
    EXPECT_EQ(std::set<void*>(held.begin(), held.end()).size(), held.size());
    for (void const* block : held) beyond += pool.unit_of(block) >= 1;
    pool.expect_quiet(held.size());
    test::release(pool, held);
    pool.expect_committed(5);
  });
  // On a GPU the kernels need not overlap.
  EXPECT_TRUE(test::on_gpu || beyond > 0) << "no lane ever got a block in a unit that came";
}

TYPED_TEST(UnitPresence, TakesAwayWhatNobodyUses) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{8, 8};
  auto blocks = test::allocate(pool, {1, 8}, unit_bytes);
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(pool.used_end(), 8u);
  void* const third = blocks[2];
  blocks.erase(blocks.begin() + 2);
  test::release(pool, blocks);
  EXPECT_EQ(pool.used_end(), 3u);
  EXPECT_EQ(pool.decommit(3, 8), 0u);
  pool.expect_quiet(1);
  EXPECT_EQ(pool.free_units(), 2u);
  // Where a block was, none is, and its unit comes again.
  test::free_addresses(pool, {reinterpret_cast<u64>(blocks[6])});
  pool.expect_quiet(1, 1);
  pool.extend(3, 6);
  synchronize();
  EXPECT_EQ(pool.free_units(), 5u);
  test::release(pool, std::vector<void*>{third});
  pool.expect_committed(6, 1);
}

TYPED_TEST(UnitPresence, WhatSmallBlocksLeftBehindIsNobodys) {
  partial_pool<TypeParam> const pool{4, 4};
  auto const blocks = test::allocate(pool, {16, 64}, 700);
  EXPECT_GT(pool.used_end(), 0u);
  test::release(pool, blocks, {16, 64});
  EXPECT_EQ(pool.used_end(), 0u);
  EXPECT_EQ(pool.decommit(1, 4), 0u);
  pool.extend(1, 2);
  pool.expect_committed(2);
}

TYPED_TEST(UnitPresence, WhatIsUsedStaysAndIsCounted) {
  constexpr u64 unit_bytes = partial_pool<TypeParam>::unit_bytes;
  partial_pool<TypeParam> const pool{6, 6};
  auto blocks = test::allocate(pool, {1, 6}, unit_bytes);
  std::sort(blocks.begin(), blocks.end());
  std::vector<void*> const used{blocks[1], blocks[4]};
  test::release(pool, {blocks[0], blocks[2], blocks[3], blocks[5]});
  EXPECT_EQ(pool.decommit(0, 6), 2u);
  pool.expect_quiet(2);
  EXPECT_EQ(pool.free_units(), 0u);
  pool.extend(0, 6);
  synchronize();
  EXPECT_EQ(pool.free_units(), 4u);
  test::release(pool, used);
  pool.expect_committed(6);
}

}  // namespace growing_pools_test
