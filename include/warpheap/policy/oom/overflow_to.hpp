// A second heap for what the first has no room for: a small pool in fast memory, and a large one in the host's behind it.
//
// A request goes to the first; refused there, to the second. A pointer is the first's if it lies in the first's pool, else
// the second's. nullptr means that at one instant both were full: when both have refused, both are asked again, and only
// if no block came back to the first between its refusal and the second's is that the answer.
//
//   V1  every free into the first raises a counter after the block is free and before the call returns.
//   V2  nullptr only if the counters were the same before the first's refusal and after the second's.
//
// Cost: two comparisons and an atomic a warp to free, 40 bytes more by value. The counters are 8, for
// multiprocessors to share: one address takes about a billion atomics a second. docs/design/overflow.md.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "../memory_range.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace oom {

/// Tuning of overflow_to.
struct overflow_config {
  /// Of a heap made with one size, how much is the second's, 1 to 15 sixteenths.
  u32 second_sixteenths = 8;
};

/// Overflow to an allocator of type `Second`, with a reserve pool of its own.
template <class Second, overflow_config Config = overflow_config{}>
class overflow_to {
  static_assert(Config.second_sixteenths >= 1 && Config.second_sixteenths <= 15,
                "overflow_to: the second heap's part is 1 to 15 sixteenths");

 public:
  static constexpr char const* name = "overflow_to";
  using second_type = Second;

  overflow_to() = default;
  /// For a first heap that lies in `first`; `state` are state_bytes bytes, zero, at a multiple of 128.
  WARPHEAP_HOST_DEVICE overflow_to(Second second, memory_range first, void* state)
      : second_{second}, first_{first}, state_{static_cast<u64*>(state)} {}

  /// What both promise. No block spans both.
  template <class Traits>
  WARPHEAP_HOST_DEVICE static constexpr Traits leaves(Traits first) {
    constexpr auto lesser = [](size_t a, size_t b) { return a < b ? a : b; };
    Traits const second = Second::traits;
    Traits left = first;
    left.alignment = lesser(first.alignment, second.alignment);
    left.self_aligned_up_to = lesser(first.self_aligned_up_to, second.self_aligned_up_to);
    if constexpr (requires { left.multiples_aligned_up_to; })
      left.multiples_aligned_up_to = lesser(first.multiples_aligned_up_to, second.multiples_aligned_up_to);
    left.detects_misuse = first.detects_misuse && second.detects_misuse;
    left.exact_out_of_memory = first.exact_out_of_memory && second.exact_out_of_memory;
    left.whole_pool = false;
    if constexpr (requires { left.largest_bytes; })
      left.largest_bytes = lesser(first.largest_bytes, second.largest_bytes);
    return left;
  }

  /// What the second has for a request that the first refused: `ask_second(second)`, and if that is nothing, whichever of
  /// the two first has room. nullptr if at one instant neither had.
  template <class AskFirst, class AskSecond>
  WARPHEAP_DEVICE void* handle(AskFirst ask_first, AskSecond ask_second) const {
    void* memory = ask_second(second_);
    while (!memory) {
      u64 const before = frees_seen();
      memory = ask_first();
      if (!memory) memory = ask_second(second_);
      if (!memory && frees() == before) break;  // V2
    }
    // relaxed: a count.
    if (!memory) atomic_ref<u64>{state_[failures_at]}.fetch_add(1, order::relaxed);
    return memory;
  }

  WARPHEAP_DEVICE bool first_holds(void const* memory) const { return first_.contains(memory); }
  WARPHEAP_HOST_DEVICE memory_range first() const { return first_; }
  WARPHEAP_HOST_DEVICE Second const& second() const { return second_; }

  /// The lanes here have given blocks back to the first. All of theirs are free before any of them goes on.
  WARPHEAP_DEVICE void note_frees() const {
    lane_group const group = group_by(simt::active_mask(), reinterpret_cast<u64>(state_));
    simt::sync_warp(group.mask);
    // V1. release: the blocks are free before; pairs with the acquire in frees().
    if (group.leads) counter(simt::sm_id()).fetch_add(1, order::release);
    simt::sync_warp(group.mask);
  }

#if !defined(__CUDACC_RTC__)
  /// Of `bytes` bytes, those for the second.
  static constexpr size_t second_part(size_t bytes) { return bytes / 16 * Config.second_sixteenths; }

  static constexpr size_t state_bytes = 128 * 9;

  /// Forgets what was counted, in order on stream `on`.
  void initialize(stream_view on) const { backend::fill_bytes(state_, 0, state_bytes, on); }

  /// Calls that got nullptr.
  u64 failures() const {
    u64 count = 0;
    backend::copy_bytes(&count, state_ + failures_at, sizeof count);
    return count;
  }
#endif

 private:
  static constexpr u32 counters = 8;
  static constexpr u32 words_apart = 16;
  static constexpr u32 failures_at = counters * words_apart;

  WARPHEAP_DEVICE atomic_ref<u64> counter(u32 which) const {
    return atomic_ref<u64>{state_[which % counters * words_apart]};
  }

  /// How often blocks came back to the first, or fewer.
  WARPHEAP_DEVICE u64 frees_seen() const {
    u64 sum = 0;
    // acquire: pairs with the release in note_frees(): what was counted is free.
    for (u32 which = 0; which < counters; ++which) sum += counter(which).load(order::acquire);
    return sum;
  }

  /// How often, up to now: read by additions of 0, which see the newest count where a load may not.
  WARPHEAP_DEVICE u64 frees() const {
    u64 sum = 0;
    // relaxed: a number to compare; if it differs, frees_seen() follows.
    for (u32 which = 0; which < counters; ++which) sum += counter(which).fetch_add(0, order::relaxed);
    return sum;
  }

  Second second_;
  memory_range first_;
  u64* state_ = nullptr;  ///< the counters, 128 bytes apart, and the failures
};

}  // namespace oom
}  // namespace warpheap::inline WARPHEAP_BACKEND
