// SPDX-License-Identifier: Apache-2.0
// efficiency: shares of allocators whose answer is known, the drift's plan, and that no broken
// allocator is called sound.
#include "scenarios/efficiency.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "backend/backend.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/all.hpp"

namespace warpheap::tool { namespace {

using bench::asked_block;
using bench::drifting_rings;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;
using testing::Pair;
using testing::SizeIs;

using namespace warpheap::literals;

bench::request request_of_drift(double level) {
  auto asked = small_request();
  asked[options::levels] = {level};
  return asked;
}

/// The first figure of each row.
std::map<std::pair<std::string, u64>, double> figures_by_operation_and_bytes(std::vector<bench::result> const& rows) {
  std::map<std::pair<std::string, u64>, double> made;
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault + row.skipped, "") << row.operation;
    u64 const bytes = row.parameters.front().first == "bytes" ? row.parameters.front().second : 0;
    EXPECT_TRUE(made.insert({{row.operation, bytes}, row.figures.at(0).second}).second);
  }
  return made;
}

TEST(Efficiency, IsThatOfAPageForEachBlockInABuddySystem) {
  auto asked = request_of_drift(0.1);
  constexpr u64 pool = 4_MiB, pages = pool / 4_KiB, few = 8 * 16, bytes_of_few = 8 * 14'272;
  ASSERT_EQ(warpheap::backend::multiprocessors(), 8u);
  auto figures = figures_by_operation_and_bytes(run_on_host("efficiency", "tbuddy", asked));
  EXPECT_DOUBLE_EQ((figures[{"few holders", 64}]), double(bytes_of_few + 64 * (pages - few)) / pool);
  EXPECT_GT((figures[{"tenth held", 64}]), 0.1);
  EXPECT_LT((figures[{"tenth held", 64}]), 0.1 + 64. / 4096);
  EXPECT_NEAR((figures[{"mixed fill", 0}]), 736. / 4096, 0.02);
  EXPECT_EQ((figures[{"all freed", 4_KiB}]), 1);
  EXPECT_EQ((figures[{"all freed", 1_MiB}]), 1);
  // Ten blocks are a hundredth, and each keeps a page.
  EXPECT_DOUBLE_EQ((figures[{"scattered kept", 4_KiB}]), 1014. / 1023);
  EXPECT_EQ((figures[{"scattered kept", 1_MiB}]), 0);
  EXPECT_DOUBLE_EQ((figures[{"run kept", 4_KiB}]), 1014. / 1023);
  EXPECT_GE((figures[{"run kept", 1_MiB}]), 2. / 3) << "ten pages in a row lie in at most two pieces of 1 MiB";
  EXPECT_GE((figures[{"range", 16}]), 4096. / 16 * 0.9) << "a page each";
  EXPECT_LE((figures[{"range", 4_KiB}]), 2) << "half of the pool";
}

TEST(Efficiency, HasARowForEachShareAndOnesOfDriftForEachLevel) {
  auto asked = request_of_drift(0.3);
  asked[options::levels] = {0.3, 0.9};
  auto const rows = run_on_host("efficiency", "slab_bitmap", asked);
  std::vector<std::string> operations;
  for (auto const& row : rows) {
    operations.push_back(row.operation);
    EXPECT_EQ(row.fault, "");
    EXPECT_THAT(row.times_us, SizeIs(1));
    EXPECT_THAT(row.figures, SizeIs(row.operation == "mixed fill" ? 2 : 1)) << row.operation;
    EXPECT_THAT(row.parameters, Contains(Pair("pool_bytes", 4_MiB)));
    bool const is_range = row.operation == "range";
    EXPECT_THAT(row.figures,
                Each(Field(&std::pair<std::string, double>::second, AllOf(Ge(0), Le(is_range ? 100 : 1)))));
  }
  EXPECT_THAT(operations,
              ElementsAre("few holders", "tenth held", "mixed fill", "all freed", "all freed", "scattered kept",
                          "scattered kept", "run kept", "run kept", "drift", "drift", "range", "range", "range"));
  EXPECT_LE(rows[2].figures[0].second, rows[2].figures[1].second) << "to the first nullptr, and on to 1%";
  EXPECT_THAT(rows[9].parameters,
              ElementsAre(Pair("level_permille", 300), Pair("kernels", 2), Pair("pool_bytes", 4_MiB)));
  EXPECT_THAT(rows[10].parameters, Contains(Pair("level_permille", 900)));
  EXPECT_LE(rows[9].figures[0].second, rows[10].figures[0].second) << "more is refused of more";
}

TEST(Efficiency, SaysNothingOfWhatHasNoLimitAndSkipsWhatIsNeverServed) {
  auto const on = make_host_backend();
  for (auto const& row : bench::efficiency(broken<unlimited>(), request_of_drift(0.3))) {
    EXPECT_EQ(row.fault + row.skipped, "");
    bool const has_figure = row.operation == "drift" || row.operation == "range";
    EXPECT_THAT(row.figures, SizeIs(has_figure)) << row.operation;
  }
  u32 measured = 0;
  for (auto const& row : bench::scenario_called("efficiency", *on).run("ualloc", request_of_drift(0.3)))
    if (row.skipped.empty()) ++measured;
    else EXPECT_EQ(row.skipped, "ualloc serves at most 1024 bytes");
  EXPECT_EQ(measured, 2u) << "ranges of 16 and 256 bytes";
}

TEST(Efficiency, FillsNoLargePoolAndMeasuresRangesOnAllOfIt) {
  auto asked = request_of_drift(0.01);
  asked[options::kernels] = 1;
  asked.pool_bytes = 10_MiB;
  for (bool const resets : {true, false})
    for (auto const& row :
         bench::efficiency(stand_in_for(bench::test_subject<tbuddy_allocator>{"tbuddy", resets}), asked)) {
      bool const is_range = row.operation == "range";
      EXPECT_EQ(row.fault, "");
      EXPECT_EQ(row.skipped, is_range && !resets ? "tbuddy has one pool a process: ask for a smaller pool" : "");
      EXPECT_THAT(row.parameters, Contains(Pair("pool_bytes", is_range ? 10_MiB : 8_MiB)));
    }
}

TEST(Efficiency, GivesUpADriftThatTakesLong) {
  auto const asked = request_of_drift(0.3);
  auto const subject = stand_in_for(bench::test_subject<tbuddy_allocator>{"tbuddy"});
  auto const rows = bench::efficiency_rows<any_allocator>{subject, asked, 0}.measure();
  ASSERT_THAT(rows, SizeIs(13));
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.skipped, row.operation == "drift" ? "tbuddy takes over a minute for this drift" : "");
  }
}

TEST(Efficiency, EndsWhereItIsTold) {
  auto asked = request_of_drift(0.3);
  for (u64 const allowed : {u64{0}, u64{2}, u64{4}, u64{8}}) {
    u64 told = 0;
    asked.proceed = [&](std::string const&, u64 done, u64 total) {
      EXPECT_EQ(done, told);
      EXPECT_EQ(total, 6u + 1 + 3);
      return told++ < allowed;
    };
    std::map<u64, size_t> const rows{{0, 0}, {2, 2}, {4, 5}, {8, 11}};
    EXPECT_THAT(run_on_host("efficiency", "tbuddy", asked), SizeIs(rows.at(allowed)));
  }
}

TEST(Efficiency, FindsWhatIsBroken) {
  auto const asked = request_of_drift(0.3);
  expect_fault(bench::efficiency(broken<overlapping>(), asked), "blocks overlap another");
  expect_fault(bench::efficiency(broken<misaligning>(), asked), "blocks are not aligned");
  expect_fault(bench::efficiency(broken<leaking>(), asked), "blocks lost");
}

TEST(CallList, MakesNoCallAfterABatchOfWhichOneWasRefused) {
  basic_heap<tbuddy_allocator> heap{1_MiB};
  auto const made = bench::ask_until_refused(heap, 4096, 1000, {.calls = 100});
  EXPECT_THAT(made.blocks, SizeIs(300));
  EXPECT_EQ(made.refused, 300u - 256);
  EXPECT_EQ(bench::bytes_of(made.blocks), 1_MiB);
  bench::free_listed(heap, made.blocks);
  EXPECT_EQ(bench::ask_at_once(heap, std::vector<u64>(256, 4096)).refused, 0u);
}

TEST(CallList, IsShuffledByTheSeedAlone) {
  std::vector<asked_block> list;
  for (u64 i = 1; i <= 100; ++i) list.push_back({reinterpret_cast<void*>(16 * i), i});
  auto const order = [&](u64 seed) {
    std::vector<u64> bytes;
    for (auto const& each : bench::in_random_order(list, seed)) bytes.push_back(each.bytes);
    return bytes;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  auto const made = order(1);
  EXPECT_THAT(std::set<u64>(made.begin(), made.end()), SizeIs(100));
}

/// Invented blocks, for every call.
std::vector<asked_block> served(std::vector<u64> const& wanted) {
  static u64 address = 0;
  std::vector<asked_block> came;
  came.reserve(wanted.size());
  for (u64 const bytes : wanted) came.push_back({reinterpret_cast<void*>(address += 16), bytes});
  return came;
}

// rings.R1, rings.R3
TEST(DriftingRings, HoldTheirLevelWhateverTheSizes) {
  constexpr u64 steps = 16;
  for (double const level : {0.3, 0.85}) {
    drifting_rings rings{4_MiB, level, steps, 1};
    for (u64 step = 0; step < 3 * steps; ++step) {
      auto const held = rings.held();
      auto const leaving = rings.take_leaving(step);
      if (step % steps == 8) {
        // Few blocks a thread, of which each is as likely to leave.
        EXPECT_NEAR(double(leaving.size()) / double(held.size()), 0.25, 0.06);
      }
      auto const wanted = rings.plan(step);
      u64 const least =
          u64(std::llround(16 * std::exp2(step % steps <= 8 ? 6 * (step % steps) / 8. : 12 - 6 * (step % steps) / 8.)));
      EXPECT_THAT(wanted, Each(AllOf(Ge(least), Le(4 * least)))) << step;
      rings.settle(served(wanted));
      u64 const bytes = bench::bytes_of(rings.held());
      EXPECT_LE(bytes, level * 4_MiB);
      EXPECT_GT(bytes, level * 4_MiB - 64 * 4096) << "64 warps, none of which can ask for a block more";
    }
  }
}

// rings.R2
TEST(DriftingRings, GiveUpTheirOldestBlocks) {
  drifting_rings rings{64_KiB, 1, 8, 1};  // a warp
  rings.settle(served(rings.plan(0)));
  auto const before = rings.held();
  auto const leaving = rings.take_leaving(1);
  rings.settle(served(rings.plan(1)));
  auto const newest = before.back().block;
  EXPECT_NEAR(double(leaving.size()), before.size() / 4., 32);
  for (auto const& each : rings.take_leaving(2)) EXPECT_LE(each.block, newest) << "none of the last step's";
}

TEST(DriftingRings, AskAgainInTheNextStepForWhatWasRefused) {
  drifting_rings rings{64_KiB, 1, 8, 1}, refused{64_KiB, 1, 8, 1};
  auto const first = rings.plan(0);
  EXPECT_EQ(first, refused.plan(0));
  rings.settle(served(first));
  refused.settle(std::vector<asked_block>(first.size()));
  EXPECT_THAT(refused.held(), IsEmpty());
  EXPECT_THAT(rings.plan(0), IsEmpty()) << "the budget is used";
  EXPECT_EQ(refused.plan(0), first);
}

}}  // namespace warpheap::tool
