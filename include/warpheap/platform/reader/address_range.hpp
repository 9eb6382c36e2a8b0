// SPDX-License-Identifier: Apache-2.0
// Addresses without memory, declared and not defined: a program that only reads heaps maps nothing.
#pragma once

#include "../types.hpp"

namespace warpheap::reader {

class address_range {
 public:
  static constexpr size_t alignment = size_t{1} << 21;
  static size_t granularity();

  address_range();
  explicit address_range(size_t bytes, bool peers = false, void* wanted = nullptr);
  address_range(address_range&&) noexcept;
  address_range& operator=(address_range&&) noexcept;
  ~address_range();

  u8* begin() const;
  size_t bytes() const;
  void map(size_t offset, size_t bytes, size_t part_bytes);
  void unmap(size_t offset, size_t bytes);
};

}  // namespace warpheap::reader
