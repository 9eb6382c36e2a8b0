// SPDX-License-Identifier: Apache-2.0
// Plain accesses of hash maps: to blocks with keys and values, to lists, and to levels that are
// being made. Each is ordered by what published it, and a map that publishes without a release is
// told.
#include "container/hash_map.hpp"
#include "support/message_of.hpp"

namespace warpheap::map_test::of_races {

struct forgets_releases : tiny {
  static constexpr bool releases = false;
};

template <class Map>
std::string fault_of_run() {
  subject<Map> of;
  auto const said = test::message_of<host::schedule_error>([&] {
    auto const fault = fault_of_contention(of.ref(), of.map, {2, 9}, {20, 12, 4, 1});
    if (!fault.empty()) ADD_FAILURE() << fault;
    compact(of.ref(), of.map.data());
    of.expect_empty();
  });
  return said.substr(0, said.find(':'));
}

/// What the first of some runs that fails says, up to its first colon.
template <class Map>
std::string first_fault() {
  for (u64 seed = 1; seed <= 30; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .seed = seed, .weak_memory = true}};
    auto const fault = fault_of_run<Map>();
    if (fault != "nothing thrown") return fault;
  }
  return "none";
}

TEST(HashMapRaces, HasNoneInMapsOfWords) { EXPECT_EQ((first_fault<hash_map<u32, u32, tiny>>()), "none"); }
TEST(HashMapRaces, HasNoneInMapsOfBlocks) { EXPECT_EQ((first_fault<hash_map<u32, long_value, tiny>>()), "none"); }
TEST(HashMapRaces, ShowsBlocksThatAreNotReleased) {
  EXPECT_EQ((first_fault<hash_map<u32, long_value, forgets_releases>>()), "data race");
}
TEST(HashMapRaces, ShowsLevelsThatAreNotReleased) {
  EXPECT_EQ((first_fault<hash_map<u32, u32, forgets_releases>>()), "data race");
}

struct insert_and_look {
  template <class Heap, class Map>
  void operator()(Heap heap, Map* map, u32* sum) const {
    auto const me = static_cast<u32>(global_thread_index());
    map->insert(heap, me % 3, me);
    map->for_each(me % 2, [&](u32 value) { count(*sum, value); });
    if (me % 5 == 0) map->erase(me % 3);
  }
};

TEST(HashMapRaces, HasNoneInListsOfMultimaps) {
  for (u64 seed = 1; seed <= 30; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .seed = seed, .weak_memory = true}};
    subject<hash_multimap<u32, u32, tiny>> of;
    device_buffer<u32> const sum(1);
    launch({2, 9}, insert_and_look{}, of.ref(), of.map.data(), sum.data());
    EXPECT_NO_THROW(synchronize());
    EXPECT_GT(sum[0], 0u);
    of.expect_empty();
  }
}

}  // namespace warpheap::map_test::of_races
