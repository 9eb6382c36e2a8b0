// SPDX-License-Identifier: Apache-2.0
// The pages of a tbuddy heap: where they and the words about them lie.
//
//   pool       page 0 | page 1 | ...   starts at a multiple of 1 MiB (unit_pool.hpp)
//   metadata   semaphores              a word for each order, 128 bytes apart
//              epoch counters          1, or 16 on a large pool, 128 bytes apart
//              counts                  128 bytes
//              exhaustion notes        a word for each order
//              order bytes             two for each page (tbuddy.P1)
//              tree                    the records of a buddy_tree
//
//   tbuddy.P2  a thread that adds units to a semaphore raises the epoch after that, before its call
//       returns.
#pragma once

#include "../../../structure/buddy_tree.hpp"
#include "../../../sync/bulk_semaphore.hpp"
#include "../shared/unit_pool.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace tbuddy_parts {

using creation::count;

/// Kernel of one thread block: the tree and the semaphores of a heap whose pages are all free, or,
/// if `committed` is no null pointer, those in the first `*committed` bytes.
struct fill_free_pages {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table, u64 const* committed) const {
    u32 const thread = simt::thread_index(), threads = simt::block_dim();
    u32 const free = committed ? static_cast<u32>(*committed >> Table::page_log2) : table.pages();
    table.tree().fill(free, thread, threads);
    // The fewest blocks that the pages form: one for each bit set in their number.
    for (u32 order = thread; order < Table::orders; order += threads)
      if (free >> order & 1) table.semaphore(order).signal(1, 0);
    u32 const units = table.pages() >> Table::unit_order;
    for (u32 unit = (free >> Table::unit_order) + thread; unit < units; unit += threads)
      table.mark_uncommitted(unit << Table::unit_order);
  }
};

/// View of a heap; 16 bytes, trivially copyable, owns nothing. The pool starts at a multiple of
/// pool_alignment(), and so does every block of this size or larger. Every smaller block starts at
/// a multiple of its own size.
template <size_t PageBytes>
class table : public creation::unit_pool<PageBytes, size_t{1} << 20> {
  using base_type = creation::unit_pool<PageBytes, size_t{1} << 20>;

 public:
  using base_type::base_type, base_type::metadata, base_type::contains, base_type::offset_of;

  static constexpr u32 orders = 31;
  static constexpr u32 page_log2 = log2_floor(PageBytes);

  WARPHEAP_HOST_DEVICE u32 pages() const { return this->units(); }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return tree_offset() + 8 * buddy_tree::records_for(pages()); }
  WARPHEAP_HOST_DEVICE buddy_tree tree() const { return {reinterpret_cast<u64*>(metadata() + tree_offset()), pages()}; }

  /// Whether a block may start at `memory`, and its page.
  WARPHEAP_HOST_DEVICE bool starts_page(void const* memory) const {
    return contains(memory) && offset_of(memory) % PageBytes == 0;
  }
  WARPHEAP_HOST_DEVICE u32 page_of(void const* memory) const {
    return static_cast<u32>(offset_of(memory) >> page_log2);
  }

  /// The order of the smallest blocks that hold `bytes`, which is not 0; may exceed the largest
  /// order of the pool.
  WARPHEAP_HOST_DEVICE static u32 order_for(size_t bytes) {
    u64 const pages = ((bytes - 1) >> page_log2) + 1;
    return log2_ceil(pages);
  }

  WARPHEAP_DEVICE bulk_semaphore semaphore(u32 order) const { return bulk_semaphore{word(semaphore_offset(order))}; }
  /// Units in a batch of an order: both halves of a block of the order above. At the top nothing
  /// can be made, and a batch is the maker's own unit.
  WARPHEAP_DEVICE u32 batch(u32 order) const { return order == tree().top_order() ? 1 : 2; }
  WARPHEAP_DEVICE atomic_ref<u64> exhausted_at(u32 order) const {
    return atomic_ref<u64>{word(exhaustion_offset + 8 * order)};
  }

  /// Marks a block that was taken as live (tbuddy.P1). Returns its address when its order byte is
  /// written.
  WARPHEAP_DEVICE void* own(u32 page, u32 order, block_owner owner) const {
    // relaxed: the tree ordered us after the thread that cleared the byte; whatever passes the
    // address on orders the block's contents.
    u32 const before = order_word(page).fetch_or((order + 1) << order_shift(page, owner), order::relaxed);
    // The byte is never set already (tbuddy.P1). The test makes the address depend on the atomic: a
    // GPU does not wait for an atomic whose result it does not need, and an address that a relaxed
    // store passes on could come before the byte.
    return order_byte(before, page, owner) == 0 ? this->address(page) : nullptr;
  }
  /// Ends a block's life; returns its order, or `none` if the owner has no live block there. The
  /// thread that gets an order gives the block back (tbuddy.P1).
  WARPHEAP_DEVICE u32 disown(u32 page, block_owner owner) const {
    // relaxed: one read-modify-write alone gets the order, and the tree orders the block's
    // contents.
    u32 const old = order_word(page).fetch_and(~(0xffu << order_shift(page, owner)), order::relaxed);
    return order_byte(old, page, owner) - 1;
  }
  /// The order of a caller's live block that starts at a page, or `none`. A read-modify-write
  /// returns the newest value: the address may have come by a shuffle or a relaxed store.
  WARPHEAP_DEVICE u32 newest_order_at(u32 page) const {
    u32 const word = order_word(page).fetch_or(0, order::relaxed);
    return order_byte(word, page, block_owner::caller) - 1;
  }

  /// The order of a unit, which is uncommitted or committed as a whole.
  static constexpr u32 unit_order = log2_floor(unit_bytes) - page_log2;
  /// Marks the unit that starts at a page, which belongs to the caller, uncommitted (tbuddy.P3).
  WARPHEAP_DEVICE void mark_uncommitted(u32 page) const {
    // relaxed: the mark divides the work of those that add the unit, whose memory others order.
    order_word(page).fetch_or(uncommitted << order_shift(page, block_owner::allocator), order::relaxed);
  }
  /// Whether the unit that a page lies in is uncommitted.
  WARPHEAP_DEVICE bool is_uncommitted(u32 page) const {
    u32 const first = page & ~low_mask32(unit_order);
    return order_byte(order_word(first).load(order::relaxed), first, block_owner::allocator) == uncommitted;
  }
  /// Clears the mark of the unit that starts at a page. True for one caller, whose the unit is.
  WARPHEAP_DEVICE bool mark_committed(u32 page) const {
    u32 const shift = order_shift(page, block_owner::allocator);
    // relaxed, all: as above.
    u32 seen = order_word(page).load(order::relaxed);
    // An exchange: once the unit is committed, the byte may be that of a block that is kept.
    while (order_byte(seen, page, block_owner::allocator) == uncommitted)
      if (order_word(page).compare_exchange(seen, seen & ~(0xffu << shift), order::relaxed, order::relaxed))
        return true;
    return false;
  }

  /// Says that room was made (tbuddy.P2).
  WARPHEAP_DEVICE void raise_epoch() const {
    // release: a thread that counts this raise sees the room; pairs with the acquire in epoch().
    epoch_counter(simt::sm_id() % epoch_counters()).fetch_add(1, order::release);
  }
  /// The number of raises: at least all that happened before this call.
  WARPHEAP_DEVICE u64 epoch() const {
    u64 sum = 0;
    // acquire: pairs with the release in raise_epoch().
    for (u32 i = 0; i < epoch_counters(); ++i) sum += epoch_counter(i).load(order::acquire);
    return sum;
  }
  /// As epoch(), but by read-modify-writes, which return the newest values.
  WARPHEAP_DEVICE u64 newest_epoch() const {
    u64 sum = 0;
    // acquire: as above. release: our reads of the semaphores happen before the next thread's read
    // of the counter.
    for (u32 i = 0; i < epoch_counters(); ++i) sum += epoch_counter(i).fetch_add(0, order::acq_rel);
    return sum;
  }

  WARPHEAP_DEVICE void add_count(count which, u32 more = 1) const {
    atomic_ref<u64>{word(counts_offset + 8 * static_cast<u32>(which))}.fetch_add(more, order::relaxed);
  }

  // Offsets in the metadata.
  WARPHEAP_HOST_DEVICE static constexpr u64 semaphore_offset(u32 order) { return u64{order} * spacing; }
  WARPHEAP_HOST_DEVICE static constexpr u64 count_offset(count which) {
    return counts_offset + 8 * static_cast<u32>(which);
  }
  static constexpr u64 spacing = 128;
  static constexpr u32 max_epoch_counters = 16;
  static constexpr u64 epoch_offset = orders * spacing;
  static constexpr u64 counts_offset = epoch_offset + max_epoch_counters * spacing;
  static constexpr u64 exhaustion_offset = counts_offset + spacing;
  static constexpr u64 order_bytes_offset = exhaustion_offset + 256;
  WARPHEAP_HOST_DEVICE u64 tree_offset() const { return order_bytes_offset + align_up(2 * u64{pages()}, spacing); }

  /// Makes every page free, or those in the first `*committed` bytes, in order on stream `on`.
  WARPHEAP_HOST void initialize(stream_view on, u64 const* committed) const {
    backend::fill_bytes(metadata(), 0, metadata_bytes(), on);
    launch(on, {1, 32}, fill_free_pages{}, *this, committed);
  }

 private:
  WARPHEAP_HOST_DEVICE u32 epoch_counters() const { return pages() < u32{1} << 16 ? 1 : max_epoch_counters; }
  WARPHEAP_DEVICE u64& word(u64 offset) const { return *reinterpret_cast<u64*>(metadata() + offset); }
  WARPHEAP_DEVICE atomic_ref<u64> epoch_counter(u32 i) const {
    return atomic_ref<u64>{word(epoch_offset + i * spacing)};
  }
  WARPHEAP_DEVICE atomic_ref<u32> order_word(u32 page) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(metadata() + order_bytes_offset)[page / 2]};
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::tbuddy_parts
