// SPDX-License-Identifier: Apache-2.0
// The checker of histories: each of its claims is broken once by hand, and allocators with one
// fault each fail under drawn programs.
#include <warpheap/explore/call_history.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <warpheap/explore/heap_program.hpp>

#include "conformance/reference.hpp"

namespace {

using namespace warpheap;
using conformance::fault;
using explore::call_history;
using explore::regions;
using testing::HasSubstr;
using testing::Not;

constexpr u64 pool = 1 << 20;
constexpr u64 region = 1024;

/// Four regions. Requests of up to 512 bytes share one by twos; larger ones take whole regions.
regions four_regions() {
  return {.first = pool,
          .bytes = region,
          .count = 4,
          .class_of = [](u64 bytes) { return bytes <= 512 ? i64{0} : i64{-1}; },
          .capacity = [](i64) { return u64{2}; }};
}

/// A history on these regions.
class History : public testing::Test {
 protected:
  /// A malloc alone; `at` counts bytes from the pool, or is refused.
  static constexpr u64 refused = ~u64{0};
  void serve(u64 bytes, u64 at, u64 usable = 0) {
    u64 const call = history.begin_malloc(0, bytes);
    history.end_malloc(call, at == refused ? 0 : pool + at, usable ? usable : bytes);
  }
  void release(u64 at) { history.end_free(history.begin_free(pool + at)); }
  std::string faults() const { return history.faults(four_regions()); }

  call_history history{pool, 4 * region, 16};
};

TEST_F(History, OfRightCallsHasNoFault) {
  serve(1024, 0);
  serve(512, 1024);
  serve(512, 1536);
  release(0);
  serve(2000, 2048, 2048);
  serve(512, 0);
  serve(16, 512);
  serve(16, refused);  // all regions are full
  EXPECT_EQ(history.live(), 5u);
  EXPECT_EQ(faults(), "");
}

// calls.H1
TEST_F(History, H1AsksForAlignedBlocksInThePoolThatAreLargeEnough) {
  serve(16, 8);
  EXPECT_THAT(faults(), HasSubstr("H1: misaligned"));
  serve(1024, 3 * 1024 + 16);
  EXPECT_THAT(faults(), HasSubstr("H1: not in the pool"));
  serve(64, 1024, 48);
  EXPECT_THAT(faults(), HasSubstr("H1: too few bytes"));
}

// calls.H2
TEST_F(History, H2AsksForBlocksThatDoNotOverlap) {
  serve(512, 0);
  serve(512, 512);
  EXPECT_EQ(faults(), "");
  serve(64, 496);
  EXPECT_THAT(faults(), HasSubstr("H2: overlaps"));
}

TEST_F(History, H2EndsWhenTheFreeBegins) {
  serve(512, 0);
  u64 const freed = history.begin_free(pool);
  serve(512, 0);
  history.end_free(freed);
  EXPECT_EQ(faults(), "");
  EXPECT_EQ(history.live(), 1u);
}

// calls.H3
TEST_F(History, H3AsksForAPlaceInARegionOfTheClass) {
  serve(512, 0);
  for (u64 const at : {1024u, 2048u, 3072u}) serve(1024, at);
  serve(512, refused);
  EXPECT_THAT(faults(), HasSubstr("H3: refused"));
}

// The first free goes on while another thread is handed the block and frees it too.
TEST_F(History, H3KnowsTwoFreesOfOneAddressApart) {
  for (u64 const at : {0u, 1024u, 2048u, 3072u}) serve(1024, at);
  u64 const first = history.begin_free(pool);
  serve(1024, 0);
  u64 const second = history.begin_free(pool);
  history.end_free(first);
  serve(1024, refused);
  history.end_free(second);
  EXPECT_EQ(faults(), "");
  serve(1024, refused);
  EXPECT_THAT(faults(), HasSubstr("H3: refused"));
}

TEST_F(History, H3KnowsThatTheRegionMayHaveFilledMeanwhile) {
  serve(512, 0);
  for (u64 const at : {1024u, 2048u, 3072u}) serve(1024, at);
  u64 const asked = history.begin_malloc(1, 512);
  serve(512, 512);
  release(512);
  history.end_malloc(asked, 0, 0);
  EXPECT_EQ(faults(), "");
}

TEST_F(History, H3AsksForRunsOfRegions) {
  serve(1024, 1024);
  serve(2048, refused);
  EXPECT_THAT(faults(), HasSubstr("H3: refused"));
  call_history other{pool, 4 * region, 16};
  history = other;
  serve(1024, 1024);
  serve(3072, refused);
  EXPECT_EQ(faults(), "");
}

TEST_F(History, H3LetsOtherCallsHoldWhatTheyAskFor) {
  for (u64 const at : {0u, 1024u, 2048u}) serve(1024, at);
  u64 const asked = history.begin_malloc(1, 1024);
  serve(1024, refused);
  history.end_malloc(asked, 0, 0);
  EXPECT_EQ(faults(), "");
  serve(1024, refused);
  EXPECT_THAT(faults(), HasSubstr("H3: refused"));
}

/// Whole pages of 1 KiB.
struct pages {
  regions operator()(auto const& heap) const {
    return {.first = reinterpret_cast<u64>(heap.first_page()),
            .bytes = region,
            .count = heap.pool_bytes() / region,
            .class_of = [](u64) { return i64{-1}; },
            .capacity = [](i64) { return u64{1}; }};
  }
};

/// What is wrong with the reference allocator that has one fault, under drawn programs; nothing if
/// none shows it.
template <fault Fault>
std::string complaint(bool weak_memory = false) {
  using heap = conformance::first_fit<Fault>;
  for (u64 seed = 0; seed < 40; ++seed) {
    explore::heap_exploration<heap, pages> body{
        9 * region, explore::heap_program::drawn({4, 1}, {16, 1024, 3000}, 6, seed), pages{}};
    auto const done = explore::explore({.schedules = 100, .seed = seed, .weak_memory = weak_memory}, body);
    if (done.fault) return done.fault->what;
  }
  return {};
}

TEST(HeapExploration, TellsRightAllocatorsFromWrongOnes) {
  if (host::detail::under_tsan) GTEST_SKIP();
  EXPECT_EQ(complaint<fault::none>(), "");
  EXPECT_EQ(complaint<fault::none>(true), "");
  EXPECT_THAT(complaint<fault::overlaps>(), HasSubstr("and not released it"));
  EXPECT_THAT(complaint<fault::misaligns>(), HasSubstr("H1: misaligned"));
  EXPECT_THAT(complaint<fault::loses_blocks>(), Not(testing::IsEmpty()));
  EXPECT_THAT(complaint<fault::stays_full>(), Not(testing::IsEmpty()));
  EXPECT_THAT(complaint<fault::unordered>(true), Not(testing::IsEmpty()));
}

}  // namespace
