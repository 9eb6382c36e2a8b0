// SPDX-License-Identifier: Apache-2.0
// A check that cannot fail checks nothing. So each fault that the suite is there for is injected,
// and the check that should find it must name it.
#include <gmock/gmock.h>

#include "checks/double_frees.hpp"
#include "checks/misuse.hpp"
#include "checks/refusals.hpp"
#include "checks/reports.hpp"
#include "checks/visibility.hpp"
#include "mutants.hpp"

namespace {

using namespace warpheap;
using namespace warpheap::conformance;
using testing::HasSubstr;

TEST(Mutant, ThatHandsOutOverlappingBlocksIsCaught) {
  auto const complaint = first_complaint(50, &serves_one_size<reference<fault::overlaps>>);
  EXPECT_THAT(complaint, HasSubstr("reach into the block at"));
  EXPECT_THAT(complaint, HasSubstr("damaged blocks"));
}

TEST(Mutant, ThatMisalignsIsCaught) {
  EXPECT_THAT(first_complaint(50, &serves_one_size<reference<fault::misaligns>>), HasSubstr("not aligned to"));
}

TEST(Mutant, ThatLosesBlocksIsCaughtByTheNextFill) {
  EXPECT_THAT(first_complaint(50, &fills_again<reference<fault::loses_blocks>>),
              HasSubstr("blocks of the heap filled again"));
}

TEST(Mutant, ThatRefusesUnderContentionIsCaught) {
  EXPECT_THAT(first_complaint(50, &never_refuses_what_nobody_holds<reference<fault::gives_up>>),
              HasSubstr("refusals though a block a lane was free"));
  EXPECT_THAT(first_complaint(50, &finds_what_stays_free<reference<fault::gives_up>>),
              HasSubstr("refusals while a block stayed free"));
  EXPECT_THAT(first_complaint(50, &serves_exactly_what_is_there<reference<fault::gives_up>>),
              testing::AnyOf(HasSubstr("lanes served at once"), HasSubstr("blocks of the full heap")));
}

TEST(Mutant, ThatStaysFullIsCaught) {
  EXPECT_THAT(first_complaint(50, &serves_exactly_what_was_freed<reference<fault::stays_full>>),
              HasSubstr("blocks served after so many frees"));
}

TEST(Mutant, ThatBelievesEveryFreeIsCaught) {
  EXPECT_THAT(first_complaint(50, &counts_double_frees<reference<fault::believes_frees>>), HasSubstr("double frees"));
  EXPECT_THAT(first_complaint(50, &ignores_what_starts_no_block<reference<fault::believes_frees>>),
              HasSubstr("misuse counted"));
}

TEST(Mutant, ThatLosesWhatIsFreedTwiceIsCaught) {
  EXPECT_THAT(first_complaint(50, &survives_double_frees_under_traffic<reference<fault::loses_refreed>>),
              HasSubstr("lies in a block that starts nowhere"));
}

TEST(Mutant, ThatBelievesEveryFreeIsCaughtUnderTraffic) {
  EXPECT_THAT(first_complaint(50, &survives_double_frees_under_traffic<reference<fault::believes_frees>>),
              testing::AnyOf(HasSubstr("reach into the block at"), HasSubstr("lies in a block that starts nowhere")));
}

TEST(Mutant, ThatLosesBlocksIsCaughtByWhomTheyWerePassedTo) {
  using mutant = reference<fault::loses_blocks>;
  EXPECT_THAT(first_complaint(50, &frees_what_came_without_order<passage::shuffle, mutant>), HasSubstr("live blocks"));
  EXPECT_THAT(first_complaint(50, &frees_what_came_without_order<passage::mailbox, mutant>), HasSubstr("live blocks"));
}

#if !defined(__CUDACC__)
TEST(Mutant, ThatStaysLockedAfterADoubleFreeIsCaught) {
  using mutant = reference<fault::stays_locked>;
  EXPECT_TRUE(test::find_failing_schedule(
      50,
      [] { return survives_double_frees_under_traffic<mutant>(small_scenario(host::current_execution().seed)).ok(); },
      1'000'000));
}

TEST(Mutant, ThatLooksAgainAfterEachFreeIsCaught) {
  using mutant = reference<fault::starts_again>;
  EXPECT_TRUE(test::find_failing_schedule(
      50, [] { return answers_while_others_churn<mutant>(small_scenario(host::current_execution().seed)).ok(); },
      1'000'000));
}

TEST(Mutant, ThatBelievesAStaleLookIsCaughtByWhomBlocksWerePassedTo) {
  using mutant = reference<fault::looks_unlocked>;
  EXPECT_THAT(first_complaint(100, &frees_what_came_without_order<passage::shuffle, mutant>),
              HasSubstr("misuse counted"));
  EXPECT_THAT(first_complaint(100, &frees_what_came_without_order<passage::mailbox, mutant>),
              HasSubstr("misuse counted"));
}

// On a GPU the hardware decides whether an omission shows.
TEST(Mutant, ThatOrdersNoMemoryIsCaughtByWeakMemory) {
  EXPECT_THAT(first_complaint(300, &passes_contents_on<reference<fault::unordered>>),
              HasSubstr("ownerships that the next owner saw"));
}
#endif

}  // namespace
