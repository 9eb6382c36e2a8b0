// SPDX-License-Identifier: Apache-2.0
// mixed: every thread asks once for a size of its own, uniform in a range, then frees. A warp's
// requests fall into many size classes, so an allocator gains less by serving a warp together.
// Ranges: `ranges`; threads: `threads`.
#pragma once

#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
std::vector<result> mixed(test_subject<Allocator> const& subject, request const& asked) {
  auto const ranges = asked.get(options::ranges, {{16, 64}, {16, 256}, {16, 1024}, {16, 4096}});
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13);
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> results;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!asked.proceed("mixed, " + subject.name, i, ranges.size())) break;
    size_draw const draw{ranges[i].least, static_cast<u32>(ranges[i].most - ranges[i].least + 1), asked.seed};
    result base_row{.scenario = "mixed", .allocator = subject.name, .operation = "malloc"};
    base_row.parameters = {{"least_bytes", ranges[i].least},
                           {"most_bytes", ranges[i].most},
                           {"threads", threads},
                           {"pool_bytes", asked.pool_bytes}};
    if (skip(results, base_row, unsupported_reason(subject, ranges[i].most))) continue;
    auto const times =
        one_call<Allocator>{heap, draw, threads}.measure({.repeat = asked.repeat, .after_resets = subject.resets});
    append_results(results, base_row, times, threads);
    if (!times.fault.empty()) break;
  }
  return results;
}

inline result mixed_baseline(request const& asked) {
  return null_result("mixed", default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13), asked.repeat);
}

inline scenario about_mixed() {
  return {
      .name = "mixed",
      .text = "every thread one call, a size of its own",
      .rank = 20,
      .uses = {{options::ranges}, {options::threads, "1048576"}},
      .baseline = [](request const& asked) { return std::vector{mixed_baseline(asked)}; },
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
