// SPDX-License-Identifier: Apache-2.0
// crowd: which crowds it measures, what it says of them and of the heap that churn of large blocks
// leaves, and that it finds broken allocators.
#include "scenarios/crowd.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <chrono>
#include <thread>

#include "backend/backend.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Pair;
using testing::SizeIs;

constexpr u64 kib = 1024;

/// Of 4 MiB, 3.6 MiB are nine tenths.
bench::request crowd_request(std::vector<u64> sizes, std::vector<u64> numbers) {
  auto asked = small_request();
  asked[options::sizes] = std::move(sizes);
  asked[options::workers] = std::move(numbers);
  return asked;
}

std::vector<bench::result> measured_crowds(bench::request const& asked, char const* allocator = "slab_bitmap") {
  auto rows = run_on_host("crowd", allocator, asked);
  EXPECT_EQ(rows.back().operation, "churn");
  if (!rows.empty()) rows.pop_back();
  return rows;
}

TEST(Crowd, MeasuresWhatFitsInNineTenthsOfThePool) {
  struct expected {
    char const* operation;
    u64 bytes, threads;
  };
  // 16 of 256 KiB are the whole pool, but in a mixed crowd only four threads ask for that; of 33,
  // nine would.
  std::vector<expected> const wanted = {
      {"malloc", 64 * kib, 1},         {"free", 64 * kib, 1},          {"malloc", 64 * kib, 16},
      {"free", 64 * kib, 16},          {"mixed malloc", 64 * kib, 16}, {"mixed free", 64 * kib, 16},
      {"malloc", 64 * kib, 33},        {"free", 64 * kib, 33},         {"mixed malloc", 64 * kib, 33},
      {"mixed free", 64 * kib, 33},    {"malloc", 256 * kib, 1},       {"free", 256 * kib, 1},
      {"mixed malloc", 256 * kib, 16}, {"mixed free", 256 * kib, 16},  {"mixed malloc", 256 * kib, 33},
      {"mixed free", 256 * kib, 33}};
  auto const rows = measured_crowds(crowd_request({64 * kib, 256 * kib}, {1, 16, 33}));
  ASSERT_THAT(rows, SizeIs(wanted.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto const& [operation, bytes, threads] = wanted[i];
    EXPECT_EQ(rows[i].operation, operation) << i;
    EXPECT_THAT(rows[i].parameters,
                ElementsAre(Pair("bytes", bytes), Pair("threads", threads), Pair("pool_bytes", u64{4} << 20)));
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].failures, 0u);
    EXPECT_EQ(rows[i].operations, threads) << operation;
    EXPECT_THAT(rows[i].times_us, SizeIs(AllOf(Ge(1u), Le(2u))));
  }
}

TEST(Crowd, SaysWhyASizeIsNotMeasured) {
  auto rows = measured_crowds(crowd_request({3900 * kib, kib}, {1, 2}));
  ASSERT_THAT(rows, SizeIs(1 + 4));
  EXPECT_EQ(rows[0].skipped, "no crowd's blocks of 3993600 bytes fit in nine tenths of the pool");
  rows = measured_crowds(crowd_request({9 * kib, kib}, {1, 2}), "ring_buffer");
  ASSERT_THAT(rows, SizeIs(1 + 4));
  EXPECT_THAT(rows[0].skipped, HasSubstr("ring_buffer serves at most 8192 bytes"));
  EXPECT_THAT(rows[1].skipped, IsEmpty());
}

TEST(Crowd, CountsCallsThatFindNoMemory) {
  // A buddy system's block of 65 KiB takes 128, and the pool has 32 of them.
  auto const rows = measured_crowds(crowd_request({65 * kib}, {50}), "tbuddy");
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[0].failures, 50u - 32u);
  EXPECT_EQ(rows[0].operations, 32);
  EXPECT_EQ(rows[1].failures, 0u);
  EXPECT_EQ(rows[1].operations, 32);
  EXPECT_EQ(rows[2].failures, 0u);
  EXPECT_EQ(rows[2].operations, 50);
}

TEST(Crowd, OneThreadInFourOfAMixedOneAsksForALargeBlock) {
  bench::crowd_draw draw{.large_bytes = 1 << 20, .mixed = true};
  u64 large = 0, sum = 0, least = ~u64{0}, most = 0;
  for (u64 i = 0; i < 4000; ++i) {
    u64 const bytes = draw.of(i);
    sum += bytes;
    if (bytes == draw.large_bytes) {
      ++large;
      continue;
    }
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  EXPECT_EQ(large, 1000u);
  EXPECT_EQ(least, 16u);
  EXPECT_EQ(most, 512u);
  EXPECT_EQ(draw.of_all(4000), sum);
  draw.mixed = false;
  EXPECT_EQ(draw.of_all(4000), u64{4000} << 20);
}

TEST(Fragmentation, DrawsAsManySizesFromEachDoubling) {
  bench::doubling_draw const draw{256 * kib, 3};
  EXPECT_EQ(draw.most(), u64{16} << 20);
  constexpr u64 draws = 60'000;
  std::vector<u64> of_doubling(bench::doubling_draw::doublings);
  double sum = 0;
  for (u64 call = 0; call < draws; ++call) {
    u64 const bytes = draw.of(call);
    ASSERT_GE(bytes, draw.least);
    ASSERT_LT(bytes, draw.most());
    ++of_doubling[std::bit_width(bytes / draw.least) - 1];
    sum += static_cast<double>(bytes);
  }
  for (u64 const drawn : of_doubling) EXPECT_NEAR(static_cast<double>(drawn), 10'000, 500);
  EXPECT_NEAR(sum / draws / static_cast<double>(draw.mean()), 1, 0.02);
}

TEST(Fragmentation, SaysHowMuchOfTheFreeBytesCanBeHadAsLargeBlocks) {
  auto asked = small_request();
  asked[options::sizes] = {kib};
  asked[options::workers] = {1};
  for (char const* const allocator : {"slab_bitmap", "tbuddy", "rw_malloc", "scatter"}) {
    auto const row = run_on_host("crowd", allocator, asked).back();
    EXPECT_EQ(row.operation, "churn");
    EXPECT_EQ(row.fault, "");
    EXPECT_THAT(row.parameters,
                ElementsAre(Pair("threads", Ge(30u)), Pair("pool_bytes", u64{4} << 20), Pair("least_bytes", 4 * kib),
                            Pair("most_bytes", 256 * kib), Pair("rounds", 16u)));
    EXPECT_THAT(row.figures,
                ElementsAre(Pair("live_share", AllOf(Gt(0.2), Le(0.9))), Pair("large_share", AllOf(Ge(0.0), Le(1.0)))))
        << allocator;
    EXPECT_GT(row.operations, 33 * 16 / 4);
  }
}

TEST(Fragmentation, SharesAreOfWhatWasAskedFor) {
  auto asked = crowd_request({kib}, {1});
  asked.repeat = 1;
  // Three blocks of 256 KiB, which no thread of the churn asks for, and not the fourth.
  static u32 given = 0;
  unlimited::serves = [](size_t bytes) { return bytes != 256 * kib || ++given != 4; };
  auto const row = bench::crowd(broken<unlimited>(), asked).back();
  unlimited::serves = unlimited::everything;
  ASSERT_THAT(row.figures, SizeIs(2));
  double const pool = 4 << 20, live = row.figures[0].second * pool;
  EXPECT_NEAR(row.figures[1].second, 3 * 256 * kib / (pool - live), 1e-9);
  EXPECT_EQ(row.failures, 0u);
}

TEST(Fragmentation, SaysNothingOfWhatHasNoLimit) {
  auto asked = small_request();
  asked[options::sizes] = {kib};
  asked[options::workers] = {1};
  auto const row = bench::crowd(broken<unlimited>(), asked).back();
  EXPECT_EQ(row.fault, "");
  EXPECT_THAT(row.figures, ElementsAre(Pair("live_share", Gt(0.2))));
}

TEST(Fragmentation, IsOfWhatServesTheLargestBlocks) {
  auto const row = run_on_host("crowd", "ring_buffer", crowd_request({kib}, {1})).back();
  EXPECT_EQ(row.operation, "churn");
  EXPECT_THAT(row.skipped, HasSubstr("ring_buffer serves at most"));
}

TEST(Crowd, ARoundOfOverATenthOfASecondIsTheOnlyOne) {
  unlimited::serves = [](size_t bytes) {
    if (bytes == 8 * kib) std::this_thread::sleep_for(std::chrono::milliseconds{110});
    return true;
  };
  auto const rows = bench::crowd(broken<unlimited>(), crowd_request({8 * kib, kib}, {1}));
  unlimited::serves = unlimited::everything;
  ASSERT_THAT(rows, SizeIs(2 * 2 + 1));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].times_us, SizeIs(i < 2 ? 1u : 2u)) << i;
  }
  EXPECT_GE(rows[0].times_us.front(), 110e3);
}

TEST(Crowd, EndsWhereItIsTold) {
  auto asked = crowd_request({kib, 2 * kib}, {1, 2});
  u64 calls = 0;
  asked.proceed = [&](std::string const&, u64 done, u64 total) {
    EXPECT_EQ(done, calls);
    EXPECT_EQ(total, 5u);
    return ++calls < 4;
  };
  EXPECT_THAT(run_on_host("crowd", "slab_bitmap", asked), SizeIs(3 * 2)) << "three crowds of five";
  EXPECT_EQ(calls, 4u) << "and nothing is asked after the end";
}

TEST(LargeBlocks, OverlapIsFoundToTheByte) {
  std::vector<u8> memory(1000);
  auto const at = [&](u64 from, u64 bytes) { return bench::asked_block{memory.data() + from, bytes}; };
  EXPECT_EQ(bench::overlapping_among({at(500, 100), at(0, 500), {nullptr, 1 << 20}, at(600, 400)}), 0u);
  EXPECT_EQ(bench::overlapping_among({at(500, 101), at(0, 501), at(600, 400)}), 2u);
  EXPECT_EQ(bench::overlapping_among({at(0, 1000), at(10, 10), at(30, 10)}), 2u) << "within a block far below";
  EXPECT_EQ(bench::overlapping_among({at(0, 10), at(0, 10)}), 1u);
}

TEST(LargeBlocks, EveryPieceIsWrittenAndReadBack) {
  using sound = default_allocator;
  std::vector<u64> memory((u64{200} << 10) / sizeof(u64));
  bench::asked_block const whole{memory.data(), u64{200} << 10};
  EXPECT_EQ(bench::examine_pieces<sound>({whole, {nullptr, 5}}).damaged, 0u);
  EXPECT_EQ(bench::examine_pieces<sound>({whole, {nullptr, 5}}).failures, 1u);
  // The first mark is 0.
  for (u64 at = 2; at < memory.size(); at += 2) EXPECT_NE(memory[at], 0u) << at;
  // The second one's owner has the last words of the first one's third piece.
  bench::asked_block const within{memory.data() + (u64{190} << 7), u64{1} << 10};
  EXPECT_EQ(bench::examine_pieces<sound>({whole, within}).damaged, 1u);
}

TEST(BrokenAllocators, AreCaughtByCrowds) {
  auto asked = crowd_request({8 * kib}, {40});
  auto const fault_of_first = [](std::vector<bench::result> const& rows) { return rows.front().fault; };
  expect_fault(bench::crowd(broken<overlapping>(), asked), "39 blocks overlap another");
  expect_fault(bench::crowd(broken<misaligning>(), asked), "40 blocks are not aligned");
  expect_fault(bench::crowd(broken<leaking>(), asked), "blocks lost");
  // One thread alone has nothing to overlap with; churn finds it.
  asked[options::workers] = {1};
  auto const rows = bench::crowd(broken<overlapping>(), asked);
  EXPECT_EQ(fault_of_first(rows), "");
  EXPECT_THAT(rows.back().fault, HasSubstr("blocks overlap another"));
}

}}  // namespace warpheap::tool
