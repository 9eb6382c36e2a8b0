// semaphore: how fast a crowd gets units that must be made by the batch. Every thread takes one
// unit from a semaphore that has none, and a thread that is told to make a batch makes it: by one
// atomic addition, and a pause where one is asked for. A counting semaphore makes one batch at a
// time, a bulk semaphore as many as are needed, so this is the upper limit of what an allocator
// that stands on either can do. Each is asked once for the lanes of a warp: the counting semaphore
// by a leader that wants as many units; the bulk semaphore by wait_with_company, and by a leader
// with wait_for_some, which is how UAlloc asks. Batch: `batch`, `batch_ns`; threads: `workers`;
// `thread_blocks`.
//
// Checked: every thread got its unit, as many batches were made as that takes (by wait_for_some
// perhaps more, as its declaration says), and the units left are the rest.
// Source: Gelado and Garland 2019, section 5.1 and figure 5. Differs: the pause.
#pragma once

#include <algorithm>

#include "primitives.hpp"
#include "warpheap/sync/bulk_semaphore.hpp"
#include "warpheap/sync/counting_semaphore.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::bench {
inline namespace WARPHEAP_BACKEND {

/// What the threads share.
struct unit_supply {
  u64 semaphore;
  u64 batches;
};

/// Makes a batch.
struct batch_maker {
  u64* batches;
  u32 nanoseconds;

  WARPHEAP_DEVICE void make() const {
    // relaxed: counted on the host.
    atomic_ref<u64>{*batches}.fetch_add(1, order::relaxed);
    if (nanoseconds) simt::pause(nanoseconds);
  }
};

/// The contenders: one unit, by making a batch if it must be.
struct by_counting_semaphore {
  static constexpr char const* name = "counting_semaphore";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    lane_group const group = group_of(simt::active_mask());
    if (group.leads) take_units(counting_semaphore{word}, group.size, batch, maker);
    simt::sync_warp(group.mask);
  }

 private:
  WARPHEAP_DEVICE static void take_units(counting_semaphore semaphore, u32 units, u32 batch, batch_maker maker) {
    while (units != 0) {
      u32 const wanted = units < batch ? units : batch;
      if (u32 const missing = semaphore.wait_or_grow(wanted)) {
        maker.make();
        semaphore.grown(batch - missing);
      }
      units -= wanted;
    }
  }
};
struct by_bulk_semaphore {
  static constexpr char const* name = "bulk_semaphore";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    bulk_semaphore semaphore{word};
    if (semaphore.wait_with_company(batch) == wait_result::acquired) return;
    maker.make();
    semaphore.signal(batch - 1, batch - 1);
  }
};
struct by_leader_of_bulk_semaphore {
  static constexpr char const* name = "bulk_semaphore";
  static constexpr char const* operation = "wait_for_some";
  static constexpr bool makes_no_more = false;
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    lane_group const group = group_of(simt::active_mask());
    if (group.leads) take_units(bulk_semaphore{word}, group.size, batch, maker);
    simt::sync_warp(group.mask);
  }

 private:
  WARPHEAP_DEVICE static void take_units(bulk_semaphore semaphore, u32 units, u32 batch, batch_maker maker) {
    while (units != 0) {
      u32 const wanted = units < batch ? units : batch;
      u32 got = semaphore.wait_for_some(wanted, batch).units;
      if (got == 0) {
        maker.make();
        semaphore.signal(batch - wanted, batch - wanted);
        got = wanted;
      }
      units -= got;
    }
  }
};

/// Kernel: thread i takes a unit.
template <class Contender>
struct take_units {
  WARPHEAP_DEVICE void operator()(unit_supply* supply, u32* served, u32 batch, u32 batch_ns, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    Contender::take_unit(supply->semaphore, batch, {&supply->batches, batch_ns});
    served[i] = 1;
  }
};

/// One launch, and its check.
template <class Contender>
run_outcome run_semaphore_once(launch_shape shape, u64 threads, request const& asked) {
  device_buffer<unit_supply> supply(1);
  device_buffer<u32> served(threads);
  run_outcome made;
  made.microseconds = stopwatch{}.microseconds([&] {
    launch(shape, take_units<Contender>{}, supply.data(), served.data(), asked.batch, asked.batch_ns, threads);
  });
  auto const end = supply[0];
  auto const each = served.to_host();
  u64 const needed = (threads + asked.batch - 1) / asked.batch;
  if (static_cast<u64>(std::count(each.begin(), each.end(), 1u)) != threads) made.fault = "a thread got no unit";
  else if (end.batches < needed || (Contender::makes_no_more && end.batches != needed))
    made.fault = std::to_string(end.batches) + " batches in place of " + std::to_string(needed);
  else if (end.semaphore != end.batches * asked.batch - threads) made.fault = "units were lost";
  made.figure = static_cast<double>(end.batches);
  return made;
}

/// Rows of three contenders; those of the others have `ratio`, how many times as fast as the first
/// they are.
template <class First = by_counting_semaphore, class Second = by_bulk_semaphore,
          class Third = by_leader_of_bulk_semaphore>
std::vector<result> semaphore(request const& asked) {
  auto numbers = asked.workers;
  for (u64 number = 32; asked.workers.empty() && number <= either(0, u64{1} << 20, 2048); number *= on_gpu ? 2 : 8)
    numbers.push_back(number);
  std::vector<result> rows;
  for (u64 const threads : numbers) {
    if (!asked.proceed("semaphore", rows.size() / 3, numbers.size())) break;
    auto const shapes = shapes_of(threads, asked);
    auto const laps = take_turns(
        shapes, asked.repeat, [&](launch_shape shape) { return run_semaphore_once<First>(shape, threads, asked); },
        [&](launch_shape shape) { return run_semaphore_once<Second>(shape, threads, asked); },
        [&](launch_shape shape) { return run_semaphore_once<Third>(shape, threads, asked); });
    result row{.scenario = "semaphore", .primitive = First::name, .operation = First::operation};
    row.parameters = {{"threads", threads}, {"batch", asked.batch}, {"batch_ns", asked.batch_ns}};
    row.operations = static_cast<double>(threads);
    add_thread_blocks(row, shapes);
    std::array<result, 3> who{row, row, row};
    who[1].primitive = Second::name;
    who[1].operation = Second::operation;
    who[2].primitive = Third::name;
    who[2].operation = Third::operation;
    if (!append_laps(rows, who, "batches", laps)) break;
  }
  return rows;
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::bench
