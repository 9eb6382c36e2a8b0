// SPDX-License-Identifier: Apache-2.0
// head_replacement on the host backend: heads are replaced where they must be, none is where blocks
// fit into the heads, and a broken allocator is not called sound.
#include "scenarios/head_replacement.hpp"

#include <gmock/gmock.h>

#include <map>

#include "backend/backend.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

/// 64 slabs of 32 KiB, one row.
bench::request burst_request() {
  bench::request asked;
  asked.pool_bytes = u64{2} << 20;
  asked.repeat = 3;
  asked[options::sizes] = {256, 1024};
  return asked;
}

TEST(HeadReplacement, ReplacesHeadsButInPlace) {
  auto const rows = run_on_host("head_replacement", "halloc", burst_request());
  ASSERT_THAT(rows, SizeIs(2 * 5));
  std::vector<std::string> const names{"first_burst", "burst", "first_waves", "waves", "waves_in_place"};
  for (size_t i = 0; i < rows.size(); ++i) {
    auto const& row = rows[i];
    u64 const blocks = i < 5 ? 128 : 32;
    auto figures = figures_of(row);
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.failures, 0u);
    EXPECT_EQ(row.operation, names[i % 5]);
    EXPECT_THAT(row.times_us, SizeIs(3));
    EXPECT_THAT(row.parameters, Contains(Pair("blocks_of_head", blocks)));
    EXPECT_THAT(row.parameters, Contains(Pair("threads", 4 * blocks))) << "four heads";
    if (i % 5 < 2) EXPECT_THAT(row.parameters, Not(Contains(Key("waves"))));
    else EXPECT_THAT(row.parameters, Contains(Pair("waves", 16u)));
    EXPECT_EQ(figures.count("ratio"), i % 5 == 2 || i % 5 == 3);
    EXPECT_GT(figures["cycles_per_us"], 0);
    if (i % 5 == 4) {
      EXPECT_EQ(figures["replacements"], 0) << "a quarter of a head is not 83.5% of it";
      EXPECT_EQ(figures["replacing_us"], 0);
      continue;
    }
    EXPECT_GE(figures["replacements"], 3);
    EXPECT_GT(figures["longest_replacing_us"], 0);
    EXPECT_GE(figures["caching_us"], figures["replacing_us"]);
    EXPECT_GE(figures["replacing_us"] * 3, figures["longest_replacing_us"] * 0.999);
  }
}

TEST(HeadReplacement, TakesAsManyThreadsAsAsked) {
  auto asked = burst_request();
  asked[options::sizes] = {3072};
  asked[options::threads] = 100;
  auto const rows = run_on_host("head_replacement", "halloc", asked);
  ASSERT_THAT(rows, SizeIs(5));
  EXPECT_THAT(rows[3].parameters, Contains(Pair("waves", 50u))) << "ten blocks a head, two a wave";
  for (auto const& row : rows) EXPECT_EQ(row.operations, 100);
}

TEST(HeadReplacement, IsOfHallocAndOfBlocksInSlabsAlone) {
  auto asked = burst_request();
  asked[options::sizes] = {4096};
  auto const large = run_on_host("head_replacement", "halloc", asked);
  ASSERT_THAT(large, SizeIs(1));
  EXPECT_THAT(large[0].skipped, HasSubstr("above 3072 bytes"));
  for (auto const* const other : {"scatter", "halloc_split", "toolkit"}) {
    auto const rows = run_on_host("head_replacement", other, asked);
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_THAT(rows[0].skipped, HasSubstr(std::string{other} + " replaces no heads"));
  }
}

TEST(HeadReplacement, CountsWhatFailed) {
  auto asked = burst_request();
  asked[options::sizes] = {1024};
  asked[options::threads] = 3000;  // 2048 fit
  auto const rows = run_on_host("head_replacement", "halloc", asked);
  for (auto const& row : rows) {
    EXPECT_EQ(row.fault, "");
    EXPECT_EQ(row.failures, 3000u - 2048u);
  }
}

TEST(HeadReplacement, NamesWhatIsWrongWithCounts) {
  bench::replacement_plan const plan{.bytes = 1024, .rows = 2, .blocks_of_head = 32, .threads = 256, .wave = 32};
  auto const burst = bench::replacement_ways[1], in_place = bench::replacement_ways[4];
  creation::halloc_work work{.replacements = 18, .replacing_cycles = 5, .longest_replacing_cycles = 5};
  EXPECT_EQ(bench::fault_of_counts(burst, plan, work, 3), "");
  work.replacements = 17;
  EXPECT_EQ(bench::fault_of_counts(burst, plan, work, 3), "17 heads replaced, and not 18 or more");
  EXPECT_EQ(bench::fault_of_counts(in_place, plan, work, 3), "");
  work.searches = 1;
  EXPECT_EQ(bench::fault_of_counts(burst, plan, work, 3), "");
  work.longest_replacing_cycles = 6;
  EXPECT_THAT(bench::fault_of_counts(burst, plan, work, 3), HasSubstr("longest"));
}

/// Forgets what its seventh thread frees.
template <creation::halloc_config Config>
class leaking_halloc : public creation::halloc<Config> {
 public:
  leaking_halloc() = default;
  void destroy(void* block) const {
    if (global_thread_index() != 7) creation::halloc<Config>::destroy(block);
  }
  static leaking_halloc place(void* memory, size_t bytes) {
    leaking_halloc made;
    static_cast<creation::halloc<Config>&>(made) = creation::halloc<Config>::place(memory, bytes);
    return made;
  }
};

/// Gives every thread of a warp the block of its first.
class sharing_halloc : public creation::halloc<> {
 public:
  void* create(size_t bytes) const {
    void* const mine = creation::halloc<>::create(bytes);
    u32 const active = simt::active_mask();
    return simt::shuffle(active, mine, lowest_bit(active));
  }
  static sharing_halloc place(void* memory, size_t bytes) {
    sharing_halloc made;
    static_cast<creation::halloc<>&>(made) = creation::halloc<>::place(memory, bytes);
    return made;
  }
};

TEST(HeadReplacement, CatchesABrokenAllocator) {
  auto asked = burst_request();
  asked[options::sizes] = {64};
  asked[options::threads] = 200;
  using bench::counting_halloc_allocator;
  using leaking = finely_aligned_allocator<leaking_halloc<creation::halloc_config{}>>;
  using leaking_and_counting = finely_aligned_allocator<leaking_halloc<bench::counts_replacements>>;
  using sharing = finely_aligned_allocator<sharing_halloc>;
  auto const fault_of = [&](auto who, auto counting) {
    using allocator_type = decltype(who);
    return bench::head_replacement<allocator_type, decltype(counting)>(
        bench::test_subject<allocator_type>{.name = "broken"}, asked);
  };
  expect_fault(fault_of(leaking{}, counting_halloc_allocator{}), "blocks lost");
  expect_fault(fault_of(halloc_allocator{}, leaking_and_counting{}), "blocks lost");
  expect_fault(fault_of(sharing{}, counting_halloc_allocator{}), "blocks overlap another");
}

}}  // namespace warpheap::tool
