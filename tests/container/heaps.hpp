// SPDX-License-Identifier: Apache-2.0
// Heaps for tests of containers: with fewer functions than ours, that refuse, and that are wrong.
#pragma once

#include "warpheap/policy/creation/refuse_some.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

/// Only what every heap has. Says which blocks it has handed out (platform/host/contents.hpp).
template <class Upstream = heap_ref>
struct bare_ref {
  Upstream upstream;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const {
    void* const memory = upstream.malloc(bytes);
    contents::acquire(memory, memory ? upstream.usable_size(memory) : 0);
    return memory;
  }
  WARPHEAP_DEVICE void free(void* memory) const {
    contents::release(memory, memory ? upstream.usable_size(memory) : 0);
    upstream.free(memory);
  }
};

/// Refuses more than `largest` bytes.
struct limited_ref {
  heap_ref upstream;
  u64 largest;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return upstream.malloc(bytes <= largest ? bytes : 0); }
  WARPHEAP_DEVICE void free(void* memory) const { upstream.free(memory); }
};

/// What a realloc may do wrong.
enum class fault { none, loses_the_end, keeps_the_old_block, frees_when_refused };

/// Makes that fault.
template <fault Fault>
struct faulty_ref {
  heap_ref upstream;

  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return upstream.malloc(bytes); }
  WARPHEAP_DEVICE void free(void* memory) const { upstream.free(memory); }
  /// Every third size that ends a cache line is refused.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes) const {
    bool const refused = bytes / 16 % 3 == 2;
    void* const moved = upstream.malloc(refused ? 0 : bytes);
    size_t const kept = old_bytes < bytes ? old_bytes : bytes;
    size_t const lost = Fault == fault::loses_the_end && kept >= 4 ? 4 : 0;
    warp_copy(moved, memory, memory && moved ? kept - lost : 0);
    bool const frees = moved ? Fault != fault::keeps_the_old_block : Fault == fault::frees_when_refused;
    upstream.free(frees ? memory : nullptr);
    return moved;
  }
};

inline constexpr creation::refuse_some_config a_third{.seed = 5, .one_in = 3};

/// The default heap, of whose calls some are refused.
using refusing_heap = basic_heap<plain_allocator<creation::refuse_some<creation::slab_bitmap<>, a_third>>>;

using coalescing_heap = basic_heap<allocator<creation::slab_bitmap<>, distribution::warp_coalesce, oom::return_null,
                                             reserve_pool::device_memory, alignment::shrink<16>>>;

/// Makes a `Ref` around a heap's reference.
template <class Ref>
struct around {
  template <class Upstream>
  Ref operator()(Upstream upstream) const {
    return Ref{upstream};
  }
};

}  // namespace warpheap::test
