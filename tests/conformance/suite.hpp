// SPDX-License-Identifier: Apache-2.0
// The contract of docs/design/heap.md as tests: WARPHEAP_CONFORMANCE(name, allocator) puts an
// allocator through every claim that its traits and its members promise, as tests `name.Claim`.
// Claims that it does not promise are not registered, so a test that passes has tested something.
#pragma once

#include "checks/blocks.hpp"
#include "checks/callers.hpp"
#include "checks/contention.hpp"
#include "checks/double_frees.hpp"
#include "checks/graphs.hpp"
#include "checks/misuse.hpp"
#include "checks/pools.hpp"
#include "checks/recovery.hpp"
#include "checks/refusals.hpp"
#include "checks/reports.hpp"
#include "checks/resizing.hpp"
#include "checks/restoring.hpp"
#include "checks/sizes.hpp"
#include "checks/streams.hpp"
#include "checks/visibility.hpp"
#include "checks/warp_calls.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

using check = verdict (*)(scenario const&);

/// One claim about one allocator, under `seeds` schedules.
class claim_test : public testing::Test {
 public:
  claim_test(check check, u32 seeds, bool contended, contention on_gpu, size_t largest, size_t (*unit)())
      : check_{check}, seeds_{seeds}, contended_{contended}, on_gpu_{on_gpu}, largest_{largest}, unit_{unit} {}

 private:
  void TestBody() override {
    for_each_scenario(seeds_, on_gpu_, [&](scenario const& with) {
      auto const one = fitted(contended_ ? with : with.less_contended(), largest_);
      EXPECT_TRUE(check_(one.with_pool(align_up(one.pool_bytes, unit_()))));
    });
  }

  check check_;
  u32 seeds_;
  bool contended_;  ///< as many lanes and as large a pool as the scenario has
  contention on_gpu_;
  size_t largest_;    ///< bytes of a request that may be served
  size_t (*unit_)();  ///< what the pool's bytes are a multiple of
};

/// Registers the claims about one allocator. Each claim runs under its own number of deterministic
/// schedules: hundreds for the central ones.
template <class Allocator>
class suite {
 public:
  /// `fewer` divides the number of schedules: for an allocator whose own tests run as many on
  /// smaller pools. At least two stay, of which the second has weak memory.
  explicit suite(char const* name, contention on_gpu = contention::full, u32 fewer = 1)
      : name_{name}, on_gpu_{on_gpu}, fewer_{fewer} {
    claim_for_every_allocator();
    contended_ = false;  // the host looks at every block of a full heap
    if constexpr (traits.exact_out_of_memory) claim_exactness();
    if constexpr (traits.detects_misuse) claim_that_misuse_is_harmless();
    claim_optional_members();
  }

 private:
  static constexpr allocator_traits traits = Allocator::traits;
  using heap = basic_heap<Allocator>;
  /// One heap behind another. Each refuses at an instant of its own, which need not be the same.
  static constexpr bool asks_two = requires(Allocator both) { both.oom(); };

  void claim(char const* what, u32 seeds, check check) {
    seeds = std::max(seeds / fewer_, 2u);
    testing::RegisterTest(name_, what, nullptr, nullptr, __FILE__, __LINE__,
                          [=, contended = contended_, on_gpu = on_gpu_]() -> testing::Test* {
                            return new claim_test{
                                check, seeds, contended, on_gpu, traits.largest_bytes, &pool_unit<Allocator>};
                          });
  }

  void claim_for_every_allocator() {
    claim("ServesOneSize", 200, &serves_one_size<Allocator>);
    claim("ServesMixedSizes", 100, &serves_mixed_sizes<Allocator>);
    claim("KeepsContentsWhileOthersComeAndGo", 50, &keeps_contents_while_others_come_and_go<Allocator>);
    claim("ServesEverySmallSize", 10, &serves_every_small_size<Allocator>);
    claim("ServesBothSidesOfEveryClassEdge", 4, &serves_both_sides_of_every_class_edge<Allocator>);
    claim("AnswersZeroBytesWithNull", 50, &answers_zero_bytes_with_null<Allocator>);
    claim("RefusesImpossibleSizes", 50, &refuses_impossible_sizes<Allocator>);
    claim("IgnoresANullFree", 50, &ignores_a_null_free<Allocator>);
    claim("ServesDivergentCallers", 200, &serves_divergent_callers<Allocator>);
    claim("ServesOneHalfWhileTheOtherFrees", 100, &serves_one_half_while_the_other_frees<Allocator>);
    claim("SurvivesRoomyChurn", 300, &survives_roomy_churn<Allocator>);
    claim("ServesTwoStreamsAtOnce", 20, &serves_two_streams_at_once<Allocator>);
    claim("LetsAnyKernelFree", 30, &lets_any_kernel_free<Allocator>);
    claim("GivesEachBlockOneOwnerAtATime", 50, &gives_each_block_one_owner_at_a_time<Allocator>);
    claim("ReallocatesWithContents", 50, &reallocates_with_contents<Allocator>);
    claim("ReallocatesAtTheEdges", 50, &reallocates_at_the_edges<Allocator>);
    claim("CallocatesZeroes", 50, &callocates_zeroes<Allocator>);
    if constexpr (heap::memory_pieces != 0)
      claim("IsAsItWasAfterARestore", 20, &is_as_it_was_after_a_restore<Allocator>);
  }

  void claim_exactness() {
    claim("FillsAgain", 300, &fills_again<Allocator>);
    claim("FillsWithAnotherSize", 60, &fills_with_another_size<Allocator>);
    claim("RecoversFromMixedSizes", 50, &recovers_from_mixed_sizes<Allocator>);
    claim("ServesExactlyWhatWasFreed", 100, &serves_exactly_what_was_freed<Allocator>);
    claim("SurvivesExhaustionManyTimes", 20, &survives_exhaustion_many_times<Allocator>);
    claim("ServesExactlyWhatIsThere", 600, &serves_exactly_what_is_there<Allocator>);
    if constexpr (traits.one_pass_refusals) {
      claim("FindsWhatStaysFree", 1000, &finds_what_stays_free<Allocator>);
      claim("AnswersWhileOthersChurn", 300, &answers_while_others_churn<Allocator>);
    } else if constexpr (!asks_two) {
      claim("NeverRefusesWhatNobodyHolds", 1000, &never_refuses_what_nobody_holds<Allocator>);
    }
    claim("ServesWhoWaitsForAFree", 1000, &serves_who_waits_for_a_free<Allocator>);
    claim("ServesWhoWaitsForAnotherSize", 100, &serves_who_waits_for_another_size<Allocator>);
    claim("SurvivesChurnThatRunsOut", 200, &survives_churn_that_runs_out<Allocator>);
    claim("PassesContentsOn", 300, &passes_contents_on<Allocator>);
    claim("PassesPlainContentsOnTsan", 20, &passes_plain_contents_on<Allocator>);
    claim("IsAsNewAfterAReset", 20, &is_as_new_after_a_reset<Allocator>);
#if defined(__CUDACC__)
    claim("ReplaysInAGraph", 1, &replays_in_a_graph<Allocator>);
    claim("RefusesToBeMadeDuringCapture", 1, &refuses_to_be_made_during_capture<Allocator>);
#endif
  }

  /// For allocators that promise to detect misuse. With CUDA's own a double free is undefined, and
  /// warp_coalesce, whose words lie in the pool beside its parts, reads what the next owner wrote
  /// there.
  void claim_that_misuse_is_harmless() {
    claim("SurvivesDoubleFreesUnderTraffic", 100, &survives_double_frees_under_traffic<Allocator>);
    claim("FreesWhatWasShuffled", 100, &frees_what_came_without_order<passage::shuffle, Allocator>);
    claim("FreesWhatARelaxedWordPassedOn", 100, &frees_what_came_without_order<passage::mailbox, Allocator>);
    claim("CountsDoubleFrees", 100, &counts_double_frees<Allocator>);
    claim("IgnoresDoubleFreesBesideTraffic", 50, &ignores_double_frees_beside_traffic<Allocator>);
    claim("IgnoresWhatStartsNoBlock", 10, &ignores_what_starts_no_block<Allocator>);
    claim("IgnoresPointersOutsideThePool", 20, &ignores_pointers_outside_the_pool<Allocator>);
  }

  void claim_optional_members() {
    constexpr bool sizes = requires { &Allocator::usable_size; };
    constexpr bool owns = requires { &Allocator::owns; };
    constexpr bool counts = requires(heap made) { made.statistics(); };
    constexpr bool slots = requires(heap made) { made.available_slots(1); };
    constexpr bool exact = traits.exact_out_of_memory;
    if constexpr (sizes) claim("LetsHoldersUseUsableSize", 50, &lets_holders_use_usable_size<Allocator>);
    if constexpr (sizes) claim("ReallocatesInPlace", 20, &reallocates_in_place<Allocator>);
    if constexpr (sizes && owns) claim("KnowsWhatItOwns", 20, &knows_what_it_owns<Allocator>);
    if constexpr (requires { &Allocator::aligned_alloc; }) claim("AlignsAsAsked", 10, &aligns_as_asked<Allocator>);
    if constexpr (requires { &Allocator::malloc_warp; }) claim_warp_calls();
    if constexpr (counts && traits.whole_pool)
      claim("ServesNearlyTheWholePool", 30, &serves_nearly_the_whole_pool<Allocator>);
    if constexpr (counts && exact) claim("UsesPoolsOfAnySize", 30, &uses_pools_of_any_size<Allocator>);
    if constexpr (counts && sizes && exact) claim("KeepsExactStatistics", 50, &keeps_exact_statistics<Allocator>);
    if constexpr (slots && exact) claim("CountsSlotsRightly", 50, &counts_slots_rightly<Allocator>);
    if constexpr (slots && exact) claim("PassesTheChecksumTest", 20, &passes_the_checksum_test<Allocator>);
    if constexpr (counts && sizes && requires(heap made) { made.for_each_live(ignore_block{}); })
      claim("ListsTheLiveBlocks", 20, &lists_the_live_blocks<Allocator>);
  }

  void claim_warp_calls() {
    claim("ServesWholeWarps", 100, &serves_whole_warps<Allocator>);
    if constexpr (traits.exact_out_of_memory)
      claim("SharesTheLastBlocksAmongAWarp", 200, &shares_the_last_blocks_among_a_warp<Allocator>);
  }

  char const* name_;
  contention on_gpu_;
  u32 fewer_;
  bool contended_ = true;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance

/// Puts `Allocator`, a name without a comma, through the suite, as tests named `name.Claim`.
/// Optional arguments: the `contention` on a GPU, and the divisor of the number of schedules, of
/// which two stay at least.
#define WARPHEAP_CONFORMANCE(name, Allocator, ...) \
  static ::warpheap::conformance::suite<Allocator> const name##_conformance { #name __VA_OPT__(, ) __VA_ARGS__ }
