// SPDX-License-Identifier: Apache-2.0
// growth: what it measures on the host backend, and that it finds broken heaps.
#include "scenarios/growth.hpp"

#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "tests/tool/scenarios/broken_allocators_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::Pair;
using testing::SizeIs;

std::vector<bench::result> measured_growth(bench::request const& asked) { return baseline_on_host("growth", asked); }

std::vector<std::string> operations_of(std::vector<bench::result> const& rows) {
  std::vector<std::string> operations;
  operations.reserve(rows.size());
  for (auto const& row : rows) operations.push_back(row.operation);
  return operations;
}

TEST(Growth, MeasuresEveryOperationSoundly) {
  auto const asked = small_request();
  auto const rows = measured_growth(asked);
  EXPECT_THAT(operations_of(rows),
              ElementsAre("grow", "grow and wait", "trim", "poll", "grown first_malloc", "fixed first_malloc",
                          "grown malloc", "grown free", "fixed malloc", "fixed free", "grown churn", "fixed churn",
                          "grown long_churn", "fixed long_churn", "waiting malloc"));
  for (auto const& row : rows) {
    EXPECT_EQ(row.allocator, "slab_bitmap");
    EXPECT_EQ(row.fault, "") << row.operation;
    EXPECT_EQ(row.skipped, "") << row.operation;
    EXPECT_EQ(row.failures, 0u) << row.operation;
    EXPECT_THAT(row.times_us, SizeIs(asked.repeat)) << row.operation;
    EXPECT_GT(row.operations, 0) << row.operation;
  }
}

TEST(Growth, MeasuresNoAllocatorThatIsNamed) {
  EXPECT_FALSE(bench::scenario_called("growth", *make_host_backend()).measures_allocators());
}

TEST(Growth, UsesTheSizeThatIsAsked) {
  auto asked = small_request();
  asked[options::sizes] = {256, 64};
  auto const rows = measured_growth(asked);
  ASSERT_THAT(rows, SizeIs(15));
  for (size_t i = 4; i < 10; ++i) EXPECT_THAT(rows[i].parameters, Contains(Pair("bytes", 256u))) << rows[i].operation;
}

TEST(Growth, ChurnsAsItIsAsked) {
  auto asked = small_request();
  asked[options::ranges] = {{32, 100}, {16, 16}};
  auto const rows = measured_growth(asked);
  ASSERT_THAT(rows, SizeIs(15));
  for (size_t i = 10; i < 14; ++i)
    EXPECT_THAT(rows[i].parameters, AllOf(Contains(Pair("least_bytes", 32u)), Contains(Pair("most_bytes", 100u))));
  EXPECT_THAT(rows[10].parameters,
              AllOf(Contains(Pair("rounds", asked[options::rounds])), Contains(Pair("threads", 500u))));
  EXPECT_THAT(rows[12].parameters, Contains(Pair("kernels", asked[options::kernels])));
  EXPECT_EQ(rows[10].operations, rows[11].operations) << "the same rounds";
  double const slots = 8.0 * mebibyte / 60;
  EXPECT_NEAR(rows[12].operations, slots / 2, slots / 10) << "a quarter is freed, and as many are asked for";
}

TEST(Growth, GrowsWholeChunksToThePoolAndNeverFromAllOfIt) {
  for (u64 const mib : {u64{1}, u64{16}, u64{21}, u64{128}}) {
    auto asked = small_request();
    asked.pool_bytes = mib * mebibyte;
    asked.repeat = 1;
    auto const rows = measured_growth(asked);
    u64 const pool = std::max<u64>(mib + mib % 2, 16) * mebibyte;
    EXPECT_THAT(rows.front().parameters,
                ElementsAre(Pair("initial_bytes", AllOf(Gt(0u), Lt(pool))), Pair("pool_bytes", pool)));
    EXPECT_EQ(rows.front().fault, "");
  }
}

TEST(Growth, TellsTheTimeOfTheCallWithinThatOfTheWait) {
  auto const rows = measured_growth(small_request());
  for (size_t i = 0; i < rows[0].times_us.size(); ++i) EXPECT_LE(rows[0].times_us[i], rows[1].times_us[i]);
}

TEST(Growth, ComparesTheGrownHeapWithTheFixedOneRoundByRound) {
  for (auto const& row : measured_growth(small_request())) {
    bool const compares = row.operation.starts_with("grown ");
    if (compares) EXPECT_THAT(figure(row, "ratio"), AllOf(Gt(0), Lt(100))) << row.operation;
    else EXPECT_THAT(figures_of(row), testing::Not(Contains(testing::Key("ratio")))) << row.operation;
  }
}

TEST(Growth, CountsCallsThatNeitherHeapCanServe) {
  auto asked = small_request();
  asked[options::sizes] = {u64{64} << 10};  // the pool of 16 MiB has 256
  auto const rows = measured_growth(asked);
  ASSERT_THAT(rows, SizeIs(15));
  for (size_t i = 4; i < 7; ++i) {
    EXPECT_EQ(rows[i].fault, "") << rows[i].operation;
    EXPECT_GE(rows[i].failures, 500u - 256u) << rows[i].operation;
    EXPECT_EQ(rows[i].operations, 500 - static_cast<double>(rows[i].failures)) << rows[i].operation;
  }
}

TEST(Growth, EndsWhereItIsTold) {
  auto asked = small_request();
  u64 told = 0;
  asked.proceed = [&](std::string const&, u64 done, u64 total) {
    told = done;
    EXPECT_EQ(total, 7u);
    return done < 2;
  };
  EXPECT_THAT(operations_of(measured_growth(asked)), ElementsAre("grow", "grow and wait", "trim", "poll"));
  EXPECT_EQ(told, 2u) << "and nothing is asked after the end";
}

/// Breaks one promise at a time, as a test tells it.
struct broken_slabs : mutant_of_slab_bitmap<broken_slabs> {
  enum class fault { ignores_growth, gives_one_block, misaligns, leaks, refuses_when_grown };
  static inline fault what = {};
  static inline size_t least = 0, most = 0;  ///< sizes that are misaligned
  static inline bool grows = false;          ///< of the one heap that lives at a time

  void initialize(stream_view on, u64 const* committed = nullptr) const {
    grows = committed != nullptr;
    slab_bitmap<>::initialize(on, committed);
  }
  void extend(u64 from, u64 to, u64* committed, stream_view on) const {
    if (what != fault::ignores_growth) slab_bitmap<>::extend(from, to, committed, on);
  }
  void* create(size_t bytes) const {
    alignas(4096) static u8 one_block[4096];
    if (what == fault::gives_one_block) return one_block;
    if (what == fault::refuses_when_grown && grows && global_thread_index() == 7) return nullptr;
    bool const misaligns = what == fault::misaligns && bytes >= least && bytes <= most;
    auto* const block = static_cast<u8*>(slab_bitmap<>::create(bytes + (misaligns ? 8 : 0)));
    return block && misaligns ? block + 8 : block;
  }
  void destroy(void* block) const {
    if (what == fault::gives_one_block || (what == fault::leaks && global_thread_index() == 7)) return;
    slab_bitmap<>::destroy(reinterpret_cast<u64>(block) % 16 == 8 ? static_cast<u8*>(block) - 8 : block);
  }
};

TEST(Growth, FindsBrokenHeapsAndStopsThere) {
  using enum broken_slabs::fault;
  struct finding {
    broken_slabs::fault what;
    char const* operation;
    char const* fault;
    size_t least = 0, most = ~size_t{0};
  };
  for (auto const& [what, operation, fault, least, most] :
       {finding{ignores_growth, "trim", "memory that was mapped cannot be had"},
        finding{gives_one_block, "fixed first_malloc", "blocks overlap another"},
        finding{misaligns, "fixed first_malloc", "500 blocks are not aligned"},
        finding{leaks, "fixed first_malloc", "1 blocks lost"},
        finding{refuses_when_grown, "fixed first_malloc", "1 calls refused right after growth"},
        finding{misaligns, "fixed churn", "blocks are not aligned", 65, 512},
        finding{misaligns, "fixed long_churn", "blocks are not aligned", 513, 4096}}) {
    broken_slabs::what = what;
    broken_slabs::least = least;
    broken_slabs::most = most;
    auto const row = bench::growth_scenario<broken_slabs>{small_request()}.rows().back();
    EXPECT_EQ(row.operation, operation) << fault;
    EXPECT_THAT(row.fault, HasSubstr(fault));
  }
}

}}  // namespace warpheap::tool
