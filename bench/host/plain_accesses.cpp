// SPDX-License-Identifier: Apache-2.0
// What the checks for races of plain accesses cost: scheduling points a second with 0 to 16 plain
// accesses before each.
//
// Built twice: bench_plain_accesses, and bench_plain_accesses_checked with WARPHEAP_HOST_RACES. The
// quotient of their items_per_second is the cost. Both run the same schedules.
#include <benchmark/benchmark.h>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap;

constexpr u32 lanes = 1024;
constexpr u32 rounds = 200;
constexpr u32 words_of_lane = 16;

struct pattern {
  bool reads_shared = false;     // all lanes read the same words; else each changes its own
  bool meets = false;            // all points are of one word; else each lane has one
  order point = order::relaxed;  // a release begins another epoch of the lane
};

struct access_words {
  void operator()(u64* memory, u32 accesses, pattern how) const {
    u64* const own = memory + u64{1 + global_thread_index()} * words_of_lane;
    u64* const point = (how.meets ? memory : own) + words_of_lane - 1;
    u64 sum = 0;
    for (u32 round = 0; round < rounds; ++round) {
      u32 const changes = how.reads_shared ? 0 : accesses / 2, reads = accesses - 2 * changes;
      for (u32 i = 0; i < changes; ++i) own[i] += round;  // a read and a write
      for (u32 i = 0; i < reads; ++i) sum += (how.reads_shared ? memory : own + changes)[i % (words_of_lane - 1)];
      atomic_ref<u64>{*point}.fetch_add(sum, how.point);
    }
  }
};

void plain_accesses(benchmark::State& state, pattern how) {
  device_buffer<u64> const memory(u64{1 + lanes} * words_of_lane);
  i64 points = 0;
  u64 seed = 0;
  for (auto _ : state) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                      .seed = ++seed,
                                      .sm_count = 4,
                                      .blocks_per_sm = 1,
                                      .weak_memory = true}};
    launch({4, lanes / 4}, access_words{}, memory.data(), static_cast<u32>(state.range(0)), how);
    points += static_cast<i64>(host::last_run().steps);
  }
  state.SetItemsProcessed(points);
}

/// As many iterations in both programs, so that both run the same seeds.
void arguments(benchmark::internal::Benchmark* made) {
  made->Arg(0)->RangeMultiplier(2)->Range(1, 16)->Iterations(20)->UseRealTime();
}
BENCHMARK_CAPTURE(plain_accesses, own_words, pattern{})->Apply(arguments);
BENCHMARK_CAPTURE(plain_accesses, new_epochs, pattern{.point = order::release})->Apply(arguments);
BENCHMARK_CAPTURE(plain_accesses, shared_words, pattern{.reads_shared = true})->Apply(arguments);
BENCHMARK_CAPTURE(plain_accesses, all_meet, pattern{.meets = true, .point = order::acq_rel})->Apply(arguments);

}  // namespace
