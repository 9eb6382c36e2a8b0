// SPDX-License-Identifier: Apache-2.0
// placement: what it says of where blocks lie, and that it finds broken allocators.
#include "scenarios/placement.hpp"

#include <gmock/gmock.h>

#include <map>

#include "backend/backend.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Ge;
using testing::Gt;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr char const* touch_names[] = {"write own", "read own", "write neighbour", "read neighbour"};

double figure_of(bench::result const& row, std::string const& name) {
  for (auto const& [known, value] : row.figures)
    if (known == name) return value;
  return 0;
}

TEST(Placement, TouchesEverySizeInFourWaysBeforeAndAfterChurn) {
  auto asked = small_request();
  asked[options::sizes] = {16, 100};
  auto const rows = run_on_host("placement", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(2 * 2 * 4));
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 const rounds = i < 8 ? 0 : 16, bytes = i / 4 % 2 ? 100 : 16;
    EXPECT_EQ(rows[i].operation, touch_names[i % 4]);
    EXPECT_THAT(rows[i].parameters, ElementsAre(Pair("bytes", bytes), Pair("threads", 500u), Pair("rounds", rounds),
                                                Pair("pool_bytes", u64{4} << 20)));
    EXPECT_THAT(rows[i].figures, ElementsAre(Pair("range_over_asked", Ge(1.0)), Pair("ratio_to_packed", Gt(0.0))));
    EXPECT_EQ(rows[i].operations, 500);
    EXPECT_EQ(rows[i].failures, 0u);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].times_us, SizeIs(2));
  }
}

TEST(Placement, HasRowsOfPackedArrays) {
  auto asked = small_request();
  asked[options::sizes] = {16, 100, 5};
  auto const rows = baseline_on_host("placement", asked);
  ASSERT_THAT(rows, SizeIs(3 * 4));
  // Every block takes whole words.
  double const ranges[] = {1, 1.04, (500 * 8 - 3) / 2500.};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].allocator, "packed");
    EXPECT_EQ(rows[i].operation, touch_names[i % 4]);
    EXPECT_NEAR(figure_of(rows[i], "range_over_asked"), ranges[i / 4], 1e-3);
    EXPECT_EQ(figure_of(rows[i], "ratio_to_packed"), 1);
    EXPECT_EQ(rows[i].operations, 500);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].times_us, SizeIs(2));
  }
}

TEST(Placement, TakesNoMoreBlocksThanHalfOfThePoolHasBytesFor) {
  auto asked = small_request();
  asked[options::sizes] = {1 << 20, 3 << 20};
  auto const rows = run_on_host("placement", "tbuddy", asked);
  ASSERT_THAT(rows, SizeIs(2 * 2 * 4));
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_THAT(rows[i].parameters, Contains(Pair("threads", i / 4 % 2 ? 1u : 2u)));
}

/// An allocator of blocks 64 bytes apart: the range of 500 of them is known.
struct spacious : mutant_of_slab_bitmap<spacious> {
  void* create(size_t) const {
    alignas(64) static u8 memory[1 << 18];
    return memory + 64 * global_thread_index();
  }
  void destroy(void*) const {}
};

TEST(Placement, TakesTheRangeFromTheLowestStartToTheHighestEnd) {
  auto asked = small_request();
  asked[options::sizes] = {16, 64};
  auto const rows = bench::placement(broken<spacious>(), asked);
  EXPECT_DOUBLE_EQ(figure_of(rows[0], "range_over_asked"), (499 * 64 + 16) / 8000.);
  EXPECT_DOUBLE_EQ(figure_of(rows[4], "range_over_asked"), 1);
  EXPECT_EQ(bench::range_over_asked({nullptr, nullptr}, 16), 0);
}

TEST(Placement, ThreadsTouchEachBlockOnceAlsoThoseOfNeighbours) {
  for (u64 const threads : {1u, 2u, 7u, 64u})
    for (u64 const flip : {0u, 1u}) {
      bench::touched_blocks const touched{nullptr, 16, threads, flip};
      std::map<u64, u32> touches;
      for (u64 i = 0; i < threads; ++i) {
        u64 const owner = touched.owner_of(i);
        ++touches[owner];
        EXPECT_EQ(owner != i, flip && (i ^ 1) < threads);
      }
      EXPECT_THAT(touches, SizeIs(threads));
    }
}

TEST(Placement, CountsCallsThatFindNoMemory) {
  auto asked = small_request();
  asked.pool_bytes = u64{1} << 20;  // 256 pages, of which a buddy system gives one to each block
  asked[options::sizes] = {16};
  asked[options::ranges] = {{16, 16}};
  auto const rows = run_on_host("placement", "tbuddy", asked);
  ASSERT_THAT(rows, SizeIs(2 * 4));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.failures, 500u - 256u);
    EXPECT_EQ(row.operations, 256);
    EXPECT_DOUBLE_EQ(figure_of(row, "range_over_asked"), (255 * 4096 + 16) / (256 * 16.));
  }
}

TEST(Placement, SaysWhatIsNotServed) {
  auto asked = small_request();
  asked[options::sizes] = {9000};
  auto rows = run_on_host("placement", "ring_buffer", asked);
  ASSERT_FALSE(rows.empty());
  for (auto const& row : rows) EXPECT_THAT(row.skipped, HasSubstr("ring_buffer serves at most 8192 bytes"));
  asked[options::sizes] = {64};
  asked[options::ranges] = {{16, 9000}};
  rows = run_on_host("placement", "ring_buffer", asked);
  ASSERT_THAT(rows, SizeIs(4 + 1)) << "its churn alone";
  EXPECT_THAT(rows.back().skipped, HasSubstr("ring_buffer serves at most 8192 bytes"));
}

TEST(Placement, EndsWhereItIsTold) {
  auto asked = small_request();
  asked[options::sizes] = {16, 64};
  u64 calls = 0;
  asked.proceed = [&](std::string const&, u64 done, u64 total) {
    EXPECT_EQ(done, calls);
    EXPECT_EQ(total, 4u);
    return ++calls < 4;
  };
  EXPECT_THAT(run_on_host("placement", "slab_bitmap", asked), SizeIs(3 * 4));
  EXPECT_EQ(calls, 4u);
}

TEST(Placement, ReadersFindBlocksThatHaveAnothersWords) {
  std::vector<u64> memory(64);
  std::vector<void*> same(2, memory.data());
  device_buffer<void*> const blocks(same);
  bench::touching touches{64, 2};
  touches.microseconds(bench::all_touches[0], blocks);
  EXPECT_EQ(touches.fault(), "");
  touches.microseconds(bench::all_touches[1], blocks);
  EXPECT_EQ(touches.fault(), "2 reads found other words than were written") << "one, in each of two passes";
}

TEST(BrokenAllocators, AreCaughtByPlacement) {
  expect_fault(bench::placement(broken<overlapping>(), small_request()), "blocks overlap another");
  expect_fault(bench::placement(broken<misaligning>(), small_request()), "500 blocks are not aligned");
  expect_fault(bench::placement(broken<leaking>(), small_request()), "blocks lost");
}

}}  // namespace warpheap::tool
