// SPDX-License-Identifier: Apache-2.0
// collective_mutex: what is gained when the lanes of a warp enter a section together. Every thread
// has a little work to do under one mutex. Either each lane locks a spin mutex, works and unlocks;
// or the active lanes lock a collective mutex as one group, share the work of all of them by rank,
// and leave together. Both write the same words:
//
//   counters   a lane raises the counter that its place in the warp names: 32 in a line
//   lines      a lane raises all 32 words of a line of 128 bytes, as a thread that initialises a
//              header does; a group raises one line for each member, every line by all members
//
// All threads contend for one mutex, which is the worst case. Threads: `workers`; `thread_blocks`.
//
// No word is written by an atomic read-modify-write, so a second holder shows in lost additions.
// Checked: every word counts the threads that raised it. `sections` counts how often the mutex was
// taken; it is raised under the mutex.
// Source: Gelado and Garland 2019, section 4.2.2, which has no figure of it.
#pragma once

#include <algorithm>

#include "primitives.hpp"
#include "scenario.hpp"
#include "warpheap/sync/collective_mutex.hpp"
#include "warpheap/sync/spin_mutex.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline constexpr u32 words_of_line = 32;

/// What the threads share.
struct guarded_lines {
  u32 mutex;
  u32 sections;
  alignas(128) u32 words[warp_lanes][words_of_line];
};

/// Not atomic as a whole: under the mutex alone.
WARPHEAP_DEVICE inline void raise(u32& word) {
  // relaxed: the mutex orders them.
  atomic_ref<u32> const shared{word};
  shared.store(shared.load(order::relaxed) + 1, order::relaxed);
}

/// The work of one lane, and that of a group for all its members.
struct raise_counters {
  static constexpr char const* name = "counters";
  WARPHEAP_DEVICE static void alone(guarded_lines* lines) { raise(lines->words[0][simt::lane_id()]); }
  WARPHEAP_DEVICE static void together(guarded_lines* lines, lane_group const&) { alone(lines); }
};
struct raise_lines {
  static constexpr char const* name = "lines";
  WARPHEAP_DEVICE static void alone(guarded_lines* lines) {
    for (u32& word : lines->words[simt::lane_id()]) raise(word);
  }
  WARPHEAP_DEVICE static void together(guarded_lines* lines, lane_group const& group) {
    for (u32 members = group.mask; members != 0; members &= members - 1) {
      auto& line = lines->words[lowest_bit(members)];
      for (u32 i = group.rank; i < words_of_line; i += group.size) raise(line[i]);
    }
  }
};

/// The subjects: one lane's work, done under the mutex.
struct by_spin_mutex {
  static constexpr char const* name = "spin_mutex";
  template <class Work>
  WARPHEAP_DEVICE static void do_work(guarded_lines* lines) {
    scoped_lock const inside{spin_mutex{lines->mutex}};
    raise(lines->sections);
    Work::alone(lines);
  }
};
struct by_collective_mutex {
  static constexpr char const* name = "collective_mutex";
  template <class Work>
  WARPHEAP_DEVICE static void do_work(guarded_lines* lines) {
    collective_mutex const mutex{lines->mutex};
    auto const group = mutex.lock_converged();
    if (group.leads) raise(lines->sections);
    Work::together(lines, group);
    mutex.unlock(group.mask);
  }
};

/// Kernel: every thread does its work once.
template <class Subject, class Work>
struct work_under_mutex {
  WARPHEAP_DEVICE void operator()(guarded_lines* lines, u64 threads) const {
    if (global_thread_index() < threads) Subject::template do_work<Work>(lines);
  }
};

/// Threads of each place in a warp.
inline std::vector<u64> threads_by_lane(launch_shape shape, u64 threads) {
  std::vector<u64> counts(warp_lanes);
  for (u64 i = 0; i < threads; ++i) ++counts[i % shape.threads % warp_lanes];
  return counts;
}

/// What is wrong with the words when all threads are done; empty if nothing is.
template <class Work>
std::string fault_of_lines(guarded_lines const& end, std::vector<u64> const& by_lane) {
  constexpr bool whole_lines = same_type<Work, raise_lines>;
  u64 wrong = 0;
  for (u32 lane = 0; lane < warp_lanes; ++lane)
    for (u32 i = 0; i < words_of_line; ++i) {
      u64 const by_words = lane == 0 ? by_lane[i] : 0;
      wrong += end.words[lane][i] != (whole_lines ? by_lane[lane] : by_words);
    }
  if (wrong) return std::to_string(wrong) + " words do not count the threads that raised them";
  return end.mutex == 0 ? "" : "the mutex is locked when all have left";
}

/// One launch, and its check.
template <class Subject, class Work>
run_outcome run_under_mutex(launch_shape shape, u64 threads) {
  device_buffer<guarded_lines> lines(1);
  run_outcome made;
  made.microseconds =
      stopwatch{}.microseconds([&] { launch(shape, work_under_mutex<Subject, Work>{}, lines.data(), threads); });
  auto const end = lines[0];
  made.fault = fault_of_lines<Work>(end, threads_by_lane(shape, threads));
  made.figure = end.sections;
  return made;
}

/// Appends the rows of one kind of work by `threads` threads. False if either subject was at
/// fault.
template <class Work, class First, class Second>
bool append_work(std::vector<result>& rows, u64 threads, request const& asked) {
  auto const shapes = shapes_of(threads, asked);
  auto const laps = take_turns(
      shapes, asked.repeat, [&](launch_shape shape) { return run_under_mutex<First, Work>(shape, threads); },
      [&](launch_shape shape) { return run_under_mutex<Second, Work>(shape, threads); });
  result row{.scenario = "collective_mutex", .primitive = First::name, .operation = Work::name};
  row.parameters = {{"threads", threads}};
  row.operations = static_cast<double>(threads);
  add_thread_blocks(row, shapes);
  auto other = row;
  other.primitive = Second::name;
  return append_laps<2>(rows, {row, other}, "sections", laps);
}

/// Rows of two subjects; the second's has `ratio`, how many times as fast it is.
template <class First = by_spin_mutex, class Second = by_collective_mutex>
std::vector<result> mutexes(request const& asked) {
  auto const numbers = asked.get(options::workers, powers(32, default_for_backend(0, 32768, 512), 4));
  std::vector<result> rows;
  for (u64 const threads : numbers) {
    if (!asked.proceed("collective_mutex", rows.size() / 4, numbers.size())) break;
    if (!append_work<raise_counters, First, Second>(rows, threads, asked)) break;
    if (!append_work<raise_lines, First, Second>(rows, threads, asked)) break;
  }
  return rows;
}

inline scenario about_collective_mutex() {
  return {
      .name = "collective_mutex",
      .text = "a little work of every thread under one mutex: lane by lane under a spin mutex, against groups of lanes",
      .kind = scenario_kind::of_primitives,
      .rank = 30,
      .uses = {{options::workers, "32, 128, ... 32768"}, {options::thread_blocks, "means over the list; default 256"}},
      .ignores = {"--pool"},
      .baseline = mutexes<>,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
