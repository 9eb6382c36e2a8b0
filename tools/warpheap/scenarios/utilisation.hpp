// SPDX-License-Identifier: Apache-2.0
// utilisation: how much of the pool is in callers' hands when the first call returns nullptr, by
// size, and for sizes mixed: bytes asked for, over bytes of the pool. Rounding, headers, fragments,
// and searches that give up all show. Sizes: `sizes`; mixed: `ranges`.
//
// Source: Pham et al. 2022, figure 12, there by unit size for one allocator and another.
#pragma once

#include "measure/ledger.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// A row: `repeat` times a fresh heap to the first nullptr.
template <class Allocator>
result utilisation_of(request const& asked, size_draw draw, result row) {
  basic_heap<Allocator> heap{asked.pool_bytes};
  ledger<Allocator> held{heap, draw, asked.pool_bytes, default_for_backend(0, u64{1} << 14, u64{1} << 8)};
  double least = 1, sum = 0;
  u32 full = 0;
  for (u32 round = 0; round < asked.repeat && row.checked(); ++round) {
    auto const filled = held.take_until_first_null();
    double const share = static_cast<double>(held.bytes()) / static_cast<double>(asked.pool_bytes);
    full += filled.failures > 0;
    least = std::min(least, share);
    sum += share;
    row.operations = static_cast<double>(filled.blocks);
    row.failures = filled.failures;
    row.times_us.push_back(filled.time_us);
    row.fault = held.examine().fault();
    held.give_back_every(1);
    if (row.checked()) row.fault = fault_of_emptied(heap);
  }
  // An allocator without a limit was stopped by us, so its fill says nothing.
  if (full == asked.repeat) row.figures = {{"utilisation", sum / asked.repeat}, {"least_utilisation", least}};
  return row;
}

template <class Allocator>
std::vector<result> utilisation(test_subject<Allocator> const& subject, request const& asked) {
  std::vector<u64> const few{64, 1000, 4096}, many{16, 24, 64, 100, 256, 500, 1000, 1024, 2048, 3000, 4096, 5000, 8192};
  auto const sizes = asked.get(options::sizes, on_gpu ? many : few);
  auto const ranges = asked.get(options::ranges, {{16, 1024}, {16, 8192}});
  std::vector<result> rows;
  auto const add = [&](u64 least, u64 most) {
    if (!asked.proceed("utilisation, " + subject.name, rows.size(), sizes.size() + ranges.size())) return false;
    result row{.scenario = "utilisation", .allocator = subject.name, .operation = "fill"};
    if (least == most) row.parameters = {{"bytes", least}};
    else row.parameters = {{"least_bytes", least}, {"most_bytes", most}};
    row.parameters.push_back({"pool_bytes", asked.pool_bytes});
    if (skip(rows, row, unsupported_reason(subject, most))) return true;
    size_draw const draw{least, static_cast<u32>(most - least + 1), asked.seed};
    rows.push_back(utilisation_of<Allocator>(asked, draw, row));
    return rows.back().checked();
  };
  for (u64 const bytes : sizes)
    if (!add(bytes, bytes)) return rows;
  for (auto const& range : ranges)
    if (!add(range.least, range.most)) return rows;
  return rows;
}

inline scenario about_utilisation() {
  return {
      .name = "utilisation",
      .text = "bytes asked for and held at the first nullptr, by size",
      .rank = 80,
      .uses = {{options::sizes}, {options::ranges}},
      .pool = {.host = u64{8} << 20},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
