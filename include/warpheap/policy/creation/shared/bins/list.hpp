// SPDX-License-Identifier: Apache-2.0
// The bins of one class and arena that have free blocks: a list that all threads walk and few
// change.
//
// Readers walk it inside a read section of the arena's SRCU, without a lock, and take blocks of the
// first bin that has some. Bins are linked and unlinked under a mutex. A bin that was unlinked
// keeps its `next`, so a reader that stands on it goes on. It becomes something else only after a
// barrier.
//
//   bins.K1  units of the class's semaphore, in it or with callers, never exceed the free blocks of
//       bins that are linked, or about to be linked by a call that runs. So a caller that holds a
//       unit finds a block, at once or after a pause.
//   bins.K2  a thread that brings a bin's free blocks to or from 0 settles afterwards: it links the
//       bin if there are some, and unlinks it if not. Of several such threads, the last to hold the
//       mutex sees what all of them did (bins.N5).
//   bins.K3  a thread that settles either holds blocks of the bin, which then cannot become dead,
//       or is inside a read section that began before it gave its blocks back.
//
// Source: Gelado and Garland 2019, section 4.2.1.
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// Blocks of one bin that are ours and not yet chosen.
struct bin_share {
  u32 page = 0;
  u32 blocks = 0;
};

template <class Layout, class Place>
class bin_list {
  using table_type = basic_table<Layout, Place>;

 public:
  WARPHEAP_DEVICE bin_list(table_type const& table, u32 arena, u32 size_class)
      : table_{table}, arena_{arena}, size_class_{size_class} {}

  /// Up to `wanted` blocks of one bin, for a caller that holds as many units. Any lane alone,
  /// outside a read section.
  WARPHEAP_DEVICE bin_share take(u32 wanted) const {
    for (backoff nap;; nap.while_working()) {
      bool exhausted = false;
      bin_share const share = take_once(wanted, exhausted);
      // bins.K3: we hold blocks of it
      if (exhausted) settle(table_.as_far(), arena_, size_class_, share.page);
      if (share.blocks != 0) return share;
    }
  }

  /// Raises the free blocks of a bin by `blocks`, and links it if it had none. False if it is not,
  /// or no longer, a bin of this class and arena. Inside a read section.
  WARPHEAP_DEVICE bool put(u32 page, u32 blocks) const {
    scoped_lock const guard{mutex()};
    bin_view const bin = table_.bin(page);
    bin_role const role{arena_, size_class_};
    // relaxed: as in try_take(). bins.N6: the exchange expects our role, so it fails if the bin has
    // another.
    u64 seen = bin_life::of(role, bin_life::free_blocks(bin.life().load(order::relaxed)));
    while (!bin.life().compare_exchange(seen, seen + blocks * bin_life::one_block, order::relaxed, order::relaxed))
      if (bin_life::role_of(seen).word != role.word) return false;
    // The bin has free blocks now, so it belongs in the list. The thread that takes the last keeps
    // bins.K2.
    link(bin, page);
    return true;
  }

  /// Links a bin that no other thread knows yet.
  WARPHEAP_DEVICE void add(u32 page) const {
    scoped_lock const guard{mutex()};
    link(table_.bin(page), page);
  }

  /// Unlinks a dead bin.
  WARPHEAP_DEVICE void remove(u32 page) const {
    scoped_lock const guard{mutex()};
    unlink(table_.bin(page));
  }

  // acquire: the header of the bin; pairs with the releases in link() and unlink().
  WARPHEAP_DEVICE u32 first() const { return table_.first_bin(arena_, size_class_).load(order::acquire); }
  WARPHEAP_DEVICE u32 after(u32 page) const { return table_.bin(page).next().load(order::acquire); }

 private:
  WARPHEAP_DEVICE spin_mutex mutex() const { return table_.list_mutex(arena_, size_class_); }

  WARPHEAP_DEVICE bin_share take_once(u32 wanted, bool& exhausted) const {
    bin_share share{};
    auto const srcu = table_.srcu(arena_);
    u32 const section = srcu.read_lock();
    for (u32 page = first(); page != 0; page = after(page)) {
      share.blocks = table_.bin(page).try_take(wanted, exhausted);
      share.page = page;
      if (share.blocks != 0) break;
    }
    srcu.read_unlock(section);
    return share;
  }

  /// Links or unlinks a bin, as bins.K2 says.
  WARPHEAP_COLD static void settle(far_table<Layout> table, u32 arena, u32 size_class, u32 page) {
    bin_list<Layout, far_place> const self{table, arena, size_class};
    self.settle(page);
  }
  WARPHEAP_DEVICE void settle(u32 page) const {
    scoped_lock const guard{mutex()};
    bin_view const bin = table_.bin(page);
    // relaxed: the mutex shows us the counts of threads that settled before us; all others that
    // bring it to or from 0 settle after us.
    if (bin_life::free_blocks(bin.life().load(order::relaxed)) != 0) link(bin, page);
    else unlink(bin);
  }

  // Both are called under the mutex, which orders all but what readers see.
  WARPHEAP_DEVICE void link(bin_view bin, u32 page) const {
    if (bin.linked().load(order::relaxed)) return;
    auto const head = table_.first_bin(arena_, size_class_);
    u32 const second = head.load(order::relaxed);
    bin.linked().store(1, order::relaxed);
    bin.previous().store(0, order::relaxed);
    // release: a reader that stands on this bin goes on to the next one's header; pairs with the
    // acquire in after().
    bin.next().store(second, order::release);
    if (second != 0) table_.bin(second).previous().store(page, order::relaxed);
    // release: the header; pairs with the acquire in first().
    head.store(page, order::release);
  }

  WARPHEAP_DEVICE void unlink(bin_view bin) const {
    if (!bin.linked().load(order::relaxed)) return;
    u32 const next = bin.next().load(order::relaxed), previous = bin.previous().load(order::relaxed);
    bin.linked().store(0, order::relaxed);
    // release: as in link().
    if (previous != 0) table_.bin(previous).next().store(next, order::release);
    else table_.first_bin(arena_, size_class_).store(next, order::release);
    if (next != 0) table_.bin(next).previous().store(previous, order::relaxed);
  }

  template <class, class>
  friend class bin_list;

  table_type table_;
  u32 arena_, size_class_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
