// SPDX-License-Identifier: Apache-2.0
// How kernels run on this backend. Host code chooses the settings, and kernels need not know them:
//
//   host::scoped_execution const run{{.mode = host::execution_mode::deterministic, .seed = 7}};
//   launch({2, 64}, functor{}, arguments...);
//
// Parallel mode is for speed: thread blocks spread over OS threads and atomics are the processor's.
// Deterministic mode is for faults: one OS thread, every atomic and collective is a scheduling
// point, and the same settings on the same program give the same schedule, step for step.
//
// A program that chooses nothing runs as the environment's WARPHEAP_EXECUTION says, in the words of
// `execution`: WARPHEAP_EXECUTION=seed=7,weak_memory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "sanitizer.hpp"

namespace warpheap::host {

namespace detail {

class schedule;

/// Sanitizers make frames larger.
inline constexpr u64 default_stack_bytes = under_asan || under_tsan ? 256 * 1024 : 64 * 1024;

}  // namespace detail

/// How kernels run: thread blocks on all cores, or one lane at a time in an order that a seed
/// decides.
enum class execution_mode { parallel, deterministic };

/// The choice of the next lane in deterministic mode. `round_robin` gives each lane one step in
/// turn; `random_walk` draws by seed, and its seed also says how long a lane tends to run on and
/// how often one is held back for long; `priorities` runs the ready lane of the highest random
/// priority, and lets the running lane fall below all others at a few places that the seed draws
/// (priority_schedule.hpp). `directed` asks `execution::director` (explore/exploration.hpp).
enum class schedule_policy { round_robin, random_walk, priorities, directed };

/// What `active_mask()` answers in deterministic mode: the caller alone, some of the lanes parked
/// at its call site, or all of them once no lane of the warp can run on. `mixed` draws one of the
/// three by seed. Parallel mode is always maximal, so that performance tests see full warps.
enum class mask_policy { singleton, random, maximal, mixed };

/// How kernels run on the host backend. Designated initialisers name settings in this order, that
/// of the table in docs/guide/testing_your_kernels.md.
struct execution {
  execution_mode mode = execution_mode::parallel;         ///< parallel or repeatable
  schedule_policy policy = schedule_policy::random_walk;  ///< which lane is next, if repeatable
  /// Chooses, if the policy is `directed`.
  detail::schedule* director = nullptr;
  mask_policy masks = mask_policy::mixed;  ///< what active_mask() answers
  u64 seed = 1;                            ///< of the order of lanes
  /// Multiprocessors. `sm_count * blocks_per_sm` thread blocks run at a time; one more starts when
  /// one ends.
  u32 sm_count = 8;
  u32 blocks_per_sm = 8;  ///< thread blocks that a multiprocessor has room for
  /// OS threads of parallel mode; 0 takes as many as the machine has.
  u32 os_threads = 0;
  /// Of each lane's stack, 16 KiB to 1 GiB. CUDA's local memory ends at 512 KiB a thread; frames of
  /// this machine's code are larger.
  u64 stack_bytes = detail::default_stack_bytes;
  /// Steps of a run after which it counts as hung: scheduling points in deterministic mode, changes
  /// of lane in parallel.
  u64 step_cap = u64{1} << 32;
  /// Steps for each lane, in which no lane changes a word or returns. After them lanes that look at
  /// the same words again and again count as hung. 0: never.
  u64 hang_steps = u64{1} << 16;
  /// Deterministic mode: loads may return older values, and stores may come late, where no order
  /// forbids it; see memory_model.hpp. Off under ThreadSanitizer, which checks the same by
  /// happens-before.
  bool weak_memory = false;
  /// A lint: a collective whose mask has lanes that have returned or do not exist, and a sync_block
  /// where a thread has returned, end the run. CUDA lets the others meet.
  bool refuses_returned_lanes = false;
  /// Steps that the report of a failure lists.
  u32 trace_steps = 32;
};

namespace detail {

/// The settings that text like "seed=17,weak_memory,policy=priorities" names: words of execution,
/// and a seed for deterministic mode. False if it says something else.
inline bool read_settings(char const* text, execution& run) {
  auto const number = [&](char const* name, auto& value) {
    size_t const length = std::strlen(name);
    if (std::strncmp(text, name, length) != 0 || text[length] < '0' || text[length] > '9') return false;
    char* end = nullptr;
    value = static_cast<std::remove_reference_t<decltype(value)>>(std::strtoull(text + length, &end, 0));
    text = end;
    return true;
  };
  auto const word = [&](char const* name) {
    size_t const length = std::strlen(name);
    if (std::strncmp(text, name, length) != 0) return false;
    text += length;
    return true;
  };
  while (*text != 0) {
    if (number("seed=", run.seed)) run.mode = execution_mode::deterministic;
    else if (word("weak_memory")) run.weak_memory = true;
    else if (word("refuses_returned_lanes")) run.refuses_returned_lanes = true;
    else if (word("policy=round_robin")) run.policy = schedule_policy::round_robin;
    else if (word("policy=random_walk")) run.policy = schedule_policy::random_walk;
    else if (word("policy=priorities")) run.policy = schedule_policy::priorities;
    else if (word("masks=singleton")) run.masks = mask_policy::singleton;
    else if (word("masks=random")) run.masks = mask_policy::random;
    else if (word("masks=maximal")) run.masks = mask_policy::maximal;
    else if (word("masks=mixed")) run.masks = mask_policy::mixed;
    else if (!number("sm_count=", run.sm_count) && !number("blocks_per_sm=", run.blocks_per_sm) &&
             !number("os_threads=", run.os_threads) && !number("stack_bytes=", run.stack_bytes) &&
             !number("step_cap=", run.step_cap) && !number("hang_steps=", run.hang_steps))
      return false;
    if (*text != 0 && !(*text == ',' && *++text != 0)) return false;
  }
  return run.sm_count != 0 && run.blocks_per_sm != 0;
}

/// What WARPHEAP_EXECUTION says. Ends a program that gets something else from there.
inline execution execution_of_environment() {
  execution run;
  char const* const text = std::getenv("WARPHEAP_EXECUTION");
  if (text == nullptr || read_settings(text, run)) return run;
  std::fprintf(stderr, "WARPHEAP_EXECUTION=%s: settings are written like seed=17,weak_memory,policy=priorities\n",
               text);
  std::exit(2);
}

inline execution chosen_execution = execution_of_environment();

}  // namespace detail

/// Settings of the next launches.
inline execution const& current_execution() { return detail::chosen_execution; }

/// Sets how kernels run until the end of the scope. Not to be used while a kernel runs.
class scoped_execution {
 public:
  /// Kernels run as `wanted` says from here on.
  explicit scoped_execution(execution const& wanted) : before_{detail::chosen_execution} {
    detail::chosen_execution = wanted;
  }
  scoped_execution(scoped_execution const&) = delete;
  scoped_execution& operator=(scoped_execution const&) = delete;
  ~scoped_execution() { detail::chosen_execution = before_; }

 private:
  execution before_;
};

}  // namespace warpheap::host
