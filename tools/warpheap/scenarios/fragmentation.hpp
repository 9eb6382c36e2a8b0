// SPDX-License-Identifier: Apache-2.0
// fragmentation: what survivors make of a heap. Blocks of log-uniform sizes fill the pool to a
// level; then blocks chosen at random are freed until a share of them is left. Two things are
// measured:
//
//   free           bytes of the containers that the survivors keep: slabs, pages or chunks that are
//                  bound to small blocks until the last of them is freed
//   large malloc   how many blocks of a large size one thread gets until it is refused, over
//                  as many as the bytes that no block holds would make
//
// Level: the first of `levels`; shares left: `left_shares`; sizes of the mix: the first of
// `ranges`; large sizes: `sizes`, tried one after the other, each freed again. Every share starts
// from an empty heap, a fresh one if it can be reset. Figures are means over `repeat` rounds, each
// with blocks and survivors of its own. They depend on the seed, and on the order of
// calls.
//
// The addresses of all blocks are compared, and survivors and large blocks are written and read.
//
// Source: Adinetz & Pleiter 2014, the slide on external fragmentation: the fraction of slabs that
// are not free.
#pragma once

#include <algorithm>
#include <optional>

#include "measure/call_list.hpp"
#include "measure/log_uniform.hpp"
#include "measure/slot_table.hpp"
#include "scenario.hpp"

namespace warpheap::bench::options {

/// 0, or at least a thousandth, since results name shares in thousandths.
inline constexpr option<std::vector<double>> left_shares{
    {.name = "--left-shares",
     .rank = 130,
     .type = "SHARE[,SHARE...]",
     .text = "Shares of the blocks that are not freed (default 0.5,0.25,0.1,0.05,0.02,0.01,0.001)",
     .parse = [](char const* name, std::string const& typed, option_bounds const&) -> std::any {
       std::vector<double> shares;
       for (auto const& part : tool::split_list(name, typed)) {
         shares.push_back(tool::parse_real(name, part, 0, 1));
         if (shares.back() > 0 && shares.back() < 0.001)
           throw tool::usage_error{std::string{name} + ": " + part + " is neither 0 nor between 0.001 and 1"};
       }
       return shares;
     }}};

}  // namespace warpheap::bench::options

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// `held_bytes`, which were asked for, over the bytes of live blocks, where the allocator counts
/// them; and where it counts containers, their share of the pool, and live blocks' share of them.
template <class Allocator>
std::vector<std::pair<std::string, double>> occupancy_figures(basic_heap<Allocator> const& heap, u64 held_bytes) {
  std::vector<std::pair<std::string, double>> figures;
  if constexpr (requires { heap.statistics(); }) {
    if (u64 const live = heap.statistics().live_bytes)
      figures.emplace_back("held_over_live", static_cast<double>(held_bytes) / static_cast<double>(live));
  }
  for (auto const& figure : slab_figures(heap)) figures.push_back(figure);
  return figures;
}

/// Sums of figures over rounds.
class figure_sums {
 public:
  void add(std::string const& name, double value) {
    for (auto& sum : sums_)
      if (sum.name == name) {
        sum.value += value;
        ++sum.rounds;
        return;
      }
    sums_.push_back({name, value, 1});
  }

  /// The mean of each figure that every round has.
  std::vector<std::pair<std::string, double>> means(u32 rounds) const {
    std::vector<std::pair<std::string, double>> made;
    for (auto const& sum : sums_)
      if (sum.rounds == rounds) made.emplace_back(sum.name, sum.value / rounds);
    return made;
  }

 private:
  struct sum {
    std::string name;
    double value;
    u32 rounds;
  };
  std::vector<sum> sums_;
};

/// The rounds of one share left on one heap, and their rows.
template <class Allocator>
class survivor_rounds {
 public:
  survivor_rounds(basic_heap<Allocator>& heap, test_subject<Allocator> const& subject, request const& asked,
                  size_range range, double level, double left)
      : heap_{heap},
        subject_{subject},
        pool_bytes_{asked.pool_bytes},
        sizes_{log_uniform_draw::from(range)},
        blocks_{std::max<u64>(static_cast<u64>(level * static_cast<double>(pool_bytes_) / sizes_.mean()), 1)},
        left_{left} {}

  /// How many blocks are asked for to fill the pool.
  u64 blocks() const { return blocks_; }

  /// The rows of `repeat` rounds, fewer if one has a fault, which then stands in all rows: the row
  /// of `free`, and one for each size of `large`, in bytes.
  std::vector<result> measure(u32 repeat, u64 seed, result const& row, std::vector<u64> const& large) {
    rows_.clear();
    rows_.push_back({row, 0, {}});
    for (u64 const bytes : large) {
      rows_.push_back({row, bytes, {}});
      rows_.back().row.operation = "large malloc";
      rows_.back().row.parameters.insert(rows_.back().row.parameters.begin(), {"bytes", bytes});
      rows_.back().row.skipped = unsupported_reason(subject_, bytes);
    }
    std::string fault;
    for (u32 round = 0; round < repeat && fault.empty(); ++round, seed = mix(seed + 1)) fault = play(seed);
    std::vector<result> made;
    for (auto& each : rows_) {
      if (each.row.skipped.empty()) each.row.fault = fault;
      each.row.figures = each.sums.means(repeat);
      each.row.operations /= repeat;
      made.push_back(each.row);
    }
    return made;
  }

 private:
  struct summed_row {
    result row;
    u64 bytes;  ///< of a large block
    figure_sums sums;
  };

  /// One round; what was wrong, if anything.
  std::string play(u64 seed) {
    if (subject_.resets) heap_.reset();
    fill(seed);
    auto fault = fault_of_places(held_);
    if (fault.empty()) free_some(seed, rows_.front());
    for (size_t i = 1; i < rows_.size() && fault.empty(); ++i)
      if (rows_[i].row.skipped.empty()) fault = ask_for_large(rows_[i]);
    if (fault.empty()) fault = fault_of_blocks<Allocator>(held_);
    if (!fault.empty()) return fault;
    free_listed(heap_, held_);
    return fault_of_emptied(heap_);
  }

  void fill(u64 seed) {
    std::vector<u64> wanted(blocks_);
    for (u64 i = 0; i < blocks_; ++i) wanted[i] = sizes_.of(static_cast<u32>(mix(seed + i) >> 32));
    held_.clear();
    for (auto const& each : ask_at_once(heap_, wanted).blocks)
      if (each.block) held_.push_back(each);
  }

  /// Frees all but a share of the blocks. The seed and the order of calls decide which ones, and
  /// addresses do not.
  void free_some(u64 seed, summed_row& to) {
    to.sums.add("filled_share", share_of_pool(bytes_of(held_)));
    to.row.failures = blocks_ - held_.size();
    auto kept = in_random_order(held_, ~seed);
    auto const survivors = std::llround(left_ * static_cast<double>(kept.size()));
    std::vector<asked_block> const leaving(kept.begin() + survivors, kept.end());
    kept.resize(kept.size() - leaving.size());
    to.row.operations += static_cast<double>(leaving.size());
    to.row.times_us.push_back(free_listed(heap_, leaving));
    held_ = std::move(kept);

    to.sums.add("held_share", share_of_pool(bytes_of(held_)));
    for (auto const& [name, value] : occupancy_figures(heap_, bytes_of(held_))) to.sums.add(name, value);
  }

  /// One thread asks for large blocks until it is refused, or has one more than there can be, and
  /// frees them. Returns what was wrong with them, if anything.
  std::string ask_for_large(summed_row& to) {
    u64 const at_best = (pool_bytes_ - std::min(bytes_of(held_), pool_bytes_)) / to.bytes;
    auto const asked = ask_until_refused(heap_, to.bytes, at_best + 1, {.calls = 1});
    auto const got = static_cast<double>(asked.blocks.size() - asked.refused);
    to.row.failures = asked.refused;
    to.row.operations += got;
    to.row.times_us.push_back(asked.time_us);
    to.sums.add("at_best", static_cast<double>(at_best));
    // An allocator without a limit was stopped by us, so its count says nothing.
    if (asked.refused) to.sums.add("got", got);
    if (asked.refused && at_best) to.sums.add("got_share", got / static_cast<double>(at_best));

    auto all = held_;
    append(all, asked.blocks);
    auto fault = fault_of_places(all);
    if (fault.empty()) fault = fault_of_blocks<Allocator>(asked.blocks);
    if (fault.empty()) free_listed(heap_, asked.blocks);
    return fault;
  }

  double share_of_pool(u64 bytes) const { return static_cast<double>(bytes) / static_cast<double>(pool_bytes_); }

  basic_heap<Allocator>& heap_;
  test_subject<Allocator> const& subject_;
  u64 pool_bytes_;
  log_uniform_draw sizes_;
  u64 blocks_;
  double left_;
  std::vector<asked_block> held_;
  std::vector<summed_row> rows_;
};

template <class Allocator>
std::vector<result> fragmentation(test_subject<Allocator> const& subject, request const& asked) {
  auto const range = asked.get(options::ranges, {{16, 4096}}).front();
  double const level = asked.get(options::levels, {0.9}).front();
  auto const shares = asked.get(options::left_shares, {0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.001});
  auto const large = asked.get(options::sizes, {u64{64} << 10, u64{1} << 20});
  auto const why = unsupported_reason(subject, range.most);
  std::optional<basic_heap<Allocator>> heap;
  if (why.empty()) heap.emplace(asked.pool_bytes);
  std::vector<result> rows;
  u64 done = 0;
  for (double const left : shares) {
    if (!asked.proceed("fragmentation, " + subject.name, done++, shares.size())) return rows;
    result row{.scenario = "fragmentation", .allocator = subject.name, .operation = "free"};
    row.parameters = {{"left_permille", permille_of(left)},
                      {"level_permille", permille_of(level)},
                      {"least_bytes", range.least},
                      {"most_bytes", range.most},
                      {"pool_bytes", asked.pool_bytes}};
    if (skip(rows, row, why)) continue;
    survivor_rounds<Allocator> rounds{*heap, subject, asked, range, level, left};
    row.parameters.insert(row.parameters.begin() + 4, {"blocks", rounds.blocks()});
    for (auto const& made : rounds.measure(asked.repeat, asked.seed, row, large)) rows.push_back(made);
    if (!rows.back().checked()) return rows;  // what a broken heap says next means nothing
  }
  return rows;
}

inline scenario about_fragmentation() {
  return {
      .name = "fragmentation",
      .text = "slabs that survivors of a full pool keep, and large blocks that are still to be had",
      .rank = 90,
      .uses = {{options::sizes, "default 64KiB,1MiB"},
               {options::ranges, "the first"},
               {options::levels, "the first; default 0.9"},
               {options::left_shares}},
      .pool = {.gpu = u64{512} << 20, .host = u64{32} << 20},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
