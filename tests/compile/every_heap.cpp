// SPDX-License-Identifier: Apache-2.0
// Every function of every heap, so that a compiler instantiates all of it. Compiled with many
// warnings by scripts/check_headers.py, and not run.
#include <warpheap/adaptor/checked.hpp>
#include <warpheap/adaptor/trace.hpp>
#include <warpheap/all.hpp>
#include <warpheap/container/owner.hpp>
#include <warpheap/container/string.hpp>
#include <warpheap/container/vector.hpp>
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/heap_set.hpp>
#include <warpheap/heap/persistent_heap.hpp>
#include <warpheap/heap/published_gauge.hpp>

using namespace warpheap;

struct call_all {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u64* answers) const {
    void* memory = heap.calloc(3, 4);
    memory = heap.realloc(memory, 12, 40);
    if constexpr (requires { heap.realloc(memory, size_t{5}); }) memory = heap.realloc(memory, size_t{5});
    if constexpr (requires { heap.aligned_alloc(64, 5); }) heap.free(heap.aligned_alloc(64, 5));
    if constexpr (requires { heap.malloc_warp(1u, 5); }) heap.free(heap.malloc_warp(1u, 5));
    if constexpr (requires { heap.usable_size(memory); }) answers[0] += heap.usable_size(memory);
    if constexpr (requires { heap.owns(memory); }) answers[1] += heap.owns(memory);
    if constexpr (requires { heap.available_slots(5); }) answers[2] += heap.available_slots(5);
    if constexpr (requires { heap.available_slots_warp(1u, 5); }) answers[3] += heap.available_slots_warp(1u, 5);
    heap.free(memory);
    heap.destroy(heap.template make<u64>(5u));
    owner<u64[]>{heap.template make_array<u64>(5), 5}.reset(heap);
    vector<u64> numbers;
    answers[4] += numbers.push_back(heap, 5) && numbers.insert(heap, 0, 4) && numbers.resize(heap, 7, 3);
    answers[5] += numbers.append(heap, numbers.data(), 3) && numbers.reserve(heap, 20);
    numbers.erase(0);
    numbers.erase_unordered(0);
    answers[6] += numbers.pop_back() + numbers.back();
    numbers.shrink_to_fit(heap);
    numbers.destroy(heap);
    string text;
    answers[7] += text.append(heap, "five") && text.append(heap, 5) && text.append(heap, 5.0, 1) && text < "six";
    answers[8] += text.append_hex(heap, 5, 8) && text.append(heap, '5') && text.reserve(heap, 99);
    text.shrink_to_fit(heap);
    text.destroy(heap);
  }
};

template <class Heap>
void use(Heap& heap) {
  launch({1, 1}, call_all{}, heap.ref(), static_cast<u64*>(nullptr));
  if constexpr (requires { heap.statistics(); }) heap.statistics();
  if constexpr (requires { heap.check_invariants(); }) heap.check_invariants();
  if constexpr (requires { heap.available_slots(5); }) heap.available_slots(5);
  if constexpr (requires { heap.info(); }) heap.info();
  auto const ignore = [](void*, size_t) {};
  if constexpr (requires { heap.for_each_live(ignore); }) heap.for_each_live(ignore);
  if constexpr (requires { heap.poll(); }) heap.poll();
  if constexpr (requires { heap.serve(); }) heap.serve();
  if constexpr (requires { heap.grow(5); }) heap.grow(5);
  if constexpr (requires { heap.trim(); }) heap.trim();
  if constexpr (requires { Heap::memory_pieces; })
    if constexpr (Heap::memory_pieces != 0) restore(heap, save(heap));
  heap.reset();
}

template <class Heap, class Size>
void make_and_use(Size const& size) {
  Heap heap{size};
  use(heap);
}
template <class... Heaps>
void use_each() {
  (make_and_use<Heaps>(size_t{1} << 26), ...);
}
template <class... Heaps>
void use_each_that_grows() {
  (make_and_use<Heaps>(growth{.initial = 1 << 21, .limit = 1 << 26}), ...);
}

using combined_in_host_memory = basic_heap<allocator<creation::scatter<>, distribution::warp_coalesce, oom::return_null,
                                                     reserve_pool::host_memory, alignment::shrink<16>>>;
using overflowing = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<heap_ref>,
                                         reserve_pool::device_memory, alignment::shrink<16>>>;

int main() {
  use_each<heap, scatter_heap, toolkit_heap, halloc_heap, ring_buffer_heap, queue_pages_heap, queue_chunks_heap,
           queue_pages_virtual_heap, queue_chunks_virtual_heap, rw_heap, rw_bitmap_heap, corw_heap, rw_malloc_heap,
           tbuddy_heap, ualloc_heap, throughput_heap, persistent_heap, basic_heap<forgiving_allocator>, checked<heap>,
           traced<heap>, combined_in_host_memory, overflowing>();
  use_each_that_grows<growing_heap, polled_heap, waiting_heap>();
  heap observed{size_t{1} << 22};
  published_gauge const gauge{observed, "observed"};
  auto const image = heap_image::read("warpheap.image");
  restore<persistent_heap>(image);
  restore<growing_heap>(image);
  heap_set set{size_t{1} << 24};
  set.reset();
}
