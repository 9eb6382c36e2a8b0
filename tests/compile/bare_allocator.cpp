// SPDX-License-Identifier: Apache-2.0
// The process's heap by an allocator that has none of the functions that an allocator may lack: the
// header compiles, and a program can ask which there are. Read by scripts/check_headers.py.
#include <warpheap/heap/override_allocator.hpp>

struct bare {
  static constexpr char const* name = "bare";
  static constexpr warpheap::allocator_traits traits{.alignment = 16};
  static constexpr bool supports_mixed_heaps = true;

  WARPHEAP_DEVICE void* create(warpheap::size_t) const { return nullptr; }
  WARPHEAP_DEVICE void destroy(void*) const {}
  static warpheap::size_t required_bytes(warpheap::size_t pool_bytes) { return pool_bytes; }
  static bare place(void*, warpheap::size_t) { return {}; }
  void initialize(warpheap::stream_view) const {}
  warpheap::size_t pool_bytes() const { return 0; }
  warpheap::size_t metadata_bytes() const { return 0; }
};

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::plain_allocator<bare>;
};

#include <warpheap/heap/global_heap.hpp>

// What it asks with depends on a parameter, as it must where a call may not exist.
template <class Memory, class Bytes>
constexpr bool any_question = requires(Memory memory, Bytes bytes) {
  warpheap::usable_size(memory);
}
|| requires(Memory memory, Bytes bytes) { warpheap::owns(memory); }
|| requires(Memory memory, Bytes bytes) { warpheap::available_slots(bytes); }
|| requires(Memory memory, Bytes bytes) { warpheap::available_slots_warp(1u, bytes); };
static_assert(!any_question<void*, warpheap::size_t>);

struct ask_for_all {
  WARPHEAP_DEVICE void operator()() const {
    void* const moved = warpheap::realloc(warpheap::calloc(2, 8), 32);
    warpheap::free(moved);
    warpheap::free(warpheap::aligned_alloc(16, 16));
    warpheap::free(warpheap::malloc(16));
  }
};

int main() {
  warpheap::global_heap const heap{1u << 20};
  warpheap::launch({1, 1}, ask_for_all{});
}
