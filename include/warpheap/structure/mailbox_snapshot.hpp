// What lies in a mailbox at rest, for the host.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <string>
#include <vector>

#include "mailbox.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Reads a mailbox at rest. Copies the bitmap in pieces, each for one word of the summary.
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
    for (u32 word = 0; word < summary_.size(); ++word)
      if (summary_[word] != 0)
        for (u64 const bits : piece(word)) count += popcount(bits);
    return count;
  }

  /// A line for each violation of mailbox M2, or of mailbox_drain D1 as it is at rest: each region
  /// that is claimed is finished.
  std::vector<std::string> check_invariants() const {
    std::vector<std::string> violated;
    for (u32 word = 0; word < summary_.size(); ++word) {
      auto const bits = piece(word);
      for (u32 row = 0; row < 64; ++row)
        if (has_posts(bits, row) && !((summary_[word] >> row) & 1))
          violated.push_back("mailbox M2: row " + std::to_string(64 * word + row) + " has posts and no bit above it");
      u32 const region = word >> box_.span_log2();
      if (summary_[word] != 0 && !((state_.root[region / 64] >> (region % 64)) & 1))
        violated.push_back("mailbox M2: region " + std::to_string(region) + " has posts and no bit above it");
    }
    u64 const claimed = std::min<u64>(state_.pass & low_mask(32), box_.regions());
    if (claimed != state_.finished)
      violated.push_back("mailbox_drain D1: " + std::to_string(state_.finished) + " regions are finished of " +
                         std::to_string(claimed) + " that were claimed");
    return violated;
  }

 private:
  static constexpr u32 piece_words = 64 * Mailbox::row_words;

  /// The bitmap's words below one word of the summary; zeros beyond the end.
  std::vector<u64> piece(u32 summary_word) const {
    std::vector<u64> words(piece_words);
    u64 const first = u64{piece_words} * summary_word;
    u64 const there = std::min<u64>(piece_words, box_.bitmap_words() - first);
    backend::copy_bytes(words.data(), box_.bitmap() + first, there * sizeof(u64));
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

}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif
