// SPDX-License-Identifier: Apache-2.0
// Litmus tests as rows of a table: a few threads, an outcome, and whether PTX allows it.
//
// A row runs under many seeds with weak memory. An outcome that PTX forbids must never show. One
// that it allows must show, or the row says why it cannot.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::litmus {

/// The words of a test, zero at first. x, y and z are far apart, and results are in r.
struct words {
  u32 *x, *y, *z, *r;

  u64& whole_x() const { return *reinterpret_cast<u64*>(x); }
};

/// What a run has left.
struct final_state {
  u32 x, y, z;
  u32 r[6];
};

using thread_body = void (*)(words const& at);

enum class ptx { allows, forbids };

/// Threads live in thread blocks of their own, or as lanes of one.
enum class layout { apart, one_block };

struct row {
  char const* name;
  thread_body threads[4];
  bool (*outcome)(final_state const& end);
  ptx verdict;
  char const* not_shown = nullptr;  // why weak memory does not show an outcome that PTX allows
  layout where = layout::apart;
};

inline constexpr u32 stride = 32, result_words = 6;

struct run_threads {
  thread_body threads[4];
  layout where;

  void operator()(u32* memory) const {
    u32 const self = where == layout::apart ? simt::block_index() : simt::thread_index();
    threads[self]({memory, memory + stride, memory + 2 * stride, memory + 3 * stride});
  }
};

inline host::execution settings_of(u64 seed) {
  return {.mode = host::execution_mode::deterministic,
          .policy = seed % 4 == 0 ? host::schedule_policy::round_robin : host::schedule_policy::random_walk,
          .masks = host::mask_policy::maximal,
          .seed = seed,
          .weak_memory = true};
}

/// Whether one of `seeds` runs ends in the row's outcome.
inline bool shows(row const& test, unsigned seeds) {
  device_buffer<u32> memory(4 * stride);
  u32 threads = 0;
  run_threads kernel{{}, test.where};
  while (threads < 4 && test.threads[threads]) {
    kernel.threads[threads] = test.threads[threads];
    ++threads;
  }
  for (u64 seed = 0; seed < seeds; ++seed) {
    host::scoped_execution const use{settings_of(seed)};
    host::fill_bytes(memory.data(), 0, 4 * stride * sizeof(u32));
    launch(test.where == layout::apart ? launch_shape{threads, 1} : launch_shape{1, threads}, kernel, memory.data());
    final_state end{memory[0], memory[stride], memory[2 * stride], {}};
    for (u32 i = 0; i < result_words; ++i) end.r[i] = memory[3 * stride + i];
    if (test.outcome(end)) return true;
  }
  return false;
}

template <size_t Rows>
void expect_rows(row const (&rows)[Rows], unsigned seeds = 1500) {
  if (host::detail::under_tsan) GTEST_SKIP();  // which has no weak memory to test
  for (auto const& each : rows) {
    bool const expected = each.verdict == ptx::allows && !each.not_shown;
    EXPECT_EQ(shows(each, expected ? 4 * seeds : seeds), expected) << each.name;
  }
}

// Operations, relaxed unless they say otherwise.

template <scope Scope = scope::device>
void store(u32* word, u32 value, order how = order::relaxed) {
  atomic_ref<u32, Scope>{*word}.store(value, how);
}
template <scope Scope = scope::device>
u32 load(u32* word, order how = order::relaxed) {
  return atomic_ref<u32, Scope>{*word}.load(how);
}
template <scope Scope = scope::device>
u32 add(u32* word, u32 value, order how = order::relaxed) {
  return atomic_ref<u32, Scope>{*word}.fetch_add(value, how);
}
/// A load that is a read-modify-write.
inline u32 look(u32* word, order how = order::relaxed) { return add(word, 0, how); }
/// What a compare-exchange finds.
inline u32 compare_exchange(u32* word, u32 expected, u32 desired, order how = order::relaxed) {
  atomic_ref<u32>{*word}.compare_exchange(expected, desired, how, order::relaxed);
  return expected;
}

}  // namespace warpheap::litmus
