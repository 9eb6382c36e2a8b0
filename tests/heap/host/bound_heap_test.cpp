// SPDX-License-Identifier: Apache-2.0
// What a heap behind malloc answers where its allocator lacks some functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpheap/heap/bound_heap.hpp"
#include "warpheap/heap/default_heap.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace bound_heap_test {

using namespace warpheap;

/// Hands out blocks one after the other, and keeps no record of them.
class bump {
 public:
  static constexpr char const* name = "bump";
  static constexpr allocator_traits traits{.alignment = 16};

  explicit bump(u64* next) : next_{next} {}
  void* create(size_t bytes) const {
    return bytes ? reinterpret_cast<void*>(atomic_ref<u64>{*next_}.fetch_add(bytes, order::relaxed)) : nullptr;
  }
  void destroy(void*) const {}

 private:
  u64* next_;
};

/// Says that every pointer is a block of its own.
class owner_of_all : public bump {
 public:
  owner_of_all() : bump{nullptr} {}
  bool owns(void const*) const { return true; }
};

using bump_heap = bound_heap<plain_allocator<bump>>;

TEST(BoundHeap, AlignsAsFarAsAnAllocatorWithoutAlignedAllocDoes) {
  device_buffer<u64> const next(std::vector<u64>{4096});
  bump_heap const heap{plain_allocator<bump>{bump{next.data()}}};
  device_buffer<void*> const results(3);
  launch(
      {1, 1},
      [](bump_heap on, void** to) {
        to[0] = on.aligned_alloc(16, 10);
        to[1] = on.aligned_alloc(32, 10);
        to[2] = on.make(0);
      },
      heap, results.data());
  EXPECT_EQ(results[0], reinterpret_cast<void*>(4096));
  EXPECT_EQ(results[1], nullptr);
  EXPECT_EQ(results[2], reinterpret_cast<void*>(4096 + 16));
}

TEST(BoundHeap, EndsTheKernelThatReallocatesWhatHasNoSize) {
  device_buffer<u64> const next(std::vector<u64>{4096});
  bump_heap const heap{plain_allocator<bump>{bump{next.data()}}};
  EXPECT_THROW(launch(
                   {1, 1}, [](bump_heap on) { on.realloc(nullptr, 10); }, heap),
               host::trap_error);
}

TEST(BoundHeap, OwnsNothingBeforeItIsBound) {
  // A null pointer is a block of this one, so that only the guard says no.
  bound_heap<plain_allocator<owner_of_all>> const unbound{}, bound{plain_allocator<owner_of_all>{}};
  device_buffer<u32> const answers(2);
  launch(
      {1, 1},
      [](auto no, auto yes, u32* to) {
        to[0] = no.owns(nullptr);
        to[1] = yes.owns(nullptr);
      },
      unbound, bound, answers.data());
  EXPECT_EQ(answers[0], 0u);
  EXPECT_EQ(answers[1], 1u);
}

}  // namespace bound_heap_test
