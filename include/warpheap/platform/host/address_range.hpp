// SPDX-License-Identifier: Apache-2.0
// Addresses of the process without memory. An access to a part that was not mapped ends the
// program, as it ends a kernel on a GPU.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "memory.hpp"

namespace warpheap::host {

/// Owns `bytes()` addresses and the memory that was mapped there. Movable.
class address_range {
 public:
  /// Where the addresses start is a multiple of this.
  static constexpr size_t alignment = size_t{1} << 21;

  /// What offsets and sizes of parts are multiples of.
  static size_t granularity() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

  address_range() = default;
  /// Reserves addresses, from `wanted` on if those are free; it is a multiple of `alignment`. There
  /// are no other devices. Throws out_of_memory if the process has not that many addresses.
  explicit address_range(size_t bytes, [[maybe_unused]] bool peers = false, void* wanted = nullptr) : bytes_{bytes} {
    if (!(wanted && try_reserve(wanted, bytes)) && !try_reserve(nullptr, bytes + alignment))
      throw out_of_memory{"no " + std::to_string(bytes) + " addresses are free"};
    u64 const start = reinterpret_cast<u64>(reserved_);
    begin_ = reserved_ + ((start + alignment - 1) / alignment * alignment - start);
    detail::allocations().add(begin_, bytes);
  }
  address_range(address_range&& other) noexcept { swap(other); }
  address_range& operator=(address_range&& other) noexcept {
    swap(other);
    return *this;
  }
  ~address_range() {
    if (!reserved_) return;
    detail::allocations().remove(begin_);
    forget(0, bytes_);
    munmap(reserved_, reserved_bytes_);
  }

  u8* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }

  /// Maps memory of `bytes` bytes at `offset`, in parts of `part_bytes`, of which the last may be
  /// smaller. Throws out_of_memory, and maps nothing then.
  void map(size_t offset, size_t bytes, [[maybe_unused]] size_t part_bytes) {
    if (mprotect(begin_ + offset, bytes, PROT_READ | PROT_WRITE) != 0)
      throw out_of_memory{"the process has not " + std::to_string(bytes) + " bytes of memory more"};
  }

  /// Gives back the memory of the `bytes` bytes at `offset`, which are whole parts. No kernel may
  /// use it.
  void unmap(size_t offset, size_t bytes) {
    forget(offset, bytes);
    // A new mapping in place of the old one: its memory is gone, and its addresses stay ours.
    void* const bare =
        mmap(begin_ + offset, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (bare == MAP_FAILED) throw backend_error{"the system took no memory back: it has no more mappings"};
  }

 private:
  /// At `at`, which systems take for a hint, or anywhere if that is nullptr. MAP_FIXED_NOREPLACE
  /// would map the page at 0 where ThreadSanitizer has dropped the address.
  bool try_reserve(void* at, size_t bytes) {
    if (bytes < bytes_) return false;  // the sum was too large
    void* const reserved = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return false;
    reserved_ = static_cast<u8*>(reserved);
    reserved_bytes_ = bytes;
    if (!at || reserved == at) return true;
    munmap(reserved, bytes);
    return false;
  }

  void swap(address_range& other) noexcept {
    std::swap(reserved_, other.reserved_);
    std::swap(reserved_bytes_, other.reserved_bytes_);
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
  }

  void forget(size_t offset, size_t bytes) {
    u64 const first = reinterpret_cast<u64>(begin_) + offset;
    detail::all_contents().forget(first, first + bytes);
  }

  u8* reserved_ = nullptr;
  size_t reserved_bytes_ = 0;
  u8* begin_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace warpheap::host
