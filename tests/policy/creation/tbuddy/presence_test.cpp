// Units whose memory comes and goes, of TBuddy and of the policies that take their memory from it:
// those that are absent serve nobody, whatever else runs, and none is lost or there twice.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "policy/creation/quiet_pool_fixture.hpp"

namespace tbuddy_presence_test {

using namespace warpheap;
using tbuddy_parts::unit_bytes;

/// A pool of which the first units are present.
template <class Policy>
class partial_pool : public test::quiet_pool<Policy> {
 public:
  partial_pool(u32 units, u32 present)
      : test::quiet_pool<Policy>{units * unit_bytes, 0}, growth_{std::vector<u64>{present * unit_bytes, 0}} {
    initialize();
  }

  void initialize() const {
    this->allocator().initialize({}, growth_.data());
    synchronize();
  }
  u32 present() const { return static_cast<u32>(growth_[0] / unit_bytes); }
  void extend(u32 from, u32 to, stream_view on = {}) const {
    this->allocator().extend(from * unit_bytes, to * unit_bytes, growth_.data(), on);
  }
  u32 used_end() const {
    device_buffer<u64> const end(1);
    this->allocator().find_used_end(present() * unit_bytes, end.data());
    synchronize();
    return static_cast<u32>(end[0] / unit_bytes);
  }
  /// How many units stayed.
  u64 withdraw(u32 from, u32 to) const {
    device_buffer<u64> const stay(1);
    this->allocator().withdraw(from * unit_bytes, to * unit_bytes, stay.data());
    synchronize();
    return stay[0];
  }

  u64 begin() const {
    if constexpr (requires { this->allocator().untouched_pool(); })
      return reinterpret_cast<u64>(this->allocator().untouched_pool().begin);
    else return reinterpret_cast<u64>(this->allocator().large().table().pool());
  }
  u32 unit_of(void const* memory) const {
    return static_cast<u32>((reinterpret_cast<u64>(memory) - begin()) / unit_bytes);
  }
  u64 free_units() const { return count_slots_by_grid(this->allocator(), unit_bytes); }

  /// Every unit of the first `expected` can be had, and no other.
  void expect_present(u32 expected, u64 ignored = 0) const {
    this->expect_quiet(0, ignored);
    EXPECT_EQ(this->allocator().snapshot().statistics().pool_bytes, expected * unit_bytes);
    EXPECT_EQ(free_units(), expected);
    auto blocks = test::allocate(*this, {1, expected + 3}, unit_bytes);
    std::erase(blocks, nullptr);
    std::set<u32> units;
    for (void const* block : blocks) units.insert(unit_of(block));
    EXPECT_EQ(blocks.size(), expected);
    EXPECT_EQ(units.size(), expected);
    for (u32 const unit : units) EXPECT_LT(unit, expected);
    test::release(*this, blocks);
    this->expect_quiet(0, ignored);
    EXPECT_EQ(free_units(), expected);
  }

 private:
  device_buffer<u64> growth_;
};

template <class Policy>
class UnitPresence : public testing::Test {};
using policies = testing::Types<creation::tbuddy<creation::tbuddy_config{.page_bytes = 262144}>, creation::tbuddy<>,
                                creation::halloc<>, creation::throughput<>>;

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
    for (u32 const present : {0u, 1u, units / 2, units - 1, units}) {
      SCOPED_TRACE(std::to_string(present) + " of " + std::to_string(units));
      partial_pool<TypeParam> const pool{units, present};
      pool.expect_present(present);
    }
}

TYPED_TEST(UnitPresence, NothingAtAnAbsentUnitIsABlock) {
  partial_pool<TypeParam> const pool{6, 2};
  std::vector<u64> strange;
  for (u32 unit = 2; unit < 6; ++unit)
    for (u64 const inside : {u64{0}, u64{4096}, unit_bytes / 2})
      strange.push_back(pool.begin() + unit * unit_bytes + inside);
  test::free_addresses(pool, strange);
  EXPECT_EQ(pool.allocator().snapshot().statistics().foreign_frees, strange.size());
  pool.expect_present(2, strange.size());
}

TYPED_TEST(UnitPresence, GrowthMakesExactlyTheNewUnitsFree) {
  partial_pool<TypeParam> const pool{70, 2};
  auto const held = test::allocate(pool, {1, 2}, unit_bytes);
  for (u32 const to : {3u, 64u, 70u}) {
    pool.extend(pool.present(), to);
    synchronize();
    EXPECT_EQ(pool.present(), to);
    pool.expect_quiet(2);
    EXPECT_EQ(pool.free_units(), to - 2);
  }
  test::release(pool, held);
  pool.expect_present(70);
}

TYPED_TEST(UnitPresence, GrowthAgainChangesNothing) {
  partial_pool<TypeParam> const pool{6, 2};
  pool.extend(2, 6);
  synchronize();
  auto const held = test::allocate(pool, {1, 6}, unit_bytes);
  EXPECT_EQ(std::count(held.begin(), held.end(), nullptr), 0);
  pool.extend(2, 6);
  pool.extend(0, 3);
  synchronize();
  EXPECT_EQ(pool.present(), 6u);
  pool.expect_quiet(6);
  EXPECT_EQ(test::allocate(pool, {1, 1}, 16)[0], nullptr);
  test::release(pool, held);
  pool.expect_present(6);
}

TYPED_TEST(UnitPresence, AResetKeepsWhatIsPresent) {
  partial_pool<TypeParam> const pool{6, 2};
  test::allocate(pool, {1, 2}, unit_bytes);
  pool.extend(2, 4);
  pool.initialize();
  pool.expect_present(4);
}

/// Each lane asks again and again, for large blocks and small ones, keeps every second block that
/// it gets, and frees the others.
struct ask_often {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 rounds, void** kept) const {
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

/// One lane brings units, some of which are there, as a call does that has asked the host for them.
struct bring_unit {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 first, u32 end) const {
    heap.bring(first * unit_bytes, end * unit_bytes);
  }
};

constexpr launch_shape asking{2, 7};
constexpr u32 rounds = 6;

TYPED_TEST(UnitPresence, WhoWasRefusedIsServedOnceAUnitHasCome) {
  for (bool const by_a_call : {false, true})
    for (u64 const bytes : {u64{300}, unit_bytes / 2, unit_bytes}) {
      SCOPED_TRACE(std::to_string(bytes) + (by_a_call ? " bytes, brought by a call" : " bytes"));
      partial_pool<TypeParam> const pool{2, 0};
      for (u32 again = 0; again < 3; ++again) EXPECT_EQ(test::allocate(pool, {1, 1}, bytes)[0], nullptr);
      if (by_a_call) launch({1, 1}, bring_unit{}, pool.allocator(), 0u, 1u);
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
    launch(ours, asking, ask_often{}, pool.allocator(), rounds, kept.data());
    pool.extend(1, 5, theirs);
    launch(others, {1, 1}, bring_unit{}, pool.allocator(), 0u, 4u);
    synchronize();
    auto held = kept.to_host();
    std::erase(held, nullptr);
    EXPECT_EQ(std::set<void*>(held.begin(), held.end()).size(), held.size());
    for (void const* block : held) beyond += pool.unit_of(block) >= 1;
    pool.expect_quiet(held.size());
    test::release(pool, held);
    pool.expect_present(5);
  });
  // On a GPU nobody says that the kernels overlap.
  EXPECT_TRUE(test::on_gpu || beyond > 0) << "no lane ever got a block in a unit that came";
}

TYPED_TEST(UnitPresence, TakesAwayWhatNobodyUses) {
  partial_pool<TypeParam> const pool{8, 8};
  auto blocks = test::allocate(pool, {1, 8}, unit_bytes);
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(pool.used_end(), 8u);
  void* const third = blocks[2];
  blocks.erase(blocks.begin() + 2);
  test::release(pool, blocks);
  EXPECT_EQ(pool.used_end(), 3u);
  EXPECT_EQ(pool.withdraw(3, 8), 0u);
  pool.expect_quiet(1);
  EXPECT_EQ(pool.free_units(), 2u);
  // Where a block was, none is, and its unit comes again.
  test::free_addresses(pool, {reinterpret_cast<u64>(blocks[6])});
  pool.expect_quiet(1, 1);
  pool.extend(3, 6);
  synchronize();
  EXPECT_EQ(pool.free_units(), 5u);
  test::release(pool, std::vector<void*>{third});
  pool.expect_present(6, 1);
}

TYPED_TEST(UnitPresence, WhatSmallBlocksLeftBehindIsNobodys) {
  partial_pool<TypeParam> const pool{4, 4};
  auto const blocks = test::allocate(pool, {16, 64}, 700);
  EXPECT_GT(pool.used_end(), 0u);
  test::release(pool, blocks, {16, 64});
  EXPECT_EQ(pool.used_end(), 0u);
  EXPECT_EQ(pool.withdraw(1, 4), 0u);
  pool.extend(1, 2);
  pool.expect_present(2);
}

TYPED_TEST(UnitPresence, WhatIsUsedStaysAndIsCounted) {
  partial_pool<TypeParam> const pool{6, 6};
  auto blocks = test::allocate(pool, {1, 6}, unit_bytes);
  std::sort(blocks.begin(), blocks.end());
  std::vector<void*> const used{blocks[1], blocks[4]};
  test::release(pool, {blocks[0], blocks[2], blocks[3], blocks[5]});
  EXPECT_EQ(pool.withdraw(0, 6), 2u);
  pool.expect_quiet(2);
  EXPECT_EQ(pool.free_units(), 0u);
  pool.extend(0, 6);
  synchronize();
  EXPECT_EQ(pool.free_units(), 4u);
  test::release(pool, used);
  pool.expect_present(6);
}

}  // namespace tbuddy_presence_test
