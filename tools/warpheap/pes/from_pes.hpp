// SPDX-License-Identifier: Apache-2.0
// What all PEs have, brought to each of them through symmetric memory that each reads by pointer.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "symmetric_buffer.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// The list of each PE, in the order of their numbers. All PEs; lists may differ in length. They
/// pass through at most 64 MiB on each PE, a piece at a time.
template <class T>
std::vector<std::vector<T>> lists_of_pes(std::vector<T> const& mine) {
  auto const sizes = gather_from_pes(mine.size());
  u64 const longest = *std::max_element(sizes.begin(), sizes.end());
  u64 const piece = std::min(longest, (u64{64} << 20) / sizeof(T));
  std::vector<std::vector<T>> all;
  all.reserve(sizes.size());
  for (u64 const size : sizes) all.emplace_back(size);
  if (longest == 0) return all;
  symmetric_buffer<T> const shared(piece);
  auto const length_at = [&](u64 first, u64 size) { return first < size ? std::min(piece, size - first) : 0; };
  for (u64 first = 0; first < longest; first += piece) {
    if (u64 const length = length_at(first, mine.size()))
      warpheap::backend::copy_bytes(shared.data(), mine.data() + first, length * sizeof(T));
    nvshmem_barrier_all();
    for (u32 pe = 0; pe < all.size(); ++pe)
      if (u64 const length = length_at(first, all[pe].size()))
        warpheap::backend::copy_bytes(all[pe].data() + first, at_pe(shared.data(), pe), length * sizeof(T));
    nvshmem_barrier_all();  // before the next piece is written there
  }
  return all;
}

/// One value of each PE. All PEs.
template <class T>
std::vector<T> values_of_pes(T const& mine) {
  std::vector<T> all;
  for (auto const& one : lists_of_pes(std::vector<T>{mine})) all.push_back(one.front());
  return all;
}

/// One text of each PE. All PEs.
inline std::vector<std::string> texts_of_pes(std::string const& mine) {
  std::vector<std::string> all;
  for (auto const& one : lists_of_pes(std::vector<char>(mine.begin(), mine.end())))
    all.emplace_back(one.begin(), one.end());
  return all;
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
