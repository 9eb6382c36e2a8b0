// SPDX-License-Identifier: Apache-2.0
// Which blocks of a buddy system are free: a static binary tree over the pages of a pool. A block
// of order k is 2^k pages that start at a multiple of 2^k. It is a node of height k. Its children
// are its halves, each the other's buddy.
//
// A node is available (free as a whole), busy (nothing below it is free) or partial. Each pair of
// children shares a record that says this of both, with a lock of its own. Of a partial node it
// says of which orders there are available nodes below, so that a search goes straight down to one.
//
//   record of node p, the parent of 2p and 2p + 1
//    63       62 61                    31 30                     0
//   |locked|    |  orders below 2p + 1   |   orders below 2p      |
//                          bit k of a field: an available node of order k
//
//   buddy.T1  no two buddies are available: a thread that gives back a block whose buddy is
//       available merges the two, and keeps its own block until it may merge.
//   buddy.T2  an available node has only busy nodes below it, and so has a node that a thread owns.
//   buddy.T3  while p's record is unlocked, its parent's record says of p what p's record says of
//       both children. If a thread owns p, the parent's record may still say what p was before.
//   buddy.T4  orders change only in a locked record. Locks are taken upwards, child before parent,
//       at most two at a time.
//
// Nodes beyond the last page are busy for ever, so a pool may have any number of pages. Record 0
// holds the root, as the second child of no node.
//
// Cost: 8 bytes for two pages, twice that for all levels; 12 bytes a page at most. Taking or giving
// back a block locks at least two records, and one more for each further record that changes.
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

/// View of the tree of `pages` pages in records_for(pages) zeroed words, which it does not own; 16
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

  /// Orders available in a node while the first `free` pages are, and no others: those of the
  /// fewest blocks that make up its free pages.
  WARPHEAP_HOST_DEVICE u32 fresh_orders(u32 node, u32 free) const {
    u32 const first = first_page(node), size = 1u << order_of(node), left = first < free ? free - first : 0;
    return left < size ? left : size;
  }
  /// The record of a node then. Only record 0 and those of nodes that the free pages end in are not
  /// zero.
  WARPHEAP_HOST_DEVICE u64 fresh_record(u32 node, u32 free) const {
    if (node == 0) return buddy_record::with(0, 1, fresh_orders(1, free));
    if (fresh_orders(node, free) == 1u << order_of(node)) return 0;  // buddy.T2
    u64 const first = buddy_record::with(0, 0, fresh_orders(2 * node, free));
    return buddy_record::with(first, 1, fresh_orders(2 * node + 1, free));
  }

  /// Makes the first `free` pages free, as thread `thread` of `threads`; the words are zero before.
  WARPHEAP_DEVICE void fill(u32 free, u32 thread, u32 threads) const {
    for (u32 level = thread; level <= height(); level += threads) {
      bool const ends_inside = free & low_mask32(level);
      u32 const node = ends_inside ? node_of(free, level) : 0;
      record(node).store(fresh_record(node, free), order::relaxed);
    }
  }

  /// Takes an available node of the order and makes it busy: it is ours. Ends only if there is one
  /// for the caller, which a unit of a semaphore guarantees.
  ///
  /// seed    where to look first
  /// thread  any lane alone
  WARPHEAP_DEVICE u32 take(u32 order, u32 seed) const {
    backoff nap;
    for (;;) {
      u32 const node = find(order, seed);
      if (node != 0 && try_take(node)) return node;
      seed = mix32(seed + 1);
      if (node == 0) nap.while_working();  // other threads are on their way up
      else nap.after_race();
    }
  }

  /// The node that `page` is in and that is available, of `least` or a larger order; 0 if there is
  /// none. A hint while others change the tree.
  WARPHEAP_DEVICE u32 available_at(u32 page, u32 least) const {
    u32 node = node_of(page, least);
    while (node != 0 && look_at(node) != 1u << order_of(node)) node /= 2;
    return node;
  }

  /// Takes this node if it is available. A unit of its order's semaphore is ours, as for take().
  WARPHEAP_DEVICE bool try_take(u32 node) const {
    u32 const above = node / 2, available = 1u << order_of(node);
    if (look_at(node) != available) return false;
    u64 const seen = lock(above);
    bool const ours = buddy_record::orders_of(seen, node) == available;
    settle(above, seen, ours ? buddy_record::with(seen, node, 0) : seen);
    return ours;
  }

  /// Cuts a node that is ours in halves, `levels` times over, and makes every second half
  /// available, one of each order. Returns the node at the first page, which stays ours.
  WARPHEAP_DEVICE u32 split(u32 node, u32 levels) const {
    u32 order = order_of(node);
    u32 const least = order - levels;
    // From the top: a search that one record sends down finds nothing until the next record is
    // written (buddy.T3).
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
  /// claims  claims.try_claim(order): whether we may take an available node of the order, which we
  ///         have seen and which stays available during the call. Called under a lock, so it does
  ///         not wait. If we may not, all such nodes are promised to other threads. These take one,
  ///         or are about to report one: they run, and we wait for them (buddy.T1).
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
        // buddy.T3: what the parent's record says of a merged node is out of date.
        settle(above, seen, buddy_record::with(seen, node, 0));
        // Looks without the lock, which the thread that takes the buddy needs. Locking for each
        // look kept the lock from that thread for ever: naps on a GPU end in step.
        do nap.while_working();
        while (look_at(node ^ 1) == 1u << order && !claims.may_claim(order));
      }
    }
  }

 protected:
  WARPHEAP_DEVICE atomic_ref<u64> record(u32 node) const { return atomic_ref<u64>{records_[node]}; }
  // relaxed: a hint; a node is looked at again under the lock before it is taken.
  WARPHEAP_DEVICE u64 look(u32 node) const { return record(node).load(order::relaxed); }
  WARPHEAP_DEVICE u32 look_at(u32 node) const { return buddy_record::orders_of(look(node / 2), node); }

  /// Locks a node's record, and returns it as it was, unlocked.
  WARPHEAP_DEVICE u64 lock(u32 node) const {
    for (backoff nap;;) {
      if (look(node) & buddy_record::locked) {
        nap.while_working();
        continue;
      }
      // acquire: what was done to a block before it was given back happens before what is done to
      // it next, and buddy.T3; pairs with the release in unlock().
      u64 const seen = record(node).fetch_or(buddy_record::locked, order::acquire);
      if (!(seen & buddy_record::locked)) return seen;
      nap.after_race();
    }
  }

  // release: pairs with the acquire in lock(). A store: no other thread changes a locked record
  // (buddy.T4).
  WARPHEAP_DEVICE void unlock(u32 node, u64 next) const { record(node).store(next, order::release); }

  /// Writes `next` into a node's locked record, which was `seen`, updates the records above it
  /// accordingly, and unlocks.
  WARPHEAP_DEVICE void settle(u32 node, u64 seen, u64 next) const {
    // buddy.T3: if the orders below it change, a node's record stays locked until its parent's is
    // locked, which then says so.
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

  /// An available node of the order, or 0 if we lost the way because others change the tree. The
  /// search goes down from a scattered node some levels up, or, if that has no such node below it,
  /// from the first node above that has one.
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
