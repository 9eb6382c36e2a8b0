// SPDX-License-Identifier: Apache-2.0
// Every schedule of a few lanes on small hash maps, and maps with one thing wrong, which the checks
// must see under some schedule: slots change their keys (map.M1), a level is published before it is
// zeroed (map.M4), two threads make it (map.M5), or a lost race is taken for a won one.
#include <gtest/gtest.h>

#include "container/hash_map.hpp"
#include "support/explorations.hpp"
#include "support/schedules.hpp"

namespace warpheap::map_test::of_schedules {

using test::expect_every_schedule_right;
using test::expect_some_schedule_wrong;

/// Blocks from one piece of dirty memory, none of which is used again; refuses call number
/// `refused`.
struct bump_heap {
  u8* memory;
  u64* counts;  // of calls, blocks, frees
  u64 bytes, refused;

  void* malloc(size_t asked) const {
    if (atomic_ref<u64>{counts[0]}.fetch_add(1, order::relaxed) == refused) return nullptr;
    u64 const at = atomic_ref<u64>{counts[3]}.fetch_add(align_up(asked, 16), order::relaxed);
    if (at + asked > bytes) return nullptr;
    atomic_ref<u64>{counts[1]}.fetch_add(1, order::relaxed);
    return memory + at;
  }
  void free(void* freed) const {
    if (freed) atomic_ref<u64>{counts[2]}.fetch_add(1, order::relaxed);
  }
};

/// A map of a few slots, for bodies that are executed many thousands of times.
template <class Map>
struct small_subject {
  static constexpr u64 bytes = 4096;
  device_buffer<u64> memory{std::vector<u64>(bytes / 8, 0xd1d1'd1d1'd1d1'd1d1)}, counts{4};
  device_buffer<Map> map{1};
  u64 refused = ~u64{0};

  bump_heap ref() const { return {reinterpret_cast<u8*>(memory.data()), counts.data(), bytes, refused}; }

  /// What is wrong with the map as it is, and when it is destroyed.
  std::string fault() {
    device_buffer<u32> const misplaced(1);
    launch({1, 1}, count_misplaced{}, static_cast<Map const*>(map.data()), misplaced.data());
    if (misplaced[0] != 0) return "a key is misplaced";
    launch(
        {1, 1}, [](auto heap, auto* of) { of->destroy(heap); }, ref(), map.data());
    return counts[1] == counts[2] ? "" : "a block is lost, or freed twice";
  }
};

// One level of 4 slots, which 4 keys fill; then one more of 4.
template <class Parts>
using packed_map = hash_map<u32, u32, Parts>;
template <class Parts>
using block_map = hash_map<u32, u64, Parts>;

/// Lane i makes the i-th of some short programs, of keys 1 and up: +key inserts, -key erases. Notes
/// how often each key was brought and taken.
struct run_programs {
  static constexpr u32 most_calls = 4, most_keys = 8;
  int programs[3][most_calls];

  template <class Heap, class Map>
  void operator()(Heap heap, Map* map, run_programs how, u32* brought, u32* taken, u32* refused) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    for (int const call : how.programs[global_thread_index()]) {
      auto const key = static_cast<u32>(call < 0 ? -call : call);
      if (call < 0 && map->erase(K{key})) count(taken[key]);
      if (call <= 0) continue;
      auto const done = map->insert(heap, K{key}, V{key});
      if (done == insert_result::inserted) count(brought[key]);
      if (done == insert_result::refused) count(*refused);
    }
  }
};

struct find_keys {
  template <class Map>
  void operator()(Map* map, u32* values) const {
    for (u32 key = 0; key < run_programs::most_keys; ++key) {
      typename Map::mapped_type value = none;
      values[key] = map->find(key, value) ? static_cast<u32>(value) : none;
    }
  }
};

/// What is wrong after lanes have run their programs.
template <class Map>
std::string fault_of(run_programs const& how, u32 lanes, u64 refused_call = ~u64{0}, bool reserved = true) {
  small_subject<Map> of;
  device_buffer<u32> const brought(how.most_keys), taken(how.most_keys), values(how.most_keys), refused(1);
  if (reserved)
    launch(
        {1, 1}, [](auto heap, auto* map) { map->reserve(heap, 1); }, of.ref(), of.map.data());
  of.refused = refused_call;
  launch({lanes, 1}, how, of.ref(), of.map.data(), how, brought.data(), taken.data(), refused.data());
  launch({1, 1}, find_keys{}, of.map.data(), values.data());
  u32 absent_without_reason = 0;
  for (u32 key = 1; key < how.most_keys; ++key) {
    u32 const present = brought[key] - taken[key];
    if (present > 1) return "a key was brought twice";
    if (values[key] != (present ? key : none)) return present ? "a key is lost" : "a key is there that was erased";
    for (u32 lane = 0; lane < lanes; ++lane)
      for (int const call : how.programs[lane])
        absent_without_reason += call == static_cast<int>(key) && brought[key] == 0;
  }
  if (absent_without_reason > refused[0]) return "a key was neither brought nor refused";
  return of.fault();
}

constexpr run_programs same_key{{{1}, {1}, {1}}};
constexpr run_programs bring_and_take{{{1, -1}, {1, -1}, {-1, 1}}};
// Key 2 goes from the slot before that of key 3 while others bring key 3.
constexpr run_programs others_in_between{{{2, 3, -2}, {3, 4}, {-2, 3}}};
// More than the 4 slots of the first level.
constexpr run_programs growth{{{1, 2, 3, 4}, {5, 6, 7}, {6, 1}}};

template <class Map>
void explore_map(std::string const& name) {
  for (u32 const lanes : {2u, 3u}) {
    auto const of = name + ", " + std::to_string(lanes) + " lanes";
    auto const explored = [&](u32 preemptions, std::string const& what, run_programs const& how, u64 refused,
                              bool reserved) {
      u32 const brief = preemptions + 2 - lanes;
      expect_every_schedule_right(of + ", " + what, {brief, brief + 1},
                                  [=] { return fault_of<Map>(how, lanes, refused, reserved); });
    };
    explored(3, "one key", same_key, ~u64{0}, true);
    explored(3, "one key comes and goes", bring_and_take, ~u64{0}, true);
    explored(3, "keys of one window", others_in_between, ~u64{0}, true);
    explored(2, "growth", growth, ~u64{0}, true);
    explored(3, "growth from nothing", same_key, ~u64{0}, false);
    explored(3, "a refusal", same_key, 0, false);
  }
}

TEST(ExploredHashMap, OfWords) { explore_map<packed_map<tiny>>("hash map of words"); }
TEST(ExploredHashMap, OfBlocks) { explore_map<block_map<tiny>>("hash map of blocks"); }

/// Tiny maps with one thing wrong.
struct gives_slots_away : tiny {
  static constexpr bool keeps_erased_keys = false;
};
struct ignores_lost_races : tiny {
  static constexpr bool minds_lost_races = false;
};
struct publishes_dirty_levels : tiny {
  static constexpr bool zeroes_first = false;
};
struct elects_everyone : tiny {
  static constexpr bool elects = false;
};

TEST(ExploredHashMap, SeesSlotsGivenToOtherKeys) {
  expect_some_schedule_wrong("slots given away", 2,
                             [] { return fault_of<packed_map<gives_slots_away>>(others_in_between, 3); });
}
TEST(ExploredHashMap, SeesALostRaceIgnored) {
  expect_some_schedule_wrong("lost race", 2, [] { return fault_of<packed_map<ignores_lost_races>>(same_key, 2); });
}
TEST(ExploredHashMap, SeesALevelThatIsNotZeroedYet) {
  expect_some_schedule_wrong("dirty level", 2, [] { return fault_of<packed_map<publishes_dirty_levels>>(growth, 2); });
}
TEST(ExploredHashMap, SeesTwoThreadsMakeALevel) {
  expect_some_schedule_wrong("no election", 2,
                             [] { return fault_of<packed_map<elects_everyone>>(same_key, 2, ~u64{0}, false); });
}

template <class Parts, template <class> class Map>
bool is_caught(u32 keys, u32 erases) {
  return test::find_failing_schedule(
             200,
             [&] {
               subject<Map<Parts>> of;
               return fault_of_contention(of.ref(), of.map, {2, 20}, {keys, 12, erases, test::schedule_seed()}).empty();
             },
             u64{1} << 20)
      .has_value();
}

TEST(HashMapSchedules, ShowWhatIsWrongWithBrokenMaps) {
  EXPECT_FALSE((is_caught<tiny, packed_map>(9, 3)));
  EXPECT_TRUE((is_caught<gives_slots_away, packed_map>(9, 3)));
  EXPECT_TRUE((is_caught<ignores_lost_races, packed_map>(9, 0)));
  EXPECT_TRUE((is_caught<ignores_lost_races, block_map>(9, 0)));
  EXPECT_TRUE((is_caught<publishes_dirty_levels, packed_map>(40, 0)));
}

}  // namespace warpheap::map_test::of_schedules
