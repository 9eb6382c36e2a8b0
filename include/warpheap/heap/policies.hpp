// SPDX-License-Identifier: Apache-2.0
// The requirements of an allocator's five slots, and which policies go together. Policies never see
// each other. What one requires of another is a concept here over both, so that the compiler's
// message names both.
//
// A policy may have more than its slot requires: `adjust(traits)`, which turns the promises of the
// policies behind it into its own, and `goes_with<Other>`, false for a policy of another slot that
// it cannot work with. docs/design/heap.md has a table of a creation policy's optional members; the
// allocator then has them too. Source: Eckert 2014, chapter 3 and section 4.2 (contracts,
// PolicyConstraints).
#pragma once

#include "../platform/simt.hpp"
#include "../policy/creation/report.hpp"
#include "../policy/memory_range.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The creation slot: a trivially copyable handle whose copies serve one heap. create() returns
/// nullptr for 0 bytes and for a request that it cannot serve; destroy(nullptr) does nothing.
template <class P>
concept creation_policy = requires(P policy, size_t bytes, void* memory) {
  P::traits.alignment;
  { policy.create(bytes) } -> same_type<void*>;
  policy.destroy(memory);
};

/// One object serves one call. collect() returns how many bytes to request from the creation
/// policy. distribute() turns the created block into this lane's result. release() turns the
/// address that a caller frees into the block to destroy, or nullptr if there is none yet.
template <class P>
concept distribution_policy = requires(P policy, size_t bytes, void* memory) {
  { policy.collect(bytes) } -> same_type<size_t>;
  { policy.distribute(memory) } -> same_type<void*>;
  { P::release(memory) } -> same_type<void*>;
};

/// Distribution policies that change nothing.
template <class P>
concept hands_out_as_created = distribution_policy<P> && P::hands_out_as_created;

/// A filter for a distribution policy, which keeps the lanes of a mask that call with the same
/// heap. This one keeps all lanes.
struct all_lanes {
  WARPHEAP_DEVICE lane_mask operator()(lane_mask active) const { return active; }
};

/// Distribution policies that divide created blocks into one or several parts, and recognise each
/// part by its address. A request refused to several lanes together is repeated by each lane alone.
template <class P>
concept frames_parts = distribution_policy<P> && requires(P policy, lane_mask mask, size_t bytes, void* memory) {
  { policy.collect(bytes, all_lanes{}) } -> same_type<size_t>;
  { policy.collect_warp(mask, bytes, all_lanes{}) } -> same_type<size_t>;
  { policy.combined() } -> same_type<bool>;
  { P::framed_bytes(bytes, bytes) } -> same_type<size_t>;
  { P::frame(memory, bytes, bytes) } -> same_type<void*>;
  { P::usable_size(memory) } -> same_type<size_t>;
  { P::created(memory) } -> same_type<void*>;
};

/// Out-of-memory policies with a second allocator.
template <class P>
concept overflow_policy = requires(P policy, void* memory) {
  typename P::second_type;
  { policy.first_holds(memory) } -> same_type<bool>;
  policy.second();
};

/// Out-of-memory policies that make blocks free, or wait for some, and say when to try again.
template <class P>
concept retries = requires(P policy, size_t bytes) {
  policy.begin(bytes).is_over;
};

/// Out-of-memory policies that ask the host for more memory.
template <class P>
concept requests_growth = retries<P> && P::asks_host;

/// Out-of-memory policies with state in the heap's memory, for blocks that lie in `pool`.
template <class P>
concept keeps_state = requires(void* state, memory_range pool) {
  { P::place(state, pool) } -> same_type<P>;
  { P::state_bytes_for(pool.bytes) } -> same_type<size_t>;
};

/// Other out-of-memory policies supply the caller's result when there is no block of `bytes` bytes.
template <class P>
concept oom_policy = overflow_policy<P> || retries<P> || requires(P policy, size_t bytes) {
  { policy.handle(bytes) } -> same_type<void*>;
};

/// pad() rounds a size up to a multiple of `bytes`, and align_pool() the start of a pool.
template <class P>
concept alignment_policy = requires(size_t bytes, memory_range pool) {
  P::bytes;
  { P::pad(bytes) } -> same_type<size_t>;
  { P::align_pool(pool) } -> same_type<memory_range>;
};

#if !defined(__CUDACC_RTC__)
/// Reserve pools that acquire memory, once.
template <class P>
concept acquiring_pool = requires(P pool, size_t bytes) {
  { pool.acquire(bytes) } -> same_type<void*>;
};

/// Reserve pools over existing memory.
template <class P>
concept given_pool = requires(P const pool) {
  { pool.range() } -> same_type<memory_range>;
};

/// Where a pool comes from.
template <class P>
concept reserve_pool_policy = acquiring_pool<P> || given_pool<P>;

/// Reserve pools that acquire addresses for `limit()` bytes of pool, and memory for the first of
/// them: more with commit(), less with decommit().
template <class P>
concept growing_pool = acquiring_pool<P> && requires(P pool, P const quiet, size_t bytes) {
  { quiet.limit() } -> same_type<size_t>;
  { quiet.committed() } -> same_type<size_t>;
  { quiet.kept_for(bytes) } -> same_type<size_t>;
  pool.commit(bytes);
  pool.decommit(bytes);
};
#else
/// Pools exist on the host; here they are only names, except that a growing one says so.
template <class P>
concept reserve_pool_policy = true;
template <class P>
concept growing_pool = requires {
  requires P::grows;
};
#endif

/// The promises of the policies behind `P`, as `P` keeps them.
template <class P>
WARPHEAP_HOST_DEVICE constexpr allocator_traits traits_through(allocator_traits promised) {
  if constexpr (requires { P::adjust(promised); }) return P::adjust(promised);
  else return promised;
}

/// Whether blocks of padded sizes are aligned to `Alignment::bytes`, even if other sizes are not
/// padded.
template <class Alignment, class Traits>
WARPHEAP_HOST_DEVICE constexpr bool are_aligned_if_padded(Traits promised) {
  if constexpr (requires { promised.multiples_aligned_up_to; })
    if (Alignment::bytes <= promised.multiples_aligned_up_to) return true;
  return Alignment::bytes <= promised.alignment;
}

/// Whether blocks are aligned to `Alignment::bytes` if all sizes are padded to it.
template <class Alignment, class Traits>
WARPHEAP_HOST_DEVICE constexpr bool are_aligned_if_all_padded(Traits promised) {
  if constexpr (requires { promised.padded_aligned_up_to; })
    if (Alignment::bytes <= promised.padded_aligned_up_to) return true;
  return are_aligned_if_padded<Alignment>(promised);
}

/// The alignment policy pads sizes to no more than the creation policy aligns blocks of such sizes
/// to, so that a size never promises more than its block.
template <class Creation, class Alignment>
concept alignment_serves_creation = Alignment::bytes >= 1 && are_aligned_if_all_padded<Alignment>(Creation::traits);

/// It also pads to no more than the second heap aligns to: requests that the first heap refuses go
/// to the second with the same size, beside the second heap's own requests.
template <class Oom, class Alignment>
concept alignment_serves_overflow = !overflow_policy<Oom> || requires {
  requires are_aligned_if_padded<Alignment>(Oom::second_type::traits);
};

/// The alignment policy pads sizes to no more than the distribution policy aligns blocks to.
template <class Distribution, class Alignment>
concept alignment_serves_distribution = !requires {
  Distribution::alignment;
}
|| Alignment::bytes <= Distribution::alignment;

/// The distribution policy combines requests into blocks that the creation policy can make: within
/// one of its pages, if it has pages, and aligned as the parts need.
template <class Creation, class Distribution>
concept distribution_page_fits_creation = !requires {
  Creation::page_bytes + Distribution::page_bytes;
}
|| Distribution::page_bytes <= Creation::page_bytes;
/// Blocks are aligned as the distribution policy needs.
template <class Creation, class Distribution>
concept creation_aligns_for_distribution = !requires {
  Distribution::alignment;
}
|| Creation::traits.alignment % Distribution::alignment == 0;

/// The first heap's blocks differ from the second's by address alone, so the creation policy must
/// keep them in a pool.
template <class Creation, class Oom>
concept overflow_knows_creation_by_its_pool = !overflow_policy<Oom> || !requires {
  Creation::uses_toolkit_heap;
};

/// The creation policies of both heaps serve converged lanes each from its own heap: some lanes
/// call the first heap while others call the second, through the same code.
template <class Creation, class Oom>
concept overflow_supports_mixed_heaps = !overflow_policy<Oom> || requires {
  requires Creation::supports_mixed_heaps && Oom::second_type::creation_type::supports_mixed_heaps;
};

/// The toolkit's allocator has a limit instead of a pool, and the limit serves no other allocator.
template <class Creation, class ReservePool>
concept toolkit_goes_with_toolkit_limit =
#if defined(__CUDACC_RTC__)
    true;
#else
    requires {
  Creation::uses_toolkit_heap;
}
== requires { ReservePool::sets_toolkit_heap; };
#endif

/// A policy that asks for growth needs a growing pool.
template <class Oom, class ReservePool>
concept requests_reach_a_growing_pool =
#if defined(__CUDACC_RTC__)
    true;
#else
    !requests_growth<Oom> || growing_pool<ReservePool>;
#endif

/// A growing pool lacks memory at first, and the creation policy must know where.
template <class Creation, class ReservePool>
concept creation_follows_a_growing_pool = !growing_pool<ReservePool> || requires {
  requires Creation::pool_may_grow;
};

/// Neither policy rules out the other.
template <class One, class Other>
concept mutually_compatible = (
                                  !requires { One::template goes_with<Other>; } ||
                                  requires { requires One::template goes_with<Other>; }) &&
                              (
                                  !requires { Other::template goes_with<One>; } ||
                                  requires { requires Other::template goes_with<One>; });

/// All requirements on five policies together.
template <class Creation, class Distribution, class Oom, class ReservePool, class Alignment>
concept policies_go_together =
    alignment_serves_creation<Creation, Alignment> && alignment_serves_overflow<Oom, Alignment> &&
    alignment_serves_distribution<Distribution, Alignment> && distribution_page_fits_creation<Creation, Distribution> &&
    creation_aligns_for_distribution<Creation, Distribution> && overflow_knows_creation_by_its_pool<Creation, Oom> &&
    overflow_supports_mixed_heaps<Creation, Oom> && toolkit_goes_with_toolkit_limit<Creation, ReservePool> &&
    creation_follows_a_growing_pool<Creation, ReservePool> && requests_reach_a_growing_pool<Oom, ReservePool> &&
    mutually_compatible<Creation, Distribution> && mutually_compatible<Creation, Oom> &&
    mutually_compatible<Creation, ReservePool> && mutually_compatible<Creation, Alignment> &&
    mutually_compatible<Distribution, Oom> && mutually_compatible<Distribution, ReservePool> &&
    mutually_compatible<Distribution, Alignment> && mutually_compatible<Oom, ReservePool> &&
    mutually_compatible<Oom, Alignment> && mutually_compatible<ReservePool, Alignment>;

}}  // namespace warpheap::WARPHEAP_BACKEND
