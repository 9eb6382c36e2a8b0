// SPDX-License-Identifier: Apache-2.0
// prefix_sum: what programs do without a malloc on the device. Every thread wants a size of its
// own. A kernel writes all sizes, an exclusive scan turns them into offsets, the host allocates the
// sum as one piece, and a second kernel takes its pointers from there. The alternative is one
// kernel in which each thread calls malloc. Both end when every thread has its pointer, by the
// wall's clock, since a part of the first happens on the host. `free` gives everything back: one
// piece, or a call a thread. Ranges of sizes: `ranges`; threads: `workers`.
// Source: Adinetz and Pleiter 2014, "Halloc vs Prefix Sum + cudaMalloc()".
#pragma once

#include "measure/exclusive_scan.hpp"
#include "measure/one_call.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What the one allocation promises of its pieces.
struct one_piece {
  static constexpr allocator_traits traits{.alignment = 16};
  WARPHEAP_HOST_DEVICE static constexpr u64 pad(u64 bytes) { return (bytes + 15) / 16 * 16; }
};

/// Kernel: the bytes that thread i needs.
struct count_bytes {
  WARPHEAP_DEVICE void operator()(size_draw draw, u64* bytes, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) bytes[i] = one_piece::pad(draw.of(i));
  }
};

/// Kernel: the pointer of thread i.
struct take_places {
  WARPHEAP_DEVICE void operator()(u8* piece, u64 const* places, void** blocks, u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) blocks[i] = piece + places[i];
  }
};

inline std::vector<size_range> prefix_sum_ranges(request const& asked) {
  return asked.get(options::ranges, {{16, 64}, {16, 1024}});
}
inline std::vector<u64> prefix_sum_threads(request const& asked) {
  return asked.get(options::workers,
                   on_gpu ? std::vector<u64>{1 << 10, 1 << 15, 1 << 20} : std::vector<u64>{256, 4096});
}
inline size_draw draw_from(size_range range, u64 seed) {
  return {range.least, static_cast<u32>(range.most - range.least + 1), seed};
}

/// Calls measure(range, threads, base_row of a row), which says whether to go on, for each pair.
template <class Measure>
void for_each_prefix_sum(request const& asked, std::string const& name, Measure measure) {
  auto const ranges = prefix_sum_ranges(asked);
  auto const numbers = prefix_sum_threads(asked);
  u64 done = 0;
  for (auto const range : ranges)
    for (u64 const threads : numbers) {
      if (!asked.proceed("prefix_sum, " + name, done++, ranges.size() * numbers.size())) return;
      result row{.scenario = "prefix_sum", .operation = "malloc"};
      row.parameters = {{"least_bytes", range.least}, {"most_bytes", range.most}, {"threads", threads}};
      row.operations = static_cast<double>(threads);
      if (!measure(draw_from(range, asked.seed), threads, row)) return;
    }
}

/// Appends rows of malloc and free. `ask()` and `give_back()` return when the work is done.
/// `check()` looks at the blocks in between, in the round that is not kept, and says what is wrong.
template <class Ask, class GiveBack, class Check>
bool time_both(std::vector<result>& rows, result row, u32 repeat, Ask ask, GiveBack give_back, Check check) {
  wall_clock wall;
  auto freeing = row;
  freeing.operation = "free";
  for (u32 round = 0; round <= repeat && row.checked(); ++round) {
    auto const asked_us = wall.microseconds(ask);
    if (round == 0) row.fault = check(row.failures);
    if (!row.checked()) break;
    auto const freed_us = wall.microseconds(give_back);
    if (round == 0) continue;
    row.times_us.push_back(asked_us);
    freeing.times_us.push_back(freed_us);
  }
  freeing.fault = row.fault;
  row.operations -= static_cast<double>(row.failures);  // rates count calls that were served
  freeing.operations = row.operations;
  rows.push_back(row);
  rows.push_back(freeing);
  return row.checked();
}

/// The scan and one allocation.
inline std::vector<result> prefix_sum_baseline(request const& asked) {
  std::vector<result> rows;
  for_each_prefix_sum(asked, "one piece", [&](size_draw draw, u64 threads, result row) {
    row.primitive = "one_piece";
    exclusive_scan const scan{threads + 1};
    device_buffer<u64> const bytes(threads + 1), places(threads + 1);
    device_buffer<void*> const blocks(threads);
    auto const shape = shape_for(threads);
    u8* piece = nullptr;
    auto const ask = [&] {
      launch(shape, count_bytes{}, draw, bytes.data(), threads);
      scan.run(bytes.data(), places.data());
      piece = static_cast<u8*>(backend::allocate_bytes(places[threads]));
      launch(shape, take_places{}, piece, places.data(), blocks.data(), threads);
    };
    auto const give_back = [&] { backend::deallocate_bytes(piece); };
    return time_both(rows, row, asked.repeat, ask, give_back,
                     [&](u64&) { return examine<one_piece>(blocks, draw).fault(); });
  });
  return rows;
}

/// A call a thread.
template <class Allocator>
std::vector<result> prefix_sum(test_subject<Allocator> const& subject, request const& asked) {
  std::vector<result> rows;
  basic_heap<Allocator> heap{asked.pool_bytes};
  for_each_prefix_sum(asked, subject.name, [&](size_draw draw, u64 threads, result row) {
    row.allocator = subject.name;
    row.parameters.push_back({"pool_bytes", asked.pool_bytes});
    if (skip(rows, row, unsupported_reason(subject, draw.least + draw.span - 1))) return true;
    device_buffer<void*> const blocks(threads);
    auto const shape = shape_for(threads);
    bool const sound = time_both(
        rows, row, asked.repeat, [&] { launch(shape, allocate_once{}, heap.ref(), draw, blocks.data(), threads); },
        [&] { launch(shape, free_once{}, heap.ref(), blocks.data(), threads); },
        [&](u64& failures) {
          auto const found = examine<Allocator>(blocks, draw);
          failures = found.failures;
          return found.fault();
        });
    if (sound) rows.back().fault = fault_of_emptied(heap);
    return rows.back().checked();
  });
  return rows;
}

inline scenario about_prefix_sum() {
  return {
      .name = "prefix_sum",
      .text = "a call a thread against sizes, scan and one allocation",
      .rank = 170,
      .uses = {{options::ranges}, {options::workers, "1024, 32768, 1048576"}},
      .baseline = prefix_sum_baseline,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
