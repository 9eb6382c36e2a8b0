// SPDX-License-Identifier: Apache-2.0
// map: where in a heap's memory which sizes lie, and how full each part of it is, in the course of
// the two loads of fill_level. The memory, metadata included, is cut into cells of one size. After
// the first step and after each eighth of the run a row lists, for every cell, the octave of sizes
// whose blocks have the most bytes there, and the share of the cell that blocks were asked for.
//
// Level: the first of `levels`; sizes: the first of `ranges`; slots: `threads`; steps: `kernels`.
// The slots know their blocks, so no allocator has to tell, and both backends are mapped alike.
#pragma once

#include <bit>
#include <optional>

#include "measure/slot_table.hpp"
#include "scenario.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// Bytes that blocks were asked for, by cell of a heap's memory and by octave of their sizes.
class cell_sums {
 public:
  static constexpr u64 cells = 128;

  explicit cell_sums(std::vector<memory_range> pieces) : pieces_{std::move(pieces)}, sums_(cells * octaves) {
    u64 total = 0;
    for (auto const& piece : pieces_) total += piece.bytes;
    cell_bytes_ = std::max<u64>((total + cells - 1) / cells, 1);
  }

  u64 cell_bytes() const { return cell_bytes_; }

  /// Adds a block of some bytes. False: it does not lie in this memory.
  bool add(asked_block const& added) {
    u64 const address = reinterpret_cast<u64>(added.block);
    u64 before = 0;  // bytes of the pieces below
    for (auto const& piece : pieces_) {
      u64 const offset = address - reinterpret_cast<u64>(piece.begin);
      if (offset < piece.bytes && added.bytes <= piece.bytes - offset) {
        add_at(before + offset, added.bytes);
        return true;
      }
      before += piece.bytes;
    }
    return false;
  }

  /// By cell: the least size of the octave that has the most bytes there; 0 where there are none.
  std::vector<u64> leading_octaves() const {
    std::vector<u64> leading;
    leading.reserve(cells);
    for (u64 cell = 0; cell < cells; ++cell) {
      auto const first = sums_.begin() + static_cast<std::ptrdiff_t>(cell * octaves);
      auto const most = std::max_element(first, first + octaves);
      leading.push_back(*most ? u64{1} << (most - first) : 0);
    }
    return leading;
  }

  /// By cell: thousandths of it that blocks were asked for, rounded up: 0 where there are none.
  std::vector<u64> fill_permille() const {
    std::vector<u64> fill;
    fill.reserve(cells);
    for (u64 cell = 0; cell < cells; ++cell) {
      auto const first = sums_.begin() + static_cast<std::ptrdiff_t>(cell * octaves);
      fill.push_back((1000 * std::accumulate(first, first + octaves, u64{0}) + cell_bytes_ - 1) / cell_bytes_);
    }
    return fill;
  }

 private:
  static constexpr int octaves = 64;

  void add_at(u64 offset, u64 bytes) {
    auto const octave = static_cast<u64>(std::bit_width(bytes) - 1);
    for (u64 const end = offset + bytes; offset < end;) {
      u64 const cell = offset / cell_bytes_, here = std::min(end, (cell + 1) * cell_bytes_) - offset;
      sums_[cell * octaves + octave] += here;
      offset += here;
    }
  }

  std::vector<memory_range> pieces_;
  std::vector<u64> sums_;
  u64 cell_bytes_ = 1;
};

/// The rows of one kind of load.
template <class Allocator>
class mapped_load {
 public:
  static constexpr u64 parts = 8;

  mapped_load(basic_heap<Allocator>& heap, slot_load const& load, u64 steps)
      : heap_{heap}, load_{load}, steps_{steps}, slots_{heap, load.slots()} {}

  std::vector<result> measure(result const& base) {
    slots_.play(load_.filling());
    std::vector<result> rows;
    rows.reserve(parts + 1);
    for (u64 part = 0; part <= parts; ++part) {
      u64 const until = std::max<u64>(steps_ * part / parts, 1);
      if (until > done_) rows.push_back(run_until(until, base));
    }
    auto const fault = slots_.fault_of_emptying();
    for (auto& row : rows)
      if (row.fault.empty()) row.fault = fault;
    return rows;
  }

 private:
  result run_until(u64 until, result row) {
    u64 const steps = until - done_, held_before = slots_.held().blocks;
    row.times_us = slots_.time(load_, done_ + 1, steps).sums();
    row.failures = slots_.take_refused();
    u64 mallocs = 0;
    for (u64 i = done_ + 1; i <= until; ++i) mallocs += load_.step(i).mallocs();
    auto const held = slots_.held_blocks();
    u64 const served = mallocs - row.failures, freed = held_before + served - held.size();
    row.operations = static_cast<double>(served + freed) / static_cast<double>(steps);
    row.parameters.insert(row.parameters.begin(), {"step", until});
    done_ = until;
    describe(held, row);
    return row;
  }

  void describe(std::vector<asked_block> const& held, result& row) {
    cell_sums sums{heap_.memory()};
    u64 outside = 0;
    for (auto const& each : held) outside += !sums.add(each);
    if (outside) row.fault = std::to_string(outside) + " blocks lie outside of the heap's memory";
    row.parameters.emplace_back("cell_bytes", sums.cell_bytes());
    row.figures = slab_figures(heap_);
    row.lists = {{"cell_octave", sums.leading_octaves()}, {"cell_permille", sums.fill_permille()}};
  }

  basic_heap<Allocator>& heap_;
  slot_load load_;
  u64 steps_;
  u64 done_ = 0;
  slot_table<Allocator> slots_;
};

template <class Allocator>
std::vector<result> heap_map(test_subject<Allocator> const& subject, request const& asked) {
  auto const range = asked.get(options::ranges, {{16, 4096}}).front();
  double const level = asked.get(options::levels, {0.9}).front();
  u64 const slots = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 12),
            kernels = default_for_backend(asked[options::kernels], 256, 16),
            pool_bytes = pool_for_level(slots, log_uniform_draw::from(range).mean(), level,
                                        basic_heap<Allocator>::minimum_bytes, asked.pool_bytes);
  auto why = unsupported_reason(subject, range.most);
  if (basic_heap<Allocator>::memory_pieces == 0) why = subject.name + " does not say where its memory lies";
  std::optional<basic_heap<Allocator>> heap;
  if (why.empty()) heap.emplace(pool_bytes);
  std::vector<result> rows;
  for (auto const kind : {load_kind::constant, load_kind::drifting}) {
    if (!asked.proceed("map, " + subject.name, kind == load_kind::drifting, 2)) return rows;
    slot_load const load{kind, range, pool_bytes, level, kernels, asked.seed};
    result row{.scenario = "map",
               .allocator = subject.name,
               .operation = kind == load_kind::constant ? "constant" : "drifting"};
    row.parameters = {{"kernels", kernels},         {"level_permille", permille_of(level)},
                      {"least_bytes", range.least}, {"most_bytes", range.most},
                      {"slots", load.slots()},      {"pool_bytes", pool_bytes}};
    if (skip(rows, row, why)) continue;
    row.fault = fault_of_load(*heap, load, kernels, subject.resets);
    if (row.checked())
      for (auto const& made : mapped_load<Allocator>{*heap, load, kernels}.measure(row)) rows.push_back(made);
    else rows.push_back(row);
    if (!rows.back().checked()) return rows;  // what a broken heap says next means nothing
    if (subject.resets) heap->reset();
    synchronize();
  }
  return rows;
}

inline scenario about_map() {
  return {
      .name = "map",
      .text = "where in the memory which sizes lie in the course of fill_level's loads, and how full its parts are",
      .rank = 100,
      .uses = {{options::ranges, "the first"},
               {options::threads, "1048576 slots"},
               {options::levels, "the first; default 0.9"},
               {options::kernels, "steps of a load; default 256 on a GPU, 16 on the host"}},
      .ignores = {"--repeat"},
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
