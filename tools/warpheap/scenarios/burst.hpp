// SPDX-License-Identifier: Apache-2.0
// burst: every thread asks once for the same number of bytes, then frees. It is the worst load of
// an allocator, a million threads at one instant, and the one that surveys of the field measure.
// Sizes: `sizes`; threads: `threads`.
#pragma once

#include "measure/free_baseline.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
std::vector<result> burst(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 64, 256, 1024, 4096, 8192});
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13);
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> results;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!asked.proceed("burst, " + subject.name, i, sizes.size())) break;
    result base_row{.scenario = "burst", .allocator = subject.name, .operation = "malloc"};
    base_row.parameters = {{"bytes", sizes[i]}, {"threads", threads}, {"pool_bytes", asked.pool_bytes}};
    if (skip(results, base_row, unsupported_reason(subject, sizes[i]))) continue;
    auto const times = one_call<Allocator>{heap, size_draw{sizes[i]}, threads}.measure(
        {.repeat = asked.repeat, .after_resets = subject.resets});
    append_results(results, base_row, times, threads);
    if (!times.fault.empty()) break;  // what a broken heap says next means nothing
  }
  return results;
}

/// The least that a malloc and a free cost, whatever the allocator.
inline std::vector<result> burst_baseline(request const& asked) {
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13);
  return {null_result("burst", threads, asked.repeat), free_baseline("burst", threads, warm_up_rounds, asked.repeat)};
}

inline scenario about_burst() {
  return {
      .name = "burst",
      .text = "every thread one call, one size",
      .rank = 10,
      .uses = {{options::sizes}, {options::threads, "1048576"}},
      .baseline = burst_baseline,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
