// SPDX-License-Identifier: Apache-2.0
// efficiency: how much of the pool can be used.
//
//   few holders  one thread a multiprocessor holds a block of each of 16 sizes, 16 to 4,096 bytes;
//                then 64 bytes are asked for until the first nullptr
//   tenth held   the same beside a tenth of the pool that is held in blocks of these sizes
//   mixed fill   log-uniform sizes, 16 to 4,096 bytes, until the first nullptr, and on until 1% of
//                the calls are refused
//   all freed, scattered kept, run kept
//                the pool is filled with 64 bytes; all blocks are freed, all but 1% chosen at
//                random, or all but 1% in one stretch of addresses; then blocks of 4 KiB, or of
//                1 MiB, are asked for until the first nullptr
//   drift        the sizes change and the bytes do not: drifting_rings.hpp, four cycles of
//                `kernels` steps at each of `levels`
//   range        how far blocks of 16, 256 and 4,096 bytes lie apart on a fresh heap
//
// `utilisation` is the bytes of live blocks over the pool's. `got_share` is what large blocks got
// over what no block held. `failed_share` is the share of the last cycle's calls that were refused.
// `range_over_asked` is as in placement.
//
// Calls are made in batches of a thousandth of the pool, so a full heap refuses one batch and no
// more. Every fill is bounded by the pool's bytes. A fill without a refused call has no figure.
// A drift whose calls take over a minute is given up.
// Only `range` takes the whole pool: the others have at most `most_filled`, since a large pool
// takes long to fill.
//
// All blocks that are held at the end, and at the end of each cycle, are written and read, and none
// is left after all were freed.
#pragma once

#include <optional>
#include <utility>

#include "measure/drifting_rings.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// All rows of one allocator.
template <class Allocator>
class efficiency_rows {
 public:
  static constexpr u64 most_filled = u64{on_gpu ? 512 : 8} << 20;

  efficiency_rows(test_subject<Allocator> const& subject, request const& asked, double most_drift_us = 60e6)
      : subject_{subject},
        asked_{asked},
        pool_bytes_{std::min(asked.pool_bytes, most_filled)},
        most_drift_us_{most_drift_us} {
    if (!asked[options::levels].empty()) levels_ = asked[options::levels];
  }

  std::vector<result> measure() {
    heap_.emplace(pool_bytes_);
    bool goes_on = fill_few_holders() && fill_tenth_held() && fill_mixed();
    for (auto const survivors : {kept::none, kept::scattered, kept::run}) goes_on = goes_on && ask_for_large(survivors);
    for (double const level : levels_) goes_on = goes_on && drift(level);
    heap_.reset();
    if (goes_on) measure_ranges();
    return rows_;
  }

 private:
  enum class kept { none, scattered, run };

  static constexpr u64 small_bytes = 64;
  static constexpr u64 held_sizes[16] = {16,  32,  48,  64,   96,   128,  192,  256,
                                         384, 512, 768, 1024, 1536, 2048, 3072, 4096};
  static constexpr u64 large_sizes[2] = {u64{4} << 10, u64{1} << 20};
  static constexpr u64 ranged_sizes[3] = {16, 256, 4096};
  static constexpr u64 cycles = 4;

  result row_of(std::string operation, std::vector<std::pair<std::string, u64>> parameters) const {
    result row{.scenario = "efficiency", .allocator = subject_.name, .operation = std::move(operation)};
    row.parameters = std::move(parameters);
    row.parameters.emplace_back("pool_bytes", pool_bytes_);
    return row;
  }

  /// False: stop here.
  bool proceed() {
    u64 const total = 6 + levels_.size() + std::size(ranged_sizes);
    return asked_.proceed("efficiency, " + subject_.name, done_++, total);
  }

  void empty_heap() {
    if (subject_.resets) heap_->reset();
    synchronize();
  }

  /// Batches of a thousandth of the pool, in thread blocks of a warp, which spread over the
  /// multiprocessors.
  call_batches batches(u64 bytes, u64 least = 1) const {
    return {.calls = std::max(pool_bytes_ / 1024 / bytes, least), .thread_block = warp_lanes};
  }

  double share_of_pool(u64 bytes) const { return static_cast<double>(bytes) / static_cast<double>(pool_bytes_); }

  call_answers fill_with_small() {
    return ask_until_refused(*heap_, small_bytes, pool_bytes_ / small_bytes + 1, batches(small_bytes));
  }

  /// False: the row has a fault.
  bool add(result row, u64 calls, u64 refused, double time_us) {
    row.times_us = {time_us};
    row.failures = refused;
    row.operations = served(calls, refused);
    rows_.push_back(std::move(row));
    return rows_.back().checked();
  }
  bool add(result row, call_answers const& answers) {
    return add(std::move(row), answers.blocks.size(), answers.refused, answers.time_us);
  }

  /// Checks and frees all blocks of a heap. Returns what is wrong, if anything.
  std::string fault_of_ending(std::vector<asked_block> const& all) {
    if (auto const fault = fault_of_held(all); !fault.empty()) return fault;
    free_listed(*heap_, all);
    return fault_of_emptied(*heap_);
  }
  static std::string fault_of_held(std::vector<asked_block> const& all) {
    return all.empty() ? std::string{} : fault_of_blocks<Allocator>(all);
  }

  bool fill_few_holders() {
    u64 const threads = backend::multiprocessors();
    std::vector<u64> wanted;
    for (u64 const bytes : held_sizes) wanted.insert(wanted.end(), threads, bytes);
    return fill_beside("few holders", wanted, {.calls = threads, .thread_block = 1});
  }

  bool fill_tenth_held() {
    std::vector<u64> wanted;
    for (u64 sum = 0; sum < pool_bytes_ / 10; sum += wanted.back())
      wanted.push_back(held_sizes[wanted.size() % std::size(held_sizes)]);
    return fill_beside("tenth held", wanted, {});
  }

  bool fill_beside(char const* operation, std::vector<u64> const& wanted, call_batches held_batches) {
    if (!proceed()) return false;
    auto row = row_of(operation, {{"bytes", small_bytes}});
    if (skip(rows_, row, unsupported_reason(subject_, held_sizes[std::size(held_sizes) - 1]))) return true;
    empty_heap();
    auto all = ask_in_order(*heap_, wanted, held_batches, [](u64, u64) { return false; }).blocks;
    auto const filled = fill_with_small();
    append(all, filled.blocks);
    if (filled.refused) row.figures = {{"utilisation", share_of_pool(bytes_of(all))}};
    row.fault = fault_of_ending(all);
    return add(row, filled);
  }

  bool fill_mixed() {
    if (!proceed()) return false;
    auto const range = drifting_rings::sizes;
    auto const draw = log_uniform_draw::from(range);
    auto row = row_of("mixed fill", {{"least_bytes", range.least}, {"most_bytes", range.most}});
    if (skip(rows_, row, unsupported_reason(subject_, range.most))) return true;
    empty_heap();
    auto const mean = static_cast<u64>(draw.mean());
    std::vector<u64> wanted(pool_bytes_ / mean * 17 / 16);  // of which no pool serves 99%
    for (u64 i = 0; i < wanted.size(); ++i) wanted[i] = draw.of(static_cast<u32>(mix(asked_.seed + i) >> 32));
    // A warp for each multiprocessor, so that what allocators keep for each is kept.
    auto const in_batches = batches(mean, u64{warp_lanes} * backend::multiprocessors());
    auto const filled =
        ask_in_order(*heap_, wanted, in_batches, [](u64 refused, u64 made) { return 100 * refused > made; });
    auto const& blocks = filled.blocks;
    auto const refused = std::find_if(blocks.begin(), blocks.end(), [](auto const& each) { return !each.block; });
    if (filled.refused)
      row.figures = {{"utilisation", share_of_pool(bytes_of({blocks.begin(), refused}))},
                     {"utilisation_at_1_percent", share_of_pool(bytes_of(blocks))}};
    row.fault = fault_of_ending(blocks);
    return add(row, filled);
  }

  bool ask_for_large(kept survivors) {
    if (!proceed()) return false;
    empty_heap();
    auto all = fill_with_small().blocks;
    std::erase_if(all, [](auto const& each) { return !each.block; });
    auto const fault = fault_of_held(all);
    if (fault.empty()) free_all_but(survivors, all);
    u64 const held_bytes = bytes_of(all), free_bytes = pool_bytes_ - std::min(held_bytes, pool_bytes_);
    size_t const first_row = rows_.size();
    for (u64 const bytes : large_sizes) {
      auto row = row_of(name_of(survivors), {{"bytes", bytes}});
      row.fault = fault;
      if (skip(rows_, row, unsupported_reason(subject_, bytes))) continue;
      call_answers large;
      u64 const at_best = free_bytes / bytes;
      if (row.checked()) large = ask_until_refused(*heap_, bytes, at_best + 1, batches(bytes));
      u64 const got = bytes_of(large.blocks) / bytes;
      if (large.refused && at_best)
        row.figures = {{"got_share", static_cast<double>(got) / static_cast<double>(at_best)}};
      if (row.checked()) row.fault = fault_of_held(large.blocks);
      if (!add(row, large)) return false;
      free_listed(*heap_, large.blocks);
    }
    auto const end = fault_of_ending(all);
    for (size_t i = first_row; i < rows_.size(); ++i)
      if (rows_[i].skipped.empty()) rows_[i].fault = end;
    return end.empty();
  }

  static char const* name_of(kept survivors) {
    switch (survivors) {
      case kept::none: return "all freed";
      case kept::scattered: return "scattered kept";
      default: return "run kept";
    }
  }

  /// Frees all blocks but a hundredth, which are left in the list.
  void free_all_but(kept survivors, std::vector<asked_block>& list) {
    u64 const few = survivors == kept::none ? 0 : list.size() / 100;
    if (survivors == kept::scattered) list = in_random_order(list, ~asked_.seed);
    if (survivors == kept::run) {
      std::sort(list.begin(), list.end(), [](auto const& left, auto const& right) { return left.block < right.block; });
      u64 const start = mix(asked_.seed) % std::max<u64>(list.size() - few, 1);
      std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(start), list.end());
    }
    free_listed(*heap_, {list.begin() + static_cast<std::ptrdiff_t>(few), list.end()});
    list.resize(few);
  }

  bool drift(double level) {
    if (!proceed()) return false;
    u64 const steps = default_for_backend(asked_[options::kernels], 32, 8);
    auto row = row_of("drift", {{"level_permille", permille_of(level)}, {"kernels", steps}});
    if (skip(rows_, row, unsupported_reason(subject_, drifting_rings::sizes.most))) return true;
    empty_heap();
    drifting_rings rings{pool_bytes_, level, steps, asked_.seed};
    u64 calls = 0, refused = 0;  // of the last cycle
    double time_us = 0, time_before_us = 0;
    auto const takes_long = [&] { return time_before_us + time_us > most_drift_us_; };
    for (u64 step = 0; step < cycles * steps && row.checked() && !takes_long(); ++step) {
      if (step % steps == 0) {
        row.fault = fault_of_held(rings.held());
        calls = refused = 0;
        time_before_us += std::exchange(time_us, 0);
      }
      free_listed(*heap_, rings.take_leaving(step));
      auto const came = ask_at_once(*heap_, rings.plan(step));
      rings.settle(came.blocks);
      calls += came.blocks.size();
      refused += came.refused;
      time_us += came.time_us;
    }
    if (row.checked()) row.fault = fault_of_ending(rings.held());
    if (row.checked() && takes_long()) return skip(rows_, row, subject_.name + " takes over a minute for this drift");
    row.figures = {{"failed_share", static_cast<double>(refused) / static_cast<double>(std::max<u64>(calls, 1))}};
    return add(row, calls, refused, time_us);
  }

  void measure_ranges() {
    bool const has_pool = subject_.resets || pool_bytes_ == asked_.pool_bytes;
    pool_bytes_ = asked_.pool_bytes;
    if (has_pool) heap_.emplace(pool_bytes_);
    for (u64 const bytes : ranged_sizes) {
      if (!proceed()) return;
      u64 const blocks = std::clamp<u64>(pool_bytes_ / 2 / bytes, 1, 100'000);
      auto row = row_of("range", {{"bytes", bytes}, {"blocks", blocks}});
      auto why = unsupported_reason(subject_, bytes);
      if (!has_pool) why = subject_.name + " has one pool a process: ask for a smaller pool";
      if (skip(rows_, row, why)) continue;
      empty_heap();
      auto const came = ask_at_once(*heap_, std::vector<u64>(blocks, bytes));
      std::vector<void*> places;
      for (auto const& each : came.blocks) places.push_back(each.block);
      row.figures = {{"range_over_asked", range_over_asked(places, bytes)}};
      row.fault = fault_of_ending(came.blocks);
      if (!add(row, came)) return;
    }
  }

  test_subject<Allocator> const& subject_;
  request const& asked_;
  u64 pool_bytes_;
  double most_drift_us_;
  std::vector<double> levels_{0.3, 0.5, 0.7, 0.85};
  std::optional<basic_heap<Allocator>> heap_;
  u64 done_ = 0;
  std::vector<result> rows_;
};

template <class Allocator>
std::vector<result> efficiency(test_subject<Allocator> const& subject, request const& asked) {
  return efficiency_rows<Allocator>{subject, asked}.measure();
}

inline scenario about_efficiency() {
  return {
      .name = "efficiency",
      .text =
          "how much of the pool can be used: beside a few blocks of other sizes, by mixed and drifting sizes, and by "
          "large blocks after small ones; how far blocks lie apart",
      .rank = 85,
      .uses = {{options::levels, "of its drift; default 0.3,0.5,0.7,0.85"},
               {options::kernels, "steps of a cycle of its drift; default 32 on a GPU, 8 on the host"}},
      .ignores = {"--repeat"},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
