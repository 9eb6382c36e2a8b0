// SPDX-License-Identifier: Apache-2.0
// One allocator that stands for the others on the host backend. Scenarios and workloads are
// templates over the allocator, since a GPU is to run the code of one allocator alone. A CPU calls
// through a table as well: so it compiles them for this allocator, in a quarter of the time that
// they take for each. Atomics, and so the schedules of a seed, are those of the allocator that it
// stands for. One without all of these calls stands for itself.
#pragma once

#include <memory>

#include "measure/measure.hpp"
#include "shown_heap.hpp"
#include "warpheap/heap/default_heap.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// The calls of a heap, of its creation policy alone, and of its kernels.
class any_heap {
 public:
  virtual ~any_heap() = default;

  virtual void* malloc(size_t bytes) const = 0;
  virtual void free(void* memory) const = 0;
  virtual void* calloc(size_t count, size_t size) const = 0;
  virtual void* realloc(void* memory, size_t bytes) const = 0;
  virtual void* realloc(void* memory, size_t old_bytes, size_t bytes) const = 0;
  virtual void* aligned_alloc(size_t alignment, size_t bytes) const = 0;
  virtual void* malloc_warp(u32 mask, size_t bytes) const = 0;
  virtual size_t usable_size(void const* memory) const = 0;
  virtual u64 available_slots_warp(u32 mask, size_t bytes) const = 0;

  virtual void* create(size_t bytes) const = 0;
  virtual void destroy(void* memory) const = 0;

  virtual void reset() = 0;
  virtual u64 available_slots(size_t bytes) const = 0;
  virtual heap_statistics statistics() const = 0;
  virtual invariant_report check_invariants() const = 0;
  virtual std::vector<memory_range> memory() const = 0;
  virtual u64 handle() const = 0;
  virtual std::shared_ptr<void> shown(std::string const& name) const = 0;
};

template <class Allocator>
class heap_behind final : public any_heap {
 public:
  explicit heap_behind(size_t bytes) : heap_{bytes}, ref_{heap_.ref()} {}

  void* malloc(size_t bytes) const override { return ref_.malloc(bytes); }
  void free(void* memory) const override { ref_.free(memory); }
  void* calloc(size_t count, size_t size) const override { return ref_.calloc(count, size); }
  void* realloc(void* memory, size_t bytes) const override { return ref_.realloc(memory, bytes); }
  void* realloc(void* memory, size_t old_bytes, size_t bytes) const override {
    return ref_.realloc(memory, old_bytes, bytes);
  }
  void* aligned_alloc(size_t alignment, size_t bytes) const override { return ref_.aligned_alloc(alignment, bytes); }
  void* malloc_warp(u32 mask, size_t bytes) const override { return ref_.malloc_warp(mask, bytes); }
  size_t usable_size(void const* memory) const override { return ref_.usable_size(memory); }
  u64 available_slots_warp(u32 mask, size_t bytes) const override { return ref_.available_slots_warp(mask, bytes); }

  void* create(size_t bytes) const override { return ref_.creation().create(bytes); }
  void destroy(void* memory) const override { ref_.creation().destroy(memory); }

  void reset() override { heap_.reset(); }
  u64 available_slots(size_t bytes) const override { return heap_.available_slots(bytes); }
  heap_statistics statistics() const override { return heap_.statistics(); }
  invariant_report check_invariants() const override { return heap_.check_invariants(); }
  std::vector<memory_range> memory() const override { return heap_.memory(); }
  u64 handle() const override { return heap_.handle(); }
  std::shared_ptr<void> shown(std::string const& name) const override { return show_heap(heap_, name); }

 private:
  basic_heap<Allocator> heap_;
  Allocator ref_;
};

/// What is asked of an allocator's type, and how its heaps are made.
struct allocator_facts {
  allocator_traits traits;
  size_t padded_to = 0;   ///< what its alignment policy pads sizes to, bytes
  u32 split_percent = 0;  ///< of its creation policy, if that has it
  std::unique_ptr<any_heap> (*make_heap)(size_t bytes) = nullptr;
};

/// Those of the allocator that heaps are made of until another one is chosen.
inline allocator_facts chosen_allocator;

/// What kernels take in place of a creation policy.
struct any_creation {
  static constexpr allocator_facts const& config = chosen_allocator;

  void* create(size_t bytes) const { return heap->create(bytes); }
  void destroy(void* memory) const { heap->destroy(memory); }
  size_t usable_size(void const* memory) const { return heap->usable_size(memory); }

  any_heap const* heap;
};

/// What kernels take in place of an allocator.
class any_allocator {
 public:
  using creation_type = any_creation;
  struct alignment_type {
    static constexpr size_t const& bytes = chosen_allocator.padded_to;
  };
  static constexpr allocator_traits const& traits = chosen_allocator.traits;

  any_allocator() = default;
  explicit any_allocator(any_heap const* heap) : heap_{heap} {}

  void* malloc(size_t bytes) const { return heap_->malloc(bytes); }
  void free(void* memory) const { heap_->free(memory); }
  void* calloc(size_t count, size_t size) const { return heap_->calloc(count, size); }
  void* realloc(void* memory, size_t bytes) const { return heap_->realloc(memory, bytes); }
  void* realloc(void* memory, size_t old_bytes, size_t bytes) const { return heap_->realloc(memory, old_bytes, bytes); }
  void* aligned_alloc(size_t alignment, size_t bytes) const { return heap_->aligned_alloc(alignment, bytes); }
  void* malloc_warp(u32 mask, size_t bytes) const { return heap_->malloc_warp(mask, bytes); }
  size_t usable_size(void const* memory) const { return heap_->usable_size(memory); }
  u64 available_slots_warp(u32 mask, size_t bytes) const { return heap_->available_slots_warp(mask, bytes); }

  any_creation creation() const { return {heap_}; }

 private:
  any_heap const* heap_ = nullptr;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND

namespace warpheap { inline namespace WARPHEAP_BACKEND {

template <>
class basic_heap<tool::any_allocator> {
 public:
  using allocator_type = tool::any_allocator;
  using creation_type = allocator_type::creation_type;
  using ref_type = allocator_type;
  static constexpr u32 memory_pieces = 1;  ///< or more
  static constexpr size_t minimum_bytes = basic_heap<default_allocator>::minimum_bytes;

  explicit basic_heap(size_t bytes) : heap_{tool::chosen_allocator.make_heap(bytes)} {}

  ref_type ref() const { return ref_type{heap_.get()}; }
  void reset() { heap_->reset(); }
  u64 available_slots(size_t bytes) const { return heap_->available_slots(bytes); }
  heap_statistics statistics() const { return heap_->statistics(); }
  invariant_report check_invariants() const { return heap_->check_invariants(); }
  std::vector<memory_range> memory() const { return heap_->memory(); }
  u64 handle() const { return heap_->handle(); }
  std::shared_ptr<void> shown(std::string const& name) const { return heap_->shown(name); }

 private:
  std::unique_ptr<tool::any_heap> heap_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// `subject`, or the one that stands for it.
template <class Allocator>
auto stand_in_for(bench::test_subject<Allocator> const& subject) {
  using heap_type = basic_heap<Allocator>;
  if constexpr (!bench::on_gpu && heap_type::takes_snapshots) {
    static_assert(heap_type::minimum_bytes == basic_heap<any_allocator>::minimum_bytes);
    chosen_allocator = {.traits = Allocator::traits,
                        .padded_to = Allocator::alignment_type::bytes,
                        .make_heap = [](size_t bytes) -> std::unique_ptr<any_heap> {
                          return std::make_unique<heap_behind<Allocator>>(bytes);
                        }};
    if constexpr (requires { Allocator::creation_type::config.split_percent; })
      chosen_allocator.split_percent = Allocator::creation_type::config.split_percent;
    return bench::test_subject<any_allocator>{subject.name, subject.resets};
  } else {
    return subject;
  }
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
