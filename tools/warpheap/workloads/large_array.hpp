// SPDX-License-Identifier: Apache-2.0
// A vector for arrays that many threads fill. Its elements are not set to zero first: one thread
// would do that, and the system gives a page to the thread that writes it first. Large arrays ask
// for large pages: sorting writes to a thousand places in turn, more than the address translation
// of the processor holds with small pages.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace warpheap::tool {

template <class T>
struct unset_allocator {
  using value_type = T;
  static constexpr size_t large_page = size_t{1} << 21;

  unset_allocator() = default;
  template <class U>
  unset_allocator(unset_allocator<U> const&) {}

  T* allocate(size_t count) {
    size_t const bytes = count * sizeof(T);
    if (bytes < large_page) return static_cast<T*>(::operator new(bytes));
    void* const memory = std::aligned_alloc(large_page, (bytes + large_page - 1) / large_page * large_page);
    if (!memory) throw std::bad_alloc{};
    // a hint: without large pages it is slower, but still right
    madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < large_page) ::operator delete(memory);
    else std::free(memory);
  }

  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Values>
  void construct(U* place, Values&&... values) {
    ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
  }

  friend bool operator==(unset_allocator const&, unset_allocator const&) { return true; }
};

template <class T>
using large_array = std::vector<T, unset_allocator<T>>;

}  // namespace warpheap::tool
