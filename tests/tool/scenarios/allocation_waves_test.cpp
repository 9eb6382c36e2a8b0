// SPDX-License-Identifier: Apache-2.0
// two_phase, scaling and prefix_sum on the host backend: their counts are right, and none calls a
// broken allocator sound.
#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "scenarios/prefix_sum.hpp"
#include "scenarios/scaling.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/two_phase.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using bench::divergence;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

bench::request wave_request() {
  bench::request asked;
  asked.pool_bytes = u64{4} << 20;
  asked.repeat = 2;
  asked[options::rounds] = 8;
  asked[options::sizes] = {64};
  asked[options::ranges] = {{16, 128}};
  asked[options::workers] = {1, 33, 700};  // 700: two thread blocks and a part of one
  return asked;
}

/// By one number of threads, with a size, and without a range.
bench::request request_of_two_phase() {
  auto asked = wave_request();
  asked[options::workers] = {700};
  asked[options::ranges].clear();
  return asked;
}

std::vector<bench::result> run(char const* scenario, bench::request const& asked,
                               char const* allocator = "slab_bitmap") {
  return run_on_host(scenario, allocator, asked);
}

/// The expected mallocs of two_phase, if no call fails: every step of every thread in turn.
u64 mallocs_of(bench::request const& asked, divergence kind) {
  u64 mallocs = 0;
  auto const share = [](double part) { return static_cast<u64>(part * 4294967296.0); };
  bench::two_phase_plan const plan{asked.seed,
                                   bench::unit_of(kind),
                                   share(asked[options::allocate_shares][0]),
                                   share(asked[options::allocate_shares][1]),
                                   share(asked[options::free_shares][0]),
                                   share(asked[options::free_shares][1])};
  for (u64 thread = 0; thread < 700; ++thread) {
    bool holds = false;
    for (u32 step = 0; step < 2 * asked[options::rounds]; ++step) {
      if (!plan.changes(holds, thread, step)) continue;
      holds = !holds;
      mallocs += holds;
    }
  }
  return mallocs;
}

TEST(TwoPhase, MakesTheSameCallsInOneKernelAndInAKernelAStep) {
  auto asked = request_of_two_phase();
  asked[options::divergences] = {divergence::per_thread, divergence::per_warp, divergence::per_thread_block};
  constexpr u32 drawn_by[] = {1, 32, 256};
  for (u64 const seed : {1u, 2u, 3u}) {
    asked.seed = seed;
    auto const rows = run("two_phase", asked);
    ASSERT_THAT(rows, SizeIs(6));
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(rows[i].fault, "");
      EXPECT_EQ(rows[i].operation, i % 2 ? "private" : "spree");
      EXPECT_THAT(rows[i].parameters, Contains(Pair("drawn_by", drawn_by[i / 2])));
      EXPECT_EQ(rows[i].operations, static_cast<double>(mallocs_of(asked, asked[options::divergences][i / 2]))) << seed;
      EXPECT_EQ(rows[i].failures, 0u);
      EXPECT_THAT(rows[i].times_us, SizeIs(2));
    }
  }
}

// With the paper's shares p = 0.95 and q = 0.55, and h the share of threads that hold a block: h' =
// h (1 - q) + (1 - h) p in even steps, and p and q exchanged in odd ones. That tends to 0.9 after
// an even step, and 0.1 after an odd one.
TEST(TwoPhase, AllocatesInWaves) {
  auto asked = request_of_two_phase();
  asked[options::workers] = {1 << 14};
  asked[options::divergences] = {divergence::per_thread};
  double holds = 0, mallocs = 0;
  for (u32 step = 0; step < 2 * asked[options::rounds]; ++step) {
    double const allocates = step % 2 ? 0.55 : 0.95, frees = step % 2 ? 0.95 : 0.55;
    mallocs += (1 - holds) * allocates;
    holds = holds * (1 - frees) + (1 - holds) * allocates;
  }
  auto const rows = run("two_phase", asked);
  for (auto const& row : rows) {
    EXPECT_NEAR(row.operations / 16384, mallocs, 0.03);
    EXPECT_THAT(row.figures, Contains(Pair("live_share", testing::DoubleNear(holds, 0.02))));
    EXPECT_THAT(row.parameters, SizeIs(5));
  }
}

TEST(TwoPhase, DrawsAlikeWithinAUnitAndApartBetweenUnits) {
  bench::two_phase_plan const plan{5, 32, u64{1} << 31, u64{1} << 31, u64{1} << 31, u64{1} << 31};
  u32 alike = 0, units = 0;
  for (u32 step = 0; step < 64; ++step)
    for (u64 unit = 0; unit < 64; ++unit, ++units) {
      for (u64 lane = 1; lane < 32; ++lane)
        EXPECT_EQ(plan.changes(false, 32 * unit, step), plan.changes(false, 32 * unit + lane, step));
      alike += plan.changes(false, 32 * unit, step) == plan.changes(false, 32 * unit + 32, step);
    }
  EXPECT_NEAR(alike, 0.5 * units, 0.06 * units);
}

TEST(TwoPhase, TakesSharesOfItsOwn) {
  auto asked = request_of_two_phase();
  asked[options::allocate_shares] = {1, 0};
  asked[options::free_shares] = {0, 1};  // all in step: a malloc in even steps, a free in odd ones
  auto const rows = run("two_phase", asked);
  for (auto const& row : rows) {
    EXPECT_EQ(row.operations, 700 * 8);
    EXPECT_THAT(row.figures, Contains(Pair("live_share", 0.0)));
    EXPECT_THAT(row.parameters, testing::IsSupersetOf({std::pair{std::string{"allocate_even_permille"}, u64{1000}},
                                                       std::pair{std::string{"free_even_permille"}, u64{0}}}));
  }
}

TEST(TwoPhase, CountsWhatFailed) {
  auto asked = request_of_two_phase();
  asked[options::sizes] = {16384};  // 256 fit
  asked[options::allocate_shares] = {1, 1};
  asked[options::free_shares] = {0, 0};
  for (auto const& row : run("two_phase", asked)) {
    EXPECT_EQ(row.fault, "");
    EXPECT_LE(row.operations, 256);
    EXPECT_GT(row.operations, 200);
    EXPECT_EQ(row.failures, (700 - row.operations) * 16);
  }
}

// Each malloc draws its size from the range, independently and evenly: the bytes that threads get
// are the sum of their draws.
TEST(TwoPhase, DrawsASizeForEachMallocOfARange) {
  auto asked = wave_request();
  asked[options::workers] = {700};
  asked[options::sizes] = {};
  asked[options::ranges] = {{100, 400}};
  asked[options::allocate_shares] = {1, 0};
  asked[options::free_shares] = {0, 1};  // all in step: thread i's call c in step 2 c
  bench::size_draw const draw{100, 301, asked.seed};
  double bytes = 0;
  u32 least = 400, most = 100;
  for (u64 thread = 0; thread < 700; ++thread)
    for (u32 call = 0; call < asked[options::rounds]; ++call) {
      auto const drawn = bench::two_phase_bytes(draw, thread, call);
      bytes += static_cast<double>(drawn);
      least = std::min(least, static_cast<u32>(drawn));
      most = std::max(most, static_cast<u32>(drawn));
    }
  EXPECT_EQ(least, 100u);
  EXPECT_EQ(most, 400u);
  EXPECT_NEAR(bytes / (700 * 8), 250, 5);
  auto const rows = run("two_phase", asked);
  ASSERT_THAT(rows, SizeIs(2));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.operations, 700 * 8);
    EXPECT_DOUBLE_EQ(row.bytes, bytes);
    EXPECT_THAT(row.parameters, testing::IsSupersetOf({std::pair{std::string{"least_bytes"}, u64{100}},
                                                       std::pair{std::string{"most_bytes"}, u64{400}}}));
  }
}

TEST(TwoPhase, MeasuresSizesAndThenRangesByEveryNumberOfThreads) {
  auto const asked = wave_request();
  auto const rows = run("two_phase", asked);
  ASSERT_THAT(rows, SizeIs(12));
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].parameters, Contains(Pair("least_bytes", i < 6 ? 64u : 16u)));
    EXPECT_THAT(rows[i].parameters, Contains(Pair("most_bytes", i < 6 ? 64u : 128u)));
    EXPECT_THAT(rows[i].parameters, Contains(Pair("threads", asked[options::workers][i % 6 / 2])));
  }
}

TEST(Scaling, TellsBytesOfMallocs) {
  auto asked = wave_request();
  auto const rows = run("scaling", asked);
  for (auto const& row : rows) EXPECT_EQ(row.bytes, row.operation == "malloc" ? 64 * row.operations : 0);
}

TEST(Scaling, MeasuresEverySizeWithEveryNumberOfThreads) {
  auto asked = wave_request();
  asked[options::sizes] = {16, 256};
  auto const rows = run("scaling", asked);
  ASSERT_THAT(rows, SizeIs(2 * 3 * 2));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].operation, i % 2 ? "free" : "malloc");
    EXPECT_EQ(rows[i].operations, static_cast<double>(asked[options::workers][i / 2 % 3]));
    EXPECT_THAT(rows[i].parameters, Contains(Pair("bytes", i < 6 ? 16u : 256u)));
    EXPECT_THAT(rows[i].times_us, SizeIs(2));
  }
}

TEST(Scaling, CountsWhatFailedOfSoManyThreads) {
  auto asked = wave_request();
  asked[options::sizes] = {16384};  // 256 fit
  asked[options::workers] = {200, 700};
  auto const rows = run("scaling", asked);
  EXPECT_EQ(rows[0].failures, 0u);
  EXPECT_GE(rows[2].failures, 700u - 256u);
  EXPECT_LT(rows[2].failures, 700u - 200u);
}

TEST(PrefixSum, ComparesACallAThreadWithOneAllocation) {
  auto const asked = wave_request();
  auto const on = make_host_backend();
  auto const baseline = bench::scenario_called("prefix_sum", *on).baseline(asked),
             rows = bench::scenario_called("prefix_sum", *on).run("slab_bitmap", asked);
  ASSERT_THAT(baseline, SizeIs(6));
  ASSERT_THAT(rows, SizeIs(6));
  for (size_t i = 0; i < 6; ++i)
    for (auto const* const row : {&baseline[i], &rows[i]}) {
      EXPECT_EQ(row->fault, "");
      EXPECT_EQ(row->operation, i % 2 ? "free" : "malloc");
      EXPECT_EQ(row->operations, static_cast<double>(asked[options::workers][i / 2]));
      EXPECT_EQ(row->failures, 0u);
      EXPECT_THAT(row->times_us, SizeIs(2));
    }
  EXPECT_EQ(baseline[0].primitive, "one_piece");
  EXPECT_EQ(rows[0].allocator, "slab_bitmap");
}

TEST(PrefixSum, CountsWhatFailed) {
  auto asked = wave_request();
  asked[options::ranges] = {{16384, 16384}};
  auto const rows = run("prefix_sum", asked);
  EXPECT_EQ(rows[0].failures + rows[2].failures, 0u);
  EXPECT_GE(rows[4].failures, 700u - 256u);
  EXPECT_EQ(rows[5].failures, 0u);
}

TEST(PrefixSum, ScansWhatOneThreadAddsUp) {
  for (u64 const size : {u64{1}, u64{2}, u64{1000}}) {
    std::vector<u64> values(size), wanted(size);
    random_sequence random{size};
    for (auto& value : values) value = random.next();
    for (u64 i = 1; i < size; ++i) wanted[i] = wanted[i - 1] + values[i - 1];
    device_buffer<u64> const from{values}, to(size);
    bench::exclusive_scan{size}.run(from.data(), to.data());
    EXPECT_EQ(to.to_host(), wanted);
  }
}

TEST(AllocationWaves, ThatAreTooLargeForAnAllocatorAreSkipped) {
  auto asked = wave_request();
  asked[options::sizes] = {9000};
  asked[options::ranges] = {{16, 9000}};
  for (auto const* const scenario : {"two_phase", "scaling", "prefix_sum"})
    for (auto const& row : run(scenario, asked, "ring_buffer"))
      EXPECT_THAT(row.skipped, HasSubstr("ring_buffer serves at most 8192 bytes")) << scenario;
}

TEST(AllocationWaves, CatchABrokenAllocator) {
  auto asked = wave_request();
  asked[options::workers] = {200};
  asked[options::ranges] = {{64, 64}};
  auto const expect = [&](auto who, char const* fault) {
    expect_fault(bench::two_phase(who, asked), fault);
    expect_fault(bench::scaling(who, asked), fault);
    auto const rows = bench::prefix_sum(who, asked);
    EXPECT_THAT(rows.back().fault, HasSubstr(fault));
  };
  expect(broken<overlapping>(), "blocks overlap another");
  expect(broken<misaligning>(), "blocks are not aligned");
  expect(broken<leaking>(), "blocks lost");
}

}}  // namespace warpheap::tool
