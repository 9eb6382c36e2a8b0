// SPDX-License-Identifier: Apache-2.0
// A deal gives the pages that lanes have found to the lanes that need one: as many as there are,
// lowest lanes first, each page once.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/policy/creation/random_walk/deal.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::test { namespace {

constexpr u32 no_page = ~0u;

/// What a lane brings to a deal, and what it has afterwards. Its word's pages begin at 64 times its
/// number.
template <class Mask>
struct hand {
  Mask found = 0;
  u32 page = no_page;
  Mask taken = 0;
};

/// Kernel: a deal among the lanes of `active`.
template <class Mask>
struct deal_once {
  WARPHEAP_DEVICE void operator()(u32 active, hand<Mask>* hands) const {
    u32 const lane = simt::lane_id();
    if ((active >> lane & 1) == 0) return;
    random_walk_parts::deal<Mask> const dealt{active, hands[lane].found, 64 * lane, hands[lane].page};
    hands[lane].page = dealt.page;
    hands[lane].taken = dealt.taken;
  }
};

template <class Mask>
std::vector<hand<Mask>> after_deal(u32 active, std::vector<hand<Mask>> const& hands) {
  device_buffer<hand<Mask>> dealt{hands};
  launch({1, warp_lanes}, deal_once<Mask>{}, active, dealt.data());
  synchronize();
  return dealt.to_host();
}

// Figure 5 of Pham et al. 2022: lanes 0, 3 and 5 found nothing, and need not look again.
TEST(Deal, ServesSixLanesFromSixPagesThatThreeOfThemFound) {
  for_each_schedule(20, [] {
    std::vector<hand<u32>> hands(warp_lanes);
    hands[1].found = 0b1001;
    hands[2].found = 0b1;
    hands[4].found = 0b10110;
    auto const dealt = after_deal(0b111111u, hands);
    std::vector<u32> pages;
    for (u32 lane = 0; lane < 6; ++lane) {
      pages.push_back(dealt[lane].page);
      EXPECT_EQ(dealt[lane].taken, hands[lane].found) << "lane " << lane << " found these, and all are needed";
    }
    std::sort(pages.begin(), pages.end());
    EXPECT_EQ(pages, (std::vector<u32>{64, 64 + 3, 128, 256 + 1, 256 + 2, 256 + 4}));
  });
}

/// Lanes of which some have a page already, and some have found pages: one or many.
template <class Mask>
std::vector<hand<Mask>> drawn_hands(random_sequence& random) {
  constexpr u32 width = 8 * sizeof(Mask);
  std::vector<hand<Mask>> hands(warp_lanes);
  u32 const one_in = 1 + random.below(8), holders = random.below(9);
  for (u32 lane = 0; lane < warp_lanes; ++lane) {
    if (random.below(8) < holders) hands[lane].page = 1'000'000 + lane;
    u64 const word = u64{random.next()} << 32 | random.next();
    if (random.below(one_in) == 0) hands[lane].found = static_cast<Mask>(word) >> random.below(width);
  }
  return hands;
}

/// Whether a deal among the lanes of `active` is as the rule says.
template <class Mask>
void expect_fair(u32 active, std::vector<hand<Mask>> const& hands) {
  auto const dealt = after_deal(active, hands);
  std::vector<u32> given, got;
  u32 found = 0;
  for (u32 lane = 0; lane < warp_lanes; ++lane) found += active >> lane & 1 ? popcount(hands[lane].found) : 0;
  for (u32 lane = 0; lane < warp_lanes; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    EXPECT_EQ(dealt[lane].taken & ~hands[lane].found, 0u) << "lane " << lane << " gives what it has not found";
    for (u32 bit = 0; bit < 8 * sizeof(Mask); ++bit)
      if (dealt[lane].taken >> bit & 1) given.push_back(64 * lane + bit);
    if (hands[lane].page != no_page) {
      EXPECT_EQ(dealt[lane].page, hands[lane].page) << "lane " << lane << " has a page and needs none";
    } else if (got.size() < found) {
      EXPECT_NE(dealt[lane].page, no_page) << "lane " << lane << " needs a page, and one is left";
      got.push_back(dealt[lane].page);
    } else {
      EXPECT_EQ(dealt[lane].page, no_page) << "lane " << lane << " has a page that no lane found";
    }
  }
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, given) << "a page that is given has one new owner";
}

TEST(Deal, GivesAsManyPagesAsThereAreToTheLowestLanesThatNeedOne) {
  for_each_schedule(60, [] {
    random_sequence random{schedule_seed()};
    for (u32 round = 0; round < 20; ++round) {
      u32 const active = random.below(2) ? ~0u : random.next() | 1;
      expect_fair(active, drawn_hands<u32>(random));
      expect_fair(active, drawn_hands<u64>(random));
    }
  });
}

}}  // namespace warpheap::test
