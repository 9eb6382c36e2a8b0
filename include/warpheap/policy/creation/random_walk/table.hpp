// SPDX-License-Identifier: Apache-2.0
// The pages of a random_walk: where they and their words lie, and how they are taken and given
// back.
//
//   pool       page 0 | page 1 | ...   starts at a multiple of 4 KiB (unit_pool.hpp)
//   metadata   counts, steps, pass, words (walk_table.hpp)
#pragma once

#include "../shared/walk_table.hpp"
#include "config.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

/// The type of a mask with a bit for each page, of words of `Pages` pages.
template <u32 Pages>
struct page_mask {
  using type = u32;
};
template <>
struct page_mask<64> {
  using type = u64;
};

/// View of a heap of pages; 16 bytes, trivially copyable, owns nothing.
template <creation::random_walk_config Config>
class table : public creation::walk_table<Config.page_bytes, u32, Config.word_pages, 1> {
  using base_type = creation::walk_table<Config.page_bytes, u32, Config.word_pages, 1>;

 public:
  using base_type::base_type, base_type::look_at, base_type::word;
  static constexpr u32 max_pages = 1u << 30;
  static constexpr u32 word_pages = Config.word_pages;
  /// The pages of a word.
  using mask_type = typename page_mask<word_pages>::type;
  static constexpr mask_type valid = static_cast<mask_type>(low_mask(word_pages));
  static constexpr size_t page_bytes = Config.page_bytes;

  WARPHEAP_HOST_DEVICE u32 pages() const { return this->units(); }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return base_type::words_offset + 8 * u64{this->words()}; }
  WARPHEAP_HOST_DEVICE static mask_type bit_of(u32 page) { return mask_type{1} << page % word_pages; }

  /// Whether a page is taken. The caller may have the address without any memory order, so a page
  /// that a load finds free is checked by a read-modify-write, which reads the newest value.
  WARPHEAP_DEVICE bool is_taken(u32 page) const {
    walk_word seen = look_at(page / word_pages);
    if (seen.free(bit_of(page))) seen = walk_word{word(page / word_pages).fetch_or(0, order::relaxed)};
    return seen.free(bit_of(page)) == 0;
  }

  /// Makes every page free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const { creation::initialize_walk(*this, on); }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts
