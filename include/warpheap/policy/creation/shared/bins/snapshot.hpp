// SPDX-License-Identifier: Apache-2.0
// A quiet heap of bins seen from the host: its words copied, and the headers of its chunks' pages.
#pragma once

#include "page_store.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <utility>
#include <vector>

#include "../quiet_view.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// The view of quiet_view.hpp, of the bins alone.
template <class Layout>
class view : public metadata_copy {
 public:
  explicit view(table<Layout> const& table) : metadata_copy{table.words(), table.words_bytes()}, table_{table} {
    for (u32 chunk = 0; chunk < table.chunks(); ++chunk)
      if (owner(chunk) != 0) chunks_.push_back(chunk);
    u64 const pages = shape().pages();
    headers_.resize(chunks_.size() * pages);
    for (size_t first = 0, next; first < chunks_.size(); first = next) {
      next = first + 1;  // adjacent chunks are copied together
      while (next < chunks_.size() && chunks_[next] == chunks_[next - 1] + 1) ++next;
      backend::copy_rows(&headers_[first * pages], table.pool() + chunks_[first] * shape().bytes(), header_bytes,
                         page_bytes, (next - first) * pages);
    }
  }

  /// The chunks that are cut into bins.
  std::vector<u32> const& chunks() const { return chunks_; }
  /// The arena of a chunk plus 1; 0 if it is no arena's.
  u32 owner(u32 chunk) const { return at<u32>(table_.chunk_table_offset())[chunk]; }
  /// As owner(), for the chunk that holds the byte at `offset` of the pool.
  u32 owner_at(u64 offset) const {
    return offset < table_.pool_bytes() ? owner(static_cast<u32>(offset >> shape().log2)) : 0;
  }

  heap_statistics figures() const {
    return add_calls<count>(
        {.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.words_bytes(), .slabs = table_.chunks()}, 0);
  }

  // Its slabs are the chunks.
  u8* pool() const { return table_.pool(); }
  u32 slab_log2() const { return shape().log2; }
  quiet_slab use_of(u32 chunk) const { return owner(chunk) != 0 ? quiet_slab::blocks : quiet_slab::free; }

  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u32 const chunk : chunks_) for_each_taken_of(chunk, visit);
  }

  /// for_each_taken() of one chunk.
  template <class Visitor>
  void for_each_taken_of(u32 chunk, Visitor visit) const {
    std::vector<std::pair<void*, u64>> blocks;
    for_each_bin(chunk, [&](bin_header const& bin, u32 size_class, u32 page) {
      for (u32 i = 0; i < Layout::capacity(size_class); ++i)
        if (bin.bits[i / 64] >> i % 64 & 1)
          blocks.emplace_back(table_.block(page, size_class, i), Layout::class_bytes(size_class));
    });
    std::sort(blocks.begin(), blocks.end());
    for (auto const& [first, bytes] : blocks) visit(first, bytes, 1);
  }

  void check_all(invariant_check& expect) const {
    for (u32 arena = 0; arena < table_.arenas(); ++arena) check_arena(arena, expect);
    for (u32 const chunk : chunks_) check_chunk(chunk, expect);
  }

 private:
  using table_type = table<Layout>;

  chunk_shape shape() const { return table_.chunk(); }
  /// The header of a page of a gathered chunk; nullptr for a page of any other.
  bin_header const* header(u32 page) const {
    auto const chunk = std::lower_bound(chunks_.begin(), chunks_.end(), table_.chunk_of(page));
    if (chunk == chunks_.end() || *chunk != table_.chunk_of(page)) return nullptr;
    return &headers_[static_cast<size_t>(chunk - chunks_.begin()) * shape().pages() + table_.page_in_chunk(page)];
  }
  chunk_header const& header_of_chunk(u32 chunk) const {
    return *reinterpret_cast<chunk_header const*>(header(table_.first_page(chunk)));
  }

  /// Calls visit(bin, size class, page of the pool) for every bin of the chunk. One whose class or
  /// end is out of bounds is no bin: its pages violate bins.P1.
  template <class Visitor>
  void for_each_bin(u32 chunk, Visitor visit) const {
    auto const& head = header_of_chunk(chunk);
    for (u32 page = shape().specials(); page < shape().pages();) {
      u32 const number = table_.first_page(chunk) + page;
      bin_header const& bin = *header(number);
      bin_role const role = bin_life::role_of(bin.life);
      bool const is_bin = (head.taken[page / 64] >> page % 64 & 1) && role.is_live() &&
                          role.size_class() < Layout::classes &&
                          page + Layout::pages(role.size_class()) <= shape().pages();
      if (is_bin) visit(bin, role.size_class(), number);
      page += is_bin ? Layout::pages(role.size_class()) : 1;
    }
  }

  void check_chunk(u32 chunk, invariant_check& expect) const {
    auto const& head = header_of_chunk(chunk);
    u64 expected[2] = {page_bits::unusable(shape(), 0), page_bits::unusable(shape(), 1)};
    for_each_bin(chunk, [&](bin_header const& bin, u32 size_class, u32 number) {
      u32 const page = table_.page_in_chunk(number);
      expected[page / 64] |= low_mask(Layout::pages(size_class)) << page % 64;
      expect(bin.number == number, "a bin with another one's number, page ", number);
      check_bin(bin, size_class, chunk, expect);
    });
    u32 free = 0;
    for (u32 word = 0; word < 2; ++word) {
      expect(head.taken[word] == expected[word],
             "bins.P1: pages taken that are no bin's, or a bin's that are not, in chunk ", chunk);
      free += popcount(~head.taken[word]);
    }
    expect(head.free_pages == free, "bins.P1: free pages are miscounted in chunk ", chunk);
    expect((head.linked != 0) == (free != 0), "bins.P1: linked without free pages, or not linked with some, chunk ",
           chunk);
  }

  void check_bin(bin_header const& bin, u32 size_class, u32 chunk, invariant_check& expect) const {
    u32 const free = bin_life::free_blocks(bin.life);
    u32 taken = 0;
    for (u32 word = 0; word < Layout::words(size_class); ++word) {
      taken += popcount(bin.bits[word]);
      expect((bin.bits[word] & ~Layout::valid_mask(size_class, word)) == 0, "bins.N3: bits of no block, page ",
             bin.number);
    }
    expect((bin.life & bin_life::dead) == 0, "bins.N2: a dead bin is still there, page ", bin.number);
    expect(free + taken == Layout::capacity(size_class),
           "bins.N1: free blocks and set bits are not all blocks of the bin at page ", bin.number);
    expect((bin.linked != 0) == (free != 0), "bins.N5: linked without free blocks, or not linked with some, page ",
           bin.number);
    expect(bin_life::role_of(bin.life).arena() + 1 == owner(chunk),
           "bins.P2: a bin of another arena than its chunk, page ", bin.number);
    if (owner(chunk) > table_.arenas()) return;
    bool const notes = room_word::idle_classes(room(owner(chunk) - 1)) >> size_class & 1;
    expect(free != Layout::capacity(size_class) || notes, "bins.A4: an empty bin that nobody noted, page ", bin.number);
  }

  u64 room(u32 arena) const { return *at(table_type::arena_offset(arena)); }

  void check_arena(u32 arena, invariant_check& expect) const {
    u64 const offset = table_type::arena_offset(arena);
    expect(room_word::in_limbo(room(arena)) == 0, "bins.A4: bins in limbo in arena ", arena);
    expect(*at<u32>(offset + 32) == 0, "bins.P4: a locked chunk mutex in arena ", arena);
    auto const& srcu = *at<srcu_state>(offset + table_type::line);
    expect(srcu_word::check_at_rest(srcu), "srcu.U6: SRCU is not at rest in arena ", arena);
    u64 free_pages = 0, listed = 0, to_list = 0;
    for (u32 const chunk : chunks_) {
      if (owner(chunk) != arena + 1) continue;
      free_pages += header_of_chunk(chunk).free_pages;
      to_list += header_of_chunk(chunk).free_pages != 0;
    }
    expect(room_word::free_pages(room(arena)) == free_pages, "bins.A3: free pages are miscounted in arena ", arena);
    u32 previous = 0;
    for (u32 chunk = *at<u32>(offset + 64); chunk != 0 && listed <= to_list; ++listed) {
      bool const ours = chunk <= table_.chunks() && owner(chunk - 1) == arena + 1;
      expect(ours && header_of_chunk(chunk - 1).previous == previous, "bins.P1: a broken list of chunks in arena ",
             arena);
      if (!ours) break;
      previous = chunk;
      chunk = header_of_chunk(chunk - 1).next;
    }
    expect(listed == to_list, "bins.P1: chunks missing in the list, or too many, in arena ", arena);
    for (u32 size_class = 0; size_class < Layout::classes; ++size_class) check_class(arena, size_class, expect);
  }

  /// Whether searches for the class are skipped: the last one found nothing, and no room was made
  /// since.
  bool is_known_exhausted(u32 size_class) const {
    u64 const watches = table_type::watches_offset, of_class = watches + table_type::line * (1 + size_class);
    u64 const exhausted_at = *at(of_class + 64);
    return exhausted_at != 0 && exhausted_at == room_watch_word::exhaustion_of(*at(watches), *at(of_class));
  }

  void check_class(u32 arena, u32 size_class, invariant_check& expect) const {
    u64 const offset = table_type::class_offset(arena, size_class);
    u64 free = 0, listed = 0, to_list = 0;
    for (u32 const chunk : chunks_) {
      if (owner(chunk) != arena + 1) continue;
      for_each_bin(chunk, [&](bin_header const& bin, u32 its_class, u32) {
        if (its_class != size_class) return;
        free += bin_life::free_blocks(bin.life);
        to_list += bin_life::free_blocks(bin.life) != 0;
      });
    }
    u64 const word = *at(offset);
    expect(free == 0 || !is_known_exhausted(size_class),
           "bins.V3: free blocks, and an exhaustion note that there are none, class ", size_class);
    expect(bulk_semaphore_state::available(word) == free, "bins.K1: units are not the free blocks of class ",
           size_class);
    expect(bulk_semaphore_state::check_at_rest(word), "bulk.B3: promises are open at rest, class ", size_class);
    expect(*at<u32>(offset + 64) == 0, "bins.K2: a locked list of class ", size_class);
    u32 previous = 0;
    for (u32 page = *at<u32>(offset + 32); page != 0 && listed <= to_list; ++listed) {
      bin_header const* const bin = header(page);
      bool const ours = bin && bin->linked && bin_life::role_of(bin->life).word == bin_role{arena, size_class}.word;
      expect(ours && bin->previous == previous, "bins.N4: a broken list of class ", size_class);
      if (!ours) break;
      previous = page;
      page = bin->next;
    }
    expect(listed == to_list, "bins.N5: bins missing in the list, or too many, of class ", size_class);
  }

  table_type table_;
  std::vector<u32> chunks_;
  std::vector<bin_header> headers_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins

#endif
