// SPDX-License-Identifier: Apache-2.0
// map: cells add up to what is held and lie where it lies, rows follow the load, and no broken
// allocator is called sound.
#include "scenarios/map.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "backend/backend.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::tool { namespace {

using bench::cell_sums;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;

using namespace warpheap::literals;

void* address(u64 at) { return reinterpret_cast<void*>(at); }

TEST(CellSums, NameTheOctaveWithTheMostBytesOfACell) {
  cell_sums sums{{{address(1 << 20), cell_sums::cells * 1000}}};
  ASSERT_EQ(sums.cell_bytes(), 1000u);
  EXPECT_TRUE(sums.add({address(1 << 20), 64}));
  EXPECT_TRUE(sums.add({address((1 << 20) + 100), 127}));
  EXPECT_TRUE(sums.add({address((1 << 20) + 300), 128}));
  EXPECT_EQ(sums.leading_octaves()[0], 64u) << "64 and 127 are of one octave, and more than 128";
  EXPECT_EQ(sums.fill_permille()[0], 64u + 127 + 128);
  EXPECT_EQ(sums.leading_octaves()[1], 0u);
  EXPECT_EQ(sums.fill_permille()[1], 0u);
}

TEST(CellSums, DivideABlockAmongTheCellsThatItLiesIn) {
  cell_sums sums{{{address(4096), cell_sums::cells * 1000}}};
  EXPECT_TRUE(sums.add({address(4096 + 900), 1200}));
  auto const fill = sums.fill_permille();
  EXPECT_EQ(fill[0], 100u);
  EXPECT_EQ(fill[1], 1000u);
  EXPECT_EQ(fill[2], 100u);
  for (u64 cell = 0; cell < 3; ++cell) EXPECT_EQ(sums.leading_octaves()[cell], 1024u) << cell;
}

TEST(CellSums, PutPiecesOfMemoryBehindOneAnother) {
  u64 const half = cell_sums::cells * 500;
  cell_sums sums{{{address(1 << 24), half}, {address(1 << 20), half}}};
  EXPECT_TRUE(sums.add({address(1 << 24), 1000}));
  EXPECT_TRUE(sums.add({address(1 << 20), 500}));
  EXPECT_EQ(sums.fill_permille()[0], 1000u);
  EXPECT_EQ(sums.fill_permille()[cell_sums::cells / 2], 500u);
}

TEST(CellSums, FillNoCellThatHasAByteByNothing) {
  cell_sums sums{{{address(1 << 20), cell_sums::cells * 100'000}}};
  EXPECT_TRUE(sums.add({address((1 << 20) + 99'999), 16}));
  auto const fill = sums.fill_permille(), octaves = sums.leading_octaves();
  for (u64 cell = 0; cell < cell_sums::cells; ++cell) EXPECT_EQ(octaves[cell] != 0, fill[cell] != 0) << cell;
  EXPECT_EQ(fill[0], 1u);
  EXPECT_EQ(fill[1], 1u);
}

TEST(CellSums, RefuseBlocksThatLieElsewhere) {
  cell_sums sums{{{address(1 << 20), 1 << 16}}};
  EXPECT_FALSE(sums.add({address((1 << 20) - 16), 16}));
  EXPECT_FALSE(sums.add({address((1 << 20) + (1 << 16) - 8), 16}));
  EXPECT_FALSE(sums.add({address(1 << 21), 16}));
  EXPECT_THAT(sums.fill_permille(), Each(0u));
}

bench::request request_of_map() {
  auto asked = small_request();
  asked[options::ranges] = {{64, 1024}};
  asked[options::levels] = {0.5};
  asked[options::kernels] = 16;
  return asked;
}

std::map<std::string, u64> parameters_of_map(bench::result const& row) {
  return {row.parameters.begin(), row.parameters.end()};
}

TEST(Map, HasARowForTheFirstStepAndEachEighthOfBothLoads) {
  auto const rows = run_on_host("map", "slab_bitmap", request_of_map());
  ASSERT_THAT(rows, SizeIs(2 * 9));
  u64 const steps[] = {1, 2, 4, 6, 8, 10, 12, 14, 16};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fault, "");
    EXPECT_EQ(rows[i].operation, i < 9 ? "constant" : "drifting");
    EXPECT_EQ(parameters_of_map(rows[i])["step"], steps[i % 9]);
    EXPECT_THAT(rows[i].times_us, SizeIs(i % 9 == 0 ? 1 : steps[i % 9] - steps[i % 9 - 1]));
    ASSERT_THAT(rows[i].lists, SizeIs(2));
    for (auto const& [name, values] : rows[i].lists) EXPECT_THAT(values, SizeIs(cell_sums::cells)) << name;
    EXPECT_THAT(rows[i].lists[1].second, Each(Le(1000u)));
  }
}

TEST(Map, HoldsWhatTheLoadAsksFor) {
  for (std::string const name : {"slab_bitmap", "halloc", "tbuddy"}) {
    auto const row = run_on_host("map", name, request_of_map())[0];
    auto parameters = parameters_of_map(row);
    auto const& fill = row.lists[1].second;
    auto const held = static_cast<double>(std::accumulate(fill.begin(), fill.end(), u64{0})) / 1000 *
                      static_cast<double>(parameters["cell_bytes"]);
    double const asked = 0.5 * static_cast<double>(parameters["pool_bytes"]);
    if (name == "tbuddy") EXPECT_LT(held, 0.3 * asked) << "a page a block: most are refused";
    else EXPECT_NEAR(held, asked, 0.1 * asked) << name;
    for (u64 cell = 0; cell < cell_sums::cells; ++cell) {
      u64 const octave = row.lists[0].second[cell];
      EXPECT_EQ(octave != 0, fill[cell] != 0) << name << " " << cell;
      if (octave) EXPECT_THAT((std::vector<u64>{64, 128, 256, 512, 1024}), Contains(octave));
    }
  }
}

TEST(Map, FollowsSizesThatDrift) {
  auto asked = request_of_map();
  asked[options::kernels] = 64;
  auto const rows = run_on_host("map", "slab_bitmap", asked);
  ASSERT_THAT(rows, SizeIs(18));
  auto const mean_octave = [](bench::result const& row) {
    u64 sum = 0, cells = 0;
    for (u64 const octave : row.lists[0].second) {
      sum += octave;
      cells += octave != 0;
    }
    return static_cast<double>(sum) / static_cast<double>(cells);
  };
  EXPECT_LT(2 * mean_octave(rows[9]), mean_octave(rows[13])) << "from small sizes to large ones in the middle";
}

TEST(Map, SkipsWhatDoesNotSayWhereItsMemoryLies) {
  auto const rows = run_on_host("map", "toolkit", request_of_map());
  ASSERT_THAT(rows, SizeIs(2));
  for (auto const& row : rows) EXPECT_THAT(row.skipped, HasSubstr("does not say where its memory lies"));
}

TEST(Map, FindsWhatIsBroken) { expect_fault(bench::heap_map(broken<leaking>(), request_of_map()), "blocks lost"); }

TEST(Map, EndsWhereItIsTold) {
  auto asked = request_of_map();
  for (u64 const allowed : {u64{0}, u64{1}}) {
    u64 told = 0;
    asked.proceed = [&](std::string const&, u64 done, u64 total) {
      EXPECT_EQ(done, told);
      EXPECT_EQ(total, 2u);
      return told++ < allowed;
    };
    EXPECT_THAT(run_on_host("map", "slab_bitmap", asked), SizeIs(9 * allowed));
  }
}

}}  // namespace warpheap::tool
