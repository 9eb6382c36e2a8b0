// SPDX-License-Identifier: Apache-2.0
// The hash map under many threads: each key has one entry, none is lost while it grows, refusals
// leave it as it was, and all memory comes back. With weak memory loads of levels and blocks return
// older values wherever map.M4, map.M6 and map.M7 do not forbid it.
#include "container/hash_map.hpp"

#include "support/replay_steps.hpp"
#include "support/schedules.hpp"
#include "warpheap/allocator/halloc.hpp"

namespace warpheap::map_test::of_maps {

using test::for_each_schedule;

static_assert(sizeof(hash_map<u32, u32>) <= 640);

// Packed, with a slot of its own for key 0; in blocks for the value, and for the key.
using word_map = hash_map<u32, u32, uneven>;
using short_map = hash_map<unsigned short, float>;
using value_map = hash_map<u32, long_value, tiny>;
using key_map = hash_map<long_key, u64>;

template <class Map>
class AnyHashMap : public testing::Test {};
using Maps = testing::Types<word_map, short_map, value_map, key_map>;
TYPED_TEST_SUITE(AnyHashMap, Maps);

constexpr launch_shape shapes[] = {{1, 1}, {2, 40}, {4, 7}};

TYPED_TEST(AnyHashMap, AnswersEachThreadAsAMapOfItsOwn) {
  for (auto const shape : shapes)
    for_each_schedule(16, [&] {
      subject<TypeParam> of;
      own_calls const calls{shape.blocks * shape.threads, 3, 24, test::schedule_seed() + 1};
      device_buffer<u32> const results(u64{calls.threads} * calls.rounds);
      std::map<u32, u32> reference;
      for (bool const compacts : {false, true}) {
        launch(shape, make_own_calls{}, of.ref(), of.map.data(), calls, results.data());
        synchronize();
        EXPECT_EQ(follow<TypeParam>(calls, results.to_host(), reference), 0u);
        expect_contents(of.map, reference, calls.threads * calls.keys);
        if (!compacts) compact(of.ref(), of.map.data());
        expect_contents(of.map, reference, calls.threads * calls.keys);
      }
      of.expect_empty();
    });
}

TYPED_TEST(AnyHashMap, LetsOneThreadBringAKeyAndOneTakeIt) {
  for (auto const shape : shapes)
    for (u32 const erases : {0u, 2u, 5u})
      for_each_schedule(16, [&] {
        subject<TypeParam> of;
        contend const how{.keys = 9, .rounds = 12, .erases = erases, .seed = test::schedule_seed()};
        EXPECT_EQ(fault_of_contention(of.ref(), of.map, shape, how), "");
        of.expect_empty();
      });
}

/// Keys [0, keys), each by one thread; what each insertion said.
struct insert_and_tell {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 keys, u32* said) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    auto const i = static_cast<u32>(global_thread_index());
    if (i < keys) said[i] = static_cast<u32>(map->insert(heap, numbered<K>(i), numbered<V>(i % 100)));
  }
};

template <class Map>
std::vector<u32> insert_all(subject<Map>& of, u32 keys) {
  device_buffer<u32> const said(keys);
  launch(shape_for(keys, 96), insert_and_tell{}, of.ref(), of.map.data(), keys, said.data());
  synchronize();
  return said.to_host();
}

std::vector<u32> values_of_each(u32 keys) {
  std::vector<u32> values(keys);
  for (u32 i = 0; i < keys; ++i) values[i] = i % 100;
  return values;
}

TYPED_TEST(AnyHashMap, GrowsAHundredfoldWhileThreadsInsert) {
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    constexpr u32 keys = 2400;
    reserve(of.ref(), of.map.data(), keys / 100);
    EXPECT_EQ(insert_all(of, keys), std::vector<u32>(keys, static_cast<u32>(insert_result::inserted)));
    EXPECT_EQ(values_in(of.map, keys, 100), values_of_each(keys));
    EXPECT_EQ(misplaced_in(of.map), 0u);
    auto const grown = inspect(of.map.data());
    EXPECT_EQ(grown.entries, keys);
    EXPECT_GE(grown.levels, 6u);
    EXPECT_LT(grown.capacity, 8 * keys);
    compact(of.ref(), of.map.data());
    EXPECT_EQ(values_in(of.map, keys, 100), values_of_each(keys));
    auto const compacted = inspect(of.map.data());
    EXPECT_EQ(compacted.entries, keys);
    EXPECT_FALSE(compacted.refused);
    constexpr bool has_wide_windows = !same_type<TypeParam, value_map>;
    EXPECT_EQ(compacted.levels == 1 && compacted.capacity == 2 * keys - 4, has_wide_windows);
    of.expect_empty();
  });
}

/// Refuses calls of the heap from `from` until `until`, and expects that just the insertions that
/// say so have not happened, and happen later. Returns how many were refused.
template <class Map>
u32 refuse_and_insert_again(u64 from, u64 until) {
  constexpr u32 keys = 60, inserted = static_cast<u32>(insert_result::inserted),
                exists = static_cast<u32>(insert_result::exists), refused = static_cast<u32>(insert_result::refused);
  subject<Map> of;
  of.refuse(from, until);
  auto const first = insert_all(of, keys);
  std::map<u32, u32> reference;
  for (u32 i = 0; i < keys; ++i) {
    EXPECT_NE(first[i], exists);
    if (first[i] == inserted) reference[i] = i % 100;
  }
  expect_contents(of.map, reference, keys);
  of.refuse(~u64{0}, ~u64{0});
  auto const second = insert_all(of, keys);
  for (u32 i = 0; i < keys; ++i) {
    EXPECT_EQ(second[i], first[i] == inserted ? exists : inserted);
    reference[i] = i % 100;
  }
  expect_contents(of.map, reference, keys);
  of.expect_empty();
  return static_cast<u32>(std::count(first.begin(), first.end(), refused));
}

TYPED_TEST(AnyHashMap, LosesNothingWhereverMemoryIsRefused) {
  u32 refused = 0;
  for (u64 call = 0; call < (TypeParam::in_blocks ? 24 : 12); ++call)
    for_each_schedule(6, [&] {
      refused += refuse_and_insert_again<TypeParam>(call, call + 1);
      refused += refuse_and_insert_again<TypeParam>(call, ~u64{0});
    });
  EXPECT_GT(refused, 0u);
}

TYPED_TEST(AnyHashMap, IsAsBeforeWhereNoMemoryIsThereToCompact) {
  constexpr u32 keys = 200;
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    insert_all(of, keys);
    auto const before = inspect(of.map.data());
    u64 call = 0;
    for (bool refused = true; refused; ++call) {
      of.refuse(call, ~u64{0});
      reserve(of.ref(), of.map.data(), 2 * keys);
      EXPECT_EQ(values_in(of.map, keys, 100), values_of_each(keys));
      auto const now = inspect(of.map.data());
      refused = now.refused;
      if (refused) EXPECT_EQ(now.capacity, before.capacity);
      else EXPECT_GE(now.capacity, 4 * keys - 8);
    }
    EXPECT_GE(call, 2u);
    of.expect_empty();
  });
}

/// Keys [begin, end), by all threads in turn; erases those that `erases`.
struct insert_or_erase {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 begin, u32 end, bool erases, u32* done) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    u32 const threads = simt::grid_dim() * simt::block_dim();
    for (u32 i = begin + static_cast<u32>(global_thread_index()); i < end; i += threads) {
      bool const did = erases ? map->erase(numbered<K>(i))
                              : map->insert(heap, numbered<K>(i), numbered<V>(i % 100)) == insert_result::inserted;
      count(*done, did);
    }
  }
};

TYPED_TEST(AnyHashMap, ServesKernelsOfSeveralStreamsAtOnce) {
  for_each_schedule(12, [&] {
    subject<TypeParam> of;
    device_buffer<u32> const done(3);
    insert_all(of, 100);
    {
      stream one, two, three;
      launch(one, {2, 33}, insert_or_erase{}, of.ref(), of.map.data(), 100u, 300u, false, done.data());
      launch(two, {2, 33}, insert_or_erase{}, of.ref(), of.map.data(), 0u, 100u, true, done.data() + 1);
      launch(three, {2, 33}, insert_or_erase{}, of.ref(), of.map.data(), 300u, 400u, false, done.data() + 2);
      synchronize();
    }
    EXPECT_EQ(done.to_host(), (std::vector<u32>{200, 100, 100}));
    std::map<u32, u32> reference;
    for (u32 i = 100; i < 400; ++i) reference[i] = i % 100;
    expect_contents(of.map, reference, 400);
    of.expect_empty();
  });
}

/// Some threads bring new keys, so that the map grows; the others look for keys that are there.
struct grow_and_look {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 there, u32 keys, u32* faults) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    u32 const threads = simt::grid_dim() * simt::block_dim(), me = static_cast<u32>(global_thread_index());
    for (u32 i = there + me; i < keys; i += threads) {
      if (me % 2 == 0) map->insert(heap, numbered<K>(i), numbered<V>(i % 100));
      u32 const old = i % there;
      V value;
      if (!map->find(numbered<K>(old), value) || !is_numbered(value, old % 100)) count(*faults);
    }
  }
};

TYPED_TEST(AnyHashMap, FindsWhatIsThereWhileItGrows) {
  for (auto const shape : shapes)
    for_each_schedule(12, [&] {
      subject<TypeParam> of;
      device_buffer<u32> const faults(1);
      insert_all(of, 10);
      launch(shape, grow_and_look{}, of.ref(), of.map.data(), 10u, 200u, faults.data());
      synchronize();
      EXPECT_EQ(faults[0], 0u);
      of.expect_empty();
    });
}

/// Counts visits of entries by key, and those with a wrong value.
struct visit_all {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32 keys, u32* visits, u32* faults) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
    map->for_each(global_thread_index(), threads, [&](K const& key, V const& value) {
      for (u32 i = 0; i < keys; ++i) {
        K const wanted = numbered<K>(i);
        if (!has_same_bits(key, wanted)) continue;
        count(visits[i]);
        if (!is_numbered(value, i % 100)) count(*faults);
      }
    });
  }
};

TYPED_TEST(AnyHashMap, VisitsEachEntryOnce) {
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    insert_all(of, 90);
    device_buffer<u32> const done(1), visits(90), faults(1);
    launch({1, 7}, insert_or_erase{}, of.ref(), of.map.data(), 60u, 90u, true, done.data());
    launch({2, 9}, visit_all{}, static_cast<TypeParam const*>(of.map.data()), 90u, visits.data(), faults.data());
    synchronize();
    std::vector<u32> expected(90, 1);
    std::fill(expected.begin() + 60, expected.end(), 0);
    EXPECT_EQ(visits.to_host(), expected);
    EXPECT_EQ(faults[0], 0u);
    auto const counted = inspect(of.map.data());
    EXPECT_EQ(counted.entries, 60u);
    EXPECT_EQ(counted.erased, 30u);
  });
}

TYPED_TEST(AnyHashMap, IsEmptyAndHasRoomWhenItIsCleared) {
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    reserve(of.ref(), of.map.data(), 100);
    insert_all(of, 90);
    auto const before = inspect(of.map.data());
    clear(of.ref(), of.map.data());
    auto const cleared = inspect(of.map.data());
    EXPECT_EQ(cleared.entries + cleared.erased, 0u);
    EXPECT_EQ(cleared.levels, 1u);
    EXPECT_GE(cleared.capacity + 8, before.capacity);
    EXPECT_EQ(values_in(of.map, 90, 100), std::vector<u32>(90, none));
    insert_all(of, 90);
    EXPECT_EQ(values_in(of.map, 90, 100), values_of_each(90));
    of.expect_empty();
  });
}

/// Kernel: thread i brings key i in this step, and takes it again if it is even.
struct bring_in_step {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 const* step, u32* faults) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    auto const me = static_cast<u32>(global_thread_index());
    if (map->insert(heap, numbered<K>(me), numbered<V>(me + *step % 5)) != insert_result::inserted) count(*faults);
    if (me % 2 == 0 && !map->erase(numbered<K>(me))) count(*faults);
  }
};

/// Kernel: the map has what bring_in_step left.
struct look_in_step {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map* map, u32 const* step, u32* faults) const {
    auto const me = static_cast<u32>(global_thread_index());
    typename Map::mapped_type value;
    bool const is_there = map->find(numbered<typename Map::key_type>(me), value);
    if (is_there != (me % 2 == 1) || (is_there && !is_numbered(value, me + *step % 5))) count(*faults);
  }
};

struct begin_step {
  WARPHEAP_DEVICE void operator()(u32* step) const { ++*step; }
};

TYPED_TEST(AnyHashMap, IsReservedFilledCompactedAndClearedInAGraph) {
  constexpr u32 steps = test::on_gpu ? 200 : 12;
  subject<TypeParam> of;
  device_buffer<u32> const step(1), faults(1);
  test::replay_steps(steps, [&](stream_view on) {
    launch(on, {1, 1}, begin_step{}, step.data());
    reserve(of.ref(), of.map.data(), 50, on);
    launch(on, {2, 40}, bring_in_step{}, of.ref(), of.map.data(), step.data(), faults.data());
    compact(of.ref(), of.map.data(), on);
    launch(on, {2, 40}, look_in_step{}, of.map.data(), step.data(), faults.data());
    clear(of.ref(), of.map.data(), on);
  });
  EXPECT_EQ(step[0], steps);
  EXPECT_EQ(faults[0], 0u);
  auto const at_end = inspect(of.map.data());
  EXPECT_EQ(at_end.entries + at_end.erased, 0u);
  EXPECT_EQ(at_end.levels, 1u);
  of.expect_empty();
}

/// One thread does all: room, entries, erasures, more room, and the end.
struct live_alone {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32* faults) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    V value;
    if (!map->reserve(heap, 10)) count(*faults);
    for (u32 i = 0; i < 40; ++i)
      if (map->insert(heap, numbered<K>(i), numbered<V>(i)) != insert_result::inserted) count(*faults);
    for (u32 i = 0; i < 40; i += 2)
      if (!map->erase(numbered<K>(i))) count(*faults);
    if (!map->reserve(heap, 0)) count(*faults);
    for (u32 i = 0; i < 40; ++i)
      if (map->find(numbered<K>(i), value) != (i % 2 == 1)) count(*faults);
    map->destroy(heap);
    if (map->find(numbered<K>(1), value)) count(*faults);
  }
};

TYPED_TEST(AnyHashMap, ServesOneThreadFromItsBeginningToItsEnd) {
  for_each_schedule(6, [&] {
    subject<TypeParam> of;
    device_buffer<u32> const faults(1);
    launch({1, 1}, live_alone{}, of.ref(), of.map.data(), faults.data());
    synchronize();
    EXPECT_EQ(faults[0], 0u);
    EXPECT_EQ(of.memory.statistics().live_blocks, 0u);
  });
}

/// Each thread adds 1 to some of few counters.
struct count_keys {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, u32 keys, u32 rounds) const {
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const key = random.below(keys);
      if constexpr (Map::in_blocks) atomic_ref<u64>{*map->find_or_insert(heap, key, 0)}.fetch_add(1, order::relaxed);
      else map->insert_or_update(heap, key, 1, [](u32 old) { return old + 1; });
    }
  }
};

struct sum_up {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32* sum) const {
    map->for_each(global_thread_index(), simt::block_dim(),
                  [&](u32, auto value) { count(*sum, static_cast<u32>(value)); });
  }
};

template <class Map>
void expect_counts_all() {
  for (auto const shape : shapes)
    for_each_schedule(24, [&] {
      subject<Map> of;
      device_buffer<u32> const sum(1);
      launch(shape, count_keys{}, of.ref(), of.map.data(), 5u, 10u);
      launch({1, 3}, sum_up{}, static_cast<Map const*>(of.map.data()), sum.data());
      synchronize();
      EXPECT_EQ(sum[0], shape.blocks * shape.threads * 10);
      EXPECT_LE(inspect(of.map.data()).entries, 5u);
      of.expect_empty();
    });
}

TEST(HashMap, CountsEachUpdateOnce) { expect_counts_all<word_map>(); }
TEST(HashMap, CountsEachAdditionToAValueInABlockOnce) { expect_counts_all<hash_map<u32, u64, tiny>>(); }

/// Kernel: thread i brings a key whose block is smaller than what Halloc aligns to 16.
struct bring_own {
  WARPHEAP_DEVICE void operator()(halloc_heap::ref_type heap, hash_map<u64, u64>* map, u32* faults) const {
    u64 const me = global_thread_index();
    if (map->insert(heap, me, ~me) != insert_result::inserted) count(*faults);
    u64* const value = map->find(me);
    if (!value || *value != ~me) count(*faults);
  }
};

TEST(HashMap, HasBlocksOfAHeapThatAlignsLess) {
  halloc_heap const heap{32 << 20};
  device_buffer<hash_map<u64, u64>> const map(1);
  device_buffer<u32> const faults(1);
  launch({2, 100}, bring_own{}, heap.ref(), map.data(), faults.data());
  destroy(heap.ref(), map.data());
  synchronize();
  EXPECT_EQ(faults[0], 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(HashMap, KeepsBlocksOfErasedKeysUntilItIsCompacted) {
  using map = hash_map<u32, long_value>;
  for_each_schedule(4, [&] {
    subject<map> of;
    device_buffer<u32> const done(1);
    for (u32 round = 0; round < 3; ++round) {
      insert_all(of, 20);
      launch({1, 20}, insert_or_erase{}, of.ref(), of.map.data(), 0u, 15u, true, done.data());
      synchronize();
    }
    EXPECT_EQ(of.memory.statistics().live_blocks, 1u + 20 + 2 * 15);
    compact(of.ref(), of.map.data());
    synchronize();
    EXPECT_EQ(of.memory.statistics().live_blocks, 1u + 5);
    of.expect_empty();
  });
}

}  // namespace warpheap::map_test::of_maps
