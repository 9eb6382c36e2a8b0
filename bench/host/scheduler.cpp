// SPDX-License-Identifier: Apache-2.0
// How many scheduling points a second the host backend's deterministic mode makes: the price of a
// test under a seed.
//
// 1,024 lanes on one core make relaxed atomics, and each is a scheduling point: with the round
// robin every one is also a switch of fibers. items_per_second is points per second.
#include <benchmark/benchmark.h>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap;

constexpr u32 lanes = 1024;
constexpr u32 rounds = 500;

struct count {
  void operator()(u32* counter) const {
    for (u32 i = 0; i < rounds; ++i) atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed);
  }
};

void scheduling_points(benchmark::State& state, host::schedule_policy policy, bool weak_memory) {
  device_buffer<u32> counter(1);
  i64 points = 0;
  u64 seed = 0;
  for (auto _ : state) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .policy = policy,
                                      .seed = ++seed,
                                      .sm_count = 4,
                                      .blocks_per_sm = 1,
                                      .weak_memory = weak_memory}};
    launch({4, lanes / 4}, count{}, counter.data());
    points += static_cast<i64>(host::last_run().steps);
  }
  state.SetItemsProcessed(points);
}

BENCHMARK_CAPTURE(scheduling_points, round_robin, host::schedule_policy::round_robin, false)->UseRealTime();
BENCHMARK_CAPTURE(scheduling_points, random_walk, host::schedule_policy::random_walk, false)->UseRealTime();
BENCHMARK_CAPTURE(scheduling_points, weak_memory, host::schedule_policy::random_walk, true)->UseRealTime();

/// Parallel mode: what a warp's ballot costs a lane. items_per_second is lanes' calls per second.
struct vote {
  void operator()(u32* votes) const {
    u32 sum = 0;
    for (u32 i = 0; i < rounds; ++i) sum += simt::ballot(full_mask, (simt::lane_id() + i) % 3 == 0);
    votes[global_thread_index()] = sum;
  }
};

void parallel_ballots(benchmark::State& state) {
  constexpr u32 threads = 16 * 256;
  device_buffer<u32> votes(threads);
  for (auto _ : state) launch({16, 256}, vote{}, votes.data());
  state.SetItemsProcessed(static_cast<i64>(state.iterations()) * threads * rounds);
}

BENCHMARK(parallel_ballots)->UseRealTime();

}  // namespace
