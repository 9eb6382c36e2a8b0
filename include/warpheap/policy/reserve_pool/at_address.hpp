// SPDX-License-Identifier: Apache-2.0
// A pool at an address that the program chooses, so that pointers into a saved heap are valid in
// another process (heap/heap_image.hpp).
//
// Where a system places memory differs from run to run. So by default a pool is at an address that
// neither the driver nor a 64-bit operating system hands out by itself.
#pragma once

#if !defined(__CUDACC_RTC__)

#include "../../platform/address_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Owns an address range of the current device, all of it mapped. Movable.
class at_address {
 public:
  /// In names of variants.
  static constexpr char const* name = "at_address";
  /// A heap over it can be restored in another process.
  static constexpr bool takes_address = true;
  /// Where a pool begins by default: 32 TiB. If that range is taken, as for the second heap of a
  /// process, it begins anywhere.
  static constexpr u64 usual_address = u64{1} << 45;

  /// A pool that begins at usual_address.
  at_address() = default;
  /// A pool that begins at `address`, a multiple of 2 MiB. On CUDA it takes 32 MiB of addresses at
  /// least.
  explicit at_address(void* address) : address_{address} {}

  /// Takes `bytes` bytes and returns where they start. Called once. Throws as reserve_addresses(),
  /// and out_of_memory if the device lacks the memory.
  void* acquire(size_t bytes) {
    size_t const granule = range::granularity(), whole = (bytes + granule - 1) / granule * granule;
    if (address_) addresses_ = reserve_addresses(whole, false, address_);
    else addresses_ = range{whole, false, reinterpret_cast<void*>(usual_address)};
    addresses_.map(0, whole, whole);
    return addresses_.begin();
  }

 private:
  using range = backend::address_range;

  void* address_ = nullptr;
  range addresses_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
