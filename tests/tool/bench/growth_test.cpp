// SPDX-License-Identifier: Apache-2.0
// growth: what it measures on the host backend, and that it finds broken heaps.
#include "bench/scenarios/growth.hpp"

#include <gmock/gmock.h>

#include "backend/backend.hpp"
#include "tests/tool/bench/broken_allocators_fixture.hpp"
#include "tests/tool/bench/small_request_fixture.hpp"
#include "tests/tool/measured_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Pair;
using testing::SizeIs;

std::vector<bench::result> measured_growth(bench::request const& asked) {
  return make_host_backend()->bench_floor("growth", asked);
}

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
  EXPECT_THAT(make_host_backend()->bench("growth", "slab_bitmap", small_request()), IsEmpty());
}

TEST(Growth, UsesTheSizeThatIsAsked) {
  auto asked = small_request();
  asked.sizes = {256, 64};
  auto const rows = measured_growth(asked);
  ASSERT_THAT(rows, SizeIs(15));
  for (size_t i = 4; i < 10; ++i) EXPECT_THAT(rows[i].parameters, Contains(Pair("bytes", 256u))) << rows[i].operation;
}

TEST(Growth, ChurnsAsItIsAsked) {
  auto asked = small_request();
  asked.ranges = {{32, 100}, {16, 16}};
  auto const rows = measured_growth(asked);
  ASSERT_THAT(rows, SizeIs(15));
  for (size_t i = 10; i < 14; ++i)
    EXPECT_THAT(rows[i].parameters, AllOf(Contains(Pair("least_bytes", 32u)), Contains(Pair("most_bytes", 100u))));
  EXPECT_THAT(rows[10].parameters, AllOf(Contains(Pair("rounds", asked.rounds)), Contains(Pair("threads", 500u))));
  EXPECT_THAT(rows[12].parameters, Contains(Pair("kernels", asked.kernels)));
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
  asked.sizes = {u64{64} << 10};  // the pool of 16 MiB has 256
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

/// What mutants of slab_bitmap begin with.
template <class Mutant>
struct mutant_of_slab_bitmap : creation::slab_bitmap<> {
  static Mutant place(void* memory, size_t bytes) {
    Mutant made;
    static_cast<creation::slab_bitmap<>&>(made) = creation::slab_bitmap<>::place(memory, bytes);
    return made;
  }
};

/// Makes no blocks of the memory that it is told of.
struct ignoring_growth : mutant_of_slab_bitmap<ignoring_growth> {
  void extend(u64, u64, u64*, stream_view) const {}
};

/// Gives every thread the same block.
struct giving_one_block : mutant_of_slab_bitmap<giving_one_block> {
  void* create(size_t) const {
    alignas(4096) static u8 block[4096];
    return block;
  }
  void destroy(void*) const {}
};

/// Gives blocks at multiples of 8 and not of 16.
struct misaligning_slabs : mutant_of_slab_bitmap<misaligning_slabs> {
  void* create(size_t bytes) const {
    auto* const block = static_cast<u8*>(slab_bitmap<>::create(bytes + 8));
    return block ? block + 8 : nullptr;
  }
  void destroy(void* block) const {
    if (block) slab_bitmap<>::destroy(static_cast<u8*>(block) - 8);
  }
};

/// Refuses the seventh thread where the pool grows, which it knows from its set-up.
struct refusing_when_grown : mutant_of_slab_bitmap<refusing_when_grown> {
  void initialize(stream_view on, u64 const* committed = nullptr) const {
    grows = committed != nullptr;
    slab_bitmap<>::initialize(on, committed);
  }
  void* create(size_t bytes) const {
    return grows && global_thread_index() == 7 ? nullptr : slab_bitmap<>::create(bytes);
  }
  static inline bool grows = false;  // one heap lives at a time
};

/// Gives blocks of the sizes of one scenario at multiples of 8.
template <size_t Least, size_t Most>
struct misaligning_sizes : mutant_of_slab_bitmap<misaligning_sizes<Least, Most>> {
  using sound = creation::slab_bitmap<>;
  static bool is_wrong(void const* block) { return reinterpret_cast<u64>(block) % 16 == 8; }

  void* create(size_t bytes) const {
    if (bytes < Least || bytes > Most) return sound::create(bytes);
    auto* const block = static_cast<u8*>(sound::create(bytes + 8));
    return block ? block + 8 : nullptr;
  }
  void destroy(void* block) const { sound::destroy(is_wrong(block) ? static_cast<u8*>(block) - 8 : block); }
};

template <class Creation>
bench::result last_row() {
  return bench::growth_scenario<Creation>{small_request()}.rows().back();
}

TEST(Growth, FindsBrokenHeapsAndStopsThere) {
  struct finding {
    bench::result row;
    char const* operation;
    char const* fault;
  };
  for (auto const& [row, operation, fault] :
       {finding{last_row<ignoring_growth>(), "trim", "memory that was mapped cannot be had"},
        finding{last_row<giving_one_block>(), "fixed first_malloc", "blocks overlap another"},
        finding{last_row<misaligning_slabs>(), "fixed first_malloc", "500 blocks are not aligned"},
        finding{last_row<leaking>(), "fixed first_malloc", "1 blocks lost"},
        finding{last_row<refusing_when_grown>(), "fixed first_malloc", "1 calls refused right after growth"},
        finding{last_row<misaligning_sizes<65, 512>>(), "fixed churn", "blocks are not aligned"},
        finding{last_row<misaligning_sizes<513, 4096>>(), "fixed long_churn", "blocks are not aligned"}}) {
    EXPECT_EQ(row.operation, operation) << fault;
    EXPECT_THAT(row.fault, HasSubstr(fault));
  }
}

}}  // namespace warpheap::tool
