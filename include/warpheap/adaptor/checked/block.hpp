// SPDX-License-Identifier: Apache-2.0
// What lies around and in a block of a checked heap: a header, the redzones, and poison in place of
// the contents once it is freed.
//
//   created                             address           address + bytes
//   | slack | header 64 | front redzone | the caller's bytes | redzone | rounding |
//             8 words     >= 16                                >= 1
//
//   header: | check | bytes | file | line, slack | thread | freed in: file | line | thread |
//
// The slack makes the address a multiple of the alignment. The check is a hash of the other seven
// words and of the address, so that a header that was written over is not believed: then neither
// the sites in it are read, nor is its block given back.
//
//   checked.H1  of a live block only its owner writes the header; of a freed one, only the thread
//       that claimed it (checked.M3). Words are written by relaxed atomics, because a thread that
//       frees a block a second time reads them for its report.
#pragma once

#include "../../heap/warp_copy.hpp"
#include "../../util/random.hpp"
#include "report.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

inline constexpr u8 redzone_byte = 0xfb, poison_byte = 0xfd;
inline constexpr u64 header_bytes = 64;

/// How a request becomes one to the upstream heap. A template, because a reference to a value that
/// is a template argument does not compile with CUDA 12.0.
template <checked_config Config>
struct block_plan {
  /// From the earliest place of the header to the address, bytes.
  static constexpr u64 before = header_bytes + Config.front_redzone_bytes;

  /// Bytes to ask for; too many for any heap if they cannot be counted. `alignment` is a power of
  /// two, at least 16. A request of 0 bytes stays one.
  WARPHEAP_HOST_DEVICE static constexpr u64 total(u64 alignment, u64 bytes) {
    u64 const slack = alignment - 16, around = before + slack + Config.redzone_bytes + 15;
    if (bytes == 0) return 0;
    if (slack > low_mask(32) || bytes > ~u64{0} - around) return ~u64{0} & ~u64{15};
    return (bytes + around) & ~u64{15};
  }
};

/// What the bytes of a range show.
struct byte_damage {
  u64 first = 0;  ///< the first byte that differs
  u64 last = 0;   ///< the last one
  u64 count = 0;
};

/// The bytes from `memory` on that are not `expected`. Any lane alone.
WARPHEAP_DEVICE inline byte_damage find_damage(u8 const* memory, u64 bytes, u8 expected) {
  u64 const pattern = expected * 0x0101'0101'0101'0101u;
  byte_damage found;
  for (u64 i = 0; i < bytes;) {
    bool const whole = bytes - i >= 8 && reinterpret_cast<u64>(memory + i) % 8 == 0;
    if (whole && *reinterpret_cast<u64 const*>(memory + i) == pattern) {
      i += 8;
      continue;
    }
    if (memory[i] != expected) {
      if (found.count == 0) found.first = i;
      found.last = i;
      ++found.count;
    }
    ++i;
  }
  return found;
}

/// Fills a range with one byte, by the lanes that are here together.
template <u8 Byte>
struct pattern_stripe {
  WARPHEAP_DEVICE static void run(void* to, void const*, size_t bytes, u32 rank, u32 lanes) {
    constexpr u64 pattern = Byte * 0x0101'0101'0101'0101u;
    size_t const words = bytes / 8;
    for (size_t i = rank; i < words; i += lanes) static_cast<u64*>(to)[i] = pattern;
    for (size_t i = words * 8 + rank; i < bytes; i += lanes) static_cast<u8*>(to)[i] = Byte;
  }
};

/// A header's words, read at once.
struct block_record {
  u64 words[8] = {};

  WARPHEAP_HOST_DEVICE u64 bytes() const { return words[1]; }
  WARPHEAP_HOST_DEVICE u64 slack() const { return words[3] >> 32; }
  WARPHEAP_HOST_DEVICE bool is_freed() const { return words[6] >> 32 != 0; }
  WARPHEAP_HOST_DEVICE recorded_call allocated() const { return call(words[2], words[3], words[4]); }
  WARPHEAP_HOST_DEVICE recorded_call freed() const { return call(words[5], words[6], words[7]); }

  WARPHEAP_HOST_DEVICE void set_call(u32 first, source_site const& site, u64 above_line, u64 thread) {
    words[first] = reinterpret_cast<u64>(site.file);
    words[first + 1] = above_line << 32 | site.line;
    words[first + 2] = thread;
  }

  WARPHEAP_HOST_DEVICE u64 checksum(void const* address) const {
    u64 hash = reinterpret_cast<u64>(address) ^ 0x6368'6563'6b65'6421u;
    for (u32 i = 1; i < 8; ++i) hash = mix(hash ^ words[i]) + i;
    return hash;
  }

 private:
  WARPHEAP_HOST_DEVICE static recorded_call call(u64 file, u64 line, u64 thread) {
    return {source_site{reinterpret_cast<char const*>(file), static_cast<u32>(line)}, static_cast<u32>(thread >> 32),
            static_cast<u32>(thread)};
  }
};

/// Block of the heap at `address`, which is what the caller of malloc got.
class guarded_block {
 public:
  WARPHEAP_DEVICE guarded_block(void const* address, u32 front, u32 behind)
      : address_{static_cast<u8*>(const_cast<void*>(address))}, front_{front}, behind_{behind} {}

  /// Writes header and redzones of a new block, `slack` bytes behind its earliest place.
  WARPHEAP_DEVICE void begin_life(u64 bytes, u64 slack, source_site const& site) const {
    block_record record;
    record.words[1] = bytes;
    record.set_call(2, site, slack, this_thread());
    store(record);
    mend(bytes);
  }

  WARPHEAP_DEVICE void* address() const { return address_; }
  WARPHEAP_DEVICE void* created(block_record const& record) const {
    return address_ - front_ - header_bytes - record.slack();
  }

  /// Whether the header is one, which goes to `record`.
  WARPHEAP_DEVICE bool read(block_record& record) const {
    // relaxed: what the block's owner wrote is known by the bits of block_map. A thread that frees
    // it again may see a mixture, which the check shows (checked.H1).
    for (u32 i = 0; i < 8; ++i) record.words[i] = word(i).load(order::relaxed);
    return record.words[0] == record.checksum(address_);
  }

  /// Notes that the header was found overwritten. Returns whether that is new.
  WARPHEAP_DEVICE bool mark_overwritten() const {
    u64 const mark = mix(reinterpret_cast<u64>(address_) ^ 0x6272'6f6b'656eu);
    // relaxed: nothing follows from it but a report more or less.
    return word(0).exchange(mark, order::relaxed) != mark;
  }

  /// Notes the call that frees the block (checked.H1).
  WARPHEAP_DEVICE void note_free(block_record& record, source_site const& site) const {
    record.set_call(5, site, 1, this_thread());
    store(record);
  }
  /// Changes the size of a live block, which must have room for it.
  WARPHEAP_DEVICE void resize(block_record& record, u64 bytes, source_site const& site) const {
    record.words[1] = bytes;
    record.set_call(2, site, record.slack(), this_thread());
    store(record);
    mend(bytes);
  }

  WARPHEAP_DEVICE byte_damage front_damage() const { return find_damage(address_ - front_, front_, redzone_byte); }
  WARPHEAP_DEVICE byte_damage damage_behind(u64 bytes) const {
    return find_damage(address_ + bytes, behind_, redzone_byte);
  }
  WARPHEAP_DEVICE byte_damage contents_damage(u64 bytes) const { return find_damage(address_, bytes, poison_byte); }

  /// Writes the redzones (anew, after a report, so that damage is reported once).
  WARPHEAP_DEVICE void mend(u64 bytes) const {
    pattern_stripe<redzone_byte>::run(address_ - front_, nullptr, front_, 0, 1);
    for (u64 i = 0; i < behind_; ++i) address_[bytes + i] = redzone_byte;
  }
  /// Writes poison over the contents. Together with other lanes that do so here, if there are many
  /// bytes.
  WARPHEAP_DEVICE void poison(u64 bytes) const {
    detail::run_shared<pattern_stripe<poison_byte>>(address_, nullptr, bytes);
  }
  WARPHEAP_DEVICE void poison_alone(u64 bytes) const {
    pattern_stripe<poison_byte>::run(address_, nullptr, bytes, 0, 1);
  }

  WARPHEAP_DEVICE u32 front() const { return front_; }
  WARPHEAP_DEVICE u32 behind() const { return behind_; }

  WARPHEAP_DEVICE static u64 this_thread() { return u64{simt::block_index()} << 32 | simt::thread_index(); }

 private:
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 index) const {
    return atomic_ref<u64>{reinterpret_cast<u64*>(address_ - front_ - header_bytes)[index]};
  }

  WARPHEAP_DEVICE void store(block_record& record) const {
    record.words[0] = record.checksum(address_);
    // relaxed: the bits of block_map publish a new block, a slot of the quarantine a freed one.
    for (u32 i = 0; i < 8; ++i) word(i).store(record.words[i], order::relaxed);
  }

  u8* address_;
  u32 front_;
  u32 behind_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts
