// SPDX-License-Identifier: Apache-2.0
// Adaptors around heaps whose pools grow: the owner grows and trims as the upstream heap does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "warpheap/adaptor/checked.hpp"
#include "warpheap/adaptor/trace/override_heap.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace growing_adaptors_test {

using namespace warpheap;

size_t const granule = reserve_pool::growing::granularity();

/// Kernel: every thread that has no block asks for one.
struct take_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, void** blocks) const {
    void*& mine = blocks[global_thread_index()];
    if (!mine) mine = heap.malloc(bytes);
  }
};

/// Kernel: every thread frees its block.
struct free_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** blocks) const {
    void*& mine = blocks[global_thread_index()];
    heap.free(mine);
    mine = nullptr;
  }
};

constexpr launch_shape shape{4, 64};
constexpr u64 threads = 4 * 64, block_bytes = 30000;

template <class Heap>
u64 take(Heap const& heap, device_buffer<void*> const& blocks) {
  launch(shape, take_each{}, heap.ref(), block_bytes, blocks.data());
  synchronize();
  auto const all = blocks.to_host();
  return all.size() - std::count(all.begin(), all.end(), nullptr);
}

template <class Heap>
void free_all(Heap const& heap, device_buffer<void*> const& blocks) {
  launch(shape, free_each{}, heap.ref(), blocks.data());
  synchronize();
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

constexpr checked_config no_quarantine{.quarantine_bytes = 0};
template <class Heap>
using checked_at_once = checked<Heap, no_quarantine>;
template <class Heap>
using traced_heap = traced<Heap>;

template <template <class> class Adaptor>
struct adaptor {
  template <class Heap>
  using around = Adaptor<Heap>;
};

template <class Adaptor>
class GrowingAdaptor : public testing::Test {};
using adaptors = testing::Types<adaptor<checked_at_once>, adaptor<traced_heap>>;
class adaptor_names {
 public:
  template <class Adaptor>
  static std::string GetName(int i) {  // NOLINT(readability-identifier-naming): GoogleTest calls it
    return i == 0 ? "checked" : "traced";
  }
};
TYPED_TEST_SUITE(GrowingAdaptor, adaptors, adaptor_names);

template <class Heap>
concept grows = requires(Heap& heap) {
  heap.grow(size_t{1});
  heap.trim();
  heap.committed_bytes();
};
template <class Heap>
concept asks = requires(Heap& heap, Heap const& quiet) {
  heap.poll();
  heap.serve();
  quiet.requested_bytes();
};

TYPED_TEST(GrowingAdaptor, HasTheFunctionsOfTheHeapBelowAndNoOthers) {
  using polled = typename TypeParam::template around<polled_heap>;
  using grown = typename TypeParam::template around<growing_heap>;
  using fixed = typename TypeParam::template around<heap>;
  static_assert(grows<polled> && asks<polled> && served_heap<polled>);
  static_assert(grows<grown> && !asks<grown> && !served_heap<grown>);
  static_assert(!grows<fixed> && !asks<fixed>);
}

TYPED_TEST(GrowingAdaptor, GrowsByWhatWasRefusedAndTrimsWhatNobodyHas) {
  typename TypeParam::template around<polled_heap> heap{
      growth{.initial = granule, .limit = 64 * granule, .chunk = granule}};
  device_buffer<void*> const blocks(threads);
  EXPECT_EQ(heap.poll(), 0u);
  u64 const fit = take(heap, blocks);
  EXPECT_GT(fit, 0u);
  EXPECT_LT(fit, threads);
  EXPECT_GT(heap.requested_bytes(), 0u);
  EXPECT_GT(heap.poll(), 0u);
  EXPECT_EQ(take(heap, blocks), threads);
  EXPECT_EQ(heap.trim(), 0u);
  EXPECT_EQ(heap.grow(1), granule);
  size_t const most = heap.committed_bytes();
  free_all(heap, blocks);
  EXPECT_EQ(heap.trim(), most - granule);
  EXPECT_EQ(heap.committed_bytes(), granule);
  EXPECT_EQ(heap.upstream().committed_bytes(), granule);
}

// As long as a busy machine may need.
constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_heap = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_a_minute>>>;

TYPED_TEST(GrowingAdaptor, IsServedWhileItsKernelWaits) {
  typename TypeParam::template around<patient_heap> heap{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  growth_service const service{heap};
  device_buffer<void*> const blocks(threads);
  EXPECT_EQ(take(heap, blocks), threads);
  EXPECT_GT(service.growths(), 0u);
  EXPECT_EQ(service.failure(), nullptr);
  free_all(heap, blocks);
}

TEST(GrowingChecked, KeepsTheMemoryOfBlocksInQuarantine) {
  checked<polled_heap> heap{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  device_buffer<void*> const blocks(threads);
  heap.grow(16 * granule);
  EXPECT_EQ(take(heap, blocks), threads);
  free_all(heap, blocks);
  EXPECT_LT(heap.trim(), 16 * granule);
  EXPECT_THAT(heap.check_blocks(), testing::IsEmpty()) << "they can still be read";
  heap.reset();
  synchronize();
  heap.trim();
  EXPECT_EQ(heap.committed_bytes(), 0u);
  EXPECT_THAT(heap.check_blocks(), testing::IsEmpty());
}

struct traced_kind {
  static constexpr char const* name = "traced test heap";
  static constexpr char const* second = "there is one";
};
using traced_allocator = traced_ref<polled_allocator>;

// As device_heap.hpp declares its variable.
#if defined(__CUDACC__)
static __device__ bound_heap<traced_allocator> named;
#else
static bound_heap<traced_allocator> named;
#endif
static detail::bound_unit<traced_kind> const unit{
    __FILE__,
    detail::allocator_text<traced_allocator>(),
    {[](void const* binding) { detail::write_bound_heap(named, binding); },
     [](void* binding) { detail::read_bound_heap(named, binding); }}};

/// Kernel: every thread asks by name, and frees what it got.
struct call_by_name {
  WARPHEAP_DEVICE void operator()(u64 bytes) const { named.free(named.malloc(bytes)); }
};

TEST(GrowingOverrideTraced, RecordsAHeapBehindANameThatGrows) {
  std::string const path = testing::TempDir() + "/warpheap_growing_" + std::to_string(getpid());
  setenv("WARPHEAP_TRACE", path.c_str(), 1);
  {
    process_heap<traced_allocator, traced_kind> made{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
    launch({2, 32}, call_by_name{}, granule / 32);
    synchronize();
    EXPECT_EQ(made.heap().poll(), 2 * granule);
    launch({2, 32}, call_by_name{}, granule / 32);
    synchronize();
    EXPECT_EQ(made.heap().trim(), 2 * granule);
  }
  unsetenv("WARPHEAP_TRACE");
  auto const trace = load_trace(path);
  unlink(path.c_str());
  EXPECT_EQ(trace.pool_bytes, 64 * granule);
  EXPECT_GE(trace.calls.size(), 64 + 2 * 1u) << "refused calls, and those served later";
}

}  // namespace growing_adaptors_test
