// How many scheduling points a second the host backend's deterministic mode makes: the price of a test under a seed.
//
// 1,024 lanes each make relaxed atomics on one counter, and each atomic is a scheduling point: with the round robin every
// one is also a switch of fibers. Prints one JSON line: the median of `repeats` runs for each policy.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "warpheap/platform/device_buffer.hpp"

namespace {

using namespace warpheap;

constexpr u32 lanes = 1024;
constexpr u32 rounds = 2000;
constexpr int repeats = 5;

struct count {
  void operator()(u32* counter) const {
    for (u32 i = 0; i < rounds; ++i) atomic_ref<u32>{*counter}.fetch_add(1, order::relaxed);
  }
};

double points_per_second(host::schedule_policy policy, bool stale_reads) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                    .policy = policy,
                                    .sm_count = 4,
                                    .blocks_per_sm = 1,
                                    .stale_reads = stale_reads}};
  device_buffer<u32> counter(1);
  std::vector<double> rates;
  for (int i = 0; i < repeats; ++i) {
    auto const start = std::chrono::steady_clock::now();
    launch({4, lanes / 4}, count{}, counter.data());
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(host::last_run().steps) / taken.count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[repeats / 2];
}

}  // namespace

int main() {
  std::printf(
      "{\"scenario\": \"host_scheduler\", \"lanes\": %u, \"round_robin_points_per_second\": %.0f, "
      "\"random_walk_points_per_second\": %.0f, \"stale_reads_points_per_second\": %.0f}\n",
      lanes, points_per_second(host::schedule_policy::round_robin, false),
      points_per_second(host::schedule_policy::random_walk, false),
      points_per_second(host::schedule_policy::random_walk, true));
}
