// SPDX-License-Identifier: Apache-2.0
// Memory at the same addresses in every execution of an explored body, so that states and reports
// of one execution can be compared with those of another.
#pragma once

#include <sys/mman.h>

#include "../errors.hpp"
#include "format_message.hpp"

namespace warpheap::host::detail {

/// Address space that is handed out from its start, and taken back all at once.
class arena {
 public:
  static constexpr size_t bytes = size_t{1} << 36;

  arena()
      : begin_{static_cast<u8*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))} {
    if (begin_ == MAP_FAILED) throw out_of_memory{"no address space for the memory of an exploration"};
  }
  arena(arena const&) = delete;
  arena& operator=(arena const&) = delete;
  ~arena() { munmap(begin_, bytes); }

  /// Memory aligned to 256 bytes; null if there is no more.
  void* take(size_t wanted) {
    size_t const rounded = (wanted + 255) / 256 * 256;
    if (rounded > bytes - used_) return nullptr;
    used_ += rounded;
    ++live_;
    return begin_ + used_ - rounded;
  }
  void give_back() { --live_; }
  bool owns(void const* memory) const {
    return static_cast<u8 const*>(memory) - begin_ < static_cast<i64>(bytes) && memory >= begin_;
  }

  /// Before an execution: all memory is free. Throws backend_error if some of the last one's is
  /// not.
  void restart() {
    if (live_ != 0) {
      throw backend_error{format_message({"an explored body kept ", live_, " allocations of device memory"})};
    }
    used_ = 0;
  }

 private:
  u8* begin_;
  size_t used_ = 0;
  u64 live_ = 0;
};

/// Where allocate_bytes takes its memory, if it is not null.
inline constinit thread_local arena* arena_of_thread = nullptr;

}  // namespace warpheap::host::detail
