// SPDX-License-Identifier: Apache-2.0
// Work on all cores: every task once, the same results by any number of threads, and the results
// that one thread would reach in the plainest way.
#include "workloads/parallel_work.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "warpheap/util/random.hpp"
#include "workloads/graph/random_order.hpp"
#include "workloads/graph/reference.hpp"

namespace warpheap::tool {

static bool operator==(edge one, edge other) { return one.from == other.from && one.to == other.to; }

namespace {

using testing::IsEmpty;

class ParallelWork : public testing::TestWithParam<u32> {
 protected:
  ParallelWork() { host_threads() = GetParam(); }
  ~ParallelWork() override { host_threads() = before_; }

 private:
  u32 before_ = host_threads();
};

INSTANTIATE_TEST_SUITE_P(OfThreads, ParallelWork, testing::Values(1, 2, 7));

TEST_P(ParallelWork, DoesEachTaskOnce) {
  for (u64 const tasks : {0, 1, 2, 1000}) {
    std::vector<std::atomic<u32>> times(tasks);
    parallel_work{}.pass(tasks, [&](u64 task) { ++times[task]; });
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](auto const& each) { return each == 1; }));
  }
}

TEST_P(ParallelWork, ThrowsWhatATaskThrewAndStartsNoMore) {
  std::atomic<u64> done{0};
  auto const fail_in_third = [&](u64 task) {
    ++done;
    if (task == 2) throw std::runtime_error{"third"};
    // So a thread that fails is done long before the others, whenever it runs.
    if (task > 2) std::this_thread::sleep_for(std::chrono::microseconds{100});
  };
  EXPECT_THROW(parallel_work{}.pass(1'000'000, fail_in_third), std::runtime_error);
  EXPECT_LT(done, 1'000'000u);
}

TEST_P(ParallelWork, ReportsFromTheCallersThreadHowFarItIs) {
  auto const caller = std::this_thread::get_id();
  u64 last = 0, length = 0;
  parallel_work work{[&](std::string const& task, u64 done, u64 total) {
                       EXPECT_EQ(task, "counting");
                       EXPECT_EQ(std::this_thread::get_id(), caller);
                       EXPECT_GE(done, last);
                       last = done;
                       length = total;
                     },
                     "counting", 3};
  for (u32 pass = 1; pass <= 3; ++pass) {
    work.pass(500, [](u64) {});
    EXPECT_GT(last, length * (pass - 1) / 3);
    EXPECT_LE(last, length * pass / 3);
  }
}

TEST_P(ParallelWork, MakesTheGraphThatOneThreadMakes) {
  auto const graph = make_rmat(14, 16, 5);
  ASSERT_EQ(graph.edges.size(), 262'144u);
  u64 sum = 0;
  for (auto const [from, to] : graph.edges) sum = mix(sum + (u64{from} << 32 | to));
  EXPECT_EQ(sum, 0xcb4f'1e15'3cc0'c693u);  // of a loop over all edges, without chunks
}

TEST_P(ParallelWork, SortsKeysAsStdSortDoes) {
  for (u64 const limit : {u64{1}, u64{2}, u64{300}, u64{2049}, (u64{1} << 22) + 1, u64{1} << 31}) {
    random_sequence random{limit};
    entry_keys keys(300'000), sorted;
    for (auto& key : keys) {
      u64 const from = random.below(4) ? random.below(static_cast<u32>(limit)) : limit - 1;
      key = from << 32 | random.below(static_cast<u32>(limit));
    }
    sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    parallel_work work;
    sort_unique(keys, limit, work);
    EXPECT_TRUE(keys == sorted) << limit;
  }
}

TEST_P(ParallelWork, GroupsKeysAsALoopDoes) {
  edge_list graph = make_rmat(13, 24, 3);
  // a group over several chunks
  for (u32 to = 0; to < 150'000; ++to) graph.edges.push_back({4000, to});
  graph.vertices = 150'000;
  auto const keys = keys_of(graph);
  auto const groups = group_by_vertex(keys);
  std::vector<u32> vertices, first, targets;
  for (u64 const key : keys) {
    if (vertices.empty() || vertices.back() != key >> 32) {
      vertices.push_back(static_cast<u32>(key >> 32));
      first.push_back(static_cast<u32>(targets.size()));
    }
    targets.push_back(static_cast<u32>(key));
  }
  first.push_back(static_cast<u32>(targets.size()));
  EXPECT_EQ(groups.vertices, vertices);
  EXPECT_EQ(groups.first, first);
  EXPECT_EQ(groups.targets, targets);
}

edges_array numbered_edges(u32 count) {
  edges_array edges;
  for (u32 i = 0; i < count; ++i) edges.push_back({i, i + 1});
  return edges;
}

TEST_P(ParallelWork, OrdersEdgesAlikeForASeed) {
  auto const edges = numbered_edges(400'000);
  host_threads() = 1;
  parallel_work work;
  auto const whole = random_order(edges, edges.size(), 9, work), part = random_order(edges, 50'000, 9, work);
  host_threads() = GetParam();
  EXPECT_TRUE(random_order(edges, edges.size(), 9, work) == whole);
  EXPECT_TRUE(random_order(edges, 50'000, 9, work) == part);
  EXPECT_FALSE(random_order(edges, edges.size(), 10, work) == whole);
}

TEST_P(ParallelWork, OrdersAllEdgesAndDrawsSamplesFromEverywhere) {
  auto const edges = numbered_edges(400'000);
  parallel_work work;
  for (u64 const size : {u64{0}, u64{1}, u64{50'000}, u64{400'000}}) {
    std::vector<bool> drawn(edges.size());
    double sum = 0, steps = 0;
    auto const order = random_order(edges, size, 4, work);
    ASSERT_EQ(order.size(), size);
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_FALSE(drawn.at(order[i].from)) << "twice";
      drawn[order[i].from] = true;
      EXPECT_EQ(order[i].to, order[i].from + 1);
      sum += order[i].from;
      if (i) steps += std::abs(static_cast<double>(order[i].from) - order[i - 1].from);
    }
    if (size < 1000) continue;
    // 400,000 / sqrt(12 · 50,000) = 516
    EXPECT_NEAR(sum / static_cast<double>(size), 200'000, 2000);
    EXPECT_NEAR(steps / static_cast<double>(size), 400'000.0 / 3, 2000);  // no runs of neighbours
  }
  EXPECT_THAT(random_order({}, 0, 4, work), IsEmpty());
}

TEST_P(ParallelWork, EveryPlaceOfAnOrderIsAsLikelyForEveryEdge) {
  auto const edges = numbered_edges(5);
  u32 seen[5][5] = {};
  parallel_work work;
  for (u64 seed = 0; seed < 5000; ++seed) {
    auto const order = random_order(edges, 5, seed, work);
    for (u32 place = 0; place < 5; ++place) ++seen[place][order[place].from];
  }
  for (auto const& place : seen)
    for (u32 const times : place) EXPECT_NEAR(times, 1000, 150);
}

/// A reference of several parts, and the lists that are equal to it.
class PartsOfReference : public ParallelWork {
 protected:
  PartsOfReference() {
    reference.insert(keys);
    lists.first.assign(1, 0);
    size_t next = 0;
    for (u64 vertex = 0; vertex < graph.vertices; ++vertex) {
      while (next < keys.size() && keys[next] >> 32 == vertex) lists.targets.push_back(static_cast<u32>(keys[next++]));
      lists.first.push_back(next);
    }
  }
  entry_keys all() const {
    entry_keys flat;
    for (auto const& part : reference.parts()) flat.insert(flat.end(), part.begin(), part.end());
    return flat;
  }

  edge_list graph = make_rmat(14, 16, 2);
  entry_keys keys = keys_of(graph);
  reference_graph reference;
  adjacency_lists lists;
};

INSTANTIATE_TEST_SUITE_P(OfThreads, PartsOfReference, testing::Values(1, 2, 7));

// graph.P1
TEST_P(PartsOfReference, HaveAllKeysInOrder) {
  EXPECT_GT(reference.parts().size(), 4u);
  EXPECT_TRUE(all() == keys);
  EXPECT_EQ(reference.size(), keys.size());
}

TEST_P(PartsOfReference, ChangeAsOneSetDoes) {
  auto const other = keys_of(make_rmat(14, 8, 3));
  auto expected = keys;
  auto const change = [&](auto operation) {
    entry_keys made(expected.size() + other.size());
    made.erase(operation(expected.begin(), expected.end(), other.begin(), other.end(), made.begin()), made.end());
    expected = made;
  };
  reference.insert(other);
  change([](auto... of) { return std::set_union(of...); });
  EXPECT_TRUE(all() == expected);
  reference.erase(other);
  change([](auto... of) { return std::set_difference(of...); });
  EXPECT_TRUE(all() == expected);
  reference.erase(keys);
  EXPECT_EQ(reference.size(), 0u);
  reference.insert(other);
  EXPECT_TRUE(all() == other);
}

TEST_P(PartsOfReference, AcceptListsInAnyOrder) {
  EXPECT_THAT(reference.difference(lists), IsEmpty());
  for (size_t vertex = 0; vertex + 1 < lists.first.size(); ++vertex)
    std::reverse(lists.targets.begin() + static_cast<i64>(lists.first[vertex]),
                 lists.targets.begin() + static_cast<i64>(lists.first[vertex + 1]));
  EXPECT_THAT(reference.difference(lists), IsEmpty());
}

TEST_P(PartsOfReference, TellTheFirstVertexThatDiffers) {
  // One entry of every thousandth is changed, from the end to the start.
  auto const right = lists;
  std::vector<u64> vertices;
  for (u64 vertex = 0; vertex < graph.vertices; vertex += 1000)
    if (lists.first[vertex] < lists.first[vertex + 1]) vertices.push_back(vertex);
  ASSERT_GT(vertices.size(), 5u);
  std::reverse(vertices.begin(), vertices.end());
  for (u64 const vertex : vertices) {
    lists.targets[lists.first[vertex]] = graph.vertices;
    EXPECT_THAT(reference.difference(lists), testing::StartsWith("vertex " + std::to_string(vertex) + " has "));
  }
  lists = right;
  lists.first.resize(lists.first.size() - 1000);
  EXPECT_THAT(reference.difference(lists),
              std::to_string(keys.size() - lists.first.back()) + " adjacency entries are missing");
}

}  // namespace
}  // namespace warpheap::tool
