// SPDX-License-Identifier: Apache-2.0
// A second heap for requests that do not fit in the first: for example, a small pool in fast
// memory, and behind it a large one in host memory.
//
// A request goes to the first heap and, if refused there, to the second. A pointer is the first's
// if it lies in the first's pool, else the second's. nullptr means that both refused, one after the
// other: no suitable block of either stayed free during the whole call. Each is tried once, so a
// refusal costs two.
//
// Cost: two comparisons per free, 40 more bytes by value. docs/guide/policies/out_of_memory.md.
#pragma once

#include "../../platform/simt.hpp"
#include "../config_text.hpp"
#include "../memory_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace oom {

/// Settings of overflow_to.
struct overflow_config {
  /// The second heap's share if both are made with one size: 1 to 15 sixteenths.
  u32 second_sixteenths = 8;
};

#if !defined(__CUDACC_RTC__)
/// For info().
inline std::string describe(overflow_config const& config) {
  return config_text("second_sixteenths", config.second_sixteenths);
}
#endif

/// Overflow to an allocator of type `Second`, which has its own reserve pool.
template <class Second, overflow_config Config = overflow_config{}>
class overflow_to {
  static_assert(Config.second_sixteenths >= 1 && Config.second_sixteenths <= 15,
                "overflow_to: the second heap's part is 1 to 15 sixteenths");

 public:
  static constexpr char const* name = "overflow_to";
  static constexpr overflow_config config = Config;
  using second_type = Second;

  overflow_to() = default;
  /// For a first heap that lies in `first`; `state` are state_bytes bytes, zero, aligned to 8.
  WARPHEAP_HOST_DEVICE overflow_to(Second second, memory_range first, void* state)
      : second_{second}, first_{first}, failures_{static_cast<u64*>(state)} {}

  /// The promises of both. No block spans both.
  template <class Traits>
  WARPHEAP_HOST_DEVICE static constexpr Traits adjust(Traits first) {
    constexpr auto lesser = [](size_t a, size_t b) { return a < b ? a : b; };
    Traits const second = Second::traits;
    Traits left = first;
    left.alignment = lesser(first.alignment, second.alignment);
    left.self_aligned_up_to = lesser(first.self_aligned_up_to, second.self_aligned_up_to);
    if constexpr (requires { left.multiples_aligned_up_to; })
      left.multiples_aligned_up_to = lesser(first.multiples_aligned_up_to, second.multiples_aligned_up_to);
    // Code that has the second heap alone may also call it without padding.
    if constexpr (requires { left.padded_aligned_up_to; })
      left.padded_aligned_up_to =
          lesser(first.padded_aligned_up_to > first.multiples_aligned_up_to ? first.padded_aligned_up_to
                                                                            : first.multiples_aligned_up_to,
                 second.multiples_aligned_up_to > second.alignment ? second.multiples_aligned_up_to : second.alignment);
    left.detects_misuse = first.detects_misuse && second.detects_misuse;
    left.exact_out_of_memory = first.exact_out_of_memory && second.exact_out_of_memory;
    if constexpr (requires { left.one_pass_refusals; })
      left.one_pass_refusals = first.one_pass_refusals && second.one_pass_refusals;
    left.whole_pool = false;
    if constexpr (requires { left.largest_bytes; })
      left.largest_bytes = lesser(first.largest_bytes, second.largest_bytes);
    return left;
  }

  /// Serves a request that the first heap refused, by `ask_second(second)`.
  template <class AskSecond>
  WARPHEAP_DEVICE void* handle(AskSecond ask_second) const {
    void* const memory = ask_second(second_);
    // relaxed: a count.
    if (!memory) atomic_ref<u64>{*failures_}.fetch_add(1, order::relaxed);
    return memory;
  }

  WARPHEAP_DEVICE bool first_holds(void const* memory) const { return first_.contains(memory); }
  WARPHEAP_HOST_DEVICE memory_range first() const { return first_; }
  WARPHEAP_HOST_DEVICE Second const& second() const { return second_; }

#if !defined(__CUDACC_RTC__)
  /// Bytes that the second heap gets of `bytes`.
  static constexpr size_t second_part(size_t bytes) { return bytes / 16 * Config.second_sixteenths; }

  static constexpr size_t state_bytes = 128;

  /// Clears the counts, in order on stream `on`.
  void initialize(stream_view on) const { backend::fill_bytes(failures_, 0, state_bytes, on); }

  /// Calls that got nullptr.
  u64 failures() const {
    u64 count = 0;
    backend::copy_bytes(&count, failures_, sizeof count);
    return count;
  }
#endif

 private:
  Second second_;
  memory_range first_;
  u64* failures_ = nullptr;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::oom
