// SPDX-License-Identifier: Apache-2.0
// Kernels that make the calls of a plan again. One that checks also writes into each block and
// looks at it when the block is freed, moved, or left at the end: what another block has
// overwritten, and what is not aligned or not zeroed as promised, is counted.
#pragma once

#include "measure/blocks.hpp"
#include "workloads/replay/plan.hpp"

namespace warpheap::tool::replay { inline namespace WARPHEAP_BACKEND {

/// What the kernels counted.
struct tally {
  u64 refused = 0;  ///< calls that returned nullptr, and in the program did not
  u64 missing = 0;  ///< frees and reallocs of blocks that were refused: they are not made
  u64 lost = 0;     ///< blocks that overlap others
  u64 misaligned = 0;
  u64 unzeroed = 0;

  /// What is not aligned is not written, and so counts as lost too.
  std::string fault() const {
    if (misaligned) return std::to_string(misaligned) + " blocks are not aligned as promised";
    if (lost) return std::to_string(lost) + " blocks overlap another";
    if (unzeroed) return std::to_string(unzeroed) + " blocks of calloc are not zeroed";
    return {};
  }
};

/// A plan in device memory.
struct plan_view {
  replay_call const* calls;
  replay_step const* steps;
  replay_warp const* warps;
  void** blocks;
  tally* counts;
};

/// The heap's calls as a trace names them.
template <class Heap>
WARPHEAP_DEVICE void* ask(Heap const& heap, replay_call const& call, void* named) {
  if (call.kind == call_kind::realloc) return heap.realloc(named, call.old_bytes, call.bytes);
  if (call.kind == call_kind::calloc) return heap.calloc(1, call.bytes);
  u64 const alignment = u64{1} << call.log2_alignment;
  if (call.kind == call_kind::malloc || alignment <= Heap::traits.alignment) return heap.malloc(call.bytes);
  if constexpr (requires { heap.aligned_alloc(alignment, call.bytes); })
    return heap.aligned_alloc(alignment, call.bytes);
  return nullptr;
}

/// Looks at blocks. A block's number is the owner's of its words.
struct block_checks {
  bench::block_promise promise;
  tally* counts;

  /// Before a block is freed or moved.
  WARPHEAP_DEVICE void leave(replay_call const& call, void const* block) const {
    if (!promise.is_stamped(block, call.old_bytes, call.named)) bench::count(counts->lost);
  }
  /// After one was made.
  WARPHEAP_DEVICE void enter(replay_call const& call, void* block) const {
    bool const apart = call.kind == call_kind::aligned_alloc;
    u64 const alignment = u64{1} << call.log2_alignment;
    bool const aligned = apart ? reinterpret_cast<u64>(block) % alignment == 0 : promise.is_kept_by(block, call.bytes);
    if (!aligned) bench::count(counts->misaligned);
    if (call.kind == call_kind::calloc && !is_zero(static_cast<u8 const*>(block), call.bytes))
      bench::count(counts->unzeroed);
    if (call.kind == call_kind::realloc && !is_kept(call, block)) bench::count(counts->lost);
    if (aligned) promise.stamp(block, call.bytes, call.made);
  }

 private:
  WARPHEAP_DEVICE static bool is_zero(u8 const* block, u64 bytes) {
    u8 all = 0;
    for (u64 i = 0; i < bytes; ++i) all |= block[i];
    return all == 0;
  }
  /// Whether the contents came along. Blocks of under 8 bytes are stamped in another way.
  WARPHEAP_DEVICE bool is_kept(replay_call const& call, void const* block) const {
    u64 const kept = call.old_bytes < call.bytes ? call.old_bytes : call.bytes;
    return (kept < 8 && call.old_bytes >= 8) || promise.is_stamped(block, kept, call.named);
  }
};

template <bool Checks, class Heap>
WARPHEAP_DEVICE void free_again(Heap const& heap, replay_call const& call, plan_view const& plan,
                                [[maybe_unused]] block_checks const& checks) {
  void* const block = plan.blocks[call.named];
  if (!block) return bench::count(plan.counts->missing);
  if constexpr (Checks) checks.leave(call, block);
  plan.blocks[call.named] = nullptr;
  heap.free(block);
}

template <bool Checks, class Heap>
WARPHEAP_DEVICE void ask_again(Heap const& heap, replay_call const& call, plan_view const& plan,
                               [[maybe_unused]] block_checks const& checks) {
  bool const moves = call.kind == call_kind::realloc;
  void* const named = moves ? plan.blocks[call.named] : nullptr;
  if (moves && !named) return bench::count(plan.counts->missing);
  if constexpr (Checks)
    if (moves) checks.leave(call, named);
  void* const block = ask(heap, call, named);
  if (call.refused) {
    // The program went on without it. The block that it wanted to move is where it is now.
    if (block && moves) plan.blocks[call.named] = block;
    if (block && !moves) heap.free(block);
    return;
  }
  if (!block) return bench::count(plan.counts->refused);
  if constexpr (Checks) checks.enter(call, block);
  if (moves) plan.blocks[call.named] = nullptr;
  plan.blocks[call.made] = block;
}

/// Kernel: one round.
template <bool Checks>
struct make_calls {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, plan_view plan, u64 first_warp, bench::block_promise promise) const {
    u32 const warps_a_block = simt::block_dim() / warp_lanes;
    auto const mine = plan.warps[first_warp + u64{simt::block_index()} * warps_a_block + simt::warp_id()];
    block_checks const checks{promise, plan.counts};
    for (u32 i = 0; i < mine.steps; ++i) {
      auto const step = plan.steps[mine.first_step + i];
      if (step.mask >> simt::lane_id() & 1) {
        auto const call = plan.calls[step.first_call + popcount(step.mask & simt::lanes_below())];
        if (call.kind == call_kind::free) free_again<Checks>(heap, call, plan, checks);
        else ask_again<Checks>(heap, call, plan, checks);
      }
      // replay.R1: what this step made may be named by another lane in the next.
      simt::sync_warp(full_mask);
    }
  }
};

/// Kernel: frees every block that is left.
struct free_the_rest {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** blocks, u64 count) const {
    u64 const i = global_thread_index();
    if (i >= count || !blocks[i]) return;
    heap.free(blocks[i]);
    blocks[i] = nullptr;
  }
};

/// Kernel: looks at every block that is left. `bytes` are those asked for.
struct inspect_the_rest {
  WARPHEAP_DEVICE void operator()(block_checks checks, void* const* blocks, u64 const* bytes, u64 count) const {
    u64 const i = global_thread_index();
    if (i < count && blocks[i]) checks.leave({.old_bytes = bytes[i], .named = static_cast<u32>(i)}, blocks[i]);
  }
};

/// The calls of no allocator: the baseline of a replay.
struct no_calls {
  static constexpr allocator_traits traits{};

  WARPHEAP_DEVICE static void* some_block() { return reinterpret_cast<void*>(u64{4096}); }
  WARPHEAP_DEVICE void* malloc(size_t) const { return some_block(); }
  WARPHEAP_DEVICE void* calloc(size_t, size_t) const { return some_block(); }
  WARPHEAP_DEVICE void* aligned_alloc(size_t, size_t) const { return some_block(); }
  WARPHEAP_DEVICE void* realloc(void*, size_t, size_t) const { return some_block(); }
  WARPHEAP_DEVICE void free(void*) const {}
};

}}  // namespace warpheap::tool::replay::WARPHEAP_BACKEND
