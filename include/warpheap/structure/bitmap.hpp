// SPDX-License-Identifier: Apache-2.0
// Which blocks of one container are taken: a bit a block, set while the block is taken.
//
// A read-modify-write that sets bits owns exactly those that were clear before, so any number of
// lanes may claim and release without a lock, and one operation moves up to 64 blocks. Bits, not
// counts, own blocks: a caller that subtracts from a count subtracts the bits that it really
// cleared.
//
//   bitmap.M1  a bit has at most one owner: the caller to whom claim or try_claim returned it,
//       until release returns it.
//   bitmap.M2  bits beyond the container's last block are never stored: the caller's masks keep
//       them out.
//   bitmap.M3  words change by read-modify-write alone: a plain store would break the chain that
//       carries release to acquire.
//
// Orders: release in `release` pairs with acquire in `claim` and `try_claim` on the same word; what
// the old owner wrote to a block happens before what the new one does. The pair covers the calling
// lane; lanes it acts for meet it in sync_warp, before release and after claim.
// Source: Pham et al. 2022, section 4.2, with words claimed by fetch_or in place of the lock map.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// View of the bitmap words of one container; owns nothing. Block i is bit i % 64 of word i / 64.
struct bitmap {
  u64* words;

  /// What the word held lately: a hint.
  WARPHEAP_DEVICE u64 load(u32 word) const { return atomic_ref<u64>{words[word]}.load(order::relaxed); }

  /// What the word holds now: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE u64 load_newest(u32 word, order how) const { return atomic_ref<u64>{words[word]}.fetch_or(0, how); }

  /// Claims the blocks of `mask`, as many as are free.
  ///
  /// word    index of the word
  /// mask    blocks wanted
  /// how     order::acquire if the owner will use the blocks; else order::relaxed
  /// returns mask of the blocks now ours (bitmap.M1)
  /// thread  any lane alone; one read-modify-write
  WARPHEAP_DEVICE u64 try_claim(u32 word, u64 mask, order how) const { return mask & ~claim_others(word, mask, how); }

  /// As try_claim(), but returns those of `mask` that are not ours: they were taken.
  WARPHEAP_DEVICE u64 claim_others(u32 word, u64 mask, order how) const {
    return mask & atomic_ref<u64>{words[word]}.fetch_or(mask, how);
  }

  /// Claims up to `wanted` free blocks of one word, the lowest that a look at it showed free.
  ///
  /// word    index of the word
  /// wanted  blocks, 1..64
  /// valid   blocks of this word that exist (bitmap.M2)
  /// returns mask of the blocks now ours (bitmap.M1); 0 only if each block was seen taken during
  ///         the call
  /// thread  any lane alone; one load, then read-modify-writes until one brings a block. Each but
  ///         the last finds at least one more block taken, so there are at most 64
  WARPHEAP_DEVICE u64 claim(u32 word, u32 wanted, u64 valid) const {
    // relaxed: a hint; the fetch_or says what was free.
    u64 taken = load(word);
    while (u64 const candidates = lowest_bits(~taken & valid, wanted)) {
      // acquire: pairs with the release in release().
      u64 const ours = try_claim(word, candidates, order::acquire);
      if (ours != 0) return ours;
      taken |= candidates;
    }
    return 0;
  }

  /// Gives the blocks of `mask` back.
  ///
  /// returns mask of the blocks that were really taken; if it is less than `mask`, a block was
  ///         freed twice
  /// thread  any lane alone; one read-modify-write
  WARPHEAP_DEVICE u64 release(u32 word, u64 mask) const {
    // release: what the owner did to the blocks happens before the next owner's use; pairs with the
    // acquire in claim().
    return mask & atomic_ref<u64>{words[word]}.fetch_and(~mask, order::release);
  }
};

}}  // namespace warpheap::WARPHEAP_BACKEND
