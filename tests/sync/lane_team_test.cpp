// SPDX-License-Identifier: Apache-2.0
// What lanes of a team tell each other, and what they copy together.
#include "warpheap/sync/lane_team.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace lane_team_test {

using namespace warpheap;

static_assert(lane_team<lone_lane> && lane_team<whole_warp> && lane_team<whole_block<64>>);

template <class Team>
WARPHEAP_DEVICE Team team_of(u64* scratch) {
  if constexpr (Team::size > warp_lanes) return Team{scratch + simt::block_index() * Team::scratch_words};
  else return Team{};
}

/// Kernel: each team votes on `rounds` patterns, tells all a number of its first lane, and copies
/// `words` words of its own.
template <class Team>
struct confer {
  WARPHEAP_DEVICE void operator()(u64* scratch, u32 rounds, u64 const* from, u64* to, u32 words, u32* wrong) const {
    auto const team = team_of<Team>(scratch);
    u64 const me = global_thread_index(), number = me / Team::size;
    for (u32 round = 1; round <= rounds; ++round) {
      votes const seen = team.vote(team.rank() % round == 0);
      team.sync();
      if (seen.before != (team.rank() + round - 1) / round || seen.all != (Team::size + round - 1) / round) ++wrong[me];
      if (team.from_first(100 * me + round) != 100 * number * Team::size + round) ++wrong[me];
    }
    copy_words(team, to + number * words, from + number * words, words);
    team.sync();
    for (u32 i = 0; i < words; ++i)
      if (to[number * words + i] != from[number * words + i]) ++wrong[me];
  }
};

template <class Team>
void expect_conferences(launch_shape shape) {
  u64 const threads = u64{shape.blocks} * shape.threads, teams = threads / Team::size;
  for (u32 const words : {1u, 3u, 5u, 131u}) {
    std::vector<u64> numbers(teams * words);
    for (u64 i = 0; i < numbers.size(); ++i) numbers[i] = i * i + 1;
    device_buffer<u64> const from{numbers}, to(numbers.size()), scratch(threads);
    device_buffer<u32> const wrong(threads);
    launch(shape, confer<Team>{}, scratch.data(), 5u, from.data(), to.data(), words, wrong.data());
    synchronize();
    EXPECT_EQ(wrong.to_host(), std::vector<u32>(threads)) << words;
    EXPECT_EQ(to.to_host(), numbers) << words;
  }
}

TEST(LaneTeam, CountsVotesTellsAllAndCopies) {
  test::for_each_schedule(8, [] {
    expect_conferences<lone_lane>({2, 40});
    expect_conferences<whole_warp>({2, 64});
    expect_conferences<whole_block<64>>({2, 64});
    expect_conferences<whole_block<96>>({1, 96});
  });
}

}  // namespace lane_team_test
