// Which blocks of a buddy system are free: a static binary tree over the pages of a pool. A block
// of order k is 2^k pages that start at a multiple of 2^k, and a node of height k; its halves are
// its children, each the other's buddy.
//
// A node is available (free as a whole), busy (nothing below it is free) or partial. A record a
// pair of children says so for both, under a lock of its own; what is partial says of which orders
// there are available nodes below it, so that a search goes straight down to one.
//
//   record of node p, the parent of 2p and 2p + 1
//    63       62 61                    31 30                     0
//   |locked|    |  orders below 2p + 1   |   orders below 2p      |   bit k: an available node of order k
//
//   T1  no two buddies are available: who gives back a block whose buddy is available merges them,
//       and until it may it keeps its own.
//   T2  an available node has only busy nodes below it, and so has one that somebody owns.
//   T3  while p's record is unlocked, its parent's says of p what p's says of both children; but
//       for a p that somebody owns, of which the parent's may still say what it was before.
//   T4  orders change in a locked record alone. Locks are taken upwards, child before parent, two
//       at most.
//
// What is beyond the last page is busy for ever, so a pool may have any number of pages. Record 0
// holds the root, as the second child of nobody.
//
// Cost: 8 bytes for two pages, twice for all levels; 12 bytes a page at most. Taking or giving a
// block locks two records at least, and as many more as change what they have below them.
// Source: Gelado and Garland 2019, section 4.1. Differs: docs/design/buddy_tree.md.
#pragma once

#include "../platform/assert.hpp"
#include "../platform/backoff.hpp"
#include "../util/bits.hpp"
#include "../util/random.hpp"

namespace warpheap {

/// The fields of a record: pure functions.
namespace buddy_record {

inline constexpr u32 child_bits = 31;
inline constexpr u64 locked = u64{1} << 63;

/// Orders available in the child that is `node`.
WARPHEAP_HOST_DEVICE constexpr u32 orders_of(u64 record, u32 node) {
  return static_cast<u32>(record >> (node % 2 * child_bits) & low_mask(child_bits));
}

/// `record` with these orders for that child.
WARPHEAP_HOST_DEVICE constexpr u64 with(u64 record, u32 node, u32 orders) {
  u32 const shift = node % 2 * child_bits;
  return (record & ~(low_mask(child_bits) << shift)) | u64{orders} << shift;
}

/// Orders available below the record's node.
WARPHEAP_HOST_DEVICE constexpr u32 below(u64 record) { return orders_of(record, 0) | orders_of(record, 1); }

}  // namespace buddy_record

inline namespace WARPHEAP_BACKEND {

/// View of the tree of `pages` pages in records_for(pages) zeroed words that someone else owns; 16
/// bytes, trivially copyable. Nodes are numbered from 1, the root, by levels.
class buddy_tree {
 public:
  static constexpr u32 max_pages = u32{1} << 30;

  WARPHEAP_HOST_DEVICE static constexpr u64 records_for(u32 pages) {
    u32 const height = log2_ceil(pages);
    return height == 0 ? 1 : (u64{1} << (height - 1)) + (u64{pages} + 1) / 2;
  }

  buddy_tree() = default;
  WARPHEAP_HOST_DEVICE buddy_tree(u64* records, u32 pages) : records_{records}, pages_{pages} {}

  WARPHEAP_HOST_DEVICE u32 pages() const { return pages_; }
  WARPHEAP_HOST_DEVICE u64* records() const { return records_; }
  /// Order of the root, which is available only if the number of pages is a power of two.
  WARPHEAP_HOST_DEVICE u32 height() const { return log2_ceil(pages_); }
  /// The largest order of a block.
  WARPHEAP_HOST_DEVICE u32 top_order() const { return log2_floor(pages_); }

  WARPHEAP_HOST_DEVICE u32 node_of(u32 page, u32 order) const { return (1u << (height() - order)) + (page >> order); }
  WARPHEAP_HOST_DEVICE u32 order_of(u32 node) const { return height() - log2_floor(node); }
  /// The first page of a node; may be beyond the last one.
  WARPHEAP_HOST_DEVICE u32 first_page(u32 node) const { return (node << order_of(node)) - (1u << height()); }

  /// Orders available in a node of a tree whose pages are all free: the fewest blocks that the
  /// pages make.
  WARPHEAP_HOST_DEVICE u32 fresh_orders(u32 node) const {
    u32 const first = first_page(node), size = 1u << order_of(node), left = first < pages_ ? pages_ - first : 0;
    return left < size ? left : size;
  }
  /// The record of a node in that tree. Only those of nodes that the last page ends in say
  /// anything, and record 0.
  WARPHEAP_HOST_DEVICE u64 fresh_record(u32 node) const {
    if (node == 0) return buddy_record::with(0, 1, fresh_orders(1));
    if (fresh_orders(node) == 1u << order_of(node)) return 0;  // T2
    return buddy_record::with(buddy_record::with(0, 0, fresh_orders(2 * node)), 1, fresh_orders(2 * node + 1));
  }

  /// Makes all pages free, by threads `thread` of `threads`; the words are zero.
  WARPHEAP_DEVICE void fill(u32 thread, u32 threads) const {
    for (u32 level = thread; level <= height(); level += threads) {
      bool const ends_inside = pages_ & low_mask32(level);
      u32 const node = ends_inside ? node_of(pages_, level) : 0;
      record(node).store(fresh_record(node), order::relaxed);
    }
  }

  /// Takes an available node of the order and makes it busy: ours. The caller knows that there is
  /// one for it (a unit of a semaphore says so); then this ends.
  ///
  /// seed    where to look first
  /// thread  any lane alone
  WARPHEAP_DEVICE u32 take(u32 order, u32 seed) const {
    backoff nap;
    for (;;) {
      u32 const node = find(order, seed);
      if (node != 0 && try_take(node)) return node;
      seed = mix32(seed + 1);
      // Others are on their way up, or took what we found.
      nap.pause();
    }
  }

  /// Cuts a node that is ours in halves, `levels` times over, and makes every second half
  /// available, one of each order. Returns the node at the first page, which stays ours.
  WARPHEAP_DEVICE u32 split(u32 node, u32 levels) const {
    u32 order = order_of(node);
    u32 const least = order - levels;
    // From the top: what a record says to be below is looked for there in vain until the next one
    // is written (T3).
    for (bool first = true; order != least; first = false) {
      --order;
      u64 const next = buddy_record::with(low_mask32(order) & ~low_mask32(least), 1, 1u << order);
      u64 const seen = lock(node);
      if (first) settle(node, seen, next);
      else unlock(node, next);
      node *= 2;
    }
    return node;
  }

  /// Makes a node that is ours available, merged with its buddy as often as that is available too.
  /// Returns the node that became available.
  ///
  /// claims  claims.try_claim(order): whether an available node of the order, which we have seen
  ///         and which stays as long as this lasts, may be taken by us. Called under a lock: it
  ///         does not wait. If it may not, others have been promised all there are, and take one,
  ///         or are about to tell of one: running threads, which we wait for (T1).
  ///         claims.may_claim(order): whether it is worth trying; a hint.
  template <class Claims>
  WARPHEAP_DEVICE u32 release(u32 node, Claims& claims) const {
    backoff nap;
    for (u32 order = order_of(node);;) {
      u32 const above = node / 2;
      u64 const seen = lock(above);
      if (buddy_record::orders_of(seen, node ^ 1) != 1u << order) {
        settle(above, seen, buddy_record::with(seen, node, 1u << order));
        return node;
      }
      if (claims.try_claim(order)) {
        unlock(above, 0);
        node = above;
        ++order;
      } else {
        // T3: what is said of a merged node is out of date.
        settle(above, seen, buddy_record::with(seen, node, 0));
        // Without the lock, which the thread that takes the buddy needs. To lock for each look kept
        // it from that thread for ever: naps on a GPU end in step.
        do nap.pause();
        while (look_at(node ^ 1) == 1u << order && !claims.may_claim(order));
      }
    }
  }

 protected:
  WARPHEAP_DEVICE atomic_ref<u64> record(u32 node) const { return atomic_ref<u64>{records_[node]}; }
  // relaxed: a hint; what is taken is looked at under the lock.
  WARPHEAP_DEVICE u64 look(u32 node) const { return record(node).load(order::relaxed); }
  WARPHEAP_DEVICE u32 look_at(u32 node) const { return buddy_record::orders_of(look(node / 2), node); }

  /// Locks a node's record, and returns it as it was, unlocked.
  WARPHEAP_DEVICE u64 lock(u32 node) const {
    for (backoff nap;; nap.pause()) {
      if (look(node) & buddy_record::locked) continue;
      // acquire: what was done to a block before it was given back happens before what is done to
      // it next, and T3; pairs with the release in unlock().
      u64 const seen = record(node).fetch_or(buddy_record::locked, order::acquire);
      if (!(seen & buddy_record::locked)) return seen;
    }
  }

  // release: pairs with the acquire in lock(). A store: nobody else changes a locked record (T4).
  WARPHEAP_DEVICE void unlock(u32 node, u64 next) const { record(node).store(next, order::release); }

  /// Writes `next` into a node's locked record, which was `seen`, and what follows from that into
  /// those above; unlocks.
  WARPHEAP_DEVICE void settle(u32 node, u64 seen, u64 next) const {
    // T3: as long as what is below it changes, a node's record stays locked until its parent's says
    // so.
    while (node != 0 && buddy_record::below(seen) != buddy_record::below(next)) {
      u32 const above = node / 2;
      u64 const seen_above = lock(above);
      unlock(node, next);
      next = buddy_record::with(seen_above, node, buddy_record::below(next));
      seen = seen_above;
      node = above;
    }
    unlock(node, next);
  }

  WARPHEAP_DEVICE bool try_take(u32 node) const {
    u32 const above = node / 2, available = 1u << order_of(node);
    if (look_at(node) != available) return false;
    u64 const seen = lock(above);
    bool const ours = buddy_record::orders_of(seen, node) == available;
    settle(above, seen, ours ? buddy_record::with(seen, node, 0) : seen);
    return ours;
  }

  /// An available node of the order, or 0 if we lost the way because others change the tree. From a
  /// scattered node some levels up, where that has one below it, or else from the first above it
  /// that has.
  WARPHEAP_DEVICE u32 find(u32 order, u32 seed) const {
    u32 const start = order + scatter_levels < height() ? order + scatter_levels : height();
    u32 const nodes = static_cast<u32>(div_ceil(pages_, u64{1} << start));
    u32 node = (1u << (height() - start)) + scale_below(seed, nodes), level = start;
    for (; !(look_at(node) >> order & 1); ++level) {
      if (node == 1) return 0;
      node /= 2;
    }
    for (seed = mix32(seed); level != order; --level) {
      u64 const seen = look(node);
      bool const first = buddy_record::orders_of(seen, 0) >> order & 1;
      bool const second = buddy_record::orders_of(seen, 1) >> order & 1;
      if (!first && !second) return 0;
      node = 2 * node + (first && second ? seed >> level & 1 : second);
    }
    return node;
  }
  static constexpr u32 scatter_levels = 3;

 private:
  u64* records_ = nullptr;
  u32 pages_ = 0;
};

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap
