// SPDX-License-Identifier: Apache-2.0
// A creation policy around another one that refuses calls on a schedule: for tests of code that
// must do right when malloc returns nullptr. Memory that runs out refuses late and to many threads
// at once; here any single call may be refused, while the calls around it are served, and the seed
// says which.
//
//   basic_heap<plain_allocator<creation::refuse_some<creation::slab_bitmap<>>>> heap{1_MiB};
//
// Calls are numbered in the order in which they come, by an addition to one word, which takes about
// a billion a second on a GPU. Under a deterministic schedule of the host backend the same lanes
// are refused again. All else is the other policy's: blocks, counts, invariants, slots.
#pragma once

#include "../../platform/simt.hpp"
#include "../../util/random.hpp"
#include "../config_text.hpp"
#include "report.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace creation {

struct refuse_some_config {
  u64 seed = 1;
  /// On average one call in this many is refused; 1 refuses all.
  u32 one_in = 8;
  /// The first calls, which are never refused.
  u64 served_first = 0;

  /// Whether call `number`, from 0 on, is refused.
  WARPHEAP_HOST_DEVICE constexpr bool refuses(u64 number) const {
    return number >= served_first && mix(seed ^ mix(number + 1)) % one_in == 0;
  }
};

#if !defined(__CUDACC_RTC__)
/// For info().
inline std::string describe(refuse_some_config const& config) {
  return config_text("seed", config.seed, "one_in", config.one_in, "served_first", config.served_first);
}
#endif

namespace refuse_some_parts {

WARPHEAP_HOST_DEVICE constexpr allocator_traits without_exactness(allocator_traits promised) {
  promised.exact_out_of_memory = promised.one_pass_refusals = promised.whole_pool = false;
  return promised;
}

}  // namespace refuse_some_parts

/// A handle on a heap of `Creation`'s: 8 bytes more than its own; all copies serve the same heap.
/// Has the members of `Creation`, which must keep its blocks in a pool. A call for 0 bytes has no
/// number.
template <class Creation, refuse_some_config Config = refuse_some_config{}>
class refuse_some : public Creation {
  static_assert(Config.one_in >= 1, "refuse_some: one_in is 1 or more");
  static_assert(
      !requires { Creation::uses_toolkit_heap; },
      "refuse_some: calls are counted beside a pool, and the toolkit's heap has none");

 public:
  static constexpr char const* name = "refuse_some";
  static constexpr refuse_some_config config = Config;
  /// The policy whose name info() adds.
  using below_type = Creation;

  /// The other policy's promises, but for what nullptr says.
  static constexpr allocator_traits traits = refuse_some_parts::without_exactness(Creation::traits);

  refuse_some() = default;

  WARPHEAP_DEVICE void* create(size_t bytes) const { return Creation::create(refused(bytes) ? 0 : bytes); }

  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const requires requires(Creation below) {
    below.create_aligned(alignment, bytes);
  }
  { return Creation::create_aligned(alignment, refused(bytes) ? 0 : bytes); }

  /// Lanes that are refused call all the same, for 0 bytes: the others need them in collectives.
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const requires requires(Creation below) {
    below.create_warp(mask, bytes);
  }
  { return Creation::create_warp(mask, refused(bytes) ? 0 : bytes); }

#if !defined(__CUDACC_RTC__)
  static size_t required_bytes(size_t pool_bytes) {
    return Creation::required_bytes(pool_bytes) + sizeof(counts) + alignof(counts);
  }

  static refuse_some place(void* memory, size_t pool_bytes) {
    u64 const end = reinterpret_cast<u64>(memory) + Creation::required_bytes(pool_bytes);
    return refuse_some{Creation::place(memory, pool_bytes),
                       reinterpret_cast<counts*>((end + alignof(counts) - 1) / alignof(counts) * alignof(counts))};
  }

  /// Makes everything free and begins the schedule anew, in order on stream `on`; does not wait.
  void initialize(stream_view on) const {
    Creation::initialize(on);
    backend::fill_bytes(counts_, 0, sizeof(counts), on);
  }

  size_t metadata_bytes() const { return Creation::metadata_bytes() + sizeof(counts); }

  /// Calls for more than 0 bytes since the heap began or was reset, and those refused by schedule.
  u64 calls() const { return read().calls; }
  u64 refusals() const { return read().refusals; }
#endif

 private:
  struct counts {
    u64 calls, refusals;
  };

  refuse_some(Creation below, counts* counted) : Creation{below}, counts_{counted} {}

  /// Numbers a call for more than 0 bytes.
  WARPHEAP_DEVICE bool refused(size_t bytes) const {
    // relaxed: counts.
    if (bytes == 0 || !Config.refuses(atomic_ref<u64>{counts_->calls}.fetch_add(1, order::relaxed))) return false;
    atomic_ref<u64>{counts_->refusals}.fetch_add(1, order::relaxed);
    return true;
  }

#if !defined(__CUDACC_RTC__)
  counts read() const {
    counts now;
    backend::copy_bytes(&now, counts_, sizeof now);
    return now;
  }
#endif

  counts* counts_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::creation
