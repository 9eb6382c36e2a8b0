// SPDX-License-Identifier: Apache-2.0
// What tests of hash maps share: maps that are small enough to grow all the time, a heap that says
// no when it is told to and hands out dirty memory, keys and values that show when they are mixed
// up, and kernels whose calls a reference on the host can follow.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include "warpheap/container/hash_map.hpp"
#include "warpheap/container/hash_multimap.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::map_test {

/// Levels of 4, 4, 12, ... slots, and windows of 4.
struct tiny : map_parts::standard {
  static constexpr u32 planned_window = 1, grown_window = 1, first_sectors = 2, chunk_sectors = 1;
};

/// Levels that keys leave at once, behind one that they do not leave.
struct uneven : tiny {
  static constexpr u32 planned_window = 16;
};

/// A key that needs a block.
struct long_key {
  u64 high;
  u32 middle, low;
};

/// Keys and values by a number.
template <class T>
WARPHEAP_HOST_DEVICE T numbered(u32 i) {
  if constexpr (sizeof(T) < 4) return static_cast<T>(i == 1 ? ~T{0} : i);
  else return i < 2 ? T{0} - i : static_cast<T>(i * 0x9e37'79b9u);  // 0 and ~0 among them
}
template <>
WARPHEAP_HOST_DEVICE inline long_key numbered<long_key>(u32 i) {
  return {i / 2, i % 2, ~i};
}

template <class K>
WARPHEAP_DEVICE bool has_same_bits(K const& left, K const& right) {
  if constexpr (same_type<K, long_key>)
    return left.high == right.high && left.middle == right.middle && left.low == right.low;
  else return left == right;
}

/// The larger it is, the longer it takes to write.
struct long_value {
  u32 number;
  u32 copies[11];
};
template <>
WARPHEAP_HOST_DEVICE inline long_value numbered<long_value>(u32 i) {
  long_value made{i, {}};
  for (u32& copy : made.copies) copy = i;
  return made;
}

template <class V>
WARPHEAP_HOST_DEVICE bool is_numbered(V const& value, u32 i) {
  if constexpr (same_type<V, long_value>) {
    bool intact = value.number == i;
    for (u32 const copy : value.copies) intact = intact && copy == i;
    return intact;
  } else {
    return value == numbered<V>(i);
  }
}

/// The number of a value that is at most `most`; ~0 if it is none.
template <class V>
WARPHEAP_HOST_DEVICE u32 number_of(V const& value, u32 most) {
  for (u32 i = 0; i <= most; ++i)
    if (is_numbered(value, i)) return i;
  return ~0u;
}

/// Calls of a heap, and which of them it refuses.
struct heap_log {
  u64 calls = 0;
  u64 refused_from = ~u64{0}, refused_until = ~u64{0};
};

/// `Below` with refusals. Blocks are dirty when they come and when they go.
template <class Below>
struct moody_heap {
  Below below;
  heap_log* log;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    u64 const call = atomic_ref<u64>{log->calls}.fetch_add(1, order::relaxed);
    if (call >= log->refused_from && call < log->refused_until) return nullptr;
    void* const memory = below.malloc(bytes);
    if (memory) memset(memory, 0xd1, bytes);
    return memory;
  }
  WARPHEAP_DEVICE void free(void* memory) const {
    if (memory) memset(memory, 0xd2, 16);
    below.free(memory);
  }
};

/// A map, and its heap.
template <class Map>
struct subject {
  heap memory{heap::minimum_bytes > (u64{8} << 20) ? heap::minimum_bytes : u64{8} << 20};
  device_buffer<heap_log> log{std::vector<heap_log>(1)};
  device_buffer<Map> map{1};

  moody_heap<heap_ref> ref() const { return {memory.ref(), log.data()}; }
  void refuse(u64 from, u64 until) { log = device_buffer<heap_log>{std::vector<heap_log>{{0, from, until}}}; }

  /// Everything was given back (map.M8), and the map is as zeroed memory.
  void expect_empty() {
    destroy(ref(), map.data());
    synchronize();
    EXPECT_EQ(memory.statistics().live_blocks, 0u);
    auto const words = reinterpret_cast<u64 const*>(map.data());
    std::vector<u64> bytes(sizeof(Map) / 8);
    backend::copy_bytes(bytes.data(), words, sizeof(Map));
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0u), static_cast<std::ptrdiff_t>(bytes.size()));
  }
};

WARPHEAP_DEVICE inline void count(u32& total, u32 more = 1) { atomic_ref<u32>{total}.fetch_add(more, order::relaxed); }

/// Kernel: counts slots whose keys a search would not find first (map.M1, map.M2, map.M3).
struct count_misplaced {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32* misplaced) const {
    count(*misplaced,
          static_cast<u32>(map->misplaced_slots(global_thread_index(), u64{simt::grid_dim()} * simt::block_dim())));
  }
};

template <class Map>
u32 misplaced_in(device_buffer<Map> const& map) {
  device_buffer<u32> const misplaced(1);
  launch({2, 33}, count_misplaced{}, static_cast<Map const*>(map.data()), misplaced.data());
  synchronize();
  return misplaced[0];
}

/// Kernel: keys [0, keys), each by one thread: its value's number, or `none`.
inline constexpr u32 none = ~0u;
struct look_up {
  template <class Map>
  WARPHEAP_DEVICE void operator()(Map const* map, u32 keys, u32 most, u32* found) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    for (u64 i = global_thread_index(); i < keys; i += u64{simt::grid_dim()} * simt::block_dim()) {
      V value;
      found[i] = map->find(numbered<K>(static_cast<u32>(i)), value) ? number_of(value, most) : none;
    }
  }
};

template <class Map>
std::vector<u32> values_in(device_buffer<Map> const& map, u32 keys, u32 most) {
  device_buffer<u32> const found(keys);
  launch({2, 40}, look_up{}, static_cast<Map const*>(map.data()), keys, most, found.data());
  synchronize();
  return found.to_host();
}

enum class call : u32 { insert, assign, update, find, erase };

/// The calls of a thread on keys that no other thread touches.
struct own_calls {
  u32 threads, keys, rounds;  // keys of a thread
  u64 seed;

  /// Calls make(call, key, value) for each; keys are threads apart.
  template <class Make>
  WARPHEAP_HOST_DEVICE void of_thread(u32 thread, Make make) const {
    random_sequence random{seed * 4096 + thread};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const what = random.below(8), key = thread + threads * random.below(keys), value = random.below(100);
      constexpr call kinds[] = {call::insert, call::insert, call::insert, call::assign,
                                call::update, call::find,   call::find,   call::erase};
      make(kinds[what], key, value);
    }
  }
};

/// Kernel: each thread makes its calls, and notes what they returned.
struct make_own_calls {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, own_calls calls, u32* results) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    auto const thread = static_cast<u32>(global_thread_index());
    u32* result = results + u64{thread} * calls.rounds;
    calls.of_thread(thread, [&](call what, u32 number, u32 value) {
      K const key = numbered<K>(number);
      u32 done = none;
      switch (what) {
        case call::insert: done = static_cast<u32>(map->insert(heap, key, numbered<V>(value))); break;
        case call::assign: done = static_cast<u32>(map->insert_or_assign(heap, key, numbered<V>(value))); break;
        case call::update:
          if constexpr (!Map::in_blocks) done = map->update(key, [&](V) { return numbered<V>(value); });
          else done = map->find(key) != nullptr;
          break;
        case call::find: {
          V found;
          if (map->find(key, found)) done = number_of(found, 100);
          break;
        }
        case call::erase: done = map->erase(key); break;
      }
      *result++ = done;
    });
  }
};

/// Expects that each thread's calls returned what a map of its own would have, and updates
/// `reference`, which maps keys' numbers to those of their values. Returns the calls that were
/// refused.
template <class Map>
u32 follow(own_calls calls, std::vector<u32> const& results, std::map<u32, u32>& reference) {
  u32 refused = 0;
  for (u32 thread = 0; thread < calls.threads; ++thread) {
    u32 const* result = results.data() + u64{thread} * calls.rounds;
    calls.of_thread(thread, [&](call what, u32 key, u32 value) {
      bool const is_there = reference.count(key) != 0;
      u32 const done = *result++;
      switch (what) {
        case call::insert:
        case call::assign:
          if (done == static_cast<u32>(insert_result::refused)) {
            ++refused;
            break;
          }
          EXPECT_EQ(done, static_cast<u32>(is_there ? insert_result::exists : insert_result::inserted));
          if (!is_there || what == call::assign) reference[key] = value;
          break;
        case call::update:
          EXPECT_EQ(done, is_there ? 1u : 0u);
          if (is_there && !Map::in_blocks) reference[key] = value;
          break;
        case call::find: EXPECT_EQ(done, is_there ? reference[key] : none); break;
        case call::erase:
          EXPECT_EQ(done, is_there ? 1u : 0u);
          reference.erase(key);
          break;
      }
    });
  }
  return refused;
}

/// Expects that the map holds what `reference` says, of keys [0, keys).
template <class Map>
void expect_contents(device_buffer<Map> const& map, std::map<u32, u32> const& reference, u32 keys) {
  std::vector<u32> expected(keys, none);
  for (auto const& [key, value] : reference) expected[key] = value;
  EXPECT_EQ(values_in(map, keys, 100), expected);
  EXPECT_EQ(inspect(map.data()).entries, reference.size());
  EXPECT_EQ(misplaced_in(map), 0u);
}

/// Kernel: all threads insert and erase the same keys. counts: by key, insertions and erasures that
/// succeeded. `values`: by key, what its last inserter wrote, if no thread erases.
struct contend {
  u32 keys, rounds, erases;  // one call in `erases` erases; 0: none
  u64 seed;

  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap heap, Map* map, contend how, u32* brought, u32* taken, u32* values) const {
    using K = typename Map::key_type;
    using V = typename Map::mapped_type;
    auto const thread = static_cast<u32>(global_thread_index());
    random_sequence random{how.seed * 4096 + thread};
    for (u32 round = 0; round < how.rounds; ++round) {
      u32 const number = random.below(how.keys);
      if (how.erases && random.below(how.erases) == 0) {
        if (map->erase(numbered<K>(number))) count(taken[number]);
      } else if (map->insert(heap, numbered<K>(number), numbered<V>(thread)) == insert_result::inserted) {
        count(brought[number]);
        atomic_ref<u32>{values[number]}.store(thread, order::relaxed);
      }
    }
  }
};

/// What is wrong after threads contended for keys; empty if nothing is.
template <class Map, class Heap>
std::string fault_of_contention(Heap heap, device_buffer<Map> const& map, launch_shape shape, contend how) {
  device_buffer<u32> const brought(how.keys), taken(how.keys), values(how.keys);
  launch(shape, how, heap, map.data(), how, brought.data(), taken.data(), values.data());
  synchronize();
  auto const in = brought.to_host(), out = taken.to_host(), written = values.to_host();
  auto const found = values_in(map, how.keys, shape.blocks * shape.threads);
  for (u32 key = 0; key < how.keys; ++key) {
    auto const name = "key " + std::to_string(key) + ": ";
    u32 const present = in[key] - out[key];
    if (present > 1)
      return name + std::to_string(in[key]) + " brought it, and " + std::to_string(out[key]) + " took it";
    if ((found[key] != none) != (present == 1)) return name + (present ? "lost" : "there after it was erased");
    if (how.erases == 0 && present && found[key] != written[key]) return name + "a value of another thread";
  }
  return misplaced_in(map) == 0 ? "" : "a key is misplaced";
}

}  // namespace warpheap::map_test
