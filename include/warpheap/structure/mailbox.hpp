// SPDX-License-Identifier: Apache-2.0
// Frees that come from far: another GPU posts the address of a block in a bitmap in the owner's
// memory, and the owner's threads free it. The owner's own atomics have device scope and do not
// reach another GPU; those of the mailbox have system scope.
//
// A bitmap is never full, takes any order of posts, and writes nothing to the block, so that an
// address may be wrong. Two levels above the bitmap say where to look, so that a drain of a nearly
// empty mailbox visits little.
//
//   root      one bit a region, in at most 16 words: at most 1,024 regions
//   summary   one bit a row; a region has 2^span_log2 summary words
//   bitmap    one bit for every Unit bytes of the pool; a row has 32 words
//
// Neighbouring rows are of different regions, since blocks that are freed together lie together,
// and a region is what one group of lanes drains: row r is of region r mod regions().
//
//   mailbox.M1  a bit of the bitmap: a free of that address is pending. A post sets it; a drain
//       clears it, and frees the block after that.
//   mailbox.M2  when a post has returned, and no drain has cleared its bit of the bitmap, the bits
//       of its row and region are set, or a drain that has cleared one of them is still on its way
//       to the bitmap.
//   mailbox.M3  a post goes up, bitmap, summary, root, and sets on each level what is not set. A
//       drain goes down, root, summary, bitmap, and clears on each level before it looks at the
//       next. Both change the bitmap by read-modify-writes, and so meet in each word of it: the
//       post is first, and the drain takes its bit; or the drain is first, and the post, which
//       acquires what the drain released, finds on its way up what the drain has cleared.
//   mailbox.M4  the same holds of a word of the summary, where a post that finds its bit set
//       acquires by its load. The bit may be from another post that has not reached the root.
//   mailbox.M5  everything that the posting thread did to the block happens before the drain frees
//       it: the post releases, and the drain acquires, by the word of the bitmap.
//
// Cost: one bit a unit, at most 1/1,024 of that or 8 KiB for the summary, 384 bytes. A post is one
// read-modify-write and two loads for the lanes of a warp that hit one word; two more
// read-modify-writes where the row or region had nothing pending.
// Source: ours.
#pragma once

#include "../platform/point.hpp"
#include "../sync/warp_aggregate.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The words of a mailbox that are not one of many. Zero at first.
struct mailbox_state {
  u64 pass;  ///< of mailbox_drain, as the next one
  u64 padding[15];
  u64 finished;
  u64 repeats;  ///< posts that found their bit set: the block was freed twice
  u64 more_padding[14];
  u64 root[16];
};
static_assert(sizeof(mailbox_state) == 384);

/// How a thread reaches the words of another GPU's mailbox: by their addresses. A class like this
/// may reach them by functions of a library.
struct peer_access {
  /// Words with different keys are different.
  WARPHEAP_DEVICE static u64 key(u64* word) { return reinterpret_cast<u64>(word); }
  WARPHEAP_DEVICE static u64 load(u64* word, order how) { return at(word).load(how); }
  WARPHEAP_DEVICE static u64 fetch_or(u64* word, u64 bits, order how) { return at(word).fetch_or(bits, how); }
  WARPHEAP_DEVICE static void add(u64* word, u64 value, order how) { at(word).fetch_add(value, how); }

 private:
  WARPHEAP_DEVICE static atomic_ref<u64, scope::system> at(u64* word) { return atomic_ref<u64, scope::system>{*word}; }
};

/// View of the mailbox of one pool; owns nothing. Blocks are aligned to `Unit` bytes. Fewer than
/// 1,024 regions are for tests.
template <u32 Unit, u32 MostRegions = 1024>
class mailbox {
  static_assert(is_power_of_two(Unit) && is_power_of_two(MostRegions) && MostRegions <= 1024);

 public:
  static constexpr u32 unit_bytes = Unit;
  static constexpr u32 row_words = 32;
  static constexpr u32 most_regions = MostRegions;

  mailbox() = default;

  /// Bytes of memory for a pool of `pool_bytes`.
  WARPHEAP_HOST_DEVICE static constexpr size_t bytes_for(size_t pool_bytes) {
    shape const words = shape_for_rows(rows_for(pool_bytes));
    return sizeof(mailbox_state) + 8 * (align_up(words.of_summary(), 16) + rows_for(pool_bytes) * row_words);
  }

  /// The mailbox of the pool of `pool_bytes` bytes at `pool`, in bytes_for(pool_bytes) bytes at
  /// `memory`, aligned to 128, which are zero before the first post or drain.
  WARPHEAP_HOST_DEVICE static mailbox place(void* memory, void* pool, size_t pool_bytes) {
    mailbox made;
    made.pool_ = static_cast<u8*>(pool);
    made.pool_bytes_ = pool_bytes;
    made.state_ = static_cast<mailbox_state*>(memory);
    made.shape_ = shape_for_rows(rows_for(pool_bytes));
    made.summary_ = reinterpret_cast<u64*>(made.state_ + 1);
    made.bitmap_ = made.summary_ + align_up(made.shape_.of_summary(), 16);
    return made;
  }

  WARPHEAP_HOST_DEVICE size_t pool_bytes() const { return pool_bytes_; }
  /// Whether `memory` lies in the pool.
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const { return offset_of(memory) < pool_bytes_; }

  /// Posts the address of a block to be freed. Returns false, and posts nothing, if no block can be
  /// there: outside the pool, or not aligned. The lanes that are here together, with whatever
  /// mailboxes, post together. Any lanes.
  template <class Far = peer_access>
  WARPHEAP_DEVICE bool post(void const* memory, Far access = {}) const {
    u64 const offset = offset_of(memory);
    if (offset >= pool_bytes_ || offset % Unit != 0) return false;
    u64 const unit = offset / Unit, word = unit / 64;
    lane_mask const active = simt::active_mask();
    lane_group const group = group_by(active, access.key(bitmap_ + word));
    u64 const bits = union_of_groups(active, group, u64{1} << (unit % 64));
    simt::sync_warp(active);  // mailbox.M5: the leader releases what the other lanes did
    if (group.leads) post_word(access, word, bits, group.size);
    // The free of no lane returns before its bit and those above are set (mailbox.M2).
    simt::sync_warp(active);
    return true;
  }

  /// Where the words lie, for drains and snapshots.
  WARPHEAP_HOST_DEVICE mailbox_state* state() const { return state_; }
  WARPHEAP_HOST_DEVICE u64* summary() const { return summary_; }
  WARPHEAP_HOST_DEVICE u64* bitmap() const { return bitmap_; }
  WARPHEAP_HOST_DEVICE u64 bitmap_words() const { return rows_for(pool_bytes_) * row_words; }
  WARPHEAP_HOST_DEVICE u32 rows() const { return static_cast<u32>(rows_for(pool_bytes_)); }
  WARPHEAP_HOST_DEVICE u32 regions() const { return 1u << shape_.regions_log2; }
  /// A region has 2^span_log2() words of the summary, one after the other.
  WARPHEAP_HOST_DEVICE u32 span_log2() const { return shape_.span_log2; }
  WARPHEAP_HOST_DEVICE u32 summary_words() const { return shape_.of_summary(); }
  /// A row's bit, counted from the first word of the summary.
  WARPHEAP_HOST_DEVICE u32 summary_bit(u32 row) const {
    return ((row & (regions() - 1)) << (shape_.span_log2 + 6)) + (row >> shape_.regions_log2);
  }
  /// The row of a bit: the other way round.
  WARPHEAP_HOST_DEVICE u32 row_of(u32 summary_bit) const {
    u32 const region_bits = shape_.span_log2 + 6;
    return ((summary_bit & static_cast<u32>(low_mask(region_bits))) << shape_.regions_log2) +
           (summary_bit >> region_bits);
  }
  WARPHEAP_HOST_DEVICE void* address(u32 word, u32 bit) const { return pool_ + (u64{64} * word + bit) * Unit; }

 private:
  WARPHEAP_HOST_DEVICE u64 offset_of(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool_);
  }
  WARPHEAP_HOST_DEVICE static constexpr u64 rows_for(u64 pool_bytes) {
    return div_ceil(pool_bytes, u64{Unit} * 64 * row_words);
  }

  /// As many regions as there may be, a power of two, so that each has a row.
  struct shape {
    u32 regions_log2 = 0;
    u32 span_log2 = 0;

    WARPHEAP_HOST_DEVICE constexpr u32 of_summary() const { return 1u << (regions_log2 + span_log2); }
  };
  WARPHEAP_HOST_DEVICE static constexpr shape shape_for_rows(u64 rows) {
    shape found;
    while ((2u << found.regions_log2) <= most_regions && (u64{2} << found.regions_log2) <= rows) ++found.regions_log2;
    while ((u64{64} << (found.regions_log2 + found.span_log2)) < rows) ++found.span_log2;
    return found;
  }

  /// Sets bits of one word and those above, for `posts` posts.
  template <class Far>
  WARPHEAP_DEVICE void post_word(Far access, u64 word, u64 bits, u32 posts) const {
    // release: mailbox.M5. acquire: what a drain of this word has cleared above (mailbox.M3). Both
    // pair with mailbox_drain's exchange of the word.
    u64 const before = access.fetch_or(bitmap_ + word, bits, order::acq_rel);
    WARPHEAP_POINT("post.before_summary");
    u32 const repeats = posts - popcount(bits & ~before);
    if (repeats != 0) access.add(&state_->repeats, repeats, order::relaxed);  // relaxed: a count
    // Whether or not the word was 0: the post that set its first bit may not have come further.
    u32 const bit = summary_bit(static_cast<u32>(word / row_words)), region = bit >> (shape_.span_log2 + 6);
    // acquire, both: the clear of the region above; pair with mailbox_drain's exchange of the
    // summary's word (mailbox.M4).
    set_if_clear(access, summary_ + bit / 64, bit % 64, order::acquire);
    WARPHEAP_POINT("post.before_root");
    // relaxed: mailbox.M3 and mailbox.M4 say which clears the load cannot miss.
    set_if_clear(access, state_->root + region / 64, region % 64, order::relaxed);
  }

  /// A load first: mostly the bit is set, and loads of one word by many are cheap.
  template <class Far>
  WARPHEAP_DEVICE static void set_if_clear(Far access, u64* word, u64 bit, order how) {
    if (((access.load(word, how) >> bit) & 1) == 0) access.fetch_or(word, u64{1} << bit, how);
  }

  u8* pool_ = nullptr;
  u64 pool_bytes_ = 0;
  mailbox_state* state_ = nullptr;
  u64* summary_ = nullptr;
  u64* bitmap_ = nullptr;
  shape shape_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
