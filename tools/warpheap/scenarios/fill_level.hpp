// SPDX-License-Identifier: Apache-2.0
// fill_level: what a call costs by how full the pool is, with blocks that live across kernels.
// Slots hold blocks of log-uniform sizes that make up a level, a share of the pool. In each step
// one kernel frees a quarter of them, and the next asks for blocks of other sizes. Sizes: the first
// of `ranges`; slots: `threads`; levels: `levels`; steps: `kernels`. slot_load.hpp defines the two
// kinds of load, `constant` and `drifting`. At levels of 1 and 2 the pool is over-asked: it is as
// large as all that the slots ask for, or half of it.
//
// All levels have about as many slots, and so the same calls: a higher level has a smaller pool.
// Where the pool would exceed `pool_bytes`, there are fewer slots instead.
//
// Each pair of rows takes three runs: the load with every block checked; the load by the stopwatch,
// on a fresh heap where there can be one; then as many steps more, of which some are clocked. The
// blocks that the slots hold at the end are checked as well.
#pragma once

#include <optional>

#include "measure/slot_table.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Quantiles of the cycles of a call, as figures.
inline std::vector<std::pair<std::string, double>> cycle_figures(std::vector<u64> const& cycles) {
  std::vector<std::pair<std::string, double>> figures;
  for (auto const& [name, share] : {std::pair{"cycles_p50", 0.5}, {"cycles_p99", 0.99}, {"cycles_p999", 0.999}})
    figures.emplace_back(name, static_cast<double>(quantile(cycles, share)));
  return figures;
}

/// The two rows of one kind of load at one level.
template <class Allocator>
class load_at_level {
 public:
  static constexpr u64 most_clocked = 16;  ///< steps

  load_at_level(basic_heap<Allocator>& heap, u64 pool_bytes, slot_load const& load, u64 steps)
      : heap_{heap}, pool_bytes_{pool_bytes}, load_{load}, steps_{steps}, slots_{heap, load.slots()} {}

  void measure(result& asking, result& freeing) {
    slots_.play(load_.filling());
    u64 const unfilled = slots_.take_refused(), held_before = slots_.held().blocks;
    auto const times = slots_.time(load_, 1, steps_);
    asking.times_us = times.malloc_us;
    freeing.times_us = times.free_us;
    asking.failures = slots_.take_refused();
    u64 mallocs = 0;
    for (u64 i = 1; i <= steps_; ++i) mallocs += load_.step(i).mallocs();
    u64 const served = mallocs - asking.failures, freed = held_before + served - slots_.held().blocks;
    asking.operations = static_cast<double>(served) / static_cast<double>(steps_);
    freeing.operations = static_cast<double>(freed) / static_cast<double>(steps_);
    auto const cycles = clock();
    asking.figures = cycle_figures(cycles.malloc_cycles);
    freeing.figures = cycle_figures(cycles.free_cycles);
    double const failed_share = static_cast<double>(asking.failures) / static_cast<double>(std::max<u64>(mallocs, 1));
    asking.figures.emplace_back("failed_share", failed_share);
    asking.figures.emplace_back("unfilled", static_cast<double>(unfilled));
    asking.figures.emplace_back("held_share",
                                static_cast<double>(slots_.held().bytes) / static_cast<double>(pool_bytes_));
    for (auto const& figure : slab_figures(heap_)) asking.figures.push_back(figure);
    asking.fault = freeing.fault = slots_.fault_of_emptying();
  }

 private:
  /// Runs as many steps again. Returns the cycles of those that are clocked.
  call_cycles clock() {
    call_cycles cycles;
    u64 const every = (steps_ + most_clocked - 1) / most_clocked;
    for (u64 i = 1; i <= steps_; ++i) {
      auto const now = load_.step(steps_ + i);
      if (i % every == 0) slots_.clock(now, cycles);
      else slots_.play(now);
    }
    return cycles;
  }

  basic_heap<Allocator>& heap_;
  u64 pool_bytes_;
  slot_load load_;
  u64 steps_;
  slot_table<Allocator> slots_;
};

template <class Allocator>
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<result> fill_level(test_subject<Allocator> const& subject, request const& asked) {
  auto const range = asked.get(options::ranges, {{16, 4096}}).front();
  auto const levels = asked.get(options::levels, {0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0, 2.0});
  u64 const slots = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 12),
            kernels = default_for_backend(asked[options::kernels], 256, 16);
  auto const pool_at = [&](double level) {
    return pool_for_level(slots, log_uniform_draw::from(range).mean(), level, basic_heap<Allocator>::minimum_bytes,
                          asked.pool_bytes);
  };
  std::vector<result> rows;
  u64 done = 0;
  auto const proceed = [&] { return asked.proceed("fill_level, " + subject.name, done++, 4 * levels.size()); };
  for (double const level : levels) {
    u64 const pool_bytes = pool_at(level);
    auto const row_of = [&](load_kind kind, u64 used) {
      result row{.scenario = "fill_level",
                 .allocator = subject.name,
                 .operation = kind == load_kind::constant ? "constant malloc" : "drifting malloc"};
      row.parameters = {{"level_permille", permille_of(level)},
                        {"least_bytes", range.least},
                        {"most_bytes", range.most},
                        {"slots", used},
                        {"kernels", kernels},
                        {"pool_bytes", pool_bytes}};
      return row;
    };
    auto why = unsupported_reason(subject, range.most);
    // An allocator with one pool a process has the pool of the last level.
    if (why.empty() && !subject.resets && pool_bytes != pool_at(levels.back()))
      why = subject.name + " has one pool a process: ask for this level alone, or for a smaller pool";
    std::optional<basic_heap<Allocator>> heap;
    if (why.empty()) heap.emplace(pool_bytes);
    for (auto const kind : {load_kind::constant, load_kind::drifting}) {
      if (!proceed()) return rows;
      slot_load const load{kind, range, pool_bytes, level, kernels, asked.seed};
      auto asking = row_of(kind, load.slots());
      if (skip(rows, asking, why)) {
        ++done;
        continue;
      }
      auto freeing = asking;
      freeing.operation = kind == load_kind::constant ? "constant free" : "drifting free";
      asking.fault = freeing.fault = fault_of_load(*heap, load, kernels, subject.resets);
      if (!proceed()) return rows;
      if (asking.checked()) load_at_level<Allocator>{*heap, pool_bytes, load, kernels}.measure(asking, freeing);
      rows.push_back(asking);
      rows.push_back(freeing);
      if (!asking.checked()) return rows;  // what a broken heap says next means nothing
      if (subject.resets) heap->reset();
      synchronize();
    }
  }
  return rows;
}

inline scenario about_fill_level() {
  return {
      .name = "fill_level",
      .text =
          "blocks that live across kernels and make up a share of the pool; a quarter of them is freed and replaced "
          "in turn; sizes constant or drifting; the pool also over-asked",
      .rank = 60,
      .uses = {{options::ranges, "the first"},
               {options::threads, "1048576 slots"},
               {options::levels, "default 0.3,0.5,0.7,0.8,0.9,0.95,0.99,1,2"},
               {options::kernels, "kernels of each row; default 256 on a GPU, 16 on the host"}},
      .ignores = {"--repeat"},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
