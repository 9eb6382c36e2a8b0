// SPDX-License-Identifier: Apache-2.0
// Shared memory of a thread block: objects that its lanes name by the place in the source that
// declares them, and the dynamic bytes of the launch.
//
// Each object lies in memory of its own, so that AddressSanitizer knows its bounds. A place for
// thread blocks keeps this memory for the next one, which finds a pattern in place of what the last
// one left.
#pragma once

#include <new>

#include "allocations.hpp"
#include "races.hpp"

namespace warpheap::host::detail {

class block_memory {
 public:
  static constexpr u32 most_declared_bytes = 48 << 10;  // as on a GPU
  static constexpr u32 most_bytes = 227 << 10;
  static constexpr u8 pattern = 0xd5;  // a float of -3e13, an index far outside of anything

  block_memory() = default;
  block_memory(block_memory const&) = delete;
  block_memory& operator=(block_memory const&) = delete;
  ~block_memory() {
    tsan_pause const pause;
    while (first_) {
      auto* const each = first_;
      first_ = each->next;
      allocations().remove(each->bytes);
      ::operator delete (each->bytes, std::align_val_t{alignment});
      delete each;
    }
  }

  /// A thread block begins: nothing is declared.
  WARPHEAP_NO_TSAN void begin() {
    declared_ = 0;
    for (auto* each = first_; each; each = each->next) each->is_live = false;
  }

  /// The object of `bytes` bytes that is declared at `site`, made unless it is there.
  WARPHEAP_NO_TSAN void* object(void const* site, u32 bytes, bool is_declared) {
    auto* found = first_;
    while (found && (found->site != site || found->size != bytes)) found = found->next;
    if (!found) first_ = found = make(site, bytes);
    if (!found->is_live) {
      forget_races(found->bytes, bytes);
      found->is_live = true;
      if (is_declared) declared_ += bytes;
      for (u32 i = 0; i < bytes; ++i) const_cast<u8 volatile*>(found->bytes)[i] = pattern;
    }
    return found->bytes;
  }

  WARPHEAP_NO_TSAN u32 declared_bytes() const { return declared_; }

 private:
  static constexpr size_t alignment = memory_alignment;

  struct entry {
    void const* site;
    u32 size;
    bool is_live;
    u8* bytes;
    entry* next;
  };

  entry* make(void const* site, u32 bytes) const {
    tsan_pause const pause;  // the lane that comes first makes it for all
    auto* const memory = static_cast<u8*>(::operator new (bytes, std::align_val_t{alignment}));
    allocations().add_shared(memory, bytes);
    return new entry{site, bytes, false, memory, first_};
  }

  entry* first_ = nullptr;
  u32 declared_ = 0;  // by this thread block so far
};

}  // namespace warpheap::host::detail
