// SPDX-License-Identifier: Apache-2.0
// peers: what it measures on the host backend, and that it finds broken heaps.
#include "scenarios/peers.hpp"

#include <gmock/gmock.h>

#include <atomic>

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
using testing::IsEmpty;
using testing::Lt;
using testing::Pair;
using testing::SizeIs;

std::vector<bench::result> measured_peers(bench::request const& asked) { return baseline_on_host("peers", asked); }

TEST(Peers, MeasuresEveryOperationSoundly) {
  auto const asked = small_request();
  auto const rows = measured_peers(asked);
  ASSERT_THAT(rows, SizeIs(4));
  for (size_t i = 0; i < 4; ++i) {
    constexpr char const* operations[] = {"local free", "post", "drain", "draining malloc"};
    EXPECT_EQ(rows[i].operation, operations[i]);
    EXPECT_EQ(rows[i].allocator, "slab_bitmap");
    EXPECT_EQ(rows[i].fault, "") << rows[i].operation;
    EXPECT_EQ(rows[i].skipped, "") << rows[i].operation;
    EXPECT_EQ(rows[i].failures, 0u) << rows[i].operation;
    EXPECT_THAT(rows[i].times_us, SizeIs(asked.repeat)) << rows[i].operation;
    EXPECT_EQ(rows[i].operations, i < 3 ? 500 : 16384) << "the least pool has as many";
  }
}

TEST(Peers, MeasuresNoAllocatorThatIsNamed) {
  EXPECT_FALSE(bench::scenario_called("peers", *make_host_backend()).measures_allocators());
}

TEST(Peers, ComparesWithALocalFreeRoundByRound) {
  auto const rows = measured_peers(small_request());
  for (auto const& row : {rows[1], rows[2]}) EXPECT_THAT(figure(row, "ratio"), AllOf(Gt(0), Lt(1000))) << row.operation;
  EXPECT_THAT(rows[0].figures, IsEmpty());
}

TEST(Peers, UsesSizeThreadsAndPool) {
  auto asked = small_request();
  asked[options::sizes] = {4096, 64};
  asked[options::threads] = 300;
  auto const rows = measured_peers(asked);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_THAT(rows[0].parameters,
              ElementsAre(Pair("bytes", 4096u), Pair("threads", 300u), Pair("pool_bytes", 4u << 20)));
  EXPECT_THAT(rows[3].parameters, Contains(Pair("bytes", 4096u)));
}

TEST(Peers, SkipsTheFullPoolOfWhatIsTooLarge) {
  auto asked = small_request();
  asked[options::sizes] = {u64{64} << 10};  // the pool of 4 MiB has 64
  auto const rows = measured_peers(asked);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[1].operations, 64);
  EXPECT_THAT(rows[3].skipped, HasSubstr("more than the pool"));
}

TEST(Peers, EndsWhereItIsTold) {
  auto asked = small_request();
  asked.proceed = [](std::string const&, u64 done, u64 total) {
    EXPECT_EQ(total, 2u);
    return done < 1;
  };
  EXPECT_THAT(measured_peers(asked), SizeIs(3));
}

/// Breaks one promise at a time, as a test tells it.
struct broken_member : mutant_of_slab_bitmap<broken_member> {
  enum class fault { forgets_frees, disowns_blocks, gives_one_block };
  static inline fault what = {};
  static inline std::atomic<u64> frees{0};

  void* create(size_t bytes) const {
    alignas(4096) static u8 one_block[4096];
    return what == fault::gives_one_block ? one_block : slab_bitmap<>::create(bytes);
  }
  void destroy(void* block) const {
    bool const forgets = what == fault::gives_one_block || (what == fault::forgets_frees && ++frees % 1000 == 0);
    if (!forgets) slab_bitmap<>::destroy(block);
  }
  // Frees of its own blocks are then not posted.
  bool contains(void const* block) const { return what != fault::disowns_blocks && slab_bitmap<>::contains(block); }
  memory_range untouched_pool() const {
    return what == fault::disowns_blocks ? memory_range{} : slab_bitmap<>::untouched_pool();
  }
};

TEST(Peers, FindsBrokenHeapsAndStopsThere) {
  using enum broken_member::fault;
  auto const last_row = [](broken_member::fault what) {
    broken_member::what = what;
    return bench::peers_scenario<broken_member>{small_request()}.rows().back();
  };
  EXPECT_THAT(last_row(forgets_frees).fault, HasSubstr("blocks are live, and not"));
  EXPECT_THAT(last_row(disowns_blocks).fault, HasSubstr("0 frees wait, and not 500"));
  EXPECT_THAT(last_row(gives_one_block).fault, HasSubstr("blocks overlap another"));
  EXPECT_EQ(last_row(gives_one_block).operation, "drain");
}

}}  // namespace warpheap::tool
