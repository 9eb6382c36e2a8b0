// SPDX-License-Identifier: Apache-2.0
// fragmentation: what it counts is what is held and what is left to be had, the seed alone decides
// which blocks survive, and no broken allocator is called sound.
#include <gmock/gmock.h>

#include <map>

#include "backend/backend.hpp"
#include "scenarios/fragmentation.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::SizeIs;

using namespace warpheap::literals;

bench::request request_of_shares(std::vector<double> left, std::vector<u64> large) {
  auto asked = small_request();
  asked.repeat = 1;
  asked[options::left_shares] = std::move(left);
  asked[options::sizes] = std::move(large);
  asked[options::ranges] = {{16, 1024}};
  return asked;
}

std::map<std::string, double> figures_of_row(bench::result const& row) {
  return {row.figures.begin(), row.figures.end()};
}
std::map<std::string, u64> parameters_of_row(bench::result const& row) {
  return {row.parameters.begin(), row.parameters.end()};
}

TEST(Fragmentation, HoldsTheShareThatIsLeftAndCountsWhatIsToBeHad) {
  auto asked = request_of_shares({1, 0.25, 0}, {64_KiB, 1_MiB});
  asked.pool_bytes = 16_MiB;
  asked[options::levels] = {0.5};
  auto const rows = run_on_host("fragmentation", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(3 * 3));
  double const shares[] = {1, 0.25, 0};
  double slab_share = 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    double const left = shares[i / 3];
    auto figures = figures_of_row(rows[i]);
    auto parameters = parameters_of_row(rows[i]);
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_THAT(rows[i].times_us, SizeIs(1));
    EXPECT_EQ(parameters["left_permille"], static_cast<u64>(1000 * left));
    EXPECT_EQ(parameters["level_permille"], 500u);
    EXPECT_EQ(parameters["least_bytes"], 16u);
    EXPECT_EQ(parameters["most_bytes"], 1024u);
    auto const blocks = static_cast<double>(parameters["blocks"]);
    if (i % 3 == 0) {
      EXPECT_EQ(rows[i].operation, "free");
      EXPECT_EQ(rows[i].failures, 0u);
      EXPECT_EQ(rows[i].operations, blocks - std::round(left * blocks));
      EXPECT_NEAR(figures["filled_share"], 0.5, 0.01);
      EXPECT_NEAR(figures["held_share"], left * figures["filled_share"], 0.01);
      if (left > 0) {
        EXPECT_GT(figures["held_over_live"], 0.7) << "classes are at most a half apart";
        EXPECT_LT(figures["held_over_live"], 1);
        EXPECT_NEAR(figures["live_over_slabs"] * figures["slab_share"] * figures["held_over_live"],
                    figures["held_share"], 1e-6);
      }
      EXPECT_LE(figures["slab_share"], slab_share + 0.05) << "fills differ a little";
      slab_share = figures["slab_share"];
      continue;
    }
    u64 const bytes = i % 3 == 1 ? 64_KiB : 1_MiB;
    EXPECT_EQ(rows[i].operation, "large malloc");
    EXPECT_EQ(parameters["bytes"], bytes);
    auto const held = static_cast<u64>(figures_of_row(rows[i - i % 3])["held_share"] * 16_MiB);
    EXPECT_EQ(figures["at_best"], (16_MiB - held) / bytes);
    EXPECT_EQ(rows[i].operations, figures["got"]);
    EXPECT_EQ(rows[i].failures, 1u) << "the call that was refused";
    EXPECT_DOUBLE_EQ(figures["got_share"], figures["got"] / figures["at_best"]);
    if (left == 0) EXPECT_EQ(figures["got"], 16_MiB / bytes) << "all of an empty pool";
    else EXPECT_LT(figures["got"], figures["at_best"]);
  }
}

TEST(Fragmentation, FindsNoneWherePagesAreAskedForAgain) {
  for (auto const& [name, page] : {std::pair<char const*, u64>{"tbuddy", 4_KiB}, {"ring_buffer", 8_KiB}}) {
    auto asked = request_of_shares({0.5, 0.1}, {page});
    asked[options::ranges] = {{page, page}};
    asked[options::levels] = {1};
    u64 const pages = asked.pool_bytes / page;
    auto const rows = run_on_host("fragmentation", name, asked);
    ASSERT_THAT(rows, SizeIs(4));
    for (size_t i = 0; i < rows.size(); i += 2) {
      auto const left = std::round((i ? 0.1 : 0.5) * static_cast<double>(pages));
      EXPECT_EQ(figures_of_row(rows[i])["filled_share"], 1) << name;
      EXPECT_EQ(figures_of_row(rows[i])["held_over_live"], 1) << name;
      EXPECT_EQ(figures_of_row(rows[i + 1])["got"], static_cast<double>(pages) - left) << name;
      EXPECT_EQ(figures_of_row(rows[i + 1])["got_share"], 1) << name;
    }
  }
}

TEST(Fragmentation, SeesPairsOfPagesThatSurvivorsKeepApart) {
  auto asked = request_of_shares({0.5}, {8_KiB, 1_MiB});
  asked[options::ranges] = {{4_KiB, 4_KiB}};
  asked[options::levels] = {1};
  auto const rows = run_on_host("fragmentation", "tbuddy", asked);
  ASSERT_THAT(rows, SizeIs(3));
  // Of 512 pairs of pages, a quarter lost both pages.
  EXPECT_EQ(figures_of_row(rows[1])["at_best"], 256);
  EXPECT_NEAR(figures_of_row(rows[1])["got"], 128, 30);
  EXPECT_EQ(figures_of_row(rows[2])["got"], 0);
}

TEST(Fragmentation, CountsWhatAFullPoolRefused) {
  auto asked = request_of_shares({1}, {64_KiB});
  asked[options::ranges] = {{64, 64}};
  asked[options::levels] = {1};
  auto const rows = run_on_host("fragmentation", "tbuddy", asked);  // a page each
  ASSERT_THAT(rows, SizeIs(2));
  u64 const pages = asked.pool_bytes / 4096;
  EXPECT_EQ(rows[0].failures, asked.pool_bytes / 64 - pages);
  EXPECT_EQ(figures_of_row(rows[0])["held_over_live"], 64.0 / 4096);
  EXPECT_EQ(figures_of_row(rows[0])["filled_share"], 64.0 / 4096);
  EXPECT_EQ(figures_of_row(rows[1])["got"], 0);
  EXPECT_THAT(rows[0].figures, Not(Contains(Key("live_over_slabs")))) << "it has no slabs";
}

TEST(Fragmentation, DependsOnTheSeedAlone) {
  auto const on = make_host_backend();
  host::scoped_execution const run{{.mode = host::execution_mode::deterministic, .seed = 1}};
  auto asked = request_of_shares({0.1}, {16_KiB});
  asked.pool_bytes = 1_MiB;
  for (auto const& allocator : on->allocators()) {
    if (allocator.largest_bytes < 1024 || allocator.name == "toolkit") continue;
    asked.seed = 1;
    auto const first = bench::scenario_called("fragmentation", *on).run(allocator.name, asked);
    auto const again = bench::scenario_called("fragmentation", *on).run(allocator.name, asked);
    asked.seed = 2;
    auto const other = bench::scenario_called("fragmentation", *on).run(allocator.name, asked);
    ASSERT_THAT(first, SizeIs(2)) << allocator.name;
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].figures, again[i].figures) << allocator.name;
      EXPECT_EQ(first[i].operations, again[i].operations) << allocator.name;
    }
    EXPECT_NE(first[0].figures, other[0].figures) << allocator.name;
  }
}

TEST(Fragmentation, TellsMeansOfRoundsWithBlocksOfTheirOwn) {
  host::scoped_execution const run{{.mode = host::execution_mode::deterministic, .seed = 1}};
  auto const on = make_host_backend();
  auto asked = request_of_shares({0.05}, {16_KiB});
  asked.pool_bytes = 1_MiB;
  auto const first = bench::scenario_called("fragmentation", *on).run("tbuddy", asked);
  asked.seed = mix(asked.seed + 1);
  auto const second = bench::scenario_called("fragmentation", *on).run("tbuddy", asked);
  asked.seed = 1;
  asked.repeat = 2;
  auto const both = bench::scenario_called("fragmentation", *on).run("tbuddy", asked);
  ASSERT_THAT(both, SizeIs(2));
  for (size_t i = 0; i < both.size(); ++i) {
    EXPECT_THAT(both[i].times_us, SizeIs(2));
    EXPECT_EQ(both[i].operations, (first[i].operations + second[i].operations) / 2);
    for (auto const& [name, value] : both[i].figures)
      EXPECT_DOUBLE_EQ(value, (figures_of_row(first[i])[name] + figures_of_row(second[i])[name]) / 2) << name;
  }
  EXPECT_NE(figures_of_row(first[0])["held_share"], figures_of_row(second[0])["held_share"]);
}

TEST(Fragmentation, SkipsWhatIsNeverServedAndSaysNothingOfWhatHasNoLimit) {
  auto const on = make_host_backend();
  auto asked = request_of_shares({0.5, 0}, {2048});
  auto rows = bench::scenario_called("fragmentation", *on).run("ualloc", asked);
  ASSERT_THAT(rows, SizeIs(4));
  for (size_t i = 0; i < rows.size(); i += 2) {
    EXPECT_EQ(rows[i].skipped + rows[i].fault, "");
    EXPECT_THAT(rows[i].figures, Contains(Key("slab_share")));
    EXPECT_EQ(rows[i + 1].skipped, "ualloc serves at most 1024 bytes");
  }
  asked[options::ranges] = {{16, 4096}};
  rows = bench::scenario_called("fragmentation", *on).run("ualloc", asked);
  ASSERT_THAT(rows, SizeIs(2)) << "a row for each share";
  for (auto const& row : rows) EXPECT_EQ(row.skipped, "ualloc serves at most 1024 bytes");
  rows = bench::fragmentation(broken<unlimited>(), asked);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(rows[1].figures, Not(Contains(Key("got"))));
  EXPECT_EQ(rows[1].operations, figures_of_row(rows[1])["at_best"] + 1);
}

TEST(Fragmentation, EndsWhereItIsTold) {
  auto asked = request_of_shares({0.5, 0.25, 0}, {2048});
  for (u64 const allowed : {u64{0}, u64{1}, u64{2}}) {
    u64 told = 0;
    asked.proceed = [&](std::string const&, u64 done, u64 total) {
      EXPECT_EQ(done, told);
      EXPECT_EQ(total, 3u);
      return told++ < allowed;
    };
    EXPECT_THAT(run_on_host("fragmentation", "slab_bitmap", asked), SizeIs(2 * allowed));
  }
}

TEST(Fragmentation, FindsWhatIsBroken) {
  auto asked = request_of_shares({0.5}, {2048});
  asked[options::ranges] = {{64, 64}};
  expect_fault(bench::fragmentation(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::fragmentation(broken<misaligning>(), asked), "blocks are not aligned");
  expect_fault(bench::fragmentation(broken<leaking>(), asked), "blocks lost");
}

}}  // namespace warpheap::tool
