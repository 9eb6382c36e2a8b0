// SPDX-License-Identifier: Apache-2.0
// Workloads whose calls of malloc are refused one by one: a thread that is refused reports it, and
// nothing is lost beside what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "tests/support/schedules.hpp"
#include "tests/tool/measured_fixture.hpp"
#include "warpheap/policy/creation/refuse_some.hpp"
#include "warpheap/warpheap.hpp"
#include "workloads/graph/backend/heap_graph.hpp"
#include "workloads/graph/backend/set_graph.hpp"
#include "workloads/graph/edge_list.hpp"
#include "workloads/join/backend/job.hpp"
#include "workloads/join/reference.hpp"
#include "workloads/pic/backend/simulation.hpp"

namespace warpheap::tool { namespace refused_calls_test {

using testing::HasSubstr;
using testing::IsEmpty;

template <creation::refuse_some_config Config>
using refusing_slabs = creation::refuse_some<creation::slab_bitmap<>, Config>;

inline constexpr creation::refuse_some_config every_other{.seed = 3, .one_in = 2};
using refusing = plain_allocator<refusing_slabs<every_other>>;

/// Adjacency entries, `vertex << 32 | neighbour`, ascending.
using entries = std::vector<u64>;

entries entries_of(dynamic_graph const& graph) {
  auto const lists = graph.read();
  entries found;
  for (u64 vertex = 0; vertex + 1 < lists.first.size(); ++vertex)
    for (u64 i = lists.first[vertex]; i < lists.first[vertex + 1]; ++i)
      found.push_back(vertex << 32 | lists.targets[i]);
  return found;
}

entries drawn_entries(u32 vertices, u64 edges, u64 seed) {
  entries drawn;
  random_sequence random{seed};
  for (u64 i = 0; i < edges; ++i) {
    // A list for a whole warp, and short ones.
    u64 const from = i % 3 == 0 ? 0 : random.below(vertices);
    drawn.push_back(from << 32 | random.below(400));
  }
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  return drawn;
}

edge_groups batch_of(entries const& list) {
  entry_keys keys(list.size());
  std::copy(list.begin(), list.end(), keys.begin());
  return group_by_vertex(keys);
}

// A list that could not grow keeps what it has and takes what there is room for; the entries that
// found none are counted. A list that could not shrink stays as it is.
TEST(RefusedCalls, LoseNoEntryOfTheGraphThatIsNotCounted) {
  u64 lost = 0, failures = 0;
  test::for_each_schedule(12, [&] {
    constexpr u32 vertices = 60;
    graph::heap_graph<refusing> graph{2 * mebibyte, vertices};
    u64 seed = 100 * test::schedule_seed();
    for (u32 round = 0; round < 4; ++round) {
      auto const before = entries_of(graph), more = drawn_entries(vertices, 250, ++seed);
      u64 const lost_before = graph.counts().lost;
      graph.insert(batch_of(more));
      auto const after = entries_of(graph);
      entries all;
      std::set_union(before.begin(), before.end(), more.begin(), more.end(), std::back_inserter(all));
      EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
      EXPECT_TRUE(std::includes(all.begin(), all.end(), after.begin(), after.end()));
      EXPECT_EQ(after.size() + graph.counts().lost - lost_before, all.size());
      EXPECT_THAT(graph.fault(), IsEmpty());

      auto const gone = drawn_entries(vertices, 400, ++seed);
      graph.erase(batch_of(gone));
      entries left;
      std::set_difference(after.begin(), after.end(), gone.begin(), gone.end(), std::back_inserter(left));
      EXPECT_EQ(entries_of(graph), left);
      EXPECT_EQ(graph.counts().inserted - graph.counts().erased, left.size());
      EXPECT_THAT(graph.fault(), IsEmpty());
    }
    lost += graph.counts().lost;
    failures += graph.counts().failures;
    graph.clear();
    EXPECT_EQ(graph.counts().mallocs, graph.counts().frees);
    EXPECT_THAT(graph.fault(), IsEmpty());
  });
  EXPECT_GT(lost, 0u);
  EXPECT_GT(failures, lost / 100);
}

// A message that finds no room, or whose receiver has none for a copy, changes nothing, and its
// entries are counted; its block goes back all the same.
TEST(RefusedCalls, LoseNoMessageOfTheGraphThatIsNotCounted) {
  u64 lost = 0, to_others = 0;
  test::for_each_schedule(6, [&] {
    constexpr u32 vertices = 60;
    graph::set_graph<refusing> graph{2 * mebibyte, vertices, {0, 0, 0}};
    u64 seed = 100 * test::schedule_seed();
    for (u32 round = 0; round < 4; ++round) {
      auto const before = entries_of(graph), more = drawn_entries(vertices, 250, ++seed);
      u64 const lost_before = graph.counts().lost;
      graph.insert(batch_of(more));
      auto const after = entries_of(graph);
      u64 const lost_between = graph.counts().lost;
      entries all;
      std::set_union(before.begin(), before.end(), more.begin(), more.end(), std::back_inserter(all));
      EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
      EXPECT_TRUE(std::includes(all.begin(), all.end(), after.begin(), after.end()));
      EXPECT_GE(after.size() + lost_between - lost_before, all.size());
      EXPECT_THAT(graph.fault(), IsEmpty());

      auto const gone = drawn_entries(vertices, 400, ++seed);
      graph.erase(batch_of(gone));
      auto const now = entries_of(graph);
      entries left;
      std::set_difference(after.begin(), after.end(), gone.begin(), gone.end(), std::back_inserter(left));
      EXPECT_TRUE(std::includes(now.begin(), now.end(), left.begin(), left.end()));
      EXPECT_TRUE(std::includes(after.begin(), after.end(), now.begin(), now.end()));
      EXPECT_LE(now.size(), left.size() + graph.counts().lost - lost_between);
      EXPECT_EQ(graph.counts().inserted - graph.counts().erased, now.size());
      EXPECT_THAT(graph.fault(), IsEmpty());
    }
    lost += graph.counts().lost;
    for (auto const& member : graph.members()) to_others += member.messages_to_others;
    graph.clear();
    EXPECT_EQ(graph.counts().mallocs, graph.counts().frees);
    EXPECT_THAT(graph.fault(), IsEmpty());
  });
  EXPECT_GT(lost, 0u);
  EXPECT_GT(to_others, 0u);
}

/// Key, build payload, probe payload.
using tuple = std::array<u32, 3>;

join_table few_keys(u64 tuples, u64 seed) {
  join_table made;
  random_sequence random{seed};
  for (u64 i = 0; i < tuples; ++i) {
    made.keys.push_back(random.below(20));
    made.payloads.push_back(static_cast<u32>(i));
  }
  return made;
}

/// A warp whose page is refused ends; what it wrote before is there, and right.
constexpr creation::refuse_some_config one_in_sixteen{.seed = 4, .one_in = 16};

template <class Writer>
void expect_a_part_of_the_join() {
  auto const build = few_keys(120, 1), probe = few_keys(300, 2);
  std::vector<tuple> wanted;
  for (size_t p = 0; p < probe.tuples(); ++p)
    for (size_t b = 0; b < build.tuples(); ++b)
      if (probe.keys[p] == build.keys[b]) wanted.push_back({probe.keys[p], build.payloads[b], probe.payloads[p]});
  std::sort(wanted.begin(), wanted.end());
  u64 found_in_all = 0;
  test::for_each_schedule(12, [&] {
    constexpr u64 page_bytes = 80;
    join::heap_pages<plain_allocator<refusing_slabs<one_in_sixteen>>> pages{2 * mebibyte, page_bytes};
    join::partitioned_table first{build, 1}, second{probe, 1};
    join::hash_table table{first};
    device_buffer<join::chain> const chains((probe.tuples() + Writer::lanes_a_chain - 1) / Writer::lanes_a_chain);
    device_buffer<u64> const failures(1);
    first.cut();
    second.cut();
    table.build();
    launch(join::thread_each(probe.tuples()), join::probe_tuples<Writer>{}, pages.ref(), table.view(), second.tuples(),
           page_bytes, chains.data(), failures.data());
    synchronize();
    EXPECT_GT(failures[0], 0u);
    EXPECT_EQ(failures[0], pages.ref().creation().refusals());
    std::vector<tuple> found;
    u32 const slots = join::slots_of(page_bytes);
    for (auto const& each : chains.to_host()) {
      join::page here{reinterpret_cast<u8*>(each.head), slots};
      for (u32 left = each.pages, used = each.used; left > 0; --left, used = slots, here = here.before())
        for (u32 slot = 0; slot < used; ++slot) found.push_back({here.key(slot), here.build(slot), here.probe(slot)});
    }
    launch(join::thread_each(chains.size()), join::free_chains{}, pages.ref(), chains.data(), chains.size(), slots);
    synchronize();
    EXPECT_THAT(pages.fault(), IsEmpty());
    std::sort(found.begin(), found.end());
    EXPECT_TRUE(std::includes(wanted.begin(), wanted.end(), found.begin(), found.end())) << "wrong tuples, or twice";
    EXPECT_LT(found.size(), wanted.size());
    found_in_all += found.size();
  });
  EXPECT_GT(found_in_all, 0u);
}

TEST(RefusedCalls, LeaveTheJoinOfAWarpARightPart) { expect_a_part_of_the_join<join::warp_writer>(); }
TEST(RefusedCalls, LeaveTheJoinOfALaneARightPart) { expect_a_part_of_the_join<join::lane_writer>(); }

TEST(RefusedCalls, AreReportedByTheJoin) {
  auto const build = few_keys(120, 1), probe = few_keys(300, 2);
  for (u32 const lanes : {1u, 32u}) {
    join_settings settings{.build = &build, .probe = &probe, .expected = reference_join(build, probe)};
    settings.lanes_a_chain = lanes;
    settings.pool_bytes = 2 * mebibyte;
    auto const rows = join::job<join::heap_pages<refusing>>{"refusing", settings}.run();
    EXPECT_THAT(rows.at(0).fault, HasSubstr("out of memory: "));
    EXPECT_GT(rows.at(0).failures, 0u);
  }
}

/// Counts the blocks that callers have.
template <creation::refuse_some_config Config>
struct counting : refusing_slabs<Config> {
  using base = refusing_slabs<Config>;
  static inline std::atomic<i64> live{0};

  counting() = default;
  static counting place(void* memory, size_t bytes) { return counting{base::place(memory, bytes)}; }
  void* create(size_t bytes) const {
    void* const block = base::create(bytes);
    live += block != nullptr;
    return block;
  }
  void destroy(void* block) const {
    live -= block != nullptr;
    base::destroy(block);
  }

 private:
  explicit counting(base made) : base{made} {}
};

pic_settings small_frames() {
  pic_settings settings;
  settings.cells_x = 32;
  settings.cells_y = 8;
  settings.particles_per_cell = 8;
  settings.steps = 10;
  settings.frame_bytes = 672;  // of 32 particles: lists of many frames
  settings.pool_bytes = 4 * mebibyte;
  return settings;
}

/// Frames that small_frames() begins with are served; later some are not.
inline constexpr creation::refuse_some_config once_it_runs{.seed = 6, .one_in = 4, .served_first = 2 * 8 * 8};

TEST(RefusedCalls, StrandParticlesOfAPlasmaAndLoseNone) {
  using policy = counting<once_it_runs>;
  test::for_each_schedule(4, [&] {
    policy::live = 0;
    auto const made = pic::simulation<plain_allocator<policy>>{"refusing", small_frames()}.run();
    auto const& step = made.results.at(0);
    // The counts and checksums of all particles are compared before this is said.
    EXPECT_THAT(step.fault, HasSubstr("times a particle found no memory in its new super cell"));
    EXPECT_GT(step.failures, 0u);
    EXPECT_EQ(policy::live, 0) << "frames that no list has";
  });
}

TEST(RefusedCalls, EndAPlasmaThatCannotBeginAndLoseNoFrame) {
  using policy = counting<every_other>;
  policy::live = 0;
  auto const made = pic::simulation<plain_allocator<policy>>{"refusing", small_frames()}.run();
  EXPECT_THAT(made.results.at(0).fault, HasSubstr("particles found no memory in a pool of"));
  EXPECT_GT(made.results.at(0).failures, 0u);
  EXPECT_EQ(policy::live, 0);
}

}}  // namespace warpheap::tool::refused_calls_test
