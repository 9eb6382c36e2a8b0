// SPDX-License-Identifier: Apache-2.0
// semaphore: how fast contending threads get units that are made by the batch. Each takes one
// unit from a semaphore that has none. A thread that is told to make a batch does so by one atomic
// addition, and a pause where one is asked for. A counting semaphore makes one batch at a time, a
// bulk semaphore as many as are needed, so this is the upper limit of an allocator that is built on
// either. Each is asked once for the lanes of a warp. A leader asks the counting semaphore for as
// many units as there are lanes. The bulk semaphore is asked by wait_converged; by a leader with
// wait, which compares and swaps as the counting semaphore does and as TBuddy asks; and by a leader
// with wait_for_some, which adds, as UAlloc asks. In the paper's form each thread asks both for
// itself (`wait, each thread`). Batch: `batch`, `batch_ns`; threads: `workers`; `thread_blocks`.
//
// Checked: every thread got its unit, as many batches were made as that takes (by wait_for_some
// perhaps more, as its declaration says), and the units left are the rest.
// Source: Gelado and Garland 2019, section 5.1 and figure 5. Differs: the pause.
#pragma once

#include <algorithm>

#include "primitives.hpp"
#include "scenario.hpp"
#include "warpheap/sync/bulk_semaphore.hpp"
#include "warpheap/sync/counting_semaphore.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::bench::options {

inline constexpr option<u32> batch{{.name = "--batch",
                                    .rank = 60,
                                    .type = "N",
                                    .text = "Units of a batch",
                                    .parse = count_of<u32, 1, (u64{1} << 20)>,
                                    .initial = "512"}};

/// The most is the longest pause that a GPU makes.
inline constexpr option<u32> batch_ns{{.name = "--batch-ns",
                                       .rank = 70,
                                       .type = "N",
                                       .text = "Nanoseconds that a batch takes its maker, beside one atomic",
                                       .parse = count_of<u32, 0, 1'000'000>,
                                       .initial = "0"}};

}  // namespace warpheap::bench::options

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

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

/// One lane asks for all active lanes, for a batch at most each time: get(units) takes that many or
/// fewer, and tells how many.
template <class Get>
WARPHEAP_DEVICE void get_units_of_lanes(u32 batch, Get get) {
  lane_group const group = group_of(simt::active_mask());
  for (u32 units = group.leads ? group.size : 0; units != 0;) units -= get(units < batch ? units : batch);
  simt::sync_warp(group.mask);
}

/// The subjects: one unit, by making a batch if it must be.
struct by_counting_semaphore {
  static constexpr char const* name = "counting_semaphore";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  WARPHEAP_DEVICE static u32 take(u64& word, u32 units, u32 batch, batch_maker maker) {
    counting_semaphore semaphore{word};
    if (u32 const missing = semaphore.wait_or_grow(units)) {
      maker.make();
      semaphore.grown(batch - missing);
    }
    return units;
  }
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    get_units_of_lanes(batch, [&](u32 units) { return take(word, units, batch, maker); });
  }
};
struct by_bulk_semaphore {
  static constexpr char const* name = "bulk_semaphore";
  static constexpr char const* operation = "wait_converged";
  static constexpr bool makes_no_more = true;
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    bulk_semaphore semaphore{word};
    if (semaphore.wait_converged(batch) == wait_result::acquired) return;
    maker.make();
    semaphore.signal(batch - 1, batch - 1);
  }
};
struct by_swapping_leader {
  static constexpr char const* name = "bulk_semaphore";
  static constexpr char const* operation = "wait";
  static constexpr bool makes_no_more = true;
  WARPHEAP_DEVICE static u32 take(u64& word, u32 units, u32 batch, batch_maker maker) {
    bulk_semaphore semaphore{word};
    if (semaphore.wait(units, batch) == wait_result::make_batch) {
      maker.make();
      semaphore.signal(batch - units, batch - units);
    }
    return units;
  }
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    get_units_of_lanes(batch, [&](u32 units) { return take(word, units, batch, maker); });
  }
};
/// Either of them, asked by each thread for itself.
template <class Leader>
struct by_each_thread : Leader {
  static constexpr char const* operation = "wait, each thread";
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    Leader::take(word, 1, batch, maker);
  }
};
struct by_adding_leader {
  static constexpr char const* name = "bulk_semaphore";
  static constexpr char const* operation = "wait_for_some";
  static constexpr bool makes_no_more = false;
  WARPHEAP_DEVICE static void take_unit(u64& word, u32 batch, batch_maker maker) {
    get_units_of_lanes(batch, [&](u32 units) {
      bulk_semaphore semaphore{word};
      if (u32 const got = semaphore.wait_for_some(units, batch).units) return got;
      maker.make();
      semaphore.signal(batch - units, batch - units);
      return units;
    });
  }
};

/// Kernel: thread i takes a unit.
template <class Subject>
struct take_units {
  WARPHEAP_DEVICE void operator()(unit_supply* supply, u32* served, u32 batch, u32 batch_ns, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    Subject::take_unit(supply->semaphore, batch, {&supply->batches, batch_ns});
    served[i] = 1;
  }
};

/// One launch, and its check.
template <class Subject>
run_outcome run_semaphore_once(launch_shape shape, u64 threads, request const& asked) {
  device_buffer<unit_supply> supply(1);
  device_buffer<u32> served(threads);
  run_outcome made;
  made.microseconds = stopwatch{}.microseconds([&] {
    launch(shape, take_units<Subject>{}, supply.data(), served.data(), asked[options::batch], asked[options::batch_ns],
           threads);
  });
  auto const end = supply[0];
  auto const each = served.to_host();
  u64 const needed = (threads + asked[options::batch] - 1) / asked[options::batch];
  if (static_cast<u64>(std::count(each.begin(), each.end(), 1u)) != threads) made.fault = "a thread got no unit";
  else if (end.batches < needed || (Subject::makes_no_more && end.batches != needed))
    made.fault = std::to_string(end.batches) + " batches in place of " + std::to_string(needed);
  else if (end.semaphore != end.batches * asked[options::batch] - threads) made.fault = "units were lost";
  made.figure = static_cast<double>(end.batches);
  return made;
}

/// Rows of all subjects. All but the first have `ratio`, their speed over the first's.
template <class... Subjects>
std::vector<result> semaphore_of(request const& asked) {
  auto const numbers =
      asked.get(options::workers, powers(32, default_for_backend(0, u64{1} << 20, 2048), on_gpu ? 2 : 8));
  std::vector<result> rows;
  for (u64 const threads : numbers) {
    if (!asked.proceed("semaphore", rows.size() / sizeof...(Subjects), numbers.size())) break;
    auto const shapes = shapes_of(threads, asked);
    auto const laps = take_turns(shapes, asked.repeat, [&](launch_shape shape) {
      return run_semaphore_once<Subjects>(shape, threads, asked);
    }...);
    auto const row_of = [&](char const* name, char const* operation) {
      result row{.scenario = "semaphore", .primitive = name, .operation = operation};
      row.parameters = {{"threads", threads}, {"batch", asked[options::batch]}, {"batch_ns", asked[options::batch_ns]}};
      row.operations = static_cast<double>(threads);
      add_thread_blocks(row, shapes);
      return row;
    };
    std::array<result, sizeof...(Subjects)> const subjects{row_of(Subjects::name, Subjects::operation)...};
    if (!append_laps(rows, subjects, "batches", laps)) break;
  }
  return rows;
}

inline std::vector<result> semaphore(request const& asked) {
  return semaphore_of<by_counting_semaphore, by_bulk_semaphore, by_swapping_leader, by_adding_leader,
                      by_each_thread<by_counting_semaphore>, by_each_thread<by_swapping_leader>>(asked);
}

inline scenario about_semaphore() {
  return {
      .name = "semaphore",
      .text = "a unit for every thread, made by the batch: counting against bulk semaphore",
      .kind = scenario_kind::of_primitives,
      .rank = 10,
      .uses = {{options::workers, "32, 64, ... 1048576"},
               {options::thread_blocks, "means over the list; default 256"},
               {options::batch},
               {options::batch_ns}},
      .ignores = {"--pool"},
      .baseline = semaphore,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
