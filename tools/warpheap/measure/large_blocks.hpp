// SPDX-License-Identifier: Apache-2.0
// Checks of large blocks. examine() has one thread for each block, which alone would write up to a
// gigabyte. Here each thread checks a piece of 64 KiB. And because large blocks are few, the host
// can compare their addresses. That is exact, touches no block, and is quick enough to be done
// after every kernel.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What a call returned, and the bytes that it asked for.
struct asked_block {
  void* block = nullptr;
  u64 bytes = 0;
};

inline u64 failures_among(std::vector<asked_block> const& list) {
  return static_cast<u64>(std::count_if(list.begin(), list.end(), [](auto const& each) { return !each.block; }));
}

/// How many blocks begin before one below them ends.
inline u64 overlapping_among(std::vector<asked_block> const& list) {
  std::vector<std::pair<u64, u64>> ranges;
  for (auto const& [block, bytes] : list) {
    u64 const start = reinterpret_cast<u64>(block);
    if (block) ranges.emplace_back(start, start + bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  u64 found = 0, end_below = 0;
  for (auto const& [start, end] : ranges) {
    found += start < end_below;
    end_below = std::max(end_below, end);
  }
  return found;
}

/// A part of a block that one thread looks after. Of a list of blocks, thread i has piece
/// `i % pieces_a_block` of block `i / pieces_a_block`.
struct block_piece {
  /// A multiple of every granule, so that stamps of overlapping blocks are compared.
  static constexpr u64 most_bytes = u64{64} << 10;

  void* start = nullptr;  ///< null: there is none
  u64 bytes = 0;

  WARPHEAP_DEVICE static block_piece of(asked_block asked, u64 number) {
    u64 const from = number * most_bytes;
    if (!asked.block || from >= asked.bytes) return {};
    u64 const rest = asked.bytes - from;
    return {static_cast<u8*>(asked.block) + from, rest < most_bytes ? rest : most_bytes};
  }
};

/// Kernel: stamps every piece.
struct stamp_pieces {
  WARPHEAP_DEVICE void operator()(block_promise promise, asked_block const* list, u64 total, u64 pieces_a_block) const {
    u64 const i = global_thread_index();
    if (i >= total * pieces_a_block) return;
    auto const piece = block_piece::of(list[i / pieces_a_block], i % pieces_a_block);
    if (piece.start) promise.stamp(piece.start, piece.bytes, i);
  }
};

/// Kernel: looks at every piece, and at each block's alignment.
struct inspect_pieces {
  WARPHEAP_DEVICE void operator()(block_promise promise, asked_block const* list, u64 total, u64 pieces_a_block,
                                  findings* found) const {
    u64 const i = global_thread_index();
    if (i >= total * pieces_a_block) return;
    asked_block const asked = list[i / pieces_a_block];
    bool const is_first = i % pieces_a_block == 0;
    if (is_first && !asked.block) return count(found->failures);
    if (is_first && !promise.is_kept_by(asked.block, asked.bytes)) count(found->misaligned);
    auto const piece = block_piece::of(asked, i % pieces_a_block);
    if (piece.start && !promise.is_stamped(piece.start, piece.bytes, i)) count(found->damaged);
  }
};

/// Writes all over every block and looks at it. `damaged` counts pieces.
template <class Allocator>
findings examine_pieces(std::vector<asked_block> const& list) {
  auto const promise = block_promise::of<Allocator>();
  u64 most = 1;
  for (auto const& each : list) most = std::max(most, each.bytes);
  u64 const pieces_a_block = (most + block_piece::most_bytes - 1) / block_piece::most_bytes;
  device_buffer<asked_block> const blocks(list);
  device_buffer<findings> const found(1);
  auto const shape = shape_for(list.size() * pieces_a_block);
  launch(shape, stamp_pieces{}, promise, blocks.data(), blocks.size(), pieces_a_block);
  launch(shape, inspect_pieces{}, promise, blocks.data(), blocks.size(), pieces_a_block, found.data());
  synchronize();
  return found[0];
}

/// What is wrong with the places of blocks; empty if nothing is.
inline std::string fault_of_places(std::vector<asked_block> const& list) {
  u64 const found = overlapping_among(list);
  return found ? std::to_string(found) + " blocks overlap another" : std::string{};
}

/// What is wrong with a list of blocks, each of which is written and read; empty if nothing is.
template <class Allocator>
std::string fault_of_blocks(std::vector<asked_block> const& list) {
  if (auto const fault = fault_of_places(list); !fault.empty()) return fault;
  auto const found = examine_pieces<Allocator>(list);
  if (found.damaged) return std::to_string(found.damaged) + " pieces of blocks lost what was written to them";
  return found.fault();
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
