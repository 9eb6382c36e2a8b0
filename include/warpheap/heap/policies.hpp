// What each of an allocator's five slots takes, and which policies go together. Policies never see
// each other; what one needs of another is a concept here, over the two of them, so that the
// compiler's message names both.
//
// Beside what a slot needs a policy may have more: `leaves(traits)`, what is left of the promises
// of those behind it, and `goes_with<Other>`, false for a policy of another slot that it cannot
// work with. What a creation policy may have is in the table of docs/design/heap.md; the allocator
// then has it too.
// Source: Eckert 2014, chapters 3 and 4.2 (contracts, PolicyConstraints).
#pragma once

#include "../platform/simt.hpp"
#include "../policy/creation/report.hpp"
#include "../policy/memory_range.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// What the creation slot takes: a trivially copyable handle whose copies serve one heap. create(0)
/// is nullptr, and so is what cannot be served; destroy(nullptr) does nothing.
template <class P>
concept creation_policy = requires(P policy, size_t bytes, void* memory) {
  P::traits.alignment;
  { policy.create(bytes) } -> same_type<void*>;
  policy.destroy(memory);
};

/// One object serves one call. collect() says what to ask the creation policy for, distribute()
/// makes this lane's result of what that gave, and release() makes of what a caller frees what to
/// destroy: nullptr if nothing yet.
template <class P>
concept distribution_policy = requires(P policy, size_t bytes, void* memory) {
  { policy.collect(bytes) } -> same_type<size_t>;
  { policy.distribute(memory) } -> same_type<void*>;
  { P::release(memory) } -> same_type<void*>;
};

/// Distribution policies that change nothing.
template <class P>
concept hands_out_as_created = distribution_policy<P> && P::hands_out_as_created;

/// What a distribution policy may be told of which lanes call with one heap.
struct all_lanes {
  WARPHEAP_DEVICE u32 operator()(u32 company) const { return company; }
};

/// Distribution policies that put parts into created blocks, one or several, and know each part by
/// its address. What was refused to several lanes together is asked for again by each alone.
template <class P>
concept frames_parts = distribution_policy<P> && requires(P policy, u32 mask, size_t bytes, void* memory) {
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

/// The others answer the caller, when there is no block of `bytes` bytes.
template <class P>
concept oom_policy = overflow_policy<P> || requires(P policy, size_t bytes) {
  { policy.handle(bytes) } -> same_type<void*>;
};

template <class P>
concept alignment_policy = requires(size_t bytes, memory_range pool) {
  P::bytes;
  { P::pad(bytes) } -> same_type<size_t>;
  { P::align_pool(pool) } -> same_type<memory_range>;
};

#if !defined(__CUDACC_RTC__)
/// Reserve pools that take memory from somewhere, once.
template <class P>
concept acquiring_pool = requires(P pool, size_t bytes) {
  { pool.acquire(bytes) } -> same_type<void*>;
};

/// Reserve pools of memory that is there already.
template <class P>
concept given_pool = requires(P const pool) {
  { pool.range() } -> same_type<memory_range>;
};

template <class P>
concept reserve_pool_policy = acquiring_pool<P> || given_pool<P>;
#else
/// Pools are the host's: here they are names.
template <class P>
concept reserve_pool_policy = true;
#endif

/// What `P` leaves of the promises of the policies behind it.
template <class P>
WARPHEAP_HOST_DEVICE constexpr allocator_traits left_by(allocator_traits promised) {
  if constexpr (requires { P::leaves(promised); }) return P::leaves(promised);
  else return promised;
}

/// Whether blocks of padded sizes are aligned to what the sizes are padded to.
template <class Alignment, class Traits>
WARPHEAP_HOST_DEVICE constexpr bool are_aligned_if_padded(Traits promised) {
  if constexpr (requires { promised.multiples_aligned_up_to; })
    if (Alignment::bytes <= promised.multiples_aligned_up_to) return true;
  return Alignment::bytes <= promised.alignment;
}

/// Whether they are where all sizes are padded so.
template <class Alignment, class Traits>
WARPHEAP_HOST_DEVICE constexpr bool are_aligned_if_all_padded(Traits promised) {
  if constexpr (requires { promised.padded_aligned_up_to; })
    if (Alignment::bytes <= promised.padded_aligned_up_to) return true;
  return are_aligned_if_padded<Alignment>(promised);
}

/// Pads sizes to no more than the creation policy aligns blocks of such sizes to, so that a size
/// never promises more than its block.
template <class Creation, class Alignment>
concept alignment_serves_creation = Alignment::bytes >= 1 && are_aligned_if_all_padded<Alignment>(Creation::traits);

/// And to no more than the second heap does: what the first refuses is asked for there with the
/// same size, beside what is asked of the second alone.
template <class Oom, class Alignment>
concept alignment_serves_overflow = !overflow_policy<Oom> || requires {
  requires are_aligned_if_padded<Alignment>(Oom::second_type::traits);
};

/// Pads blocks no finer than the distribution policy leaves them aligned.
template <class Distribution, class Alignment>
concept alignment_serves_distribution = !requires {
  Distribution::alignment;
}
|| Alignment::bytes <= Distribution::alignment;

/// Combines requests into blocks that the creation policy has: within one of its pages, where it
/// has pages, and aligned.
template <class Creation, class Distribution>
concept distribution_page_fits_creation = !requires {
  Creation::page_bytes + Distribution::page_bytes;
}
|| Distribution::page_bytes <= Creation::page_bytes;
template <class Creation, class Distribution>
concept creation_aligns_for_distribution = !requires {
  Distribution::alignment;
}
|| Creation::traits.alignment % Distribution::alignment == 0;

/// Tells its blocks from the second heap's by their place in the pool, and so has them in one.
template <class Creation, class Oom>
concept overflow_knows_creation_by_its_pool = !overflow_policy<Oom> || !requires {
  Creation::uses_toolkit_heap;
};

/// Serves lanes that are together each from its own heap, as does the second's creation policy:
/// some lanes ask the first heap while others ask the second, through the same code.
template <class Creation, class Oom>
concept overflow_finds_heaps_told_apart = !overflow_policy<Oom> || requires {
  requires Creation::tells_heaps_apart && Oom::second_type::creation_type::tells_heaps_apart;
};

/// The toolkit's allocator has a limit in place of a pool, and the limit serves no other.
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

/// Neither policy has said that the other is none for it.
template <class One, class Other>
concept one_goes_with_other = (
                                  !requires { One::template goes_with<Other>; } ||
                                  requires { requires One::template goes_with<Other>; }) &&
                              (
                                  !requires { Other::template goes_with<One>; } ||
                                  requires { requires Other::template goes_with<One>; });

/// All that is asked of five policies together.
template <class Creation, class Distribution, class Oom, class ReservePool, class Alignment>
concept policies_go_together =
    alignment_serves_creation<Creation, Alignment> && alignment_serves_overflow<Oom, Alignment> &&
    alignment_serves_distribution<Distribution, Alignment> && distribution_page_fits_creation<Creation, Distribution> &&
    creation_aligns_for_distribution<Creation, Distribution> && overflow_knows_creation_by_its_pool<Creation, Oom> &&
    overflow_finds_heaps_told_apart<Creation, Oom> && toolkit_goes_with_toolkit_limit<Creation, ReservePool> &&
    one_goes_with_other<Creation, Distribution> && one_goes_with_other<Creation, Oom> &&
    one_goes_with_other<Creation, ReservePool> && one_goes_with_other<Creation, Alignment> &&
    one_goes_with_other<Distribution, Oom> && one_goes_with_other<Distribution, Alignment> &&
    one_goes_with_other<Oom, ReservePool>;

}  // namespace warpheap::inline WARPHEAP_BACKEND
