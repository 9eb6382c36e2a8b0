// SPDX-License-Identifier: Apache-2.0
// Tables made from a seed: as many tuples, partners and repetitions as were asked for.
#include "workloads/join/tables.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "warpheap/util/random.hpp"
#include "workloads/join/reference.hpp"

namespace warpheap::tool { namespace {

TEST(JoinTables, HaveTheSharesAskedFor) {
  for (double const match : {0.0, 0.001, 0.3, 0.5, 1.0})
    for (double const skew : {0.0, 0.8, 1.0, 2.5}) {
      join_recipe const recipe{.build_tuples = 700, .probe_tuples = 1000, .match = match, .skew = skew, .seed = 5};
      auto const made = make_join_tables(recipe);
      EXPECT_EQ(made.build.tuples(), 700u);
      EXPECT_EQ(made.probe.tuples(), 1000u);
      EXPECT_EQ(made.build.payloads.size(), 700u);
      EXPECT_EQ(made.probe.payloads.size(), 1000u);
      EXPECT_EQ((std::set<u32>{made.build.keys.begin(), made.build.keys.end()}).size(), 700u) << "a key is there once";
      EXPECT_EQ(partners_of(recipe), static_cast<u64>(1000 * match));
      EXPECT_EQ(reference_join(made.build, made.probe).tuples, partners_of(recipe)) << match << " " << skew;
    }
}

TEST(JoinTables, OfNothingAndOfOneTuple) {
  EXPECT_EQ(make_join_tables({}).build.tuples(), 0u);
  auto const strangers = make_join_tables({.build_tuples = 0, .probe_tuples = 50});
  EXPECT_EQ(reference_join(strangers.build, strangers.probe).tuples, 0u);
  auto const one = make_join_tables({.build_tuples = 1, .probe_tuples = 1});
  EXPECT_EQ(one.build.keys, one.probe.keys);
  auto const hub = make_join_tables({.build_tuples = 1, .probe_tuples = 9, .skew = 3});
  EXPECT_EQ(reference_join(hub.build, hub.probe).tuples, 9u);
}

TEST(JoinTables, DependOnTheSeedAlone) {
  auto const made = [](u64 seed) {
    return make_join_tables({.build_tuples = 100, .probe_tuples = 100, .match = 0.5, .skew = 1, .seed = seed});
  };
  EXPECT_EQ(made(3).probe.keys, made(3).probe.keys);
  EXPECT_EQ(made(3).build.payloads, made(3).build.payloads);
  EXPECT_NE(made(3).probe.keys, made(4).probe.keys);
  EXPECT_NE(made(3).build.keys, made(4).build.keys);
}

// Counts of ranks against the law itself, within five standard deviations.
TEST(ZipfLaw, DrawsRanksAsOftenAsItSays) {
  constexpr u32 draws = 200'000;
  for (u64 const ranks : {u64{1}, u64{2}, u64{10}, u64{1000}})
    for (double const exponent : {0.0, 0.5, 0.999999999, 1.0, 1.5, 4.0}) {
      random_sequence random{11};
      zipf_law const law{ranks, exponent};
      std::vector<double> counts(ranks + 1);
      for (u32 i = 0; i < draws; ++i) {
        u64 const rank = law.draw([&] { return random.next() / 4294967296.0; });
        ASSERT_GE(rank, 1u);
        ASSERT_LE(rank, ranks);
        ++counts[rank];
      }
      double all = 0;
      for (u64 rank = 1; rank <= ranks; ++rank) all += std::pow(static_cast<double>(rank), -exponent);
      for (u64 rank = 1; rank <= ranks; ++rank) {
        double const share = std::pow(static_cast<double>(rank), -exponent) / all;
        double const expected = draws * share, deviation = std::sqrt(draws * share * (1 - share));
        EXPECT_NEAR(counts[rank], expected, 5 * deviation + 1e-6) << rank << " of " << ranks << ", " << exponent;
      }
    }
}

TEST(ZipfLaw, TakesManyRanks) {
  random_sequence random{1};
  zipf_law const law{u64{1} << 30, 1.0};
  u64 largest = 0;
  for (u32 i = 0; i < 10'000; ++i) largest = std::max(largest, law.draw([&] { return random.next() / 4294967296.0; }));
  EXPECT_GT(largest, u64{1} << 29);
  EXPECT_LE(largest, u64{1} << 30);
}

}}  // namespace warpheap::tool
