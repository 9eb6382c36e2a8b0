// SPDX-License-Identifier: Apache-2.0
// A pool whose addresses are reserved at once, and whose memory is mapped as it is needed. Blocks
// never move. Memory is mapped in chunks; metadata for the whole limit, about 1% of it, is mapped
// from the start.
//
// A growth of many chunks is mapped in parts of four, because much of its time is per part: 8 GiB
// in 32 parts take the driver of an H200 2.2 ms, in 8 parts 1.2 ms (h200-mapping.json). A part is
// unmapped as a whole.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../platform/address_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// How large a pool is at first, how large it may become, and in which steps. In bytes.
struct growth {
  size_t initial = 0;  ///< rounded up to granularity(); a pool never becomes smaller than that
  size_t limit = 0;    ///< a multiple of reserve_pool::growing::granularity()
  size_t chunk = 0;    ///< it grows by multiples of this; like `limit`, at most that; 0: limit/32
  bool peers = false;  ///< whether kernels of other GPUs that can reach the memory may use it
  void* at = nullptr;  ///< where the pool begins, as reserve_pool::at_address; nullptr: anywhere
};

namespace reserve_pool {

/// Owns an address range, of which some is mapped. Movable.
class growing {
 public:
  static constexpr char const* name = "growing";
  /// A heap over it can be restored in another process.
  static constexpr bool takes_address = true;

  /// The unit of limit and chunk: a multiple of the device's mapping granularity and of every slab
  /// size.
  static size_t granularity() {
    size_t const mapped = backend::address_range::granularity();
    return (address_range::alignment + mapped - 1) / mapped * mapped;
  }

  /// Throws std::invalid_argument if the sizes are inconsistent.
  growing(growth plan) : plan_{plan} {  // NOLINT(google-explicit-constructor): sizes are what it is
    size_t const granule = granularity();
    auto const whole = [&](size_t bytes) { return bytes % granule == 0; };
    auto const refuse = [&](std::string const& what, size_t bytes, std::string const& why) {
      throw std::invalid_argument{"growing pool: " + what + " of " + std::to_string(bytes) + " bytes " + why};
    };
    if (plan.limit == 0 || !whole(plan.limit))
      refuse("limit", plan.limit, "is no multiple of " + std::to_string(granule));
    if (plan.limit > most_bytes) refuse("limit", plan.limit, "is above " + std::to_string(most_bytes));
    if (!whole(plan.chunk)) refuse("chunk", plan.chunk, "is no multiple of " + std::to_string(granule));
    if (plan.initial > plan.limit)
      refuse("initial size", plan.initial, "is above the limit of " + std::to_string(plan.limit));
    plan_.chunk = plan.chunk == 0 ? rounded_up(plan.limit / 32, granule) : (std::min)(plan.chunk, plan.limit);
    plan_.initial = rounded_up(plan.initial, granule);
  }

  /// Reserves `bytes` addresses, of which the first limit() are the pool's, and maps memory for the
  /// initial size and for all behind the pool. Returns where they start. Called once. Throws as
  /// reserve_addresses(), and out_of_memory.
  void* acquire(size_t bytes) {
    addresses_ = reserve_addresses(rounded_up(bytes, granularity()), plan_.peers, plan_.at);
    size_t const behind = addresses_.bytes() - plan_.limit;
    addresses_.map(plan_.limit, behind, behind);
    map_to(plan_.initial);
    return addresses_.begin();
  }

  /// Words that the pool's kernels share with the host.
  using words = backend::shared_words;
  static words share(size_t count) { return words{count}; }

  size_t limit() const { return plan_.limit; }
  /// Bytes of the pool that have memory: its first ones.
  size_t committed() const { return committed_; }
  /// How many bytes would have memory if the first `used` were needed, and no others.
  size_t kept_for(size_t used) const {
    size_t const needed = (std::max)(used, plan_.initial);
    return *std::lower_bound(part_ends_.begin(), part_ends_.end(), needed);
  }

  /// Maps `bytes` more bytes, rounded up to chunks, or all up to the limit. Throws out_of_memory,
  /// and then changes nothing.
  void commit(size_t bytes) {
    size_t const left = plan_.limit - committed_;
    map_to(committed_ + (std::min)(rounded_up((std::min)(bytes, left), plan_.chunk), left));
  }

  /// Unmaps memory until only the first `bytes` bytes have some; `bytes` is a value of kept_for().
  void decommit(size_t bytes) {
    addresses_.unmap(bytes, committed_ - bytes);
    while (part_ends_.back() > bytes) part_ends_.pop_back();
    committed_ = bytes;
  }

 private:
  using address_range = backend::address_range;
  static constexpr size_t most_bytes = size_t{1} << 46;  // GPUs have 47 to 49 bits of addresses
  static constexpr size_t chunks_of_a_part = 4;

  static size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

  void map_to(size_t wanted) {
    if (wanted == committed_) return;
    size_t const part = chunks_of_a_part * plan_.chunk;
    auto ends = part_ends_;
    while (ends.back() < wanted) ends.push_back((std::min)(ends.back() + part, wanted));
    addresses_.map(committed_, wanted - committed_, part);  // first: it may throw
    part_ends_ = std::move(ends);
    committed_ = wanted;
  }

  growth plan_;
  address_range addresses_;
  size_t committed_ = 0;
  std::vector<size_t> part_ends_{0};  ///< 0, and where each part ends, in order
};

}  // namespace reserve_pool
}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
