// SPDX-License-Identifier: Apache-2.0
// scaling: the rate of malloc and of free by the number of threads that call once and together,
// from one warp to more than a GPU runs at a time. Few threads show what a call costs; many show
// the throughput of the allocator's hottest words; the most show what happens as the pool fills up.
// Sizes: `sizes`; threads: `workers`.
// Source: Adinetz and Pleiter 2014, "Scalability": 16 and 256 bytes, a pool of 512 MiB. Differs:
// one call a thread, where the slides have the waves of two_phase.
#pragma once

#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

inline std::vector<u64> numbers_of_threads(request const& asked) {
  return asked.get(options::workers, powers(32, default_for_backend(0, u64{1} << 21, 2048), on_gpu ? 2 : 8));
}

template <class Allocator>
std::vector<result> scaling(test_subject<Allocator> const& subject, request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 256});
  auto const numbers = numbers_of_threads(asked);
  basic_heap<Allocator> heap{asked.pool_bytes};
  std::vector<result> results;
  for (u64 const bytes : sizes)
    for (u64 const number : numbers) {
      if (!asked.proceed("scaling, " + subject.name, results.size() / 2, sizes.size() * numbers.size())) return results;
      result base_row{.scenario = "scaling", .allocator = subject.name, .operation = "malloc"};
      base_row.parameters = {{"bytes", bytes}, {"threads", number}, {"pool_bytes", asked.pool_bytes}};
      if (skip(results, base_row, unsupported_reason(subject, bytes))) continue;
      base_row.bytes = static_cast<double>(bytes);
      // Never from a fresh heap, even if it can be reset: all rows are of a heap in use.
      auto const times = one_call<Allocator>{heap, size_draw{bytes}, number}.measure({.repeat = asked.repeat});
      append_results(results, base_row, times, number);
      if (!times.fault.empty()) return results;  // what a broken heap says next means nothing
    }
  return results;
}

/// The least that a malloc costs each number of threads, whatever the allocator.
inline std::vector<result> scaling_baseline(request const& asked) {
  std::vector<result> results;
  for (u64 const number : numbers_of_threads(asked)) results.push_back(null_result("scaling", number, asked.repeat));
  return results;
}

inline scenario about_scaling() {
  return {
      .name = "scaling",
      .text = "a burst by the number of threads",
      .rank = 150,
      .uses = {{options::sizes}, {options::workers, "32, 64, ... 2097152"}},
      .pool = {.gpu = u64{512} << 20},
      .baseline = scaling_baseline,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
