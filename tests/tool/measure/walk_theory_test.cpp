// SPDX-License-Identifier: Apache-2.0
// The closed forms of random walks against simulated walks: threads one after the other on a random
// occupancy, with no allocator.
#include "measure/walk_theory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "warpheap/util/random.hpp"

namespace warpheap::test { namespace {

namespace theory = walk_theory;

/// A bitmap of pages of which some random ones are free.
class simulated_pages {
 public:
  simulated_pages(u32 total, u32 free, u64 seed) : taken_(total, true), random_{seed} {
    std::vector<u32> order(total);
    std::iota(order.begin(), order.end(), 0u);
    for (u32 i = 0; i < free; ++i) {
      std::swap(order[i], order[i + random_.below(total - i)]);
      taken_[order[i]] = false;
    }
  }

  u32 page_steps() {
    return look([&](u32 at) { return at; }, total(), 1);
  }
  u32 word_steps(u32 pages) {
    return look([&](u32 at) { return at * pages; }, total() / pages, pages);
  }

  u32 together_steps(u32 pages, u32 lanes) {
    u32 steps = 0;
    for (u32 needed = lanes; needed != 0; ++steps)
      for (u32 lane = 0; lane < lanes; ++lane)
        needed -= take_up_to(needed, pages * random_.below(total() / pages), pages);
    return steps;
  }

 private:
  static constexpr u32 none = ~0u;
  u32 total() const { return static_cast<u32>(taken_.size()); }

  u32 first_free(u32 first, u32 count) const {
    for (u32 i = first; i < first + count; ++i)
      if (!taken_[i]) return i;
    return none;
  }

  u32 take_up_to(u32 wanted, u32 first, u32 count) {
    u32 got = 0;
    for (; got < wanted; ++got) {
      u32 const page = first_free(first, count);
      if (page == none) break;
      taken_[page] = true;
    }
    return got;
  }

  template <class Place>
  u32 look(Place place, u32 places, u32 count) {
    for (u32 steps = 1;; ++steps) {
      u32 const page = first_free(place(random_.below(places)), count);
      if (page == none) continue;
      taken_[page] = true;
      return steps;
    }
  }

  std::vector<bool> taken_;
  random_sequence random_;
};

struct measured {
  double tas, was;
};

template <class Walk>
measured walk(u32 total, u32 free, u32 threads, Walk walk_one) {
  double steps = 0, most = 0;
  constexpr u32 runs = 24;
  for (u32 run = 0; run < runs; ++run) {
    simulated_pages pages{total, free, run + 1};
    for (u32 thread = 0; thread < threads; thread += 32) {
      double largest = 0;
      for (u32 lane = 0; lane < 32; ++lane) {
        double const taken = walk_one(pages);
        steps += taken;
        largest = std::max(largest, taken);
      }
      most += largest;
    }
  }
  return {steps / runs / threads, most * 32 / runs / threads};
}

constexpr u32 total = 1 << 17;

TEST(WalkTheory, SaysHowManyPagesAreLookedAt) {
  for (u32 const percent : {50u, 10u, 2u}) {
    u32 const free = total / 100 * percent, threads = free / 64 * 32;
    auto const seen = walk(total, free, threads, [](auto& pages) { return pages.page_steps(); });
    theory::pages const of{total, static_cast<double>(free), static_cast<double>(threads)};
    EXPECT_NEAR(seen.tas / theory::page_thread_steps(of), 1, 0.02) << percent;
    EXPECT_LT(seen.was, theory::page_warp_steps(of)) << "it is a bound";
    EXPECT_GT(seen.was, 0.5 * theory::page_warp_steps(of)) << percent;
  }
}

TEST(WalkTheory, SaysHowManyWordsAreLookedAt) {
  for (u32 const percent : {50u, 10u, 1u}) {
    u32 const free = total / 100 * percent, threads = free / 10 / 32 * 32;
    auto const seen = walk(total, free, threads, [](auto& pages) { return pages.word_steps(32); });
    theory::pages const of{total, static_cast<double>(free), static_cast<double>(threads)};
    EXPECT_NEAR(seen.tas / theory::word_thread_steps(of), 1, 0.04) << percent;
    EXPECT_LT(seen.was, 1.05 * theory::word_warp_steps(of)) << percent;
  }
  // When all that is free is taken, words that were emptied make it more.
  theory::pages const all{total, 1024, 1024};
  auto const seen = walk(total, 1024, 1024, [](auto& pages) { return pages.word_steps(32); });
  EXPECT_GT(seen.tas, 0.95 * theory::word_thread_steps(all));
  EXPECT_LT(seen.tas, 1.55 * theory::word_thread_steps(all));
}

TEST(WalkTheory, SaysHowOftenAWarpLooksTogether) {
  for (u32 const percent : {50u, 10u, 1u}) {
    u32 const free = total / 100 * percent, threads = free / 10 / 32 * 32;
    double steps = 0;
    constexpr u32 runs = 24;
    for (u32 run = 0; run < runs; ++run) {
      simulated_pages pages{total, free, run + 7};
      for (u32 warp = 0; warp < threads / 32; ++warp) steps += pages.together_steps(32, 32);
    }
    theory::pages const of{total, static_cast<double>(free), static_cast<double>(threads)};
    EXPECT_NEAR(32.0 * steps / runs / threads / theory::together_steps(of), 1, 0.05) << percent;
  }
}

TEST(WalkTheory, PutsTheGainOfWordsBetweenOneAndTheirWidth) {
  double last = 1;
  for (double const share : {0.9, 0.5, 0.1, 0.01, 0.001, 0.0001}) {
    theory::pages const of{1e6, 1e6 * share, 1e5 * share};
    double const gain = theory::page_thread_steps(of) / theory::word_thread_steps(of);
    EXPECT_GE(gain, last) << "it grows as pages become few";
    EXPECT_LE(gain, 32.0001);
    last = gain;
  }
  EXPECT_NEAR(last, 32, 0.1);
  // Here A = N, the limit in which the paper proves its factor of up to 32.
  theory::pages const half{1e6, 5e5, 5e5};
  EXPECT_NEAR(theory::page_thread_steps(half) / theory::word_thread_steps(half), 16.3, 0.2);
}

TEST(WalkTheory, AgreesWithWhatCanBeCountedByHand) {
  EXPECT_DOUBLE_EQ(theory::queue_thread_steps(5000), 2500.5);
  EXPECT_NEAR(theory::queue_warp_steps(63), 62.06, 0.01);
  // Four warps end at the places 32, 64, 96 and 128.
  EXPECT_DOUBLE_EQ(theory::queue_warp_steps_together(128), 80);
  EXPECT_DOUBLE_EQ(theory::queue_warp_steps_together(7), 7);
  // Warps of 32 lanes and of 8: they end at 32 and 40, or at 40 and 8.
  EXPECT_DOUBLE_EQ(theory::queue_warp_steps_together(40), (36.0 + 24.0) / 2);
  EXPECT_NEAR(theory::harmonic(32), 4.0585, 1e-4);
  EXPECT_NEAR(theory::harmonic(1000), 7.485470860550345, 1e-9);
  EXPECT_NEAR(theory::largest_of(0.5, 1), 2, 1e-9);
  // Two of them: 2/(1-q) - 1/(1-q^2).
  EXPECT_NEAR(theory::largest_of(0.9, 2), 20 - 1 / 0.19, 1e-6);
  EXPECT_NEAR(theory::largest_of(0.9989, 32), theory::harmonic(32) / -std::log(0.9989) + 0.5, 0.01);
  EXPECT_NEAR(theory::colliding_pairs({1e6, 5e5, 5000}), 12.5, 0.01);
  EXPECT_NEAR(theory::colliding_pairs_on_free_pages({1e6, 5e5, 5000}), 6.25, 0.01);
  EXPECT_NEAR(theory::page_thread_steps({1e6, 5000, 5000}), 200 * theory::harmonic(5000), 1e-6);
}

}}  // namespace warpheap::test
