// SPDX-License-Identifier: Apache-2.0
// A quiet heap of bins seen from the host: its words copied, and the headers of its chunks' pages.
#pragma once

#include "table.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../../report.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

template <class Layout>
class snapshot {
 public:
  explicit snapshot(table<Layout> const& table) : table_{table}, words_(table.words_bytes() / 8) {
    backend::copy_bytes(words_.data(), table.words(), 8 * words_.size());
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
  u32 owner(u32 chunk) const { return reinterpret_cast<u32 const*>(at(table_.chunk_table_offset()))[chunk]; }
  /// As owner(), for the chunk that holds the byte at `offset` of the pool.
  u32 owner_at(u64 offset) const {
    return offset < table_.pool_bytes() ? owner(static_cast<u32>(offset >> shape().log2)) : 0;
  }
  /// Whether the chunk has no live block.
  bool is_empty(u32 chunk) const {
    bool empty = true;
    for_each_bin(
        chunk, [&](bin_header const& bin, u32 size_class, u32) { empty = empty && live_blocks(bin, size_class) == 0; });
    return empty;
  }

  /// Adds the live blocks of the bins, and the counts of the table.
  void add_to(heap_statistics& found) const {
    for (u32 const chunk : chunks_)
      for_each_bin(chunk, [&](bin_header const& bin, u32 size_class, u32) {
        u32 const blocks = live_blocks(bin, size_class);
        found.live_blocks += blocks;
        found.live_bytes += u64{blocks} * Layout::class_bytes(size_class);
      });
    found.double_frees += counted(count::double_frees);
    found.foreign_frees += counted(count::foreign_frees);
    found.failures += counted(count::failures);
  }

  /// Every live block of chunk number `chunk`, in address order.
  std::vector<std::pair<u8*, size_t>> live_blocks_of(u32 chunk) const {
    std::vector<std::pair<u8*, size_t>> blocks;
    for_each_bin(chunk, [&](bin_header const& bin, u32 size_class, u32 page) {
      for (u32 i = 0; i < Layout::capacity(size_class); ++i)
        if (bin.bits[i / 64] >> i % 64 & 1)
          blocks.emplace_back(static_cast<u8*>(table_.block(page, size_class, i)), Layout::class_bytes(size_class));
    });
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  }

  /// One line for every invariant that does not hold.
  invariant_report check_invariants() const {
    invariant_report report;
    for (u32 arena = 0; arena < table_.arenas(); ++arena) check_arena(arena, report);
    for (u32 const chunk : chunks_) check_chunk(chunk, report);
    return report;
  }

 private:
  using table_type = table<Layout>;

  chunk_shape shape() const { return table_.chunk(); }
  u8 const* at(u64 offset) const { return reinterpret_cast<u8 const*>(words_.data()) + offset; }
  u64 word64(u64 offset) const { return *reinterpret_cast<u64 const*>(at(offset)); }
  u32 word32(u64 offset) const { return *reinterpret_cast<u32 const*>(at(offset)); }
  u64 counted(count which) const { return word64(8 * static_cast<u32>(which)); }

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

  static u32 live_blocks(bin_header const& bin, u32 size_class) {
    u32 blocks = 0;
    for (u32 word = 0; word < Layout::words(size_class); ++word) blocks += popcount(bin.bits[word]);
    return blocks;
  }

  static void expect(bool holds, invariant_report& report, char const* violated, u64 where) {
    if (!holds) report.push_back(violated + (" " + std::to_string(where)));
  }

  void check_chunk(u32 chunk, invariant_report& report) const {
    auto const& head = header_of_chunk(chunk);
    u64 expected[2] = {page_bits_of(0), page_bits_of(1)};
    for_each_bin(chunk, [&](bin_header const& bin, u32 size_class, u32 number) {
      u32 const page = table_.page_in_chunk(number);
      expected[page / 64] |= low_mask(Layout::pages(size_class)) << page % 64;
      expect(bin.number == number, report, "a bin with another one's number, page", number);
      check_bin(bin, size_class, chunk, report);
    });
    u32 free = 0;
    for (u32 word = 0; word < 2; ++word) {
      expect(head.taken[word] == expected[word], report,
             "bins.P1: pages taken that are no bin's, or a bin's that are not, in chunk", chunk);
      free += popcount(~head.taken[word]);
    }
    expect(head.free_pages == free, report, "bins.P1: free pages are miscounted in chunk", chunk);
    expect((head.linked != 0) == (free != 0), report,
           "bins.P1: linked without free pages, or not linked with some, chunk", chunk);
  }

  u64 page_bits_of(u32 word) const {
    u64 bits = 0;
    for (u32 i = 0; i < 64; ++i) {
      u32 const page = word * 64 + i;
      if (page < shape().specials() || page >= shape().pages()) bits |= u64{1} << i;
    }
    return bits;
  }

  void check_bin(bin_header const& bin, u32 size_class, u32 chunk, invariant_report& report) const {
    u32 const free = bin_life::free_blocks(bin.life);
    expect((bin.life & bin_life::dead) == 0, report, "bins.N2: a dead bin is still there, page", bin.number);
    expect(free + live_blocks(bin, size_class) == Layout::capacity(size_class), report,
           "bins.N1: free blocks and set bits are not all blocks of the bin at page", bin.number);
    for (u32 word = 0; word < Layout::words(size_class); ++word)
      expect((bin.bits[word] & ~Layout::valid_mask(size_class, word)) == 0, report, "bins.N3: bits of no block, page",
             bin.number);
    expect((bin.linked != 0) == (free != 0), report,
           "bins.N5: linked without free blocks, or not linked with some, page", bin.number);
    expect(bin_life::role_of(bin.life).arena() + 1 == owner(chunk), report,
           "bins.P2: a bin of another arena than its chunk, page", bin.number);
    if (owner(chunk) > table_.arenas()) return;
    bool const notes = room_word::idle_classes(room(owner(chunk) - 1)) >> size_class & 1;
    expect(free != Layout::capacity(size_class) || notes, report, "bins.A4: an empty bin that nobody noted, page",
           bin.number);
  }

  u64 room(u32 arena) const { return word64(table_type::arena_offset(arena)); }

  void check_arena(u32 arena, invariant_report& report) const {
    u64 const offset = table_type::arena_offset(arena);
    expect(room_word::in_limbo(room(arena)) == 0, report, "bins.A4: bins in limbo in arena", arena);
    expect(word32(offset + 32) == 0, report, "bins.P4: a locked chunk mutex in arena", arena);
    auto const& srcu = *reinterpret_cast<srcu_state const*>(at(offset + table_type::line));
    expect(srcu_word::check_at_rest(srcu), report, "srcu.U6: SRCU is not at rest in arena", arena);
    u64 free_pages = 0, listed = 0, to_list = 0;
    for (u32 const chunk : chunks_) {
      if (owner(chunk) != arena + 1) continue;
      free_pages += header_of_chunk(chunk).free_pages;
      to_list += header_of_chunk(chunk).free_pages != 0;
    }
    expect(room_word::free_pages(room(arena)) == free_pages, report, "bins.A3: free pages are miscounted in arena",
           arena);
    u32 previous = 0;
    for (u32 chunk = word32(offset + 64); chunk != 0 && listed <= to_list; ++listed) {
      bool const ours = chunk <= table_.chunks() && owner(chunk - 1) == arena + 1;
      expect(ours && header_of_chunk(chunk - 1).previous == previous, report,
             "bins.P1: a broken list of chunks in arena", arena);
      if (!ours) break;
      previous = chunk;
      chunk = header_of_chunk(chunk - 1).next;
    }
    expect(listed == to_list, report, "bins.P1: chunks missing in the list, or too many, in arena", arena);
    for (u32 size_class = 0; size_class < Layout::classes; ++size_class) check_class(arena, size_class, report);
  }

  /// Whether searches for the class are skipped: the last one found nothing, and no room was made
  /// since.
  bool is_known_exhausted(u32 size_class) const {
    u64 const watches = table_type::watches_offset, of_class = watches + table_type::line * (1 + size_class);
    u64 const exhausted_at = word64(of_class + 64);
    return exhausted_at != 0 && exhausted_at == room_watch_word::exhaustion_of(word64(watches), word64(of_class));
  }

  void check_class(u32 arena, u32 size_class, invariant_report& report) const {
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
    u64 const word = word64(offset);
    expect(free == 0 || !is_known_exhausted(size_class), report,
           "bins.V3: free blocks, and an exhaustion note that there are none, class", size_class);
    expect(bulk_semaphore_state::available(word) == free, report, "bins.K1: units are not the free blocks of class",
           size_class);
    expect(bulk_semaphore_state::check_at_rest(word), report, "bulk.B3: promises are open at rest, class", size_class);
    expect(word32(offset + 64) == 0, report, "bins.K2: a locked list of class", size_class);
    u32 previous = 0;
    for (u32 page = word32(offset + 32); page != 0 && listed <= to_list; ++listed) {
      bin_header const* const bin = header(page);
      bool const ours = bin && bin->linked && bin_life::role_of(bin->life).word == bin_role{arena, size_class}.word;
      expect(ours && bin->previous == previous, report, "bins.N4: a broken list of class", size_class);
      if (!ours) break;
      previous = page;
      page = bin->next;
    }
    expect(listed == to_list, report, "bins.N5: bins missing in the list, or too many, of class", size_class);
  }

  table_type table_;
  std::vector<u64> words_;
  std::vector<u32> chunks_;
  std::vector<bin_header> headers_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins

#endif
