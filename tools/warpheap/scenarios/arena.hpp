// SPDX-License-Identifier: Apache-2.0
// arena: every thread asks an arena once for the same number of bytes, and the arena is reset, or
// dropped by a warp. `malloc` is a burst in an arena that has its chunks from the burst before,
// `first_malloc` one in an empty arena. An arena for each thread block with 64 KiB in its first
// chunk (`regions` is 0), and one that the grid shares, of 32 and 128 regions. `burst` has the same
// calls of the heap itself. Sizes: `sizes`; threads: `threads`.
#pragma once

#include "measure/one_call.hpp"
#include "scenario.hpp"
#include "warpheap/container/arena.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Kernel: thread i makes call i, of the arena of its thread block.
struct allocate_from_arena {
  u32 arenas;

  template <class Heap, size_t FirstBytes, u32 Regions>
  WARPHEAP_DEVICE void operator()(Heap heap, arena<FirstBytes, Regions>* states, u64 bytes, void** blocks,
                                  u64 threads) const {
    u64 const i = global_thread_index();
    if (i < threads) blocks[i] = arena_ref{heap, states[simt::block_index() % arenas]}.malloc(bytes);
  }
};

/// The rows of bursts of `base.operations` threads in `count` arenas of a type.
template <class Arena>
void measure_arenas(std::vector<result>& rows, heap const& heap, u32 count, u64 bytes, u32 repeat, result base) {
  auto const threads = static_cast<u64>(base.operations);
  device_buffer<Arena> const arenas(count);
  device_buffer<void*> const blocks(threads);
  stopwatch watch;
  auto const ask = [&] {
    return watch.microseconds([&] {
      launch(shape_for(threads), allocate_from_arena{count}, heap.ref(), arenas.data(), bytes, blocks.data(), threads);
    });
  };
  auto const reset = [&] {
    return watch.microseconds([&] { reset_arenas(stream_view{}, heap.ref(), arenas.data(), arenas.size()); });
  };
  auto const drop = [&] {
    return watch.microseconds([&] { drop_arenas(stream_view{}, heap.ref(), arenas.data(), arenas.size()); });
  };
  result first = base, warm = base, resetting = base, dropping = base;
  first.operation = "first_malloc";
  warm.operation = "malloc";
  resetting.operation = "reset";
  dropping.operation = "drop";
  for (u32 round = 0; round < warm_up_rounds + repeat; ++round) {
    auto const cold = ask();
    auto const found = examine<default_allocator>(blocks, size_draw{bytes});
    auto const emptied = reset();
    auto const again = ask();
    auto const found_again = examine<default_allocator>(blocks, size_draw{bytes});
    auto const dropped = drop();
    first.failures = found.failures;
    warm.failures = found_again.failures;
    if (round < warm_up_rounds) continue;
    first.times_us.push_back(cold);
    resetting.times_us.push_back(emptied);
    warm.times_us.push_back(again);
    dropping.times_us.push_back(dropped);
    first.fault = !found.fault().empty() ? found.fault() : found_again.fault();
    if (first.fault.empty()) first.fault = fault_of_emptied(heap);
    if (!first.fault.empty()) break;
  }
  warm.fault = resetting.fault = dropping.fault = first.fault;
  for (auto* row : {&first, &warm}) row->operations -= static_cast<double>(row->failures);
  resetting.operations = dropping.operations = count;
  rows.insert(rows.end(), {first, warm, resetting, dropping});
}

inline std::vector<result> arena_burst(request const& asked) {
  auto const sizes = asked.get(options::sizes, {16, 64, 256, 1024});
  u64 const threads = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13);
  heap const heap{asked.pool_bytes};
  std::vector<result> rows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!asked.proceed("arena", i, sizes.size())) break;
    result base{.scenario = "arena", .allocator = "slab_bitmap"};
    base.operations = static_cast<double>(threads);
    auto const measure = [&](auto const& arenas, u32 count, u64 regions) {
      base.parameters = {
          {"bytes", sizes[i]}, {"threads", threads}, {"regions", regions}, {"pool_bytes", asked.pool_bytes}};
      measure_arenas<std::decay_t<decltype(arenas)>>(rows, heap, count, sizes[i], asked.repeat, base);
    };
    measure(arena<65536>{}, shape_for(threads).blocks, 0);
    measure(arena<65536, 32>{}, 1, 32);
    measure(arena<65536, 128>{}, 1, 128);
  }
  return rows;
}

inline scenario about_arena() {
  return {
      .name = "arena",
      .text = "every thread one call of an arena, which is dropped",
      .kind = scenario_kind::of_default_allocator,
      .uses = {{options::sizes}, {options::threads, "1048576"}},
      .baseline = arena_burst,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
