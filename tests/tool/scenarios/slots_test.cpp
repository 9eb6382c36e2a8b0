// SPDX-License-Identifier: Apache-2.0
// fill_level and long_churn, and the load that both run: sizes and levels are as stated, counts are
// right, and no broken allocator is called sound.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "backend/backend.hpp"
#include "scenarios/fill_level.hpp"
#include "scenarios/long_churn.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using bench::load_kind;
using bench::log_uniform_draw;
using bench::slot_load;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr u64 one_mib = u64{1} << 20;

TEST(LogUniformDraw, TakesEveryOctaveAsOftenAndHasItsMean) {
  auto const draw = log_uniform_draw::from({16, 4096});
  constexpr u32 draws = 1 << 18;
  std::map<u32, u32> by_octave;
  double sum = 0;
  for (u32 i = 0; i < draws; ++i) {
    u64 const bytes = draw.of(static_cast<u32>(mix(i) >> 32));
    ASSERT_GE(bytes, 16u);
    ASSERT_LE(bytes, 4096u);
    ++by_octave[static_cast<u32>(std::log2(static_cast<double>(bytes)))];
    sum += static_cast<double>(bytes);
  }
  for (u32 octave = 4; octave < 12; ++octave) EXPECT_NEAR(by_octave[octave], draws / 8.0, draws / 400.0) << octave;
  EXPECT_NEAR(sum / draws / draw.mean(), 1, 0.01);
  EXPECT_NEAR(draw.mean(), 4080 / std::log(256.0), 1);
}

TEST(LogUniformDraw, ReachesBothEndsOfAnyRange) {
  for (bench::size_range const range : {bench::size_range{16, 16},
                                        {1, 2},
                                        {100, 777},
                                        {16, 4096},
                                        {1, u64{1} << 30},
                                        {(u64{1} << 30) - 1, u64{1} << 30}}) {
    auto const draw = log_uniform_draw::from(range);
    EXPECT_EQ(draw.of(0), range.least);
    EXPECT_NEAR(static_cast<double>(draw.of(~u32{0})), static_cast<double>(range.most), 1 + 0.004 * range.most);
    EXPECT_LE(draw.of(~u32{0}), range.most);
    for (u32 i = 0, last = 0; i < 1000; ++i, last = draw.of((i - 1) * 4'000'000))
      EXPECT_GE(draw.of(i * 4'000'000), last) << range.least << "-" << range.most;
  }
}

/// What the slots are asked to hold, on the host and without an allocator.
struct simulated_slots {
  std::vector<u64> bytes;

  void play(bench::slot_step const& step) {
    for (u64 call = 0; call < step.calls(bytes.size()); ++call)
      bytes[step.slot_of(call)] = step.bytes(step.slot_of(call));
  }
  double sum() const { return static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), u64{0})); }
};

// slot_load.L3
TEST(SlotLoad, ChoosesOneOfFourSlotsInAnOrderThatDependsOnTheSeed) {
  slot_load const load{load_kind::constant, {16, 4096}, one_mib, 0.7, 10, 1};
  slot_load const other{load_kind::constant, {16, 4096}, one_mib, 0.7, 10, 2};
  u64 alike = 0, repeated = 0;
  for (u64 number = 1; number < 20; ++number) {
    auto const step = load.step(number);
    EXPECT_EQ(step.calls(load.slots()), load.slots() / 4);
    EXPECT_EQ(step.mallocs(), load.slots() / 4);
    for (u64 call = 0; call < load.slots() / 4; ++call) {
      EXPECT_EQ(step.slot_of(call) / 4, call);
      alike += step.slot_of(call) == other.step(number).slot_of(call);
      repeated += step.slot_of(call) == load.step(number + 1).slot_of(call);
    }
    EXPECT_EQ(step.key, load.step(number).key);
  }
  double const by_chance = 19.0 * static_cast<double>(load.slots()) / 16;
  EXPECT_NEAR(static_cast<double>(alike), by_chance, 0.15 * by_chance);
  EXPECT_NEAR(static_cast<double>(repeated), by_chance, 0.15 * by_chance);
}

// slot_load.L1
TEST(SlotLoad, OfConstantSizesStaysAtItsLevel) {
  for (double const level : {0.3, 0.99}) {
    slot_load const load{load_kind::constant, {16, 4096}, 64 * one_mib, level, 10, 3};
    simulated_slots slots{std::vector<u64>(load.slots())};
    slots.play(load.filling());
    EXPECT_THAT(slots.bytes, Not(Contains(0u)));
    for (u64 number = 1; number < 12; ++number) {
      EXPECT_NEAR(slots.sum() / (64 * one_mib), level, 0.03 * level) << number;
      slots.play(load.step(number));
    }
  }
}

// slot_load.L2
TEST(SlotLoad, ThatDriftsStaysBelowItsLevelAndComesBack) {
  constexpr u64 kernels = 60;
  slot_load const load{load_kind::drifting, {16, 4096}, 64 * one_mib, 0.9, kernels, 4};
  simulated_slots slots{std::vector<u64>(load.slots())};
  slots.play(load.filling());
  double most = 0;
  for (u64 number = 1; number <= 2 * kernels; ++number) {
    auto const step = load.step(number);
    slots.play(step);
    double const share = slots.sum() / (64 * one_mib);
    EXPECT_LE(share, 0.9 * 1.03) << number;
    most = std::max(most, share);
    u64 const turned = number % kernels;
    if (turned == 0) EXPECT_EQ(std::pair(step.sizes.least, step.sizes.most), std::pair(u64{16}, u64{64}));
    if (turned == kernels / 2) EXPECT_EQ(std::pair(step.sizes.least, step.sizes.most), std::pair(u64{1024}, u64{4096}));
    if (turned == 0) EXPECT_EQ(step.used, load.slots());
    EXPECT_EQ(step.used % 4, 0u);
  }
  EXPECT_GT(most, 0.85) << "it comes to the level";
  slot_load const narrow{load_kind::drifting, {48, 100}, one_mib, 0.9, kernels, 4};
  EXPECT_EQ(narrow.step(30).sizes.least, 48u) << "a range of two octaves or less has no room to move";
}

TEST(SlotLoad, MakesThePoolForALevel) {
  EXPECT_EQ(bench::pool_for_level(1 << 20, 1024, 0.5, one_mib, 8 << 20), u64{8} << 20);
  EXPECT_EQ(bench::pool_for_level(1 << 20, 1024, 0.5, one_mib, u64{8} << 30), u64{2} << 30);
  EXPECT_EQ(bench::pool_for_level(4, 16, 0.5, one_mib, u64{8} << 30), one_mib);
  for (double const level : {0.3, 0.77, 0.99}) {
    double const exact = 735.3 * (1 << 20) / level;
    auto const bytes = static_cast<double>(bench::pool_for_level(1 << 20, 735.3, level, one_mib, u64{8} << 30));
    EXPECT_GE(bytes, exact);
    EXPECT_LT(bytes, 1.01 * exact);
    EXPECT_EQ(static_cast<u64>(bytes) % (4 * one_mib), 0u);
  }
}

TEST(Quantile, IsTheValueOfNearestRank) {
  std::vector<u64> const values{30, 10, 20, 40};
  EXPECT_EQ(bench::quantile(values, 0), 10u);
  EXPECT_EQ(bench::quantile(values, 0.5), 20u);
  EXPECT_EQ(bench::quantile(values, 0.51), 30u);
  EXPECT_EQ(bench::quantile(values, 0.999), 40u);
  EXPECT_EQ(bench::quantile(values, 1), 40u);
  EXPECT_EQ(bench::quantile(std::vector<double>{}, 0.5), 0);
}

bench::request request_of_slots(u64 kernels, std::vector<double> levels) {
  auto asked = small_request();
  asked[options::threads] = 1000;
  asked[options::kernels] = kernels;
  asked[options::levels] = std::move(levels);
  return asked;
}

std::map<std::string, double> figures_by_name(bench::result const& row) {
  return {row.figures.begin(), row.figures.end()};
}
std::map<std::string, u64> parameters_by_name(bench::result const& row) {
  return {row.parameters.begin(), row.parameters.end()};
}

TEST(FillLevel, HoldsItsLevelAndCountsEveryCall) {
  auto asked = request_of_slots(9, {0.25, 0.5});
  asked.pool_bytes = 64 * one_mib;
  asked[options::threads] = 6000;  // enough for slabs of every class
  auto const rows = run_on_host("fill_level", "slab_bitmap", asked);
  constexpr char const* operations[] = {"constant malloc", "constant free", "drifting malloc", "drifting free"};
  ASSERT_THAT(rows, SizeIs(8));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto figures = figures_by_name(rows[i]);
    auto parameters = parameters_by_name(rows[i]);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].operation, operations[i % 4]);
    EXPECT_THAT(rows[i].times_us, SizeIs(9));
    EXPECT_EQ(parameters["level_permille"], i < 4 ? 250u : 500u);
    EXPECT_EQ(parameters["least_bytes"], 16u);
    EXPECT_EQ(parameters["most_bytes"], 4096u);
    EXPECT_NEAR(static_cast<double>(parameters["slots"]), 6000, 60);
    EXPECT_GT(figures["cycles_p50"], 0);
    EXPECT_LE(figures["cycles_p50"], figures["cycles_p99"]);
    EXPECT_LE(figures["cycles_p99"], figures["cycles_p999"]);
    EXPECT_EQ(rows[i].failures, 0u);
    if (i % 4 < 2) EXPECT_EQ(rows[i].operations, parameters["slots"] / 4) << "a quarter in each kernel";
    if (i % 2) continue;
    EXPECT_EQ(figures["failed_share"] + figures["unfilled"], 0);
    EXPECT_GT(figures["slab_share"], figures["held_share"]);
    EXPECT_LE(figures["slab_share"], 1);
    EXPECT_GT(figures["live_over_slabs"], figures["held_share"]);
    EXPECT_LE(figures["live_over_slabs"], 1);
    if (i % 4 == 0) EXPECT_NEAR(figures["held_share"], i < 4 ? 0.25 : 0.5, 0.05);
  }
}

TEST(FillLevel, HasSmallerPoolsForHigherLevelsAndFewerSlotsInASmallPool) {
  auto asked = request_of_slots(2, {0.3, 0.6});
  asked[options::threads] = 8192;
  asked[options::ranges] = {{64, 64}};
  auto rows = run_on_host("fill_level", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_NEAR(parameters_by_name(rows[0])["pool_bytes"], 8192 * 64 / 0.3, 20'000);
  EXPECT_NEAR(parameters_by_name(rows[0])["slots"], 8192, 82);
  EXPECT_EQ(parameters_by_name(rows[4])["pool_bytes"], one_mib) << "there are no smaller ones";
  asked.pool_bytes = one_mib;
  rows = run_on_host("fill_level", "slab_bitmap", asked);
  EXPECT_EQ(parameters_by_name(rows[0])["pool_bytes"], one_mib);
  EXPECT_EQ(parameters_by_name(rows[0])["slots"], 4912u);
  EXPECT_EQ(parameters_by_name(rows[4])["slots"], 9828u);
}

TEST(FillLevel, AsksForMoreThanThereIs) {
  auto asked = request_of_slots(4, {2});
  asked.pool_bytes = one_mib;
  asked[options::threads] = u64{1} << 20;
  asked[options::ranges] = {{256, 256}};
  auto const rows = run_on_host("fill_level", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(4));
  for (size_t i = 0; i < rows.size(); i += 2) {
    auto figures = figures_by_name(rows[i]);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(parameters_by_name(rows[i])["level_permille"], 2000u);
    EXPECT_EQ(parameters_by_name(rows[i])["slots"], 2 * one_mib / 256);
    EXPECT_EQ(figures["unfilled"], one_mib / 256);
    EXPECT_GT(figures["held_share"], 0.95) << "the pool is full";
    EXPECT_LE(figures["held_share"], 1);
    // A quarter of the slots asks; about half of these gave a block back just before.
    EXPECT_NEAR(figures["failed_share"], 0.5, 0.1);
  }
}

TEST(FillLevel, CountsWhatIsRefusedAndAsksAgain) {
  auto asked = request_of_slots(20, {0.5});
  asked[options::ranges] = {{64, 64}};
  asked.pool_bytes = one_mib;
  asked[options::threads] = 8192;
  // a page each: 256 of 8192 slots
  auto const rows = run_on_host("fill_level", "tbuddy", asked);
  ASSERT_THAT(rows, SizeIs(4));
  for (size_t i = 0; i < rows.size(); i += 2) {
    auto figures = figures_by_name(rows[i]);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(figures["unfilled"], 8192 - 256);
    EXPECT_GE(rows[i].failures, 20u * (2048 - 256)) << "every kernel asks for a quarter of the slots";
    EXPECT_LE(rows[i].failures, 20u * 2048);
    EXPECT_NEAR(figures["failed_share"], static_cast<double>(rows[i].failures) / (20 * 2048), 1e-9);
    EXPECT_NEAR(rows[i].operations, 2048 - static_cast<double>(rows[i].failures) / 20, 1e-9);
    EXPECT_LE(rows[i + 1].operations, 256);
    EXPECT_LE(figures["held_share"], 256.0 * 64 / one_mib);
    EXPECT_GT(figures["held_share"], 200.0 * 64 / one_mib) << "empty slots are asked for again";
  }
}

TEST(FillLevel, LeavesOutWhatAnAllocatorCannotTell) {
  auto const on = make_host_backend();
  auto const tells = testing::AllOf(testing::Gt(0), testing::Le(1));
  for (auto const& row :
       {bench::scenario_called("fill_level", *on).run("tbuddy", request_of_slots(2, {0.5}))[0],
        bench::scenario_called("fill_level", *on).run("halloc_split", request_of_slots(2, {0.5}))[0]}) {
    EXPECT_EQ(row.fault, "");
    EXPECT_THAT(row.figures, Not(Contains(Key("live_over_slabs")))) << row.allocator;
    EXPECT_THAT(row.figures, Contains(Key("held_share"))) << row.allocator;
  }
  auto const row = bench::scenario_called("fill_level", *on).run("halloc", request_of_slots(2, {0.5}))[0];
  EXPECT_THAT(row.figures, Contains(Pair("live_over_slabs", tells)));
  EXPECT_THAT(row.figures, Contains(Pair("slab_share", tells)));
}

TEST(FillLevel, SkipsWhatIsNeverServedAndPoolsThatAProcessHasNot) {
  auto const on = make_host_backend();
  for (std::string const scenario : {"fill_level", "long_churn"})
    for (auto const& row : bench::scenario_called(scenario, *on).run("ualloc", request_of_slots(2, {0.5})))
      EXPECT_THAT(row.skipped, HasSubstr("ualloc serves at most 1024 bytes")) << scenario;
  auto asked = request_of_slots(2, {0.25, 0.5});
  asked[options::threads] = 4000;
  auto const rows = bench::scenario_called("fill_level", *on).run("toolkit", asked);
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows[0].skipped, "") << "its pool is as large as can be, like that of the other level";
  asked[options::threads] = 1000;
  asked[options::ranges] = {{16, 4096}};
  auto const pools = bench::scenario_called("fill_level", *on).run("toolkit", asked);
  ASSERT_THAT(pools, SizeIs(2 + 4)) << "a row for each kind that is skipped";
  EXPECT_THAT(pools[0].skipped, HasSubstr("toolkit has one pool a process"));
  EXPECT_THAT(pools[1].skipped, HasSubstr("toolkit has one pool a process"));
  EXPECT_EQ(pools[2].skipped + pools[3].skipped, "");
}

TEST(FillLevel, EndsWhereItIsTold) {
  auto asked = request_of_slots(2, {0.3, 0.5, 0.7});
  for (u64 const allowed : {u64{0}, u64{1}, u64{2}, u64{5}}) {
    u64 told = 0;
    asked.proceed = [&](std::string const&, u64 done, u64 total) {
      EXPECT_EQ(done, told);
      EXPECT_EQ(total, 12u);
      return told++ < allowed;
    };
    EXPECT_THAT(run_on_host("fill_level", "slab_bitmap", asked), SizeIs(allowed / 2 * 2));
    EXPECT_EQ(told, allowed + 1) << "and nothing is asked after the end";
  }
}

TEST(LongChurn, HasARowForEachTenth) {
  auto asked = request_of_slots(57, {});
  asked.pool_bytes = 64 * one_mib;
  asked[options::threads] = 4000;
  auto const rows = run_on_host("long_churn", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(10));
  double steps = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto figures = figures_by_name(rows[i]);
    auto parameters = parameters_by_name(rows[i]);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].operation, "churn");
    EXPECT_EQ(parameters["tenth"], i + 1);
    EXPECT_EQ(parameters["level_permille"], 500u);
    EXPECT_EQ(rows[i].operations, static_cast<double>(parameters["slots"]) / 2);
    EXPECT_EQ(rows[i].failures, 0u);
    EXPECT_EQ(rows[i].times_us.size(), figures["steps"]);
    EXPECT_EQ(figures["longest_us"], *std::max_element(rows[i].times_us.begin(), rows[i].times_us.end()));
    double const rate = figures["steps"] / figures["seconds"];
    auto first = figures_by_name(rows[0]);
    EXPECT_NEAR(figures["over_first"], rate / (first["steps"] / first["seconds"]), 1e-9);
    steps += figures["steps"];
  }
  EXPECT_EQ(steps, 57);
}

TEST(LongChurn, LastsAsLongAsItWasAsked) {
  auto asked = request_of_slots(0, {0.9});
  asked[options::seconds] = 0.2;
  auto const rows = run_on_host("long_churn", "scatter", asked);
  ASSERT_THAT(rows, SizeIs(10));
  double seconds = 0;
  for (auto const& row : rows) seconds += figures_by_name(row)["seconds"];
  EXPECT_GE(seconds, 0.2);
  EXPECT_LT(seconds, 2) << "ten steps that nobody asked for, at most";
}

TEST(LongChurn, ComparesMinutesOfALongRun) {
  EXPECT_EQ((bench::run_length{.steps = 50, .seconds = 9000}.parts()), 10u);
  EXPECT_EQ((bench::run_length{.seconds = 0.5}.parts()), 10u);
  EXPECT_EQ((bench::run_length{.seconds = 600}.parts()), 10u);
  EXPECT_EQ((bench::run_length{.seconds = 601}.parts()), 20u);
  EXPECT_EQ((bench::run_length{.seconds = 3600}.parts()), 60u);
  EXPECT_EQ((bench::run_length{.seconds = 3600}.seconds_until(1)), 60);
  EXPECT_EQ((bench::run_length{.steps = 57}.steps_until(10)), 57u);
}

TEST(LongChurn, KeepsAThousandTimesThatAreSpreadEvenly) {
  std::vector<double> values(2500);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_THAT(bench::thinned(values, 1000), SizeIs(834));
  EXPECT_EQ(bench::thinned(values, 1000)[1], 3);
  EXPECT_EQ(bench::thinned(values, 2500), values);
  EXPECT_THAT(bench::thinned({}, 1000), IsEmpty());
}

TEST(LongChurn, HasTheTenthsThatWereFinishedWhenItIsEnded) {
  auto asked = request_of_slots(20, {});
  bool ends = false;
  asked.proceed = [&](std::string const&, u64 done, u64 total) {
    ends = ends || done >= 550;
    EXPECT_EQ(total, 1000u);
    return !ends;
  };
  auto const rows = run_on_host("long_churn", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(6)) << "of two steps each";
  EXPECT_EQ(rows.back().fault, "");
  EXPECT_THAT(rows.back().times_us, SizeIs(2));
}

TEST(BrokenAllocators, AreCaughtByBlocksThatLiveAcrossKernels) {
  auto asked = request_of_slots(10, {0.5});
  asked[options::ranges] = {{64, 64}};
  expect_fault(bench::fill_level(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::long_churn(broken<overlapping>(), asked), "blocks overlap another");
  asked[options::ranges] = {};
  expect_fault(bench::fill_level(broken<misaligning>(), asked), "blocks are not aligned");
  expect_fault(bench::long_churn(broken<misaligning>(), asked), "blocks are not aligned");
  expect_fault(bench::fill_level(broken<leaking>(), asked), "blocks lost");
  expect_fault(bench::long_churn(broken<leaking>(), asked), "blocks lost");
}

/// Faults after the checked steps are found when the slots are emptied.
template <class Allocator>
std::string fault_after_timed_steps(bench::test_subject<Allocator> const&) {
  basic_heap<Allocator> heap{one_mib};
  slot_load const load{load_kind::constant, {64, 64}, one_mib, 0.1, 10, 1};
  bench::slot_table<Allocator> slots{heap, load.slots()};
  slots.play(load.filling());
  slots.time(load, 1, 3);
  return slots.fault_of_emptying();
}

TEST(BrokenAllocators, AreCaughtAtTheEndOfTimedSteps) {
  EXPECT_THAT(fault_after_timed_steps(broken<overlapping>()), HasSubstr("blocks overlap another"));
  EXPECT_THAT(fault_after_timed_steps(broken<leaking>()), HasSubstr("blocks lost"));
  EXPECT_EQ(fault_after_timed_steps(broken<creation::slab_bitmap<>>()), "");
}

}}  // namespace warpheap::tool
