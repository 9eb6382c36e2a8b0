// SPDX-License-Identifier: Apache-2.0
// The owner of a heap, on the host: makes it, resets it, answers queries about it, and gives
// kernels a reference by value.
#pragma once

#include "allocator.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <concepts>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../platform/errors.hpp"
#include "../policy/creation/report.hpp"
#include "../policy/creation/slot_survey.hpp"
#include "../policy/reserve_pool/device_memory.hpp"
#include "placement.hpp"
#include "pool_growth.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
class basic_heap;

namespace detail {

struct image_access;

/// The type of the second heap behind one that overflows; for any other heap, a type that takes no
/// memory.
template <class Oom>
struct second_heap_of {
  struct type {
    static constexpr bool takes_snapshots = true;
    static constexpr u32 memory_pieces = 0;
  };
};
template <overflow_policy Oom>
struct second_heap_of<Oom> {
  using type = basic_heap<typename Oom::second_type>;
};

}  // namespace detail

/// Policies that info() can describe.
template <class P>
concept named_policy = requires {
  P::name;
};

namespace detail {

/// A policy's name, with its configuration if `describe(config)` is declared beside the
/// configuration's type. An alignment policy's configuration is its bytes. A policy around another
/// includes the other's text.
template <named_policy P>
std::string name_of_policy() {
  std::string text = P::name;
  if constexpr (requires { describe(P::config); }) text += "<" + describe(P::config) + ">";
  else if constexpr (alignment_policy<P>) text += "<" + std::to_string(P::bytes) + ">";
  if constexpr (requires { typename P::below_type; }) text += " over " + name_of_policy<typename P::below_type>();
  return text;
}

}  // namespace detail

/// Owns a pool and the allocator that manages it. Movable. Must outlive every kernel and every CUDA
/// graph that uses it. Host functions do not wait; unless they say otherwise, call them when no
/// kernel that uses the heap is running.
template <class Allocator>
class basic_heap {
  template <class>
  friend class basic_heap;
  friend struct detail::image_access;

 public:
  /// The five policies together, as kernels hold them.
  using allocator_type = Allocator;
  /// How a block is created.
  using creation_type = typename Allocator::creation_type;
  /// How a warp's requests are distributed.
  using distribution_type = typename Allocator::distribution_type;
  /// What a call does when there is no memory.
  using oom_type = typename Allocator::oom_type;
  /// Where the pool comes from.
  using reserve_pool_type = typename Allocator::reserve_pool_type;
  /// How sizes are padded.
  using alignment_type = typename Allocator::alignment_type;
  /// What ref() returns.
  using ref_type = Allocator;
  /// The heap behind this one, if it overflows.
  using second_heap_type = typename detail::second_heap_of<oom_type>::type;

  static_assert(reserve_pool_policy<reserve_pool_type>);

  /// Whether a second heap serves requests that this one refuses.
  static constexpr bool overflows = overflow_policy<oom_type>;
  /// Whether the distribution policy divides blocks into parts.
  static constexpr bool frames = frames_parts<distribution_type>;
  /// Whether for_each_live() can list what callers hold.
  static constexpr bool knows_parts = frames || hands_out_as_created<distribution_type>;
  /// Whether statistics() and check_invariants() exist.
  static constexpr bool takes_snapshots = warpheap::takes_snapshots<creation_type> && second_heap_type::takes_snapshots;

  /// Pieces of memory of this heap and the one behind it; 0 for the toolkit's.
  static constexpr u32 memory_pieces =
      (requires { creation_type::uses_toolkit_heap; } ? 0 : 1) + second_heap_type::memory_pieces;

  /// Whether all five policies have a name.
  static constexpr bool named_policies = named_policy<creation_type> && named_policy<distribution_type> &&
                                         named_policy<oom_type> && named_policy<reserve_pool_type> &&
                                         named_policy<alignment_type>;

  /// The smallest pool.
  static constexpr size_t minimum_bytes = detail::placement<Allocator>::minimum_bytes;

  /// A heap whose blocks come from `bytes` bytes, rounded down to whole slabs; metadata comes on
  /// top (info() says how much). With a second heap behind it, `bytes` counts both. Throws
  /// std::invalid_argument below minimum_bytes, out_of_memory if the device lacks the memory, and
  /// cuda_error while a stream is being captured.
  explicit basic_heap(size_t bytes) requires(
      acquiring_pool<reserve_pool_type>&& std::default_initializable<reserve_pool_type>)
      : basic_heap{unchecked{}, checked(bytes)} {}

  /// A heap of `bytes` bytes from a reserve pool that exists already: a memory_resource that holds
  /// its resource. Throws as the constructor above.
  basic_heap(size_t bytes, reserve_pool_type reserve) requires(acquiring_pool<reserve_pool_type> &&
                                                               !growing_pool<reserve_pool_type> && !overflows)
      : reserve_{std::move(reserve)} {
    build(checked(bytes));
  }

  /// A heap whose pool grows: `reserve` says how large it is at first, and how large it may become.
  /// grow() and trim() change its size. Throws as the constructor above.
  explicit basic_heap(reserve_pool_type reserve) requires(growing_pool<reserve_pool_type> && !overflows)
      : reserve_{std::move(reserve)} {
    build(checked(reserve_.limit()));
  }

  /// A heap in the `bytes` bytes at `memory`. Its pool is what remains after aligning the start and
  /// placing the metadata; pool_bytes() says how much. Throws std::invalid_argument if that is
  /// below minimum_bytes.
  basic_heap(void* memory, size_t bytes) requires(given_pool<reserve_pool_type> && !overflows)
      : reserve_{memory, bytes} {
    build_in(reserve_.range());
  }

  /// A heap whose blocks come from `bytes` bytes and, when those are all taken, from `second`.
  basic_heap(size_t bytes, second_heap_type second) requires(overflows&& std::default_initializable<reserve_pool_type>)
      : second_{std::move(second)} {
    build(checked(bytes));
  }
  /// A heap in the `bytes` bytes at `memory` that takes blocks from `second` when its own are all
  /// taken.
  basic_heap(void* memory, size_t bytes, second_heap_type second) requires(overflows&& given_pool<reserve_pool_type>)
      : second_{std::move(second)}, reserve_{memory, bytes} {
    build_in(reserve_.range());
  }

  /// The reference that kernels take by value: trivially copyable, 16 bytes by default, valid as
  /// long as the heap lives.
  ref_type ref() const noexcept { return ref_; }

  /// Device address of a copy of ref(), for the C entry points.
  u64 handle() const noexcept { return reinterpret_cast<u64>(handle_); }

  /// Frees everything at once, in order on stream `on`; does not wait. May be captured in a CUDA
  /// graph.
  void reset(stream_view on = {}) {
    initialize(on);
    if constexpr (overflows) second_.reset(on);
  }

  /// Maps memory for at least `bytes` bytes more of the pool, or for all that is left below its
  /// limit, and makes blocks of it in order on stream `on`, beside kernels that use the heap. Does
  /// not wait. Returns how many bytes were mapped. Throws out_of_memory, and changes nothing, if
  /// the device lacks the memory. No other thread may call reset() meanwhile.
  size_t grow(size_t bytes, stream_view on = {}) requires growing_pool<reserve_pool_type> {
    return growth_.grow(ref_.creation(), reserve_, bytes, on);
  }

  /// Unmaps memory: the mappings at the end of the pool that hold no live block, but never the
  /// initial memory. Waits for the default stream. No kernel that uses the heap may be running.
  /// Returns how many bytes were unmapped.
  size_t trim() requires growing_pool<reserve_pool_type> { return growth_.trim(ref_.creation(), reserve_); }

  /// Grows as much as calls have requested since the last poll() or serve(), as far as there is
  /// memory, and makes blocks of that and of what a service has mapped, in order on stream `on`. It
  /// grows by no more than one kernel's threads could lack at one time: a thread that tries again
  /// counts once, with its kernel's largest refused request. Does not wait, and reads only one word
  /// if there is nothing to do. Returns how many bytes were mapped.
  size_t poll(stream_view on = {}) requires(growing_pool<reserve_pool_type>&& requests_growth<oom_type>) {
    return growth_.poll(ref_.creation(), reserve_, on);
  }

  /// poll() for a host thread that serves a kernel waiting for memory: it launches nothing, and the
  /// waiting threads make blocks of the mapped memory. growth_service calls it.
  size_t serve() requires(growing_pool<reserve_pool_type>&& requests_growth<oom_type>) {
    return growth_.serve(reserve_);
  }

  /// Bytes that refused calls have requested since the heap was made, counting each try, but not
  /// requests above pool_bytes(), which no growth can serve: statistics() counts those among the
  /// failures. May be read at any time, also while kernels run.
  u64 requested_bytes() const requires(growing_pool<reserve_pool_type>&& requests_growth<oom_type>) {
    return growth_.requested_bytes();
  }

  /// Bytes of the pool that have memory, at most pool_bytes().
  size_t committed_bytes() const requires growing_pool<reserve_pool_type> { return growth_.committed(reserve_); }

  /// Bytes of the pool that blocks come from. For a growing pool, this is its limit.
  size_t pool_bytes() const {
    if constexpr (overflows) return ref_.creation().pool_bytes() + second_.pool_bytes();
    else return ref_.creation().pool_bytes();
  }
  /// Bytes of everything outside the pool.
  size_t metadata_bytes() const {
    if constexpr (overflows) return ref_.creation().metadata_bytes() + oom_type::state_bytes + second_.metadata_bytes();
    else if constexpr (keeps_state<oom_type>)
      return ref_.creation().metadata_bytes() + oom_type::state_bytes_for(memory_.bytes);
    else return ref_.creation().metadata_bytes();
  }

  /// The memory_pieces pieces of memory: every block and all metadata are in one of them.
  std::vector<memory_range> memory() const {
    std::vector<memory_range> pieces;
    if (memory_.begin) pieces.push_back(memory_);
    if constexpr (overflows)
      for (auto const& piece : second_.memory()) pieces.push_back(piece);
    return pieces;
  }

  /// The heap behind this one.
  second_heap_type const& second() const requires overflows { return second_; }

  /// Counts of a quiet heap. If a distribution policy puts several blocks into one, live blocks and
  /// bytes are what callers hold, and `failures` also counts refusals to several lanes together.
  heap_statistics statistics() const requires takes_snapshots {
    heap_statistics counted = ref_.creation().snapshot().statistics();
    if constexpr (overflows) {
      counted += second_.statistics();
      counted.failures = ref_.oom().failures();
    }
    if constexpr (frames) {
      counted.live_blocks = counted.live_bytes = 0;
      for_each_live([&](void*, size_t bytes) {
        ++counted.live_blocks;
        counted.live_bytes += bytes;
      });
    }
    return counted;
  }

  /// statistics() of a quiet heap and, of the same moment, live blocks by size, the largest block
  /// that a call could get, and the largest that was refused.
  heap_snapshot snapshot() const
      requires(!overflows && hands_out_as_created<distribution_type> && knows_largest<creation_type>) {
    auto const seen = ref_.creation().snapshot();
    heap_snapshot told{seen.statistics(), {}};
    std::map<size_t, u64> blocks_of;
    seen.for_each_live([&](void*, size_t bytes) { ++blocks_of[bytes]; });
    for (auto const& [bytes, blocks] : blocks_of) told.sizes.push_back({bytes, blocks});
    told.largest_available = seen.largest_available();
    told.largest_failed_bytes = seen.largest_failed_bytes();
    return told;
  }

  /// Blocks of `bytes` that could be allocated now, by lanes that call alone.
  u64 available_slots(size_t bytes) const requires(knows_parts&& counts_slots_in_parts<creation_type>) {
    u64 count = count_slots_by_grid(ref_.creation(), Allocator::created_bytes(bytes));
    if constexpr (overflows) count += second_.available_slots(Allocator::created_bytes(bytes));
    return count;
  }

  /// The violated invariants of a quiet heap; none if all is well.
  invariant_report check_invariants() const requires takes_snapshots {
    auto report = ref_.creation().snapshot().check_invariants();
    if constexpr (overflows)
      for (auto const& violated : second_.check_invariants()) report.push_back("second heap: " + violated);
    return report;
  }

  /// Calls `visit(address, bytes)` on the host for every live block of a quiet heap, in address
  /// order.
  template <class Visitor>
  void for_each_live(Visitor visit) const requires(knows_parts&& takes_snapshots) {
    if constexpr (frames) {
      std::vector<u64> created;
      for_each_created([&](void* memory, size_t) { created.push_back(reinterpret_cast<u64>(memory)); });
      distribution_type::for_each_live_sub_block(created, visit);
    } else {
      for_each_created(visit);
    }
  }

  /// The policies' names and configurations, and the sizes, with `separator` between them: heaps
  /// that differ in any of these have different texts.
  std::string info(std::string const& separator = "; ") const requires named_policies {
    std::string text = policies_text(separator);
    text += separator + "pool " + std::to_string(ref_.creation().pool_bytes()) + " bytes";
    text += separator + "metadata " + std::to_string(ref_.creation().metadata_bytes()) + " bytes";
    if constexpr (growing_pool<reserve_pool_type>)
      text += separator + "committed " + std::to_string(committed_bytes()) + " bytes";
    if constexpr (overflows) text += separator + "second heap: " + second_.info(separator);
    return text;
  }

 private:
  using placement = detail::placement<Allocator>;
  struct unchecked {};

  static std::string policies_text(std::string const& separator) requires named_policies {
    std::string text = "creation " + detail::name_of_policy<creation_type>();
    text += separator + "distribution " + detail::name_of_policy<distribution_type>();
    text += separator + "oom " + detail::name_of_policy<oom_type>();
    text += separator + "reserve_pool " + detail::name_of_policy<reserve_pool_type>();
    text += separator + "alignment " + detail::name_of_policy<alignment_type>();
    return text;
  }

  /// A heap of `bytes` bytes, which both heaps share if there are two, without a minimum.
  basic_heap(unchecked, size_t bytes) : second_{second_of(bytes)} { build(bytes - bytes_of_second(bytes)); }

  static size_t checked(size_t bytes) {
    if (bytes >= minimum_bytes) return bytes;
    throw std::invalid_argument{"heap of " + std::to_string(bytes) + " bytes: the least is " +
                                std::to_string(minimum_bytes)};
  }

  static size_t bytes_of_second(size_t bytes) {
    if constexpr (overflows) return oom_type::second_part(bytes);
    else return 0;
  }
  static second_heap_type second_of(size_t bytes) {
    if constexpr (overflows) return {typename second_heap_type::unchecked{}, bytes_of_second(bytes)};
    else return {};
  }

  void build(size_t bytes) {
    size_t const whole = placement::whole_bytes(bytes) + alignment_type::bytes;
    memory_range const memory{reserve_.acquire(whole), whole};
    place(memory.begin ? alignment_type::align_pool(memory).begin : nullptr, bytes);
  }

  void build_in(memory_range given) {
    memory_range const memory = alignment_type::align_pool(given);
    if (memory.bytes < placement::whole_bytes(minimum_bytes))
      throw std::invalid_argument{"heap in " + std::to_string(given.bytes) + " bytes of memory: the least is " +
                                  std::to_string(placement::whole_bytes(minimum_bytes) + alignment_type::bytes)};
    place(memory.begin, placement::pool_that_fits(memory.bytes));
  }

  /// Makes the heap at `memory`, which is nullptr if the blocks are in no pool.
  void place(void* memory, size_t bytes) {
    size_t const required = creation_type::required_bytes(bytes);
    auto const creation = creation_type::place(memory, bytes);
    void* const end = memory ? static_cast<u8*>(memory) + required : beside_.acquire(3 * placement::tail_alignment);
    u8* const tail = placement::tail_after(reinterpret_cast<u64>(end));
    if constexpr (growing_pool<reserve_pool_type>) growth_.place(tail + placement::oom_bytes(bytes), reserve_);
    if constexpr (overflows) ref_ = ref_type{creation, oom_type{second_.ref(), {memory, required}, tail}};
    else if constexpr (requests_growth<oom_type>) ref_ = ref_type{creation, oom_type{growth_.state()}};
    else if constexpr (keeps_state<oom_type>)
      ref_ = ref_type{creation, oom_type::place(tail, blocks_of(creation, {memory, required}))};
    else ref_ = ref_type{creation};
    handle_ = tail + placement::state_bytes(bytes);
    memory_ = {memory, memory ? required : 0};
    auto const stamp = detail::layout_stamp::of<Allocator>(creation.pool_bytes(), creation.metadata_bytes());
    backend::copy_bytes(reinterpret_cast<void*>(detail::layout_stamp::address(handle())), &stamp, sizeof stamp);
    backend::copy_bytes(handle_, &ref_, sizeof ref_);
    initialize({});
    synchronize(stream_view{});
  }

  /// Where blocks may be: the pool, or all memory of a creation policy that does not say where in
  /// it the pool is.
  static memory_range blocks_of([[maybe_unused]] creation_type const& creation, [[maybe_unused]] memory_range whole) {
    if constexpr (requires { creation.untouched_pool(); }) return creation.untouched_pool();
    else return whole;
  }

  void initialize(stream_view on) {
    if constexpr (growing_pool<reserve_pool_type>) ref_.creation().initialize(on, growth_.committed_word());
    else ref_.creation().initialize(on);
    if constexpr (overflows) ref_.oom().initialize(on);
    if constexpr (keeps_state<oom_type>) ref_.oom().initialize(memory_.bytes, on);
    if constexpr (Allocator::guards_access) guard_.close(ref_.creation().untouched_pool(), on);
  }

  /// Calls visit(address, bytes) for every live block as it was created, in address order.
  template <class Visitor>
  void for_each_created(Visitor visit) const {
    if constexpr (overflows) {
      std::vector<std::pair<void*, size_t>> created;
      auto const note = [&](void* memory, size_t bytes) { created.emplace_back(memory, bytes); };
      ref_.creation().snapshot().for_each_live(note);
      second_.for_each_live(note);
      std::sort(created.begin(), created.end());
      for (auto const& [memory, bytes] : created) visit(memory, bytes);
    } else {
      ref_.creation().snapshot().for_each_live(visit);
    }
  }

  second_heap_type second_;  ///< destroyed last: our frees may still go there
  reserve_pool_type reserve_;
  reserve_pool::device_memory beside_;  ///< holds the copy of ref() if there is no pool
  ref_type ref_;
  void* handle_ = nullptr;
  [[no_unique_address]] detail::pool_growth<creation_type, reserve_pool_type, oom_type> growth_;
  memory_range memory_;
  detail::pool_guard guard_;  ///< destroyed before the pool
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
