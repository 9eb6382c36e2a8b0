// SPDX-License-Identifier: Apache-2.0
// atomic: what one addition to a word of global memory costs, by the number of threads that make
// one. Every thread makes `additions` of them, each after it has the answer of the one before:
//
//   each_lane   every lane adds to the one word that all threads share
//   each_warp   the lanes of a warp add to that word by one addition of its leader
//   own_word    every lane adds to a word of its own, in a sector of its own
//
// The first is the cost of a queue or a counter that all threads share, the second the cost of it
// where warps aggregate, and the third the cost of an atomic without contention.
// Threads: `workers`; `thread_blocks`.
//
// Cycles are of one addition of one lane, from before it until the lane has its answer. They are
// read in a launch of their own; the times are of launches that read no clock.
// Checked: every word is the number of additions to it, and no two additions to a word were given
// the same number.
// Source: Pham et al. 2022, figure 1, which has the first alone. Differs: several additions in
// turn, so that threads that start late meet the others too.
#pragma once

#include <algorithm>
#include <numeric>
#include <tuple>

#include "primitives.hpp"
#include "scenario.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Additions of one thread.
inline constexpr u32 additions_of_thread = 8;
/// Words of a sector, the unit of 32 bytes in which a GPU's second-level cache works.
inline constexpr u32 words_of_sector = 8;

/// The subjects: one addition of every lane of `lanes`, all of which call; each gets the old
/// value. `places`: how many words the threads add to.
struct by_each_lane {
  static constexpr char const* name = "each_lane";
  static u64 places(u64) { return 1; }
  WARPHEAP_DEVICE static u32 add(u32, u32& word) { return atomic_ref<u32>{word}.fetch_add(1, order::relaxed); }
};
struct by_each_warp {
  static constexpr char const* name = "each_warp";
  static u64 places(u64) { return 1; }
  WARPHEAP_DEVICE static u32 add(u32 lanes, u32& word) { return aggregated_fetch_add(group_of(lanes), word); }
};
struct to_own_word : by_each_lane {
  static constexpr char const* name = "own_word";
  static u64 places(u64 threads) { return threads; }
};

/// What the threads share.
struct added_words {
  u32* words;        ///< a sector each
  u32 const* place;  ///< by thread: its word's index
  u32* answers;      ///< of the j-th addition of thread i: entry j * threads + i
  u32* cycles;       ///< in the same places; null: no clock is read
};

/// Kernel: every thread makes its additions.
template <class Subject>
struct add_in_turn {
  WARPHEAP_DEVICE void operator()(added_words to, u64 threads) const {
    u64 const i = global_thread_index();
    u32 const first = simt::warp_id() * warp_lanes, left = simt::block_dim() - first;
    u32 const lanes = simt::ballot(low_mask32(left < warp_lanes ? left : warp_lanes), i < threads);
    if (i >= threads) return;
    // Read from memory, so the compiler cannot see that lanes share the word: it would add for all
    // of them at once, as each_warp does.
    u32& word = to.words[to.place[i]];
    for (u64 answer = i; answer < additions_of_thread * threads; answer += threads) {
      u64 const start = to.cycles ? simt::clock() : 0;
      u32 const old = Subject::add(lanes, word);
      // A store that no compiler moves: the answer is there before the clock is read, and before
      // the next addition. relaxed: read after the kernel.
      atomic_ref<u32>{to.answers[answer]}.store(old, order::relaxed);
      if (to.cycles) to.cycles[answer] = static_cast<u32>(simt::clock() - start);
    }
  }
};

/// What is wrong with words and answers when all threads are done; empty if nothing is.
inline std::string fault_of_additions(std::vector<u32> const& words, std::vector<u32> const& places,
                                      std::vector<u32> const& answers) {
  u64 const threads = places.size();
  // Where a place's answers begin, among the answers of all places in a row.
  std::vector<u64> begin(words.size() + 1);
  for (u32 const place : places) begin[place + 1] += additions_of_thread;
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (size_t place = 0; place < words.size(); ++place)
    if (words[place] != begin[place + 1] - begin[place])
      return "a word is " + std::to_string(words[place]) + " after " + std::to_string(begin[place + 1] - begin[place]) +
             " additions of 1";
  std::vector<bool> given(answers.size());
  for (u64 i = 0; i < answers.size(); ++i) {
    u32 const place = places[i % threads];
    u64 const answer = begin[place] + answers[i];
    if (answer >= begin[place + 1] || given[answer]) return "two additions to a word were given one number";
    given[answer] = true;
  }
  return {};
}

/// Additions of one subject by a number of threads.
template <class Subject>
class added_up {
 public:
  explicit added_up(u64 threads)
      : places_(threads),
        words_(Subject::places(threads) * words_of_sector),
        answers_(threads * additions_of_thread),
        cycles_(threads * additions_of_thread) {
    for (u64 i = 0; i < threads; ++i) places_[i] = static_cast<u32>(i % Subject::places(threads) * words_of_sector);
    place_ = device_buffer<u32>{places_};
  }

  /// One launch, and its check.
  run_outcome run(launch_shape shape) { return launch_once(shape, nullptr); }

  /// One launch that reads the clock around each addition, and its check.
  run_outcome run_with_clock(launch_shape shape) { return launch_once(shape, cycles_.data()); }

  /// Cycles of every addition of the last run with a clock.
  std::vector<u32> cycles() const { return cycles_.to_host(); }

 private:
  /// `cycles` null: the clock is not read.
  run_outcome launch_once(launch_shape shape, u32* cycles) {
    backend::fill_bytes(words_.data(), 0, words_.size_bytes(), stream_view{});
    backend::fill_bytes(answers_.data(), 0xff, answers_.size_bytes(), stream_view{});
    synchronize();
    added_words const to{words_.data(), place_.data(), answers_.data(), cycles};
    run_outcome made;
    made.microseconds =
        stopwatch{}.microseconds([&] { launch(shape, add_in_turn<Subject>{}, to, u64{places_.size()}); });
    made.fault = fault_of_additions(words_.to_host(), places_, answers_.to_host());
    return made;
  }

  std::vector<u32> places_;
  device_buffer<u32> place_, words_, answers_, cycles_;
};

/// Sets the figures of cycles from a run in each shape.
template <class Subject>
void add_cycles(result& row, added_up<Subject>& adding, std::vector<launch_shape> const& shapes) {
  std::vector<u32> all;
  for (auto const shape : shapes) {
    if (row.fault.empty()) row.fault = adding.run_with_clock(shape).fault;
    auto const some = adding.cycles();
    all.insert(all.end(), some.begin(), some.end());
  }
  row.figures.emplace_back("cycles_p50", quantile(all, 0.5));
  row.figures.emplace_back("cycles_p99", quantile(all, 0.99));
  row.figures.emplace_back("cycles_mean",
                           std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()));
}

/// Appends the rows of all subjects by `threads` threads. False if any was at fault.
template <class... Subjects>
bool append_additions(std::vector<result>& rows, u64 threads, request const& asked) {
  auto const shapes = shapes_of(threads, asked);
  auto subjects = std::tuple{added_up<Subjects>{threads}...};
  auto const laps = take_turns(
      shapes, asked.repeat, [&](launch_shape shape) { return std::get<added_up<Subjects>>(subjects).run(shape); }...);
  bool sound = true;
  auto const append = [&]<class Subject>(added_up<Subject>& adding, lap const& seen) {
    result row{.scenario = "atomic", .primitive = Subject::name, .operation = "fetch_add"};
    row.parameters = {{"threads", threads}, {"additions", additions_of_thread}};
    add_thread_blocks(row, shapes);
    row.operations = static_cast<double>(threads * additions_of_thread);
    row.times_us = seen.times_us;
    row.fault = seen.fault;
    row.figures = {{"ns_of_one", 1e3 * median(seen.times_us) / row.operations}};
    if (row.checked()) add_cycles(row, adding, shapes);
    if (&seen != &laps[0]) row.figures.emplace_back("ratio", speedup(laps[0], seen));
    sound = sound && row.checked();
    rows.push_back(std::move(row));
  };
  size_t next = 0;
  (append(std::get<added_up<Subjects>>(subjects), laps[next++]), ...);
  return sound;
}

/// Rows of all subjects. All but the first have `ratio`, their speed over the first's.
template <class First = by_each_lane, class Second = by_each_warp, class Third = to_own_word>
std::vector<result> atomics(request const& asked) {
  auto const numbers = asked.get(options::workers, powers(32, default_for_backend(0, u64{1} << 17, 512), 4));
  std::vector<result> rows;
  for (u64 const threads : numbers) {
    if (!asked.proceed("atomic", rows.size() / 3, numbers.size())) break;
    if (!append_additions<First, Second, Third>(rows, threads, asked)) break;
  }
  return rows;
}

inline scenario about_atomic() {
  return {
      .name = "atomic",
      .text = "one addition to a word that all threads share, by each lane and by each warp, and to a word of its own",
      .kind = scenario_kind::of_primitives,
      .rank = 40,
      .uses = {{options::workers, "32, 128, ... 131072"}, {options::thread_blocks, "means over the list; default 256"}},
      .ignores = {"--pool"},
      .baseline = atomics<>,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
