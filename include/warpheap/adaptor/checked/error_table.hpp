// SPDX-License-Identifier: Apache-2.0
// The first errors of a heap, and the number of all, in device memory.
#pragma once

#include "../../platform/simt.hpp"
#include "report.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

/// View of the table; a member of the heap's state in device memory, shared by all threads.
class error_table {
 public:
  error_table() = default;
  WARPHEAP_HOST_DEVICE error_table(recorded_error* records, u32 room) : records_{records}, room_{room} {}

  /// Counts an error, and keeps it if there is room.
  WARPHEAP_DEVICE void add(recorded_error const& error) {
    // relaxed: counts; the host reads the records when all is quiet.
    atomic_ref<u64>{by_kind_[static_cast<u32>(error.kind)]}.fetch_add(1, order::relaxed);
    u64 const place = atomic_ref<u64>{count_}.fetch_add(1, order::relaxed);
    if (place < room_) records_[place] = error;
  }

  WARPHEAP_HOST_DEVICE u64 count() const { return count_; }
  WARPHEAP_HOST_DEVICE u64 count_of(memory_error kind) const { return by_kind_[static_cast<u32>(kind)]; }
  WARPHEAP_HOST_DEVICE u64 kept() const { return count_ < room_ ? count_ : room_; }
  WARPHEAP_HOST_DEVICE recorded_error const* records() const { return records_; }

 private:
  recorded_error* records_ = nullptr;
  u64 count_ = 0;
  u64 by_kind_[memory_errors] = {};
  u32 room_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts
