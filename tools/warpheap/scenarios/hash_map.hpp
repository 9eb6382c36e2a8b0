// SPDX-License-Identifier: Apache-2.0
// hash_map: how fast threads insert into a hash_map of 32-bit keys and values from the default
// heap, and find, a thread a key. The keys are distinct and uniform. The map has room for them so
// that they fill it to a half (load 500 permille) or to 0.8, or for a hundredth of them, so that it
// grows in the timed kernel.
//
//   insert       all keys into an empty map
//   find         all of them
//   find absent  as many others
//   compact      the map: all of its levels become one
//
// Keys: `workers`. Checked: every insertion and every search says what is right.
#pragma once

#include "measure/measure.hpp"
#include "scenario.hpp"
#include "warpheap/container/hash_map.hpp"
#include "warpheap/util/random.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The keys: mix32 is a bijection. Those from `first` on; the value of a key is its number.
struct numbered_keys {
  u32 first;

  WARPHEAP_HOST_DEVICE u32 operator[](u32 i) const { return mix32(first + i); }
};

using measured_map = hash_map<u32, u32>;

struct write_keys {
  WARPHEAP_DEVICE void operator()(numbered_keys keys, u32* written, u32 count) const {
    u64 const i = global_thread_index();
    if (i < count) written[i] = keys[static_cast<u32>(i)];
  }
};

struct insert_keys {
  WARPHEAP_DEVICE void operator()(heap_ref heap, measured_map* map, u32 const* keys, u32 count, u32* faults) const {
    auto const i = static_cast<u32>(global_thread_index());
    if (i < count && map->insert(heap, keys[i], i) != insert_result::inserted)
      atomic_ref<u32>{*faults}.fetch_add(1, order::relaxed);
  }
};

struct find_keys {
  WARPHEAP_DEVICE void operator()(measured_map const* map, u32 const* keys, u32 count, bool present,
                                  u32* faults) const {
    auto const i = static_cast<u32>(global_thread_index());
    if (i >= count) return;
    u32 value = i;
    bool const found = map->find(keys[i], value);
    if (found != present || value != i) atomic_ref<u32>{*faults}.fetch_add(1, order::relaxed);
  }
};

/// Rows of one number of keys.
class hash_map_rows {
 public:
  hash_map_rows(heap& pool, u32 count, u32 repeat) : pool_{pool}, count_{count}, repeat_{repeat} {
    launch(shape_, write_keys{}, numbered_keys{0}, keys_.data(), count);
    launch(shape_, write_keys{}, numbered_keys{count}, others_.data(), count);
  }

  /// A map with `room` for that many entries at a load of a half; what they are called.
  std::vector<result> measure(u64 room, std::pair<std::string, u64> const& load) {
    device_buffer<measured_map> map{1};
    result base{
        .scenario = "hash_map", .allocator = "slab_bitmap", .primitive = "hash_map", .operations = 1.0 * count_};
    base.parameters = {{"keys", count_}, load, {"pool_bytes", pool_.pool_bytes()}};
    std::vector<result> rows;
    for (char const* const operation : {"insert", "find", "find absent", "compact"}) {
      rows.push_back(base);
      rows.back().operation = operation;
    }
    std::string fault;
    for (u32 round = 0; round <= repeat_; ++round) {
      destroy(pool_.ref(), map.data());
      reserve(pool_.ref(), map.data(), room);
      auto const time = [&](size_t row, auto work) {
        auto const us = watch_.microseconds(work);
        if (round > 0) rows[row].times_us.push_back(us);  // the first warms up
      };
      measured_map const* const filled = map.data();
      time(0, [&] { launch(shape_, insert_keys{}, pool_.ref(), map.data(), keys_.data(), count_, faults_.data()); });
      time(1, [&] { launch(shape_, find_keys{}, filled, keys_.data(), count_, true, faults_.data()); });
      time(2, [&] { launch(shape_, find_keys{}, filled, others_.data(), count_, false, faults_.data()); });
      auto const state = inspect(map.data());
      rows[0].figures = {{"levels", state.levels}, {"capacity", static_cast<double>(state.capacity)}};
      time(3, [&] { compact(pool_.ref(), map.data()); });
      if (inspect(map.data()).entries != count_) fault = "a compacted map has another number of entries";
    }
    destroy(pool_.ref(), map.data());
    synchronize();
    if (fault.empty()) fault = fault_of_emptied(pool_);
    if (faults_[0] != 0) fault = std::to_string(faults_[0]) + " insertions or searches went wrong";
    for (auto& row : rows) row.fault = fault;
    return rows;
  }

 private:
  heap& pool_;
  u32 count_, repeat_;
  launch_shape shape_ = shape_for(count_);
  device_buffer<u32> keys_{count_}, others_{count_}, faults_{1};
  stopwatch watch_;
};

inline std::vector<result> hash_maps(request const& asked) {
  std::vector<u64> usual{u64{1} << 20, u64{1} << 24};
  if (!on_gpu) usual = {u64{1} << 12};
  auto const numbers = asked.get(options::workers, usual);
  std::vector<result> rows;
  heap pool{asked.pool_bytes};
  for (u64 const keys : numbers) {
    auto const count = static_cast<u32>(keys);
    hash_map_rows of{pool, count, asked.repeat};
    std::pair<u64, std::pair<std::string, u64>> const maps[] = {
        {keys, {"load_permille", 500}}, {keys * 5 / 8, {"load_permille", 800}}, {keys / 100, {"times_too_small", 100}}};
    for (auto const& [room, load] : maps) {
      if (!asked.proceed("hash_map", rows.size() / 4, 3 * numbers.size())) return rows;
      for (auto& row : of.measure(room, load)) rows.push_back(std::move(row));
      if (!rows.back().checked()) return rows;
    }
  }
  return rows;
}

inline scenario about_hash_map() {
  return {
      .name = "hash_map",
      .text = "insertions into a hash map on the default heap, and searches, by load and with a size guessed too small",
      .kind = scenario_kind::of_default_allocator,
      .uses = {{options::workers, "keys; default 1048576, 16777216"}},
      .pool = {.gpu = u64{2} << 30},
      .baseline = hash_maps,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
