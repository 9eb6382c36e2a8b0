// SPDX-License-Identifier: Apache-2.0
// What lies in a mailbox at rest, for the host.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <string>
#include <vector>

#include "mailbox.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Reads a mailbox at rest. Copies the bitmap in pieces.
template <class Mailbox>
class mailbox_snapshot {
 public:
  /// A view whose words are in device memory.
  explicit mailbox_snapshot(Mailbox const& box) : box_{box}, summary_(box.summary_words()) {
    backend::copy_bytes(&state_, box.state(), sizeof state_);
    backend::copy_bytes(summary_.data(), box.summary(), summary_.size() * sizeof(u64));
  }

  /// Posts whose bit was set already.
  u64 repeats() const { return state_.repeats; }

  /// Frees that wait.
  u64 pending() const {
    u64 count = 0;
    for (u32 first = 0; first < box_.rows(); first += piece_rows) {
      bool any = false;
      for (u32 row = first; row < end_of_piece(first); ++row) any = any || summary_has(row);
      if (!any) continue;
      for (u64 const bits : piece(first)) count += popcount(bits);
    }
    return count;
  }

  /// A line for each violation of mailbox.M2, or of drain.D1 as it is at rest: each region
  /// that is claimed is finished.
  std::vector<std::string> check_invariants() const {
    std::vector<std::string> violated;
    for (u32 first = 0; first < box_.rows(); first += piece_rows) {
      auto const bits = piece(first);
      for (u32 row = first; row < end_of_piece(first); ++row)
        if (has_posts(bits, row - first) && !summary_has(row))
          violated.push_back("mailbox.M2: row " + std::to_string(row) + " has posts and no bit above it");
    }
    for (u32 word = 0; word < summary_.size(); ++word) {
      u32 const region = word >> box_.span_log2();
      if (summary_[word] != 0 && !((state_.root[region / 64] >> (region % 64)) & 1))
        violated.push_back("mailbox.M2: region " + std::to_string(region) + " has posts and no bit above it");
    }
    u64 const claimed = std::min<u64>(state_.pass & low_mask(32), box_.regions());
    if (claimed != state_.finished)
      violated.push_back("drain.D1: " + std::to_string(state_.finished) + " regions are finished of " +
                         std::to_string(claimed) + " that were claimed");
    return violated;
  }

 private:
  static constexpr u32 piece_rows = 64;

  bool summary_has(u32 row) const {
    u32 const bit = box_.summary_bit(row);
    return ((summary_[bit / 64] >> (bit % 64)) & 1) != 0;
  }

  /// The first row after the piece from row `first` on.
  u32 end_of_piece(u32 first) const { return (std::min)(first + piece_rows, box_.rows()); }

  /// The bitmap's words from row `first` on; zeros beyond the end.
  std::vector<u64> piece(u32 first) const {
    std::vector<u64> words(u64{piece_rows} * Mailbox::row_words);
    u64 const begin = u64{first} * Mailbox::row_words;
    u64 const there = std::min<u64>(words.size(), box_.bitmap_words() - begin);
    backend::copy_bytes(words.data(), box_.bitmap() + begin, there * sizeof(u64));
    return words;
  }

  static bool has_posts(std::vector<u64> const& piece, u32 row) {
    auto const first = piece.begin() + row * Mailbox::row_words;
    return std::any_of(first, first + Mailbox::row_words, [](u64 bits) { return bits != 0; });
  }

  Mailbox box_;
  mailbox_state state_{};
  std::vector<u64> summary_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
