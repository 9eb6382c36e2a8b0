// SPDX-License-Identifier: Apache-2.0
// The hash multimap under many threads: each value that was inserted is in its key's list once
// (multimap.L1), lists go with their keys (multimap.L2), and all memory comes back (multimap.L3).
#include "container/hash_map.hpp"
#include "support/schedules.hpp"

namespace warpheap::map_test::of_multimaps {

using test::for_each_schedule;

template <class Map>
class AnyHashMultimap : public testing::Test {};
using Maps = testing::Types<hash_multimap<u32, u32, tiny>, hash_multimap<long_key, long_value>,
                            hash_multimap<unsigned short, u64, tiny>>;
TYPED_TEST_SUITE(AnyHashMultimap, Maps);

constexpr launch_shape shapes[] = {{1, 1}, {2, 40}, {4, 7}};
constexpr u32 keys = 7;

/// Value number i goes to key i % keys. Says which were refused.
struct insert_numbers {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 values, u8* refused) const {
    using V = typename Map::mapped_type;
    u32 const threads = simt::grid_dim() * simt::block_dim();
    for (auto i = static_cast<u32>(global_thread_index()); i < values; i += threads) {
      auto const key = numbered<typename Map::key_type>(i % keys);
      refused[i] = !map->insert(heap, key, numbered<V>(i));
    }
  }
};

/// Counts how often each value is in the list of its key, and all values that are in another.
struct count_numbers {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32 values, u32* seen, u32* counts, u32* faults) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    u32 const key = static_cast<u32>(global_thread_index());
    if (key >= keys) return;
    map->for_each(numbered<K>(key), [&](V const& value) {
      u32 const number = number_of(value, values);
      if (number >= values || number % keys != key) count(*faults);
      else count(seen[number]);
    });
    counts[key] = static_cast<u32>(map->count(numbered<K>(key)));
  }
};

/// What the lists hold: how often each value, and how many values each key.
struct contents_of_lists {
  std::vector<u32> seen, counts;
};

template <class Map>
contents_of_lists look_at(subject<Map>& of, u32 values) {
  device_buffer<u32> const seen(values), counts(keys), faults(1);
  launch({1, keys}, count_numbers{}, static_cast<Map const*>(of.map.data()), values, seen.data(), counts.data(),
         faults.data());
  synchronize();
  EXPECT_EQ(faults[0], 0u);
  EXPECT_EQ(misplaced_in(of.map), 0u);
  return {seen.to_host(), counts.to_host()};
}

template <class Map>
void expect_lists(subject<Map>& of, std::vector<u32> const& expected) {
  auto const found = look_at(of, static_cast<u32>(expected.size()));
  EXPECT_EQ(found.seen, expected);
  for (u32 key = 0; key < keys; ++key) {
    u32 count = 0;
    for (u32 i = key; i < expected.size(); i += keys) count += expected[i];
    EXPECT_EQ(found.counts[key], count);
  }
}

TYPED_TEST(AnyHashMultimap, HasEachValueOnce) {
  for (auto const shape : shapes)
    for_each_schedule(16, [&] {
      subject<TypeParam> of;
      device_buffer<u8> const refused(90);
      launch(shape, insert_numbers{}, of.ref(), of.map.data(), 90u, refused.data());
      expect_lists(of, std::vector<u32>(90, 1));
      compact(of.ref(), of.map.data());
      expect_lists(of, std::vector<u32>(90, 1));
      EXPECT_EQ(inspect(of.map.data()).entries, keys);
      of.expect_empty();
    });
}

TYPED_TEST(AnyHashMultimap, LosesNothingWhereverMemoryIsRefused) {
  for (u64 call = 0; call < 20; ++call)
    for (u64 const until : {call + 1, ~u64{0}})
      for_each_schedule(4, [&] {
        subject<TypeParam> of;
        of.refuse(call, until);
        device_buffer<u8> const refused(60);
        launch({2, 30}, insert_numbers{}, of.ref(), of.map.data(), 60u, refused.data());
        synchronize();
        auto const first = refused.to_host();
        EXPECT_GT(std::count(first.begin(), first.end(), 1), 0);
        std::vector<u32> expected(60);
        for (u32 i = 0; i < 60; ++i) expected[i] = !first[i];
        expect_lists(of, expected);
        of.refuse(~u64{0}, ~u64{0});
        launch({1, 60}, insert_numbers{}, of.ref(), of.map.data(), 60u, refused.data());
        for (u32& each : expected) ++each;
        expect_lists(of, expected);
        of.expect_empty();
      });
}

/// Thread blocks other than the first insert values; the first one erases keys meanwhile.
struct insert_and_erase {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 values, u8* refused, u32* erased) const {
    u32 const threads = simt::grid_dim() * simt::block_dim();
    auto const me = static_cast<u32>(global_thread_index());
    for (u32 i = me; i < values; i += threads) {
      auto const key = numbered<typename Map::key_type>(i % keys);
      if (simt::block_index() == 0) count(*erased, map->erase(key));
      else refused[i] = !map->insert(heap, key, numbered<typename Map::mapped_type>(i));
    }
  }
};

TYPED_TEST(AnyHashMultimap, LosesListsWithTheirKeysAlone) {
  for_each_schedule(40, [&] {
    subject<TypeParam> of;
    constexpr u32 values = 180;
    device_buffer<u8> const refused(values);
    device_buffer<u32> const erased(1);
    launch({3, 20}, insert_and_erase{}, of.ref(), of.map.data(), values, refused.data(), erased.data());
    synchronize();
    auto const found = look_at(of, values);
    auto const left = static_cast<u64>(std::accumulate(found.seen.begin(), found.seen.end(), 0u));
    EXPECT_EQ(*std::max_element(found.seen.begin(), found.seen.end()), 1u);
    // Those of thread blocks 1 and 2.
    EXPECT_TRUE(erased[0] != 0 || left == values - values / 3);
    compact(of.ref(), of.map.data());
    auto const compacted = look_at(of, values);
    EXPECT_EQ(compacted.seen, found.seen);
    // A block for each level and each key, and one for each value.
    auto const figures = inspect(of.map.data());
    EXPECT_EQ(of.memory.statistics().live_blocks, figures.levels + figures.entries + left);
    of.expect_empty();
  });
}

struct visit_lists {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32 values, u32* seen) const {
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
    map->for_each(global_thread_index(), threads,
                  [&](typename Map::key_type const& key, typename Map::mapped_type const& value) {
                    u32 const number = number_of(value, values);
                    if (number < values && has_same_bits(key, numbered<typename Map::key_type>(number % keys)))
                      count(seen[number]);
                  });
  }
};

TYPED_TEST(AnyHashMultimap, VisitsEachValueOnce) {
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    device_buffer<u8> const refused(90);
    device_buffer<u32> const seen(90);
    launch({1, 33}, insert_numbers{}, of.ref(), of.map.data(), 90u, refused.data());
    launch({2, 9}, visit_lists{}, static_cast<TypeParam const*>(of.map.data()), 90u, seen.data());
    synchronize();
    EXPECT_EQ(seen.to_host(), std::vector<u32>(90, 1));
    of.expect_empty();
  });
}

}  // namespace warpheap::map_test::of_multimaps
