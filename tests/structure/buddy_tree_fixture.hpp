// SPDX-License-Identifier: Apache-2.0
// A buddy tree in memory of its own, and lanes that take and give back its blocks. The tree's tests
// run sound trees and mutants through this.
#pragma once

#include <string>
#include <vector>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/structure/buddy_tree.hpp"

namespace warpheap::test {

/// What is wrong with a quiet tree, whose available nodes hold `free_pages` pages together.
inline std::string fault_of(std::vector<u64> const& records, u32 pages, u64 free_pages) {
  buddy_tree const tree{nullptr, pages};
  auto const orders_at = [&](u32 node) { return buddy_record::orders_of(records[node / 2], node); };
  auto const at = [](u32 node) { return " at node " + std::to_string(node); };
  u64 seen = orders_at(1) == 1u << tree.height() ? pages : 0;
  for (u32 node = 0; node < records.size(); ++node) {
    if (records[node] & buddy_record::locked) return "T4" + at(node);
    if (node == 0) continue;
    u32 const order = tree.order_of(node), half = 1u << (order - 1);
    if (orders_at(2 * node) == half && orders_at(2 * node + 1) == half) return "T1" + at(node);
    u32 const below = buddy_record::below(records[node]);
    if (orders_at(node) == 1u << order ? below != 0 : below != orders_at(node)) return "T2 or T3" + at(node);
    for (u32 const child : {2 * node, 2 * node + 1}) {
      if (orders_at(child) != half) continue;
      seen += half;
      if (tree.first_page(child) + half > pages) return "beyond the last page" + at(child);
    }
  }
  return seen == free_pages ? "" : std::to_string(seen) + " pages are free in place of " + std::to_string(free_pages);
}

/// A tree in memory of its own, all of it free, and beside it, for each order, how many available
/// nodes are promised to no lane.
class owned_tree {
 public:
  explicit owned_tree(u32 pages) : pages_{pages}, records_(fresh(pages)), units_(units_of(pages)) {}

  u64* records() const { return records_.data(); }
  u64* units() const { return units_.data(); }

  std::vector<u64> to_host() const { return records_.to_host(); }
  std::string fault(u64 free_pages) const { return fault_of(records_.to_host(), pages_, free_pages); }
  bool is_as_fresh() const { return records_.to_host() == fresh(pages_) && units_.to_host() == units_of(pages_); }

 private:
  static std::vector<u64> fresh(u32 pages) {
    std::vector<u64> records(buddy_tree::records_for(pages));
    for (u32 node = 0; node < records.size(); ++node)
      records[node] = buddy_tree{nullptr, pages}.fresh_record(node, pages);
    return records;
  }
  static std::vector<u64> units_of(u32 pages) {
    std::vector<u64> units(32);
    for (u32 order = 0; order < 32; ++order) units[order] = pages >> order & 1;
    return units;
  }

  u32 pages_;
  device_buffer<u64> records_, units_;
};

/// Units of orders, in the simplest form.
struct unit_counts {
  u64* units;

  // relaxed: a hint.
  WARPHEAP_DEVICE bool may_claim(u32 of) const { return atomic_ref<u64>{units[of]}.load(order::relaxed) != 0; }

  WARPHEAP_DEVICE bool try_claim(u32 of) {
    u64 seen = atomic_ref<u64>{units[of]}.load(order::relaxed);
    while (seen != 0)
      if (atomic_ref<u64>{units[of]}.compare_exchange(seen, seen - 1, order::acquire, order::relaxed)) return true;
    return false;
  }
  WARPHEAP_DEVICE void add(u32 of) const { atomic_ref<u64>{units[of]}.fetch_add(1, order::release); }
};

struct tree_report {
  u32 taken;
  u32 broken;  ///< pages that another lane wrote to while they were ours
};

/// Every lane takes blocks of random orders, from larger ones where there are no others, keeps some
/// for a while, writes its mark into each page and looks at it before it gives the block back. All
/// are given back.
template <class Tree>
struct come_and_go {
  static constexpr u32 held_max = 2;

  WARPHEAP_DEVICE void operator()(u64* records, u64* units, u32 pages, u32 rounds, u32* marks,
                                  tree_report* report) const {
    Tree const tree{records, pages};
    u32 const me = static_cast<u32>(global_thread_index()) + 1;
    random_sequence random{me};
    u32 held[held_max] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32& node = held[round % held_max];
      if (node != 0) drop(tree, units, node, marks, me, report);
      // Small blocks most of the time, the whole tree now and then.
      u32 const order = lowest_bit(random.next() | 1u << tree.top_order());
      node = round < rounds ? get(tree, {units}, order) : 0;
      if (node == 0) {
        simt::pause(500);
        continue;
      }
      atomic_ref<u32>{report->taken}.fetch_add(1, order::relaxed);
      mark(tree, node, marks, 0, me, report);
    }
  }

  WARPHEAP_DEVICE static u32 get(Tree const& tree, unit_counts units, u32 order) {
    for (u32 from = order; from <= tree.top_order(); ++from) {
      if (!units.try_claim(from)) continue;
      u32 const node = tree.take(from, static_cast<u32>(global_thread_index()));
      if (from == order) return node;
      u32 const mine = tree.split(node, from - order);
      for (u32 half = order; half != from; ++half) units.add(half);
      return mine;
    }
    return 0;
  }

  WARPHEAP_DEVICE static void drop(Tree const& tree, u64* units, u32 node, u32* marks, u32 me, tree_report* report) {
    mark(tree, node, marks, me, 0, report);
    unit_counts claims{units};
    u32 const free = tree.release(node, claims);
    claims.add(tree.order_of(free));
  }

  /// relaxed: the order must come from the tree.
  WARPHEAP_DEVICE static void mark(Tree const& tree, u32 node, u32* marks, u32 was, u32 is, tree_report* report) {
    u32 const first = tree.first_page(node);
    for (u32 page = first; page < first + (1u << tree.order_of(node)); ++page) {
      atomic_ref<u32> const word{marks[page]};
      if (word.load(order::relaxed) != was) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      word.store(is, order::relaxed);
    }
  }
};

/// Whether lanes that come and go leave the tree as it was, and no page had two owners.
template <class Tree>
bool survives(u32 pages, launch_shape shape, u32 rounds) {
  owned_tree const tree{pages};
  device_buffer<u32> const marks(pages);
  device_buffer<tree_report> const report(1);
  launch(shape, come_and_go<Tree>{}, tree.records(), tree.units(), pages, rounds, marks.data(), report.data());
  synchronize();
  return report[0].taken > 0 && report[0].broken == 0 && tree.fault(pages) == "" && tree.is_as_fresh();
}

}  // namespace warpheap::test
