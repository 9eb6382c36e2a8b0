// SPDX-License-Identifier: Apache-2.0
// The kernel of `stress`. Each slot that the round draws frees its block, hands it over, has it
// resized, or gets a new one. Lanes of a warp draw for themselves, so that they call from different
// branches.
//
// Slots go to other threads, thread blocks, kernels and streams from round to round. A block that
// is handed over lies in a mailbox, a word, until any thread of any kernel puts another block
// there: that thread frees it. The word is relaxed where the allocator promises to know its blocks
// however their addresses come. Others read what they wrote beside a block.
#pragma once

#include "contents.hpp"
#include "measure/blocks.hpp"
#include "measure/log_uniform.hpp"
#include "workloads/stress/settings.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// A place for a block. Between kernels a slot has no owner; in a kernel one thread owns it.
struct stress_slot {
  u64 address = 0;  ///< 0: empty
  u64 bytes = 0;    ///< asked for
  u64 generation = 0;

  WARPHEAP_DEVICE void* block() const { return reinterpret_cast<void*>(address); }
};

/// Where the first fault was found.
struct stress_site {
  u32 found = 0;
  u64 slot = 0, address = 0, bytes = 0;
};

/// What kernels know of a run: all of it in device memory.
struct stress_memory {
  stress_slot* slots;
  u64* mailboxes;
  u64 mailbox_count;  ///< a power of two
  stress_counts* counts;
  stress_faults* faults;
  stress_site* site;

  WARPHEAP_DEVICE void report(u64 stress_faults::*kind, u64 slot, void const* block, u64 bytes) const {
    bench::count(faults->*kind);
    // relaxed: the host reads it after the kernel.
    if (atomic_ref<u32>{site->found}.exchange(1, order::relaxed) != 0) return;
    site->slot = slot;
    site->address = reinterpret_cast<u64>(block);
    site->bytes = bytes;
  }
};

enum class stress_call : u32 { malloc, calloc, aligned_alloc, malloc_warp };

/// What a slot does in a kernel.
struct stress_step {
  bool acts = false;
  bool resizes = false;     ///< realloc, and nothing else
  bool misuses = false;     ///< frees an address inside the block, and nothing else
  bool hands_over = false;  ///< the block goes by a mailbox
  bool allocates = false;   ///< once the slot is empty
  stress_call call = stress_call::malloc;
  u64 bytes = 0;
  u64 objects = 1;    ///< of calloc: the bytes are a multiple of these
  u64 alignment = 1;  ///< of aligned_alloc
};

/// What is drawn for a round.
struct stress_round {
  u64 seed = 0;
  u32 slots_log2 = 0;
  bench::log_uniform_draw sizes = {};
  u64 acting = 0;        ///< of 2^32 slots
  bool empties = false;  ///< every slot gives up its block
  bool misuse = false;

  WARPHEAP_HOST_DEVICE u64 slots() const { return u64{1} << slots_log2; }

  /// A permutation of the slots.
  WARPHEAP_HOST_DEVICE u64 slot_at(u64 place) const {
    u64 const mask = slots() - 1, key = mix(seed);
    u64 at = (place * (key | 1) + (key >> 32)) & mask;
    at ^= at >> (slots_log2 / 2 + 1);
    return at * 0x9e37'79b9'7f4a'7c15u & mask;
  }

  WARPHEAP_DEVICE stress_step step(u64 slot, u32 pass) const {
    if (empties) return {.acts = true, .hands_over = (mix(seed + slot) & 3) == 0};
    random_sequence random{mix(seed + 2 * slot + 1) + pass};
    stress_step step{.acts = random.next() < acting};
    u32 const what = random.below(16);
    step.resizes = what < 4;
    step.misuses = misuse && what == 4;
    step.hands_over = what >= 4 && what < 9;
    step.allocates = what < 13;
    u32 const call = random.below(8);
    if (call == 4) step.call = stress_call::calloc;
    else if (call == 5) step.call = stress_call::aligned_alloc;
    else if (call > 5) step.call = stress_call::malloc_warp;
    step.bytes = sizes.of(random.next());
    if (step.call == stress_call::calloc) {
      step.objects = 1 + random.below(4);
      step.bytes += (step.objects - step.bytes % step.objects) % step.objects;
    }
    step.alignment = u64{16} << random.below(9);
    return step;
  }
};

/// Kernel: the slots at places [first, first + count) of the round's permutation do their step. The
/// thread for a place is another one with every `shift`.
struct turn_over {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, stress_round round, stress_memory memory, u64 first, u64 count, u64 shift,
                                  u32 pass) const {
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
    for (u64 i = global_thread_index(); i < count; i += threads) {
      u64 const number = round.slot_at(first + (i + shift) % count);
      auto const step = round.step(number, pass);
      stress_slot mine = memory.slots[number];
      if (!step.acts) continue;
      if (mine.address && !is_intact(memory, number, mine)) mine.address = 0;
      else if (mine.address && step.resizes) resize(heap, memory, number, mine, step.bytes);
      else give_up_and_take(heap, memory, number, mine, step);
      memory.slots[number] = mine;
    }
  }

 private:
  WARPHEAP_DEVICE static bool is_intact(stress_memory const& memory, u64 number, stress_slot const& mine) {
    block_contents const contents{number, mine.generation, mine.bytes};
    add(memory.counts->verified_bytes, contents.written_bytes());
    if (contents.stand_in(mine.block(), mine.bytes)) return true;
    memory.report(&stress_faults::damaged, number, mine.block(), mine.bytes);
    return false;
  }

  template <class Heap>
  WARPHEAP_DEVICE static void give_up_and_take(Heap heap, stress_memory const& memory, u64 number, stress_slot& mine,
                                               stress_step const& step) {
    bool const strays = mine.address && step.misuses && mine.bytes > 1;
    if (mine.address) {
      heap.free(strays ? inside(memory, mine) : leaving<Heap>(memory, number, mine, step));
      if (!strays) mine.address = 0;
    }
    if (!strays && step.allocates) take(heap, memory, number, mine, step);
  }

  /// An address within the block that starts no block.
  WARPHEAP_DEVICE static void* inside(stress_memory const& memory, stress_slot const& mine) {
    bench::count(memory.counts->misuses);
    return static_cast<u8*>(mine.block()) + 1 + mix(mine.address + mine.generation) % (mine.bytes - 1);
  }

  /// The block to free in place of the slot's: its own, or the one that it took out of a mailbox.
  template <class Heap>
  WARPHEAP_DEVICE static void* leaving(stress_memory const& memory, u64 number, stress_slot const& mine,
                                       stress_step const& step) {
    if (!step.hands_over) {
      // The next owner must not see this, however soon it writes what is its own.
      if (mine.bytes >= sizeof(u64)) *static_cast<u64*>(mine.block()) = ~number;
      bench::count(memory.counts->frees);
      return mine.block();
    }
    u64& box = memory.mailboxes[mix(number + mine.generation) & (memory.mailbox_count - 1)];
    // relaxed: nothing orders what the thread that frees the block does after what we did. So an
    // earlier kernel wrote the contents, and the exchange comes after the reads by the branch on
    // what they saw. acq_rel: pairs with itself.
    auto const passing = Heap::traits.detects_misuse ? order::relaxed : order::acq_rel;
    u64 const other = atomic_ref<u64>{box}.exchange(mine.address, passing);
    if (other) bench::count(memory.counts->handed_over);
    return reinterpret_cast<void*>(other);
  }

  template <class Heap>
  WARPHEAP_DEVICE static void take(Heap heap, stress_memory const& memory, u64 number, stress_slot& mine,
                                   stress_step const& step) {
    void* block = nullptr;
    u64 alignment = 1;
    if (step.call == stress_call::calloc) {
      bench::count(memory.counts->callocs);
      block = heap.calloc(step.objects, step.bytes / step.objects);
      if (block && is_aligned(block, sizeof(u64)) && !block_contents{number, 0, step.bytes}.are_zero_in(block))
        memory.report(&stress_faults::not_zeroed, number, block, step.bytes);
    } else if (has_aligned_alloc<Heap> && step.call == stress_call::aligned_alloc) {
      bench::count(memory.counts->aligned_allocs);
      alignment = step.alignment;
      if constexpr (has_aligned_alloc<Heap>) block = heap.aligned_alloc(alignment, step.bytes);
    } else if (has_malloc_warp<Heap> && step.call == stress_call::malloc_warp) {
      bench::count(memory.counts->warp_mallocs);
      if constexpr (has_malloc_warp<Heap>) {
        u32 const mask = simt::active_mask();
        block = heap.malloc_warp(mask, step.bytes);
      }
    } else {
      bench::count(memory.counts->mallocs);
      block = heap.malloc(step.bytes);
    }
    if (!block) return bench::count(memory.counts->refused);
    bool const promised =
        step.call == stress_call::aligned_alloc || bench::block_promise::of<Heap>().is_kept_by(block, step.bytes);
    if (!promised || !is_aligned(block, alignment))
      return memory.report(&stress_faults::misaligned, number, block, step.bytes);
    keep(heap, memory, number, mine, block, step.bytes);
  }

  template <class Heap>
  WARPHEAP_DEVICE static void resize(Heap heap, stress_memory const& memory, u64 number, stress_slot& mine, u64 bytes) {
    bench::count(memory.counts->reallocs);
    block_contents const before{number, mine.generation, mine.bytes};
    void* moved = nullptr;
    if constexpr (requires { heap.realloc(mine.block(), bytes); }) moved = heap.realloc(mine.block(), bytes);
    else moved = heap.realloc(mine.block(), mine.bytes, bytes);
    void* const now = moved ? moved : mine.block();
    if (!moved) bench::count(memory.counts->refused);
    if (!is_aligned(now, Heap::traits.alignment)) {
      mine.address = 0;
      return memory.report(&stress_faults::misaligned, number, now, bytes);
    }
    if (!before.stand_in(now, moved && bytes < mine.bytes ? bytes : mine.bytes)) {
      mine.address = 0;
      return memory.report(&stress_faults::damaged, number, now, mine.bytes);
    }
    if (moved) keep(heap, memory, number, mine, moved, bytes);
  }

  /// The block is the slot's from now on.
  template <class Heap>
  WARPHEAP_DEVICE static void keep(Heap heap, stress_memory const& memory, u64 number, stress_slot& mine, void* block,
                                   u64 bytes) {
    if constexpr (requires { heap.usable_size(block); })
      if (heap.usable_size(block) < bytes) memory.report(&stress_faults::too_small, number, block, bytes);
    mine = {reinterpret_cast<u64>(block), bytes, mine.generation + 1};
    block_contents{number, mine.generation, bytes}.write(block);
  }

  WARPHEAP_DEVICE static void add(u64& counter, u64 number) {
    atomic_ref<u64>{counter}.fetch_add(number, order::relaxed);
  }

  WARPHEAP_DEVICE static bool is_aligned(void const* block, u64 alignment) {
    return reinterpret_cast<u64>(block) % alignment == 0;
  }

 public:
  template <class Heap>
  static constexpr bool has_aligned_alloc = requires(Heap heap) {
    heap.aligned_alloc(size_t{16}, size_t{16});
  };
  template <class Heap>
  static constexpr bool has_malloc_warp = requires(Heap heap) {
    heap.malloc_warp(u32{1}, size_t{16});
  };
};

/// Kernel: looks at the contents of every slot's block.
struct inspect_slots {
  WARPHEAP_DEVICE void operator()(stress_memory memory, u64 slots) const {
    u64 const number = global_thread_index();
    if (number >= slots || !memory.slots[number].address) return;
    auto const mine = memory.slots[number];
    block_contents const contents{number, mine.generation, mine.bytes};
    atomic_ref<u64>{memory.counts->verified_bytes}.fetch_add(contents.written_bytes(), order::relaxed);
    if (!contents.stand_in(mine.block(), mine.bytes))
      memory.report(&stress_faults::damaged, number, mine.block(), mine.bytes);
  }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
