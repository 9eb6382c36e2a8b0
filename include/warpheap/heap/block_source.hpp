// SPDX-License-Identifier: Apache-2.0
// A creation policy combined with an out-of-memory policy: the source of blocks, and where frees
// go. `allocator` puts the distribution policy in front of it, so lanes other than the caller may
// use parts of a block.
#pragma once

#include "../policy/creation/slot_survey.hpp"
#include "../sync/same_object.hpp"
#include "policies.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

template <class P>
concept knows_block_size = requires(P policy, void const* memory) {
  policy.usable_size(memory);
};
template <class P>
concept knows_its_blocks = requires(P policy, void const* memory) {
  policy.owns(memory);
};
template <class P>
concept knows_its_pool = requires(P policy, void const* memory) {
  policy.contains(memory);
};
template <class P>
concept counts_slots = requires(P policy, size_t bytes) {
  policy.available_slots(bytes);
};
template <class P>
concept counts_slots_by_warp = requires(P policy, lane_mask mask, size_t bytes) {
  policy.available_slots_warp(mask, bytes);
};
template <class P>
concept creates_aligned = requires(P policy, size_t bytes) {
  policy.create_aligned(bytes, bytes);
};
template <class P>
concept creates_by_warp = requires(P policy, lane_mask mask, size_t bytes) {
  policy.create_warp(mask, bytes);
};

namespace detail {

/// Slots counted by the lanes of `mask`, each for its own size. Lanes with the same size and heap
/// share the work. All lanes of `mask` call.
template <counts_slots_in_parts Creation>
WARPHEAP_DEVICE u64 count_slots_by_warp(Creation const& heap, lane_mask mask, size_t bytes) {
  return count_slots_together(heap, simt::match_any(lanes_with_same(mask, heap), u64{bytes}), bytes);
}

}  // namespace detail

/// For an out-of-memory policy that itself supplies the caller's result. The policy is constructed
/// for each failure and takes no room: as a member with [[no_unique_address]] it moved the kernel's
/// other parameters under nvcc 13.0.
template <class Creation, class Oom>
class block_source {
 public:
  static constexpr allocator_traits traits = traits_through<Oom>(Creation::traits);

  block_source() = default;
  WARPHEAP_HOST_DEVICE explicit block_source(Creation creation, Oom = {}) : creation_{creation} {}

  WARPHEAP_DEVICE void* create(size_t bytes) const { return or_else(creation_.create(bytes), bytes); }
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const requires creates_aligned<Creation> {
    return or_else(creation_.create_aligned(alignment, bytes), bytes);
  }
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const requires creates_by_warp<Creation> {
    return or_else(creation_.create_warp(mask, bytes), bytes);
  }
  WARPHEAP_DEVICE void destroy(void* memory) const { creation_.destroy(memory); }

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const requires knows_block_size<Creation> {
    return creation_.usable_size(memory);
  }
  WARPHEAP_DEVICE bool owns(void const* memory) const requires knows_its_blocks<Creation> {
    return creation_.owns(memory);
  }
  WARPHEAP_DEVICE bool contains(void const* memory) const requires knows_its_pool<Creation> {
    return creation_.contains(memory);
  }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires counts_slots<Creation> {
    return creation_.available_slots(bytes);
  }
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask,
                                           size_t bytes) const requires counts_slots_in_parts<Creation> {
    return detail::count_slots_by_warp(creation_, mask, bytes);
  }

  WARPHEAP_HOST_DEVICE Creation const& creation() const { return creation_; }

 private:
  /// An assignment instead of a conditional expression takes fewer registers (nvcc 13.0, sm_90).
  WARPHEAP_DEVICE void* or_else(void* memory, size_t bytes) const {
    if (!memory) memory = bytes ? Oom{}.handle(bytes) : nullptr;
    return memory;
  }

  Creation creation_;
};

namespace detail {

struct refuse {
  WARPHEAP_DEVICE static void* handle(size_t) { return nullptr; }
};

/// What an out-of-memory policy may do before the next attempt.
template <class Creation>
struct pool_access {
  Creation creation;

  /// Makes blocks of the committed bytes in [from, to) of a growing pool.
  WARPHEAP_DEVICE void add_committed(u64 from, u64 to) const { creation.add_committed(from, to); }
  /// Makes a free that another thread has posted.
  WARPHEAP_DEVICE void give_back(void* memory) const { creation.destroy(memory); }
};

}  // namespace detail

/// For an out-of-memory policy that makes blocks free or waits for some: the creation policy is
/// tried again until the out-of-memory policy gives up.
template <class Creation, retries Oom>
class block_source<Creation, Oom> : public block_source<Creation, detail::refuse> {
  using asked_once = block_source<Creation, detail::refuse>;

 public:
  static constexpr allocator_traits traits = traits_through<Oom>(Creation::traits);

  block_source() = default;
  WARPHEAP_HOST_DEVICE explicit block_source(Creation creation, Oom oom = {}) : asked_once{creation}, oom_{oom} {}

  WARPHEAP_DEVICE void* create(size_t bytes) const { return or_again(asked_once::create(bytes), 1, bytes); }
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const requires creates_aligned<Creation> {
    return or_again(asked_once::create_aligned(alignment, bytes), alignment, bytes);
  }
  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const requires creates_by_warp<Creation> {
    return or_again(asked_once::create_warp(mask, bytes), 1, bytes);
  }

  WARPHEAP_HOST_DEVICE Oom const& oom() const { return oom_; }

 private:
  WARPHEAP_DEVICE void* or_again(void* memory, size_t alignment, size_t bytes) const {
    if (!memory && bytes) memory = try_again(*this, alignment, bytes);
    return memory;
  }

  WARPHEAP_COLD static void* try_again(block_source self, size_t alignment, size_t bytes) {
    Creation const creation = self.creation();
    auto mine = self.oom_.begin(bytes);
    void* memory = nullptr;
    WARPHEAP_NO_UNROLL
    while (!memory && self.oom_.more_may_be_there(mine, bytes, detail::pool_access<Creation>{creation})) {
      if (alignment == 1) memory = creation.create(bytes);
      else if constexpr (creates_aligned<Creation>) memory = creation.create_aligned(alignment, bytes);
    }
    return memory;
  }

  Oom oom_;
};

/// For an out-of-memory policy with a second allocator. A block in the creation policy's pool is
/// that policy's; any other is the second allocator's.
template <class Creation, overflow_policy Oom>
class block_source<Creation, Oom> {
  using second_type = typename Oom::second_type;

 public:
  static constexpr allocator_traits traits = traits_through<Oom>(Creation::traits);

  block_source() = default;
  WARPHEAP_HOST_DEVICE explicit block_source(Creation creation, Oom oom = {}) : creation_{creation}, oom_{oom} {}

  WARPHEAP_DEVICE void* create(size_t bytes) const {
    void* const memory = creation_.create(bytes);
    if (memory || !bytes) return memory;
    return oom_.handle([=](second_type const& second) { return second.malloc(bytes); });
  }

  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const
      requires(creates_aligned<Creation>&& requires(second_type second) { second.aligned_alloc(alignment, bytes); }) {
    void* const memory = creation_.create_aligned(alignment, bytes);
    if (memory || !bytes) return memory;
    return oom_.handle([=](second_type const& second) { return second.aligned_alloc(alignment, bytes); });
  }

  WARPHEAP_DEVICE void* create_warp(lane_mask mask, size_t bytes) const requires creates_by_warp<Creation> {
    void* const memory = creation_.create_warp(mask, bytes);
    if (memory || !bytes) return memory;
    return oom_.handle([=](second_type const& second) { return second.malloc(bytes); });
  }

  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    if (!oom_.first_holds(memory)) return oom_.second().free(memory);
    creation_.destroy(memory);
  }

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const
      requires(knows_block_size<Creation>&& knows_block_size<second_type>) {
    return oom_.first_holds(memory) ? creation_.usable_size(memory) : oom_.second().usable_size(memory);
  }
  WARPHEAP_DEVICE bool owns(void const* memory) const
      requires(knows_its_blocks<Creation>&& knows_its_blocks<second_type>) {
    return oom_.first_holds(memory) ? creation_.owns(memory) : oom_.second().owns(memory);
  }
  WARPHEAP_DEVICE bool contains(void const* memory) const
      requires(knows_its_pool<Creation>&& knows_its_pool<second_type>) {
    return oom_.first_holds(memory) ? creation_.contains(memory) : oom_.second().contains(memory);
  }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires(counts_slots<Creation>&& counts_slots<second_type>) {
    return creation_.available_slots(bytes) + oom_.second().available_slots(bytes);
  }
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask, size_t bytes) const
      requires(counts_slots_in_parts<Creation>&& counts_slots_by_warp<second_type>) {
    return detail::count_slots_by_warp(creation_, mask, bytes) + oom_.second().available_slots_warp(mask, bytes);
  }

  WARPHEAP_HOST_DEVICE Creation const& creation() const { return creation_; }
  WARPHEAP_HOST_DEVICE Oom const& oom() const { return oom_; }

 private:
  Creation creation_;
  Oom oom_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
