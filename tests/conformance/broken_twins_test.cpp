// SPDX-License-Identifier: Apache-2.0
// A check that cannot fail checks nothing. So each fault that the suite is there for is planted,
// and the check that should find it must name it.
#include <gmock/gmock.h>

#include "broken_twins.hpp"
#include "checks/double_frees.hpp"
#include "checks/misuse.hpp"
#include "checks/refusals.hpp"
#include "checks/reports.hpp"
#include "checks/visibility.hpp"

namespace {

using namespace warpheap;
using namespace warpheap::conformance;
using testing::HasSubstr;

TEST(BrokenTwin, ThatHandsOutOverlappingBlocksIsCaught) {
  auto const complaint = first_complaint(50, &serves_one_size<reference<fault::overlaps>>);
  EXPECT_THAT(complaint, HasSubstr("reach into the block at"));
  EXPECT_THAT(complaint, HasSubstr("damaged blocks"));
}

TEST(BrokenTwin, ThatMisalignsIsCaught) {
  EXPECT_THAT(first_complaint(50, &serves_one_size<reference<fault::misaligns>>), HasSubstr("not aligned to"));
}

TEST(BrokenTwin, ThatLosesBlocksIsCaughtByTheNextFill) {
  EXPECT_THAT(first_complaint(50, &fills_again<reference<fault::loses_blocks>>),
              HasSubstr("blocks of the heap filled again"));
}

TEST(BrokenTwin, ThatRefusesUnderContentionIsCaught) {
  EXPECT_THAT(first_complaint(50, &never_refuses_what_nobody_holds<reference<fault::gives_up>>),
              HasSubstr("refusals though a block a lane was free"));
  EXPECT_THAT(first_complaint(50, &finds_what_stays_free<reference<fault::gives_up>>),
              HasSubstr("refusals while a block stayed free"));
  EXPECT_THAT(first_complaint(50, &serves_exactly_what_is_there<reference<fault::gives_up>>),
              testing::AnyOf(HasSubstr("lanes served at once"), HasSubstr("blocks of the full heap")));
}

TEST(BrokenTwin, ThatStaysFullIsCaught) {
  EXPECT_THAT(first_complaint(50, &serves_exactly_what_was_freed<reference<fault::stays_full>>),
              HasSubstr("blocks served after so many frees"));
}

TEST(BrokenTwin, ThatBelievesEveryFreeIsCaught) {
  EXPECT_THAT(first_complaint(50, &counts_double_frees<reference<fault::believes_frees>>), HasSubstr("double frees"));
  EXPECT_THAT(first_complaint(50, &ignores_what_starts_no_block<reference<fault::believes_frees>>),
              HasSubstr("misuse counted"));
}

TEST(BrokenTwin, ThatLosesWhatIsFreedTwiceIsCaught) {
  EXPECT_THAT(first_complaint(50, &survives_double_frees_under_traffic<reference<fault::loses_refreed>>),
              HasSubstr("lies in a block that starts nowhere"));
}

TEST(BrokenTwin, ThatBelievesEveryFreeIsCaughtUnderTraffic) {
  EXPECT_THAT(first_complaint(50, &survives_double_frees_under_traffic<reference<fault::believes_frees>>),
              testing::AnyOf(HasSubstr("reach into the block at"), HasSubstr("lies in a block that starts nowhere")));
}

TEST(BrokenTwin, ThatLosesBlocksIsCaughtByWhomTheyWerePassedTo) {
  using twin = reference<fault::loses_blocks>;
  EXPECT_THAT(first_complaint(50, &frees_what_came_without_order<passage::shuffle, twin>), HasSubstr("live blocks"));
  EXPECT_THAT(first_complaint(50, &frees_what_came_without_order<passage::mailbox, twin>), HasSubstr("live blocks"));
}

#if !defined(__CUDACC__)
TEST(BrokenTwin, ThatStaysLockedAfterADoubleFreeIsCaught) {
  using twin = reference<fault::stays_locked>;
  EXPECT_TRUE(test::find_failing_schedule(
      50, [] { return survives_double_frees_under_traffic<twin>(small_scenario(host::current_execution().seed)).ok(); },
      1'000'000));
}

TEST(BrokenTwin, ThatLooksAgainAfterEachFreeIsCaught) {
  using twin = reference<fault::starts_again>;
  EXPECT_TRUE(test::find_failing_schedule(
      50, [] { return answers_while_others_churn<twin>(small_scenario(host::current_execution().seed)).ok(); },
      1'000'000));
}

TEST(BrokenTwin, ThatBelievesAStaleLookIsCaughtByWhomBlocksWerePassedTo) {
  using twin = reference<fault::looks_unlocked>;
  EXPECT_THAT(first_complaint(100, &frees_what_came_without_order<passage::shuffle, twin>),
              HasSubstr("misuse counted"));
  EXPECT_THAT(first_complaint(100, &frees_what_came_without_order<passage::mailbox, twin>),
              HasSubstr("misuse counted"));
}

// On a GPU the hardware decides whether an omission shows.
TEST(BrokenTwin, ThatOrdersNoMemoryIsCaughtByWeakMemory) {
  EXPECT_THAT(first_complaint(300, &passes_contents_on<reference<fault::unordered>>),
              HasSubstr("ownerships that the next owner saw"));
}
#endif

}  // namespace
