// SPDX-License-Identifier: Apache-2.0
// Every schedule of a few lanes on one shared list, and lists that forget their mutex, which the
// checks must see under some schedule.
#include <gtest/gtest.h>

#include "support/explorations.hpp"
#include "warpheap/container/adjacency_list.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace adjacency_list_schedules_test {

using namespace warpheap;
using test::expect_every_schedule_right;
using test::expect_some_schedule_wrong;

/// Blocks from one piece of memory, none of which is used again; refuses those past its end.
struct bump_heap {
  u32* memory;
  u64* used;
  u64 words;

  void* malloc(size_t bytes) const {
    atomic_ref<u64> const taken{*used};
    u64 at = taken.load(order::relaxed);
    do
      if (at + bytes / sizeof(u32) > words) return nullptr;
    while (!taken.compare_exchange(at, at + bytes / sizeof(u32), order::relaxed, order::relaxed));
    return memory + at;
  }
  void free(void*) const {}
};

/// A fault: no lane has the list alone.
struct unguarded_list {
  template <class Heap>
  insert_result insert(Heap const& heap, u32 target) {
    return list.insert(heap, target);
  }
  template <class Heap>
  bool erase(Heap const& heap, u32 target) {
    return list.erase(heap, target);
  }

  adjacency_list list;
};

/// Lane i makes the i-th of some short programs, of targets 1 and up: +target inserts, -target
/// erases.
struct run_programs {
  static constexpr u32 most_targets = 8;
  int programs[3][3];

  template <class List>
  void operator()(bump_heap heap, List* list, run_programs how, u32* brought, u32* taken, u32* refused) const {
    for (int const call : how.programs[global_thread_index()]) {
      auto const target = static_cast<u32>(call < 0 ? -call : call);
      if (call < 0 && list->erase(heap, target)) count(taken[target]);
      if (call <= 0) continue;
      auto const made = list->insert(heap, target);
      if (made == insert_result::inserted) count(brought[target]);
      if (made == insert_result::refused) count(*refused);
    }
  }

 private:
  static void count(u32& of) { atomic_ref<u32>{of}.fetch_add(1, order::relaxed); }
};

/// What is wrong after lanes have run their programs on a heap of `words` words.
template <class List>
std::string fault_of(run_programs const& how, u32 lanes, u64 words) {
  device_buffer<u32> const memory(words), brought(how.most_targets), taken(how.most_targets), refused(1);
  device_buffer<u64> const used(1);
  device_buffer<List> const list(1);
  launch({lanes, 1}, how, bump_heap{memory.data(), used.data(), words}, list.data(), how, brought.data(), taken.data(),
         refused.data());
  std::vector<u32> wanted;
  u32 unserved = 0;
  for (u32 target = 1; target < how.most_targets; ++target) {
    u32 const present = brought[target] - taken[target];
    if (present > 1) return "a neighbour was brought twice";
    if (present) wanted.push_back(target);
    for (u32 lane = 0; lane < lanes; ++lane)
      for (int const call : how.programs[lane]) unserved += call == static_cast<int>(target) && brought[target] == 0;
  }
  if (unserved > refused[0]) return "a neighbour was neither brought nor refused";
  return list[0].list.to_host() == wanted ? "" : "the list has other neighbours than were brought";
}

constexpr run_programs same_target{{{1}, {1}, {1}}};
constexpr run_programs others_in_between{{{2, -2}, {1, 3}, {-1, 2}}};
constexpr run_programs growth{{{5, 3}, {4, 1, 2}, {6}}};

// adjacency.L1, adjacency.L2, adjacency.L3
TEST(SharedAdjacencyListSchedules, AreRightWithTheMutex) {
  for (u32 const lanes : {2u, 3u}) {
    auto const explored = [&](std::string const& what, run_programs const& how, u64 words) {
      expect_every_schedule_right("shared_adjacency_list, " + std::to_string(lanes) + " lanes, " + what,
                                  {5 - lanes, 6 - lanes},
                                  [&] { return fault_of<shared_adjacency_list>(how, lanes, words); });
    };
    explored("one target", same_target, 16);
    explored("insertions and deletions", others_in_between, 64);
    explored("growth", growth, 64);
    explored("growth that is refused", growth, 4);
    explored("growth to just what is needed", growth, 10);
  }
}

TEST(SharedAdjacencyListSchedules, AreWrongWithoutIt) {
  // No step of the list is atomic: the lanes are preempted where the heap and the counts are.
  expect_some_schedule_wrong("no mutex", 2, [] { return fault_of<unguarded_list>(growth, 2, 64); });
}

}  // namespace adjacency_list_schedules_test
