// SPDX-License-Identifier: Apache-2.0
// instruction_latency: what one lane waits for the steps of a walk over a bitmap. Each step needs
// the answer of the one before; cycles are those of the whole chain over its steps.
//
//   popcount   the set bits of a word
//   nth_bit    the place of the set bit of a word that has n set bits below it
//   load       a word of a bitmap in global memory, at a random place
//
// The bitmap is that of the paper's pool, 2^25 pages in words of 32, each of 8 bytes as in
// random_walk: 8 MiB, and 8 KiB on the host. Its words are loaded as a walk loads them, past the
// first-level cache, and each once in a chain, if there are enough of them.
// Checked: the chain ends where a host's does.
// Source: Pham et al. 2022, section 4.2: 2 cycles, low tens, a few hundred.
#pragma once

#include <numeric>

#include "measure/measure.hpp"
#include "scenario.hpp"
#include "warpheap/util/bits.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Steps of a chain, and those that a turn of its loop makes.
inline constexpr u32 chained_steps = 4096, steps_of_turn = 32;

// The steps. Each is a function from the last answer to the next.

struct count_bits {
  static constexpr char const* name = "popcount";
  WARPHEAP_HOST_DEVICE u32 operator()(u32 last) const { return popcount(last); }
};

/// The word changes with the last answer, or a part of the search could be made once for all.
struct find_nth_bit {
  static constexpr char const* name = "nth_bit";
  u32 n;
  WARPHEAP_HOST_DEVICE u32 operator()(u32 last) const { return nth_bit(~last, n); }
};

/// Each word holds the place of the next one.
struct load_word {
  static constexpr char const* name = "load";
  u64* words;
  WARPHEAP_DEVICE u32 operator()(u32 last) const {
    return static_cast<u32>(atomic_ref<u64>{words[last]}.load(order::relaxed));
  }
};

/// What the lane of a chain leaves.
struct chain_end {
  u32 answer;
  u64 cycles;
};

/// Kernel: one lane makes all steps.
template <class Step>
struct follow_chain {
  WARPHEAP_DEVICE void operator()(Step step, u32 first, chain_end* end) const {
    u32 answer = opaque(first);
    u64 const start = simt::clock();
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < chained_steps / steps_of_turn; ++turn)
      for (u32 i = 0; i < steps_of_turn; ++i) answer = opaque(step(answer));
    // A store that no compiler moves: the answer is there before the clock is read. relaxed: read
    // after the kernel.
    atomic_ref<u32>{end->answer}.store(answer, order::relaxed);
    end->cycles = simt::clock() - start;
  }
};

/// The row of one kind of step, whose chain from `first` ends at `expected`.
template <class Step>
result chain_row(Step step, u32 first, u32 expected, u32 repeat) {
  device_buffer<chain_end> end(1);
  stopwatch watch;
  result row{.scenario = "instruction_latency", .primitive = Step::name, .operation = "step"};
  row.parameters = {{"steps", chained_steps}};
  row.operations = chained_steps;
  std::vector<double> cycles;
  for (u32 round = 0; round <= repeat && row.checked(); ++round) {
    auto const time = watch.microseconds([&] { launch({1, 1}, follow_chain<Step>{}, step, first, end.data()); });
    chain_end const seen = end[0];
    if (seen.answer != expected)
      row.fault = "a chain ends at " + std::to_string(seen.answer) + " in place of " + std::to_string(expected);
    if (round == 0) continue;
    row.times_us.push_back(time);
    cycles.push_back(static_cast<double>(seen.cycles) / chained_steps);
  }
  row.figures = {{"cycles", median(cycles)}};
  return row;
}

/// A random order of `words` places, in which each names the next and the last one the first.
inline std::vector<u64> random_circle(u64 words, u64 seed) {
  std::vector<u64> next(words);
  std::iota(next.begin(), next.end(), u64{0});
  random_sequence random{seed};
  // Sattolo's shuffle: one circle of all.
  for (u64 left = words; left > 1; --left) std::swap(next[left - 1], next[random.below(static_cast<u32>(left - 1))]);
  return next;
}

/// The answer of a chain of `step`, which a host takes as well.
template <class Step>
u32 end_of_chain(Step step, u32 answer) {
  for (u32 i = 0; i < chained_steps; ++i) answer = step(answer);
  return answer;
}

inline std::vector<result> instruction_latency(request const& asked) {
  auto const circle = random_circle(default_for_backend(0, u64{1} << 20, u64{1} << 10), asked.seed);
  device_buffer<u64> words{circle};
  auto const in_circle = [&](u32 last) { return static_cast<u32>(circle[last]); };
  count_bits const counting;
  find_nth_bit const finding{.n = 13};
  std::vector<result> rows;
  auto const add = [&](auto step, u32 first, u32 expected) {
    bool const proceeds = asked.proceed("instruction_latency", rows.size(), 3);
    if (proceeds) rows.push_back(chain_row(step, first, expected, asked.repeat));
    return proceeds;
  };
  bool const all = add(counting, full_mask, end_of_chain(counting, full_mask)) &&
                   add(finding, 0, end_of_chain(finding, 0)) &&
                   add(load_word{words.data()}, 0, end_of_chain(in_circle, 0));
  if (all) rows.back().parameters.emplace_back("words", circle.size());
  return rows;
}

inline scenario about_instruction_latency() {
  return {
      .name = "instruction_latency",
      .text = "cycles of one lane for a count of bits, a search for the n-th of them, and a load of a bitmap's word",
      .kind = scenario_kind::of_primitives,
      .rank = 60,
      .ignores = {"--pool"},
      .baseline = instruction_latency,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
