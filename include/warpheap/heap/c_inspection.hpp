// SPDX-License-Identifier: Apache-2.0
// The host's view of a heap for a program without a CUDA compiler: its statistics, its violated
// invariants and its live blocks. A C++20 compiler makes a shared library from this header, and the
// program passes a function that reads device memory.
//
// The library runs basic_heap's code. Kernels that count on the device would need a second version
// of all allocators' snapshots.
//
// Under -DWARPHEAP_READER, WARPHEAP_C_INSPECTION(prefix, allocator) defines prefix_statistics,
// prefix_check and prefix_live; elsewhere it declares them. Call them when no kernel uses the heap.
#pragma once

#include "../platform/types.hpp"

namespace warpheap {

/// A heap, and the program's callbacks for the functions. All members are 64 bits, so that any
/// language can write it.
struct inspected_heap {
  u64 handle;
  u64 pool_bytes;  ///< both sizes as of the heap's construction
  u64 metadata_bytes;
  /// Copies `rows` rows of `bytes` bytes to `to`, one after the other. The first begins at `from`,
  /// each later one `pitch` bytes after the previous one. Returns 0 if all were copied.
  int (*read)(void* to, u64 from, u64 bytes, u64 pitch, u64 rows);
  /// Receives the result, `bytes` bytes that are valid only during the call; if a function returns
  /// other_heap, a sentence that names both heaps. Called once, unless a function fails otherwise.
  void (*give)(void const* answer, u64 bytes);
};

/// What the functions return.
enum class inspection : int {
  done = 0,
  unreadable = 1,    ///< `read` failed
  other_heap = 2,    ///< the handle names no heap of this allocator, version and sizes
  out_of_memory = 3  ///< of the host
};

}  // namespace warpheap

#if !defined(WARPHEAP_READER)

#define WARPHEAP_C_INSPECTION(prefix, ...)                             \
  extern "C" int prefix##_statistics(warpheap::inspected_heap const*); \
  extern "C" int prefix##_check(warpheap::inspected_heap const*);      \
  extern "C" int prefix##_live(warpheap::inspected_heap const*);

#else

#include <exception>
#include <string>
#include <vector>

#include "../policy/creation/report.hpp"
#include "allocator.hpp"
#include "layout_stamp.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace detail {

/// Passes a snapshot of the heap to `look`.
template <class Allocator, class Look>
int inspect(inspected_heap const& heap, Look look) noexcept {
  static_assert(hands_out_as_created<typename Allocator::distribution_type>);
  static_assert(!overflow_policy<typename Allocator::oom_type>);
  inspection result = inspection::done;
  try {
    backend::reading const now{heap.read};
    auto const read = [](auto& to, u64 from) {
      backend::copy_bytes(&to, reinterpret_cast<void const*>(from), sizeof to);
    };
    layout_stamp const wanted = layout_stamp::of<Allocator>(heap.pool_bytes, heap.metadata_bytes);
    layout_stamp found;
    read(found, layout_stamp::address(heap.handle));
    std::string fault;
    if (found == wanted) {
      Allocator reference;
      read(reference, heap.handle);
      auto const& creation = reference.creation();
      if (creation.pool_bytes() == heap.pool_bytes && creation.metadata_bytes() == heap.metadata_bytes)
        look(creation.snapshot());
      else fault = "the heap's reference in device memory has been overwritten";
    } else {
      fault = "the handle is of " + found.text() + ", and not of " + wanted.text();
    }
    if (!fault.empty()) {
      result = inspection::other_heap;
      heap.give(fault.data(), fault.size());
    }
  } catch (backend::unreadable const&) {
    result = inspection::unreadable;
  } catch (std::exception const&) {
    result = inspection::out_of_memory;
  }
  return static_cast<int>(result);
}

/// Passes on the heap_statistics.
template <class Allocator>
int give_statistics(inspected_heap const& heap) noexcept {
  return inspect<Allocator>(heap, [&](auto const& snapshot) {
    heap_statistics const counted = snapshot.statistics();
    heap.give(&counted, sizeof counted);
  });
}

/// Passes on the lines of the invariant_report, each followed by a line feed.
template <class Allocator>
int give_report(inspected_heap const& heap) noexcept {
  return inspect<Allocator>(heap, [&](auto const& snapshot) {
    std::string text;
    for (auto const& line : snapshot.check_invariants()) text += line + '\n';
    heap.give(text.data(), text.size());
  });
}

/// Passes on address and bytes of each live block, in address order.
template <class Allocator>
int give_live(inspected_heap const& heap) noexcept {
  return inspect<Allocator>(heap, [&](auto const& snapshot) {
    std::vector<u64> numbers;
    snapshot.for_each_live([&](void* memory, size_t bytes) {
      numbers.push_back(reinterpret_cast<u64>(memory));
      numbers.push_back(bytes);
    });
    heap.give(numbers.data(), 8 * numbers.size());
  });
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::detail

#define WARPHEAP_C_INSPECTION(prefix, ...)                                   \
  extern "C" int prefix##_statistics(warpheap::inspected_heap const* heap) { \
    return warpheap::detail::give_statistics<__VA_ARGS__>(*heap);            \
  }                                                                          \
  extern "C" int prefix##_check(warpheap::inspected_heap const* heap) {      \
    return warpheap::detail::give_report<__VA_ARGS__>(*heap);                \
  }                                                                          \
  extern "C" int prefix##_live(warpheap::inspected_heap const* heap) {       \
    return warpheap::detail::give_live<__VA_ARGS__>(*heap);                  \
  }

#endif
