// SPDX-License-Identifier: Apache-2.0
// A heap's memory copied to the host and back: to the same heap, or to one at the same address in
// another process. A block never moves, so every pointer to one is valid afterwards. Programs
// include this header by name.
//
//   auto const before = save(heap);           // waits, and copies
//   simulate<<<grid, block>>>(heap.ref(), state);
//   if (went_wrong()) restore(heap, before);  // all blocks are as they were, with their contents
//   before.write("steps.image");              // heap_image::read() reads it
//
// The pool and all metadata are copied as they are. The caller must copy everything outside the
// heap: device variables, buffers, pointers into the heap.
#pragma once

#include "heap.hpp"
#include "heap_image.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

/// Reserve pools that begin at an address of the program's choice.
template <class Pool>
concept takes_address = requires {
  requires Pool::takes_address;
};

/// The parts of a heap that its image needs.
struct image_access {
  /// Whether the heap and those behind it own their pools.
  template <class Heap>
  static constexpr bool has_pool() {
    if constexpr (Heap::overflows) return has_pool<typename Heap::second_heap_type>();
    else return Heap::memory_pieces != 0;
  }

  template <class Heap>
  static heap_image save(Heap const& heap, void const* root) {
    synchronize();
    heap_image image{policies_of<Heap>(), records_of(heap), root};
    auto range = image.ranges_.begin();
    for_each(heap, [&](auto const& each) {
      opened_pool const open{each};
      for (auto const end = range + 2; range != end; ++range)
        backend::copy_bytes(range->data(), range->address(), range->bytes());
    });
    return image;
  }

  template <class Heap>
  static void restore(Heap& heap, heap_image const& image) {
    synchronize();
    check_policies<Heap>(image);
    check_places(records_of(heap), image.records_);
    auto record = image.records_.begin();
    auto range = image.ranges_.begin();
    for_each(heap, [&](auto& each) {
      opened_pool const open{each};
      load(each, *record++, [&] {
        for (auto const end = range + 2; range != end; ++range)
          backend::copy_bytes(range->address(), range->data(), range->bytes());
      });
    });
  }

  /// An empty heap where the image's was.
  template <class Heap>
  static Heap make(heap_image const& image) {
    using pool_type = typename Heap::reserve_pool_type;
    check_policies<Heap>(image);
    auto const& record = image.records_.back();
    if constexpr (growing_pool<pool_type>) return Heap{pool_type{{.limit = record.behind, .at = image.address()}}};
    // A pool of the rounded size takes as much memory as the original.
    else return Heap{(std::max<size_t>)(record.stamp.pool_bytes, Heap::minimum_bytes), pool_type{image.address()}};
  }

 private:
  /// Access to the whole pool, as a copy needs it. Afterwards live blocks are accessible in full,
  /// beyond the requested bytes too, and no other bytes are (guard.A1).
  template <class Heap>
  class opened_pool {
   public:
    explicit opened_pool(Heap const& heap) : heap_{heap} {
      if constexpr (guarded) backend::allow_access(pool().begin, pool().bytes);
    }
    opened_pool(opened_pool const&) = delete;
    opened_pool& operator=(opened_pool const&) = delete;
    ~opened_pool() {
      if constexpr (guarded) {
        backend::forbid_access(pool().begin, pool().bytes);
        creation().snapshot().for_each_live([](void* memory, size_t bytes) { backend::allow_access(memory, bytes); });
      }
    }

   private:
    static constexpr bool guarded = Heap::allocator_type::guards_access;

    auto const& creation() const { return heap_.ref_.creation(); }
    memory_range pool() const { return creation().untouched_pool(); }

    Heap const& heap_;
  };

  /// Calls visit(heap) for all heaps, those behind others first: only those can grow, so a lack of
  /// device memory is found before anything has changed.
  template <class Heap, class Visitor>
  static void for_each(Heap& heap, Visitor const& visit) {
    if constexpr (Heap::overflows) for_each(heap.second_, visit);
    visit(heap);
  }

  template <class Heap, class Load>
  static void load(Heap& heap, heap_record const& saved, Load put_memory) {
    if constexpr (growing_pool<typename Heap::reserve_pool_type>)
      heap.growth_.reload(heap.ref_.creation(), heap.reserve_, saved.committed, put_memory);
    else put_memory();
  }

  /// Empty if they have no names.
  template <class Heap>
  static std::string policies_of() {
    std::string text;
    if constexpr (Heap::named_policies) text = Heap::policies_text("; ");
    if constexpr (Heap::overflows) text += "; second heap: " + policies_of<typename Heap::second_heap_type>();
    return text;
  }

  template <class Heap>
  static std::vector<heap_record> records_of(Heap const& heap) {
    std::vector<heap_record> records;
    for_each(heap, [&](auto const& each) { records.push_back(record_of(each)); });
    return records;
  }

  template <class Heap>
  static heap_record record_of(Heap const& heap) {
    auto const& creation = heap.ref_.creation();
    u64 const begin = reinterpret_cast<u64>(heap.memory_.begin);
    u64 const bytes = heap.handle() + sizeof(typename Heap::ref_type) - begin;
    u64 committed = bytes, behind = bytes;
    if constexpr (growing_pool<typename Heap::reserve_pool_type>) {
      committed = heap.growth_.settle(creation, heap.reserve_);
      behind = heap.reserve_.limit();
    }
    auto const stamp =
        layout_stamp::of<typename Heap::allocator_type>(creation.pool_bytes(), creation.metadata_bytes());
    return {stamp, begin, committed, behind, bytes};
  }

  [[noreturn]] static void refuse(std::string const& saved, std::string const& found) {
    throw std::invalid_argument{"restore: the image is of " + saved + ", and the heap is " + found};
  }

  template <class Heap>
  static void check_policies(heap_image const& image) {
    auto const policies = policies_of<Heap>();
    if (image.policies_ != policies) refuse("a heap of " + image.policies_, "one of " + policies);
  }

  static void check_places(std::vector<heap_record> const& here, std::vector<heap_record> const& saved) {
    if (saved.size() != here.size()) refuse(std::to_string(saved.size()) + " heaps", std::to_string(here.size()));
    for (size_t i = 0; i < here.size(); ++i) {
      if (saved[i].stamp != here[i].stamp) refuse(saved[i].stamp.text(), here[i].stamp.text());
      if (!lie_alike(saved[i], here[i])) refuse(place_text(saved[i]), place_text(here[i]));
    }
  }

  /// Except for how much of a growing pool has memory.
  static bool lie_alike(heap_record const& saved, heap_record const& here) {
    bool const grows = here.behind != here.bytes;
    return saved.begin == here.begin && saved.bytes == here.bytes && saved.behind == here.behind &&
           (grows || saved.committed == here.committed);
  }
  static std::string place_text(heap_record const& record) {
    return std::to_string(record.bytes) + " bytes at " + address_text(record.begin);
  }
};

}  // namespace detail

/// Copies all memory of a heap: its blocks, its metadata, and the heap behind it. Waits for the
/// current device, which must be the heap's; no kernel may be using the heap. The host needs as
/// much memory; of a growing pool, only the mapped part is copied. heap_image::root() returns
/// `root`, a pointer from which the program that reads the image finds the others. Throws
/// out_of_memory if the host has no room.
template <class Allocator>
heap_image save(basic_heap<Allocator> const& quiet, void const* root = nullptr) {
  static_assert(detail::image_access::has_pool<basic_heap<Allocator>>(),
                "save: blocks of the toolkit's heap lie in no pool, so they cannot be copied");
  return detail::image_access::save(quiet, root);
}

/// Restores all memory of a heap to its state when the image was made. Blocks allocated since are
/// gone, and blocks freed since are live. Waits for the current device, which must be the heap's;
/// no kernel may be using the heap. A pool that has grown since keeps its memory, and one that was
/// trimmed grows again. Throws std::invalid_argument, which says what differs, if the heap has
/// other policies, another version, or another address, and out_of_memory if the device lacks
/// memory to grow; the heap is then unchanged.
template <class Allocator>
void restore(basic_heap<Allocator>& quiet, heap_image const& image) {
  static_assert(detail::image_access::has_pool<basic_heap<Allocator>>(),
                "restore: blocks of the toolkit's heap lie in no pool, so they cannot be copied");
  detail::image_access::restore(quiet, image);
}

/// A new heap at the image's address, with its memory: in another process, or when that heap no
/// longer exists. A growing pool has the settings of growth{}, except for sizes and address. Throws
/// like restore() above, and out_of_memory if the addresses are taken.
template <class Heap>
Heap restore(heap_image const& image) {
  static_assert(detail::takes_address<typename Heap::reserve_pool_type> && !Heap::overflows,
                "restore: this heap's pool begins where the system says; persistent_heap and growing heaps begin at a "
                "wanted address");
  Heap made = detail::image_access::make<Heap>(image);
  restore(made, image);
  return made;
}

}}  // namespace warpheap::WARPHEAP_BACKEND
