// SPDX-License-Identifier: Apache-2.0
// Lanes agree on the members of their group, and a counter gives every lane its own number.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/warp_aggregate.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

constexpr launch_shape two_blocks{2, 77};  // the last warp of each thread block is partial
constexpr u32 lanes = two_blocks.blocks * two_blocks.threads;

/// What a lane says of the group it found itself in.
struct member {
  u32 warp, lane, key;
  lane_mask mask;
  u32 leader, rank, size;
  u32 leads;
  u32 heard;  // from the leader
};

/// What the calling lane knows of its group, and what its leader told it.
WARPHEAP_DEVICE member member_of(lane_group const& group, u32 key) {
  auto const lane = simt::lane_id();
  return {simt::block_index() * 32 + simt::warp_id() + 1,
          lane,
          key,
          group.mask,
          group.leader,
          group.rank,
          group.size,
          group.leads,
          broadcast(group, lane)};
}

/// Lanes diverge by `key`, form groups with the active lanes, and broadcast the leader's lane
/// number.
struct meet_by_branch {
  WARPHEAP_DEVICE void operator()(u32 keys, member* members) const {
    auto const key = simt::lane_id() % keys;
    if (key == 1) return;
    members[global_thread_index()] = member_of(group_of(simt::active_mask()), 0);
  }
};

/// All lanes that meet split by key.
struct meet_by_key {
  WARPHEAP_DEVICE void operator()(u32 keys, member* members) const {
    auto const key = simt::lane_id() * 7 % keys;
    members[global_thread_index()] = member_of(group_by(simt::active_mask(), key), key);
  }
};

/// Members of one warp with one mask know the same leader and size, and have the ranks 0, 1, ... in
/// the order of lanes.
void expect_groups_agree(std::vector<member> const& members) {
  std::map<std::pair<u32, lane_mask>, std::vector<member>> groups;
  for (auto const& m : members) {
    if (m.warp != 0) groups[{m.warp, m.mask}].push_back(m);
  }
  ASSERT_FALSE(groups.empty());
  for (auto const& [name, group] : groups) {
    SCOPED_TRACE(testing::Message() << "mask " << name.second);
    lane_mask mask = 0;
    u32 rank = 0;
    for (auto const& m : group) {
      mask |= lane_bit(m.lane);
      EXPECT_EQ(m.rank, rank++);
      EXPECT_EQ(m.leads, m.rank == 0);
      EXPECT_EQ(m.leader, group.front().lane);
      EXPECT_EQ(m.heard, group.front().lane);
      EXPECT_EQ(m.size, group.size());
      EXPECT_EQ(m.key, group.front().key);
    }
    EXPECT_EQ(mask, name.second);
  }
}

// aggregate.G1
TEST(WarpAggregate, ABranchsLanesAgreeOnLeaderRankAndSize) {
  for (u32 const keys : {2u, 3u, 32u}) {
    for_each_schedule(20, [&] {
      device_buffer<member> members(lanes);
      launch(two_blocks, meet_by_branch{}, keys, members.data());
      synchronize();
      expect_groups_agree(members.to_host());
    });
  }
}

// aggregate.G2
TEST(WarpAggregate, LanesOfOneKeyFormAGroup) {
  for (u32 const keys : {1u, 3u, 31u, 64u}) {
    for_each_schedule(20, [&] {
      device_buffer<member> members(lanes);
      launch(two_blocks, meet_by_key{}, keys, members.data());
      synchronize();
      expect_groups_agree(members.to_host());
    });
  }
}

/// Every lane draws `rounds` numbers, from a counter of its own choice.
template <class T>
struct draw_numbers {
  WARPHEAP_DEVICE void operator()(T* counters, u32 counter_count, u32 rounds, T* drawn) const {
    auto const me = global_thread_index();
    for (u32 round = 0; round < rounds; ++round) {
      auto& counter = counters[(me + round) % counter_count];
      drawn[me * rounds + round] = aggregated_fetch_add(simt::active_mask(), counter);
    }
  }
};

template <class T>
void expect_every_number_drawn_once(u32 counter_count) {
  constexpr u32 rounds = 4;
  for_each_schedule(20, [&] {
    device_buffer<T> counters(counter_count);
    device_buffer<T> drawn(lanes * rounds);
    launch(two_blocks, draw_numbers<T>{}, counters.data(), counter_count, rounds, drawn.data());
    synchronize();
    auto const numbers = drawn.to_host();
    std::vector<std::set<T>> seen(counter_count);
    for (u32 i = 0; i < numbers.size(); ++i) {
      auto const counter = (i / rounds + i % rounds) % counter_count;
      EXPECT_TRUE(seen[counter].insert(numbers[i]).second) << numbers[i] << " of counter " << counter << " twice";
    }
    for (u32 counter = 0; counter < counter_count; ++counter) {
      EXPECT_EQ(counters[counter], seen[counter].size());
      EXPECT_EQ(*seen[counter].rbegin() + 1, seen[counter].size());
    }
  });
}

// aggregate.G3
TEST(WarpAggregate, ACounterGivesEveryLaneItsOwnNumber) {
  expect_every_number_drawn_once<u32>(1);
  expect_every_number_drawn_once<u64>(1);
}

TEST(WarpAggregate, LanesWithDifferentCountersDoNotMix) {
  expect_every_number_drawn_once<u32>(3);
  expect_every_number_drawn_once<u64>(7);
}

/// Every lane has bits of its own, and bits that others of its group have too; the leader has the
/// union.
template <class Bits>
struct unite_bits {
  WARPHEAP_HOST_DEVICE static Bits bits_of(u32 lane) {
    return Bits{1} << lane * (sizeof(Bits) / 4) % (8 * sizeof(Bits)) | Bits{lane % 3} << (8 * sizeof(Bits) - 2);
  }
  WARPHEAP_DEVICE void operator()(u32 keys, member* members, Bits* unions) const {
    lane_mask const active = simt::active_mask();
    u32 const key = simt::lane_id() * 7 % keys;
    lane_group const group = group_by(active, key);
    Bits const all = union_of_groups(active, group, bits_of(simt::lane_id()));
    members[global_thread_index()] = member_of(group, key);
    unions[global_thread_index()] = all;
  }
};

template <class Bits>
void expect_leaders_hold_the_union() {
  for (u32 const keys : {1u, 2u, 5u, 32u}) {
    for_each_schedule(20, [&] {
      device_buffer<member> members(lanes);
      device_buffer<Bits> unions(lanes);
      launch(two_blocks, unite_bits<Bits>{}, keys, members.data(), unions.data());
      synchronize();
      u32 leaders = 0;
      for (u32 i = 0; i < lanes; ++i) {
        if (!members[i].leads) continue;
        ++leaders;
        Bits all = 0;
        for (lane_mask rest = members[i].mask; rest != 0; rest &= rest - 1)
          all |= unite_bits<Bits>::bits_of(lowest_bit(rest));
        EXPECT_EQ(unions[i], all) << keys << " keys, mask " << members[i].mask;
      }
      EXPECT_GE(leaders, keys);
    });
  }
}

TEST(WarpAggregate, ALeaderHoldsTheUnionOfItsGroupsBits) {
  expect_leaders_hold_the_union<u32>();
  expect_leaders_hold_the_union<u64>();
}

}  // namespace
