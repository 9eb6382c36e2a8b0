// SPDX-License-Identifier: Apache-2.0
// Calls every function that a kernel may call on each allocator the public header names, so that
// compiling this file for an architecture shows that the interface works there. Read by
// scripts/check_architectures.py.
#include <warpheap/all.hpp>
#include <warpheap/container/owner.hpp>
#include <warpheap/container/string.hpp>
#include <warpheap/container/vector.hpp>
#include <warpheap/heap/growing_heap.hpp>
#include <warpheap/heap/heap_set.hpp>

// With all our names visible, `cuda` must stay the CUDA C++ library's.
using namespace warpheap;
#if !defined(__CUDACC_RTC__)  // which lacks these headers
#include <cooperative_groups/reduce.h>
#include <cuda/std/array>
#endif

template <class Ref>
__device__ void call_common(Ref heap, void** results, warpheap::size_t bytes) {
  void* memory = heap.malloc(bytes);
  heap.free(memory);
  memory = heap.calloc(bytes, 2);
  memory = heap.realloc(memory, bytes, 3 * bytes);
  results[threadIdx.x] = memory;
}

template <class Ref>
__device__ void call_all(Ref heap, void** results, unsigned long long* counts, warpheap::size_t bytes) {
  call_common(heap, results, bytes);
  void* memory = heap.aligned_alloc(64, bytes);
  memory = heap.realloc(memory, 2 * bytes);
  counts[threadIdx.x] = heap.usable_size(memory) + heap.owns(memory) + heap.available_slots(bytes) +
                        heap.available_slots_warp(~0u, bytes);
  heap.free(memory);
  results[threadIdx.x] = heap.malloc_warp(warpheap::full_mask, bytes);
}

#if !defined(__CUDACC_RTC__)
__global__ void use_the_library(unsigned* sums) {
  auto const lanes = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
  cuda::std::array<unsigned, 2> const words{threadIdx.x, blockIdx.x};
  sums[threadIdx.x] = cooperative_groups::reduce(lanes, words[0], cooperative_groups::plus<unsigned>{});
}
#endif

__global__ void call_default(warpheap::heap_ref heap, void** results, unsigned long long* counts,
                             warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

struct node {
  unsigned number;
  node* next;
};

__global__ void call_containers(warpheap::heap_ref heap, warpheap::vector<double>* numbers, warpheap::string* texts) {
  unsigned const me = threadIdx.x;
  warpheap::owner<node> one{heap.make<node>(me, nullptr)};
  warpheap::owner<node[]> all{heap.make_array<node>(me), me};
  one.reset(heap);
  all.reset(heap);
  numbers[me].push_back(heap, me);
  numbers[me].append(heap, numbers->data(), numbers->size());
  numbers[me].insert(heap, 0, 1);
  numbers[me].shrink_to_fit(heap);
  texts[me].append(heap, "lane ");
  texts[me].append(heap, me);
  texts[me].append(heap, numbers[me].back(), 3);
  texts[me].append_hex(heap, texts->find("lane"), 8);
  numbers[me].destroy(heap);
  texts[me].destroy(heap);
}

__global__ void call_growing(warpheap::growing_allocator heap, void** results, unsigned long long* counts,
                             warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_waiting(warpheap::waiting_allocator heap, void** results, unsigned long long* counts,
                             warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_set(warpheap::heap_set::ref_type heap, void** results, unsigned long long* counts,
                         warpheap::size_t bytes) {
  call_all(heap.local(), results, counts, bytes);
  results[threadIdx.x] = heap.malloc(bytes);
  heap.free(results[threadIdx.x + 1]);
  void* const memory = heap.calloc(bytes, 2);
  counts[threadIdx.x] = heap.owner(memory) + heap.contains(memory) + heap.size() + heap.self();
}

__global__ void call_scatter(warpheap::scatter_allocator heap, void** results, unsigned long long* counts,
                             warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_halloc(warpheap::halloc_allocator heap, void** results, unsigned long long* counts,
                            warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_tbuddy(warpheap::tbuddy_allocator heap, void** results, unsigned long long* counts,
                            warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_ualloc(warpheap::ualloc_allocator heap, void** results, unsigned long long* counts,
                            warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_throughput(warpheap::throughput_allocator heap, void** results, unsigned long long* counts,
                                warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_queues(warpheap::queue_pages_allocator pages, warpheap::queue_chunks_allocator chunks,
                            warpheap::queue_pages_virtual_allocator virtual_pages,
                            warpheap::queue_chunks_virtual_allocator virtual_chunks, void** results,
                            unsigned long long* counts, warpheap::size_t bytes) {
  call_all(pages, results, counts, bytes);
  call_all(chunks, results, counts, bytes);
  call_all(virtual_pages, results, counts, bytes);
  call_all(virtual_chunks, results, counts, bytes);
}

__global__ void call_walks(warpheap::rw_allocator by_page, warpheap::rw_bitmap_allocator by_word,
                           warpheap::corw_allocator together, void** results, unsigned long long* counts,
                           warpheap::size_t bytes) {
  call_all(by_page, results, counts, bytes);
  call_all(by_word, results, counts, bytes);
  call_all(together, results, counts, bytes);
}

__global__ void call_rw_malloc(warpheap::rw_malloc_allocator heap, void** results, unsigned long long* counts,
                               warpheap::size_t bytes) {
  call_all(heap, results, counts, bytes);
}

__global__ void call_toolkit(warpheap::toolkit_allocator heap, void** results, warpheap::size_t bytes) {
  call_common(heap, results, bytes);
}

template <class T, class Step>
__device__ void count_by(T& object, Step step) {
  using warpheap::order;
  warpheap::atomic_ref<T> const counter{object};
  T expected = counter.load(order::acquire);
  counter.compare_exchange(expected, counter.exchange(expected, order::fenced), order::seq_cst, order::acquire);
  counter.store(counter.fetch_add(step, order::relaxed), order::release);
  counter.store(counter.fetch_sub(step, order::acq_rel), order::seq_cst);
  if constexpr (warpheap::atomic_integer<T>) {
    counter.store(counter.fetch_min(step, order::acquire), order::fenced);
    counter.store(counter.fetch_max(step, order::release), order::relaxed);
    counter.store(counter.fetch_or(step, order::relaxed), order::relaxed);
    counter.store(counter.fetch_and(step, order::relaxed), order::relaxed);
    counter.store(counter.fetch_xor(step, order::relaxed), order::relaxed);
  }
}

struct counters {
  int i;
  unsigned u;
  long long l;
  unsigned long long w;
  float f;
  double d;
  double* p;
};

__global__ void call_atomics(counters* all) {
  count_by(all->i, -1);
  count_by(all->u, 1u);
  count_by(all->l, -1ll);
  count_by(all->w, 1ull);
  count_by(all->f, 0.5f);
  count_by(all->d, 0.5);
  count_by(all->p, 1);
}

#if !defined(__CUDACC_RTC__)
// The host's side, so that it is compiled too.
unsigned long long use_heap() {
  using namespace warpheap::literals;
  warpheap::heap heap{64_MiB};
  call_default<<<1, 32>>>(heap.ref(), nullptr, nullptr, 16);
  heap.reset();
  unsigned long long slots = heap.available_slots(16) + heap.statistics().live_blocks + heap.check_invariants().size();
  heap.for_each_live([&](auto, auto bytes) { slots += bytes; });
  return slots + heap.info().size() + heap.handle();
}
#endif
