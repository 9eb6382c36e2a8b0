// SPDX-License-Identifier: Apache-2.0
// An array to which many threads of any thread blocks and kernels append at once, when the number
// of elements is not known beforehand. No thread owns it.
//
// Bounded arrays take the number of arrays times the largest bound; counting first does the work
// twice. Here elements are in pages, which come from a heap when they are first needed. So the
// memory is about that of the contents, or half as much again when a page has just been started. An
// append is an addition to a counter, one for all lanes that append to the same buffer together,
// and a look into the directory of pages. Page sizes are those of geometric_pages.hpp.
//
//   drawn_    numbers that appends have drawn since the last clear()
//   refused_  0, or 1 + the first number for which there is no memory
//   kept_     pages that were there at the last clear()
//   pages_    the directory: a page's address, or 0
//
//   append.A1  each append draws a number of its own, and no number is left out. The append that
//       drew i gets element i, or nothing.
//   append.A2  an entry of the directory changes once, from 0 to an address, and keeps it until
//       destroy(). The thread that drew the page's first number changes it.
//   append.A3  pages are a prefix of the directory: if an entry is 0, all entries behind it are 0.
//   append.A4  between two calls of clear(), refused_ changes once at most, to the first number of
//       the first page that is not there. The thread that drew this number changes it, when the
//       heap has refused it the page. The entry then stays 0 until clear().
//   append.A5  so numbers below refused_ get an element, and no others.
//   append.A6  while threads append, kept_ and the entries below it do not change. Loads of them
//       are not atomic.
//
// Progress: an append whose page exists waits for no thread. Otherwise it waits for the thread that
// makes the page, which waits for the thread that makes the previous page, and so on; the thread
// that makes the first page waits for none. All of them are running: each has drawn its number and
// is about to call malloc. The threads may be lanes of one warp: in each iteration a lane checks
// whether the page is its own to make before it pauses, and independent thread scheduling runs that
// lane while others pause.
#pragma once

#include "../platform/backoff.hpp"
#include "../platform/simt.hpp"
#include "../sync/warp_aggregate.hpp"
#include "container_heap.hpp"
#include "geometric_pages.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <vector>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The kind of append_buffer.
struct append_buffer_config {
  /// Elements of the first page, a power of two. Two pages have this size, the next two twice this
  /// size, and so on.
  u32 first_page = 32;
};

namespace append_parts {

/// Faults of the protocol that tests put in.
struct no_faults {
  /// Whether a page waits for the one before it (append.A3).
  static constexpr bool waits_for_the_page_before = true;
  /// How many of the threads that drew a page's numbers make it (append.A2).
  static constexpr u32 elected = 1;
  static constexpr order publishes = order::release, finds = order::acquire;
};

}  // namespace append_parts

/// Elements that threads append, up to 2^32 - 2 * first_page. Zeroed device memory is an empty
/// buffer. The object has 24 bytes plus 8 for each page of the directory: 440 with a first_page of
/// 32, 328 with 4,096. Like a pointer, a const buffer gives access to elements that may be changed.
template <class T, append_buffer_config Config = append_buffer_config{}, class Faults = append_parts::no_faults>
class append_buffer {
  static_assert(__is_trivially_copyable(T), "append_buffer: elements are bits that need no constructor");
  static_assert(alignof(T) <= 16, "append_buffer: a heap's blocks are aligned to 16 bytes");

 public:
  /// Of the elements.
  using value_type = T;
  /// Where elements lie.
  using layout = geometric_pages<Config.first_page>;

  /// A new element, for the caller to write. nullptr if the heap has no memory for the page, if it
  /// had none for an earlier page since the last clear(), or if the buffer has its most elements.
  /// The elements are then unchanged, and the call counts as dropped.
  ///
  /// heap    the same in all calls; a page is one malloc
  /// thread  any lane alone; any number of threads at the same time
  /// cost    one atomic for the lanes that append to this buffer together, and two loads. The
  ///         thread that makes a page calls malloc, and others that need the page wait for it
  template <container_heap Heap>
  WARPHEAP_DEVICE T* append(Heap const& upstream) {
    u32 const kept = kept_;  // first, so that the load does not wait for the atomic
    u64 const number = aggregated_fetch_add(simt::active_mask(), drawn_);
    if (number >= layout::elements) return nullptr;
    auto const at = layout::place_of(static_cast<u32>(number));
    u64 const page = at.page < kept ? pages_[at.page] : find_page(upstream, static_cast<u32>(number));
    return page ? reinterpret_cast<T*>(page) + at.index : nullptr;
  }

  /// Appends `value`; false where append(heap) returns nullptr.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, T const& value) {
    T* const added = append(upstream);
    if (added) *added = value;
    return added != nullptr;
  }

  /// How many elements there are: [0, size()), each written by the thread that appended it. On the
  /// host, call it on a copy.
  WARPHEAP_HOST_DEVICE u64 size() const {
    u64 const drawn = look(drawn_), most = limit();
    return drawn < most ? drawn : most;  // append.A5
  }

  /// How many calls of append() since the last clear() got no element. On the host, call it on a
  /// copy.
  WARPHEAP_HOST_DEVICE u64 dropped() const {
    u64 const drawn = look(drawn_), most = limit();
    return drawn < most ? 0 : drawn - most;
  }

  /// Element `i`, below size(). It must have been appended in an earlier kernel, or before a
  /// barrier with the thread that appended it.
  WARPHEAP_DEVICE T& operator[](u64 i) const {
    auto const at = layout::place_of(static_cast<u32>(i));
    return reinterpret_cast<T*>(pages_[at.page])[at.index];
  }

  /// Calls visit(T&) for elements `first`, first + stride, first + 2 * stride, ... below size().
  /// They were appended as operator[] asks.
  template <class Visit>
  WARPHEAP_DEVICE void for_each(u64 first, u64 stride, Visit visit) const {
    for (u64 const end = size(); first < end; first += stride) visit((*this)[first]);
  }

  /// Removes all elements and keeps the pages. A refused page is requested again when it is needed.
  /// One thread, while no other uses the buffer.
  WARPHEAP_DEVICE void clear() {
    while (kept_ < layout::count && pages_[kept_]) ++kept_;
    drawn_ = refused_ = 0;
  }

  /// Frees all pages, and leaves an empty buffer. One thread, while no other uses the buffer.
  template <container_heap Heap>
  WARPHEAP_DEVICE void destroy(Heap const& upstream) {
    WARPHEAP_NO_UNROLL
    for (u32 page = 0; page < layout::count && pages_[page]; ++page) {  // append.A3
      upstream.free(reinterpret_cast<void*>(pages_[page]));
      pages_[page] = 0;
    }
    drawn_ = refused_ = kept_ = 0;
  }

#if !defined(__CUDACC_RTC__)
  template <class U, append_buffer_config C, class F>
  friend std::vector<U> to_host(append_buffer<U, C, F> const* buffer);
#endif

 private:
  /// The address of the page of a number; 0 if there will be none until clear().
  template <class Heap>
  WARPHEAP_COLD u64 find_page(Heap upstream, u32 number) {
    auto const at = layout::place_of(number);
    for (backoff nap;; nap.while_working()) {
      // acquire: the last accesses of the memory's last owner; pairs with the release in
      // make_page().
      if (u64 const page = atomic_ref<u64>{pages_[at.page]}.load(Faults::finds)) return page;
      if (number >= limit()) return 0;
      if (at.index < Faults::elected && may_make(at.page)) return make_page(upstream, at.page);
    }
  }

  /// Whether the previous page exists (append.A3).
  WARPHEAP_DEVICE bool may_make(u32 page) {
    if (page == 0 || !Faults::waits_for_the_page_before) return true;
    // relaxed: it need only be there. A thread that acquires our page sees the one before too,
    // since this load comes before the release in make_page().
    return atomic_ref<u64>{pages_[page - 1]}.load(order::relaxed) != 0;
  }

  /// Makes a page, and returns its address; 0 if the heap refuses. The thread that drew the page's
  /// first number calls it, once.
  template <class Heap>
  WARPHEAP_DEVICE u64 make_page(Heap const& upstream, u32 page) {
    u64 const made = reinterpret_cast<u64>(upstream.malloc(u64{layout::size_of(page)} * sizeof(T)));
    // append.A2. release: malloc has ordered the last owner's accesses before ours, and this orders
    // them before those of threads that find the page; pairs with the acquire in find_page().
    if (made) atomic_ref<u64>{pages_[page]}.store(made, Faults::publishes);
    // append.A4. relaxed: a thread that sees it accesses no memory.
    else atomic_ref<u64>{refused_}.store(layout::first_of(page) + 1, order::relaxed);
    return made;
  }

  /// The first number without an element (append.A5).
  WARPHEAP_HOST_DEVICE u64 limit() const {
    u64 const refused = look(refused_);
    return refused ? refused - 1 : layout::elements;
  }

  /// relaxed: the numbers say nothing about other memory, and appends may go on.
  WARPHEAP_HOST_DEVICE static u64 look(u64 const& word) {
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    return word;  // the host's copy
#else
    return atomic_ref<u64>{const_cast<u64&>(word)}.load(order::relaxed);
#endif
  }

  u64 drawn_ = 0;
  u64 refused_ = 0;
  u32 kept_ = 0;
  u64 pages_[layout::count] = {};
};

#if !defined(__CUDACC_RTC__)

namespace append_parts {

struct clear_each {
  template <class Buffer>
  WARPHEAP_DEVICE void operator()(Buffer* buffers, u64 count) const {
    u64 const i = global_thread_index();
    if (i < count) buffers[i].clear();
  }
};

struct destroy_each {
  template <class Heap, class Buffer>
  WARPHEAP_DEVICE void operator()(Heap upstream, Buffer* buffers, u64 count) const {
    u64 const i = global_thread_index();
    if (i < count) buffers[i].destroy(upstream);
  }
};

}  // namespace append_parts

/// The elements of a buffer in device memory, once all earlier work of the default stream is done.
template <class T, append_buffer_config Config, class Faults>
std::vector<T> to_host(append_buffer<T, Config, Faults> const* buffer) {
  using layout = geometric_pages<Config.first_page>;
  append_buffer<T, Config, Faults> copied;
  backend::copy_bytes(&copied, buffer, sizeof copied);
  std::vector<T> elements(copied.size());
  for (u32 page = 0; page < layout::count && layout::first_of(page) < elements.size(); ++page) {
    u64 const first = layout::first_of(page), here = std::min<u64>(layout::size_of(page), elements.size() - first);
    backend::copy_bytes(elements.data() + first, reinterpret_cast<T const*>(copied.pages_[page]), here * sizeof(T));
  }
  return elements;
}

/// append_buffer::clear() of `count` buffers in device memory, in order on stream `on`; does not
/// wait. May be captured in a CUDA graph.
template <class T, append_buffer_config Config, class Faults>
void clear(append_buffer<T, Config, Faults>* buffers, u64 count, stream_view on = {}) {
  launch(on, shape_for(count, warp_lanes), append_parts::clear_each{}, buffers, count);
}

/// append_buffer::destroy() of `count` buffers in device memory, in order on stream `on`; does not
/// wait.
template <container_heap Heap, class T, append_buffer_config Config, class Faults>
void destroy(Heap upstream, append_buffer<T, Config, Faults>* buffers, u64 count, stream_view on = {}) {
  launch(on, shape_for(count, warp_lanes), append_parts::destroy_each{}, upstream, buffers, count);
}

#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
