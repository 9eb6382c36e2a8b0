// SPDX-License-Identifier: Apache-2.0
// The pages of a random_walk: where they and their words lie, and how they are taken and given
// back.
//
//   base - pages * page_bytes    page 0 | page 1 | ...     the pool, its start aligned to 4 KiB
//   base                         counts                    128 bytes: double frees, frees of no
//                                                          page, refusals
//                                steps                     128 bytes: of threads and of warps,
//                                                          where they are counted
//                                pass                      searches that saw all and found nothing
//                                words                     8 bytes for word_pages pages
//
// Orders: the release of a free and the acquire of the thread that takes the page meet in the word.
// All changes of a word are read-modify-writes, so a thread that reads a later value has acquired
// from every free before it.
#pragma once

#include "../../../platform/simt.hpp"
#include "../shared/walk_faults.hpp"
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
class table {
 public:
  /// Counts that no invariant rests on.
  enum class count : u32 { double_frees, foreign_frees, failures };

  static constexpr u32 none = ~0u;
  static constexpr u32 max_pages = 1u << 30;
  static constexpr u32 word_pages = Config.word_pages;
  /// The pages of a word.
  using mask_type = typename page_mask<word_pages>::type;
  static constexpr mask_type valid = static_cast<mask_type>(low_mask(word_pages));
  static constexpr size_t page_bytes = Config.page_bytes;
  /// The first page's address is a multiple of this.
  static constexpr size_t pool_alignment = 4096;
  /// Alignment of every page: the largest power of two that divides page_bytes, up to 4 KiB.
  static constexpr size_t alignment =
      (page_bytes & (0 - page_bytes)) < pool_alignment ? page_bytes & (0 - page_bytes) : pool_alignment;
  using pass_type = shared_pass<1>;

  table() = default;
  /// `base` is where the pool ends and the metadata begins.
  WARPHEAP_HOST_DEVICE table(u8* base, u32 pages) : base_{base}, pages_{pages} {}

  WARPHEAP_HOST_DEVICE u32 pages() const { return pages_; }
  WARPHEAP_HOST_DEVICE u32 words() const { return (pages_ + word_pages - 1) / word_pages; }
  WARPHEAP_HOST_DEVICE u64 pool_bytes() const { return u64{pages_} * page_bytes; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - padded_pool_bytes(pages_); }
  WARPHEAP_HOST_DEVICE void* address(u32 page) const { return pool() + u64{page} * page_bytes; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return words_offset + 8 * u64{words()}; }

  /// The number of the page that starts at `memory`; none if no page does.
  WARPHEAP_HOST_DEVICE u32 number_of(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool());
    bool const starts_one = offset < pool_bytes() && offset % page_bytes == 0;
    return starts_one ? static_cast<u32>(offset / page_bytes) : none;
  }
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool()) < pool_bytes();
  }

  WARPHEAP_DEVICE atomic_ref<u64> word(u32 index) const {
    return atomic_ref<u64>{reinterpret_cast<u64*>(base_ + words_offset)[index]};
  }
  /// What the word held lately: a hint.
  WARPHEAP_DEVICE walk_word look_at(u32 index) const { return walk_word{word(index).load(order::relaxed)}; }
  WARPHEAP_HOST_DEVICE static mask_type bit_of(u32 page) { return mask_type{1} << page % word_pages; }

  /// Whether a page is taken. The caller may have the address without any memory order, so a page
  /// that a load finds free is checked by a read-modify-write, which reads the newest value.
  WARPHEAP_DEVICE bool is_taken(u32 page) const {
    walk_word seen = look_at(page / word_pages);
    if (seen.free(bit_of(page))) seen = walk_word{word(page / word_pages).fetch_or(0, order::relaxed)};
    return seen.free(bit_of(page)) == 0;
  }

  WARPHEAP_HOST_DEVICE pass_type pass() const { return pass_type{reinterpret_cast<u64*>(base_ + pass_offset)}; }

  WARPHEAP_DEVICE void add_count(count which) const {
    // relaxed: nobody reads it before the kernel ends.
    atomic_ref<u64>{reinterpret_cast<u64*>(base_)[static_cast<u32>(which)]}.fetch_add(1, order::relaxed);
  }

  WARPHEAP_HOST_DEVICE u64* steps() const { return reinterpret_cast<u64*>(base_ + steps_offset); }

  // Offsets in the metadata.
  static constexpr u64 steps_offset = 128;
  static constexpr u64 pass_offset = 256;
  static constexpr u64 words_offset = pass_offset + pass_type::bytes;
  static_assert(words_offset % 128 == 0);

  /// Memory for `pages` pages with their metadata, wherever it starts.
  WARPHEAP_HOST static u64 reserved_bytes(u32 pages) {
    return padded_pool_bytes(pages) + table{nullptr, pages}.metadata_bytes() + pool_alignment;
  }

  WARPHEAP_HOST static table place(void* memory, u32 pages) {
    u64 const start = align_up(reinterpret_cast<u64>(memory), pool_alignment);
    return {reinterpret_cast<u8*>(start) + padded_pool_bytes(pages), pages};
  }

  /// Makes every page free, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on) const;

 private:
  /// So that the metadata starts at a multiple of 128.
  WARPHEAP_HOST_DEVICE static constexpr u64 padded_pool_bytes(u32 pages) {
    return align_up(u64{pages} * page_bytes, 128);
  }

  u8* base_ = nullptr;
  u32 pages_ = 0;
};

/// Kernel: sets the bits of pages that do not exist (walk.K3).
struct close_last_word {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table) const {
    u32 const rest = table.pages() % Table::word_pages;
    // relaxed: the launch orders it.
    if (rest != 0) table.word(table.words() - 1).fetch_or(Table::valid & ~low_mask(rest), order::relaxed);
  }
};

template <creation::random_walk_config Config>
WARPHEAP_HOST void table<Config>::initialize(stream_view on) const {
  backend::fill_bytes(metadata(), 0, metadata_bytes(), on);
  launch(on, {1, 1}, close_last_word{}, *this);
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts
