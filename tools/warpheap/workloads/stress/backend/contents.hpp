// SPDX-License-Identifier: Apache-2.0
// What `stress` writes into a block: words that depend on the slot that the block is for and on
// how many blocks the slot had before, so that no two blocks of a run have the same contents.
//
// All bytes of a block of up to 4 KiB are written. Of a larger one 512 words or more at equal
// distances are, the last word, and the bytes behind it. One thread writes a block.
#pragma once

#include "warpheap/platform/simt.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// The contents of one block, which starts at a multiple of 8.
class block_contents {
 public:
  WARPHEAP_DEVICE block_contents(u64 slot, u64 generation, u64 bytes)
      : tag_{mix(mix(slot + 1) + generation)}, bytes_{bytes} {}

  WARPHEAP_DEVICE void write(void* block) const {
    for (u64 i = 0; i < words(); i = next(i)) static_cast<u64*>(block)[i] = word(i);
    for (u64 at = words() * sizeof(u64); at < bytes_; ++at) static_cast<u8*>(block)[at] = tail_byte(at);
  }

  /// Whether the first `within` bytes at `block` are as write() left them.
  WARPHEAP_DEVICE bool stand_in(void const* block, u64 within) const {
    bool intact = true;
    for (u64 i = 0; i < words() && (i + 1) * sizeof(u64) <= within; i = next(i))
      intact &= static_cast<u64 const*>(block)[i] == word(i);
    for (u64 at = words() * sizeof(u64); at < bytes_ && at < within; ++at)
      intact &= static_cast<u8 const*>(block)[at] == tail_byte(at);
    return intact;
  }

  /// Whether all that write() would write is 0.
  WARPHEAP_DEVICE bool are_zero_in(void const* block) const {
    bool zero = true;
    for (u64 i = 0; i < words(); i = next(i)) zero &= static_cast<u64 const*>(block)[i] == 0;
    for (u64 at = words() * sizeof(u64); at < bytes_; ++at) zero &= static_cast<u8 const*>(block)[at] == 0;
    return zero;
  }

  /// Bytes that write() writes.
  WARPHEAP_DEVICE u64 written_bytes() const {
    u64 const last = words() == 0 ? 0 : 1 + div_ceil(words() - 1, step());
    return last * sizeof(u64) + bytes_ % sizeof(u64);
  }

 private:
  static constexpr u64 most_words = 512;

  WARPHEAP_DEVICE u64 words() const { return bytes_ / sizeof(u64); }
  WARPHEAP_DEVICE u64 step() const { return words() <= most_words ? 1 : words() / most_words; }
  /// The word after `i` that is written; the last one is never skipped.
  WARPHEAP_DEVICE u64 next(u64 i) const {
    u64 const last = words() - 1;
    return i < last && i + step() > last ? last : i + step();
  }
  WARPHEAP_DEVICE u64 word(u64 i) const { return tag_ + i * 0x9e37'79b9'7f4a'7c15u; }
  WARPHEAP_DEVICE u8 tail_byte(u64 at) const { return static_cast<u8>(tag_ >> at % sizeof(u64) * 8); }

  u64 tag_, bytes_;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
