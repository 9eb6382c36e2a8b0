// SPDX-License-Identifier: Apache-2.0
// A heap that device code finds without a parameter, over a pool that grows: between kernels, and
// while they wait. tests/override does it behind malloc, which needs nvcc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/message_of.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/heap/process_heap.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace growing_process_heap_test {

using namespace warpheap;
using test::message_of;

// As long as a busy machine may need.
constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_allocator = growing_allocator_with<oom::grow_on_demand<wait_a_minute>>;

struct polled_kind {
  static constexpr char const* name = "polled test heap";
  static constexpr char const* second = "there is one";
};
struct patient_kind {
  static constexpr char const* name = "patient test heap";
  static constexpr char const* second = "there is one";
};

// As device_heap.hpp declares its variable.
#if defined(__CUDACC__)
static __device__ bound_heap<polled_allocator> polled;
static __device__ bound_heap<patient_allocator> patient;
#else
static bound_heap<polled_allocator> polled;
static bound_heap<patient_allocator> patient;
#endif

static detail::bound_unit<polled_kind> const polled_unit{
    __FILE__,
    detail::allocator_text<polled_allocator>(),
    {[](void const* binding) { detail::write_bound_heap(polled, binding); },
     [](void* binding) { detail::read_bound_heap(polled, binding); }}};
static detail::bound_unit<patient_kind> const patient_unit{
    __FILE__,
    detail::allocator_text<patient_allocator>(),
    {[](void const* binding) { detail::write_bound_heap(patient, binding); },
     [](void* binding) { detail::read_bound_heap(patient, binding); }}};

using polled_process_heap = process_heap<polled_allocator, polled_kind>;
using patient_process_heap = process_heap<patient_allocator, patient_kind>;

struct of_polled {
  WARPHEAP_DEVICE static void* malloc(size_t bytes) { return polled.malloc(bytes); }
  WARPHEAP_DEVICE static void free(void* memory) { polled.free(memory); }
};
struct of_patient {
  WARPHEAP_DEVICE static void* malloc(size_t bytes) { return patient.malloc(bytes); }
  WARPHEAP_DEVICE static void free(void* memory) { patient.free(memory); }
};

/// Kernel: every thread that has no block asks for one, and writes its number to it.
template <class Names>
struct take_each {
  WARPHEAP_DEVICE void operator()(u64 bytes, u64** blocks) const {
    u64 const me = global_thread_index();
    if (blocks[me]) return;
    u64* const block = static_cast<u64*>(Names::malloc(bytes));
    if (block) *block = me;
    blocks[me] = block;
  }
};

/// Kernel: counts the threads whose block does not hold their number, and frees the blocks.
template <class Names>
struct verify_and_free {
  WARPHEAP_DEVICE void operator()(u64** blocks, u64* wrong) const {
    u64 const me = global_thread_index();
    if (!blocks[me] || *blocks[me] != me) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    Names::free(blocks[me]);
    blocks[me] = nullptr;
  }
};

size_t const granule = reserve_pool::growing::granularity();
constexpr launch_shape shape{16, 64};
constexpr u64 threads = 16 * 64, block_bytes = 16384;  // 16 MiB in all

/// How many threads have a block after all of those without one have asked.
template <class Names>
u64 take(device_buffer<u64*> const& blocks) {
  launch(shape, take_each<Names>{}, block_bytes, blocks.data());
  synchronize();
  auto const all = blocks.to_host();
  return all.size() - std::count(all.begin(), all.end(), nullptr);
}

template <class Names>
u64 wrong_when_freed(device_buffer<u64*> const& blocks) {
  device_buffer<u64> const wrong(1);
  launch(shape, verify_and_free<Names>{}, blocks.data(), wrong.data());
  synchronize();
  return wrong[0];
}

TEST(GrowingProcessHeap, ServesItsUnitsFromWhatCameBetweenKernels) {
  polled_process_heap made{growth{.initial = granule, .limit = 64 * granule, .chunk = granule}};
  device_buffer<u64*> const blocks(threads);
  u64 const fit = granule / block_bytes;
  EXPECT_EQ(take<of_polled>(blocks), fit);
  EXPECT_EQ(made.heap().requested_bytes(), (threads - fit) * block_bytes);
  EXPECT_EQ(made.heap().grow(1), granule);
  EXPECT_EQ(made.heap().poll(), (threads - fit) * block_bytes);
  EXPECT_EQ(take<of_polled>(blocks), threads) << "the unit's copy of the reference sees growth";
  EXPECT_EQ(wrong_when_freed<of_polled>(blocks), 0u);
  EXPECT_EQ(made.heap().trim(), (threads - fit) * block_bytes + granule);
  EXPECT_EQ(take<of_polled>(blocks), fit);
}

TEST(GrowingProcessHeap, ServesItsUnitsWhileTheyWait) {
  patient_process_heap made{growth{.initial = 0, .limit = 64 * granule, .chunk = granule}};
  growth_service const service{made.heap()};
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(take<of_patient>(blocks), threads);
  EXPECT_EQ(wrong_when_freed<of_patient>(blocks), 0u);
  EXPECT_EQ(service.failure(), nullptr);
}

TEST(GrowingProcessHeap, ThatCannotBeMadeLeavesRoomForAnother) {
  EXPECT_THAT(message_of<std::invalid_argument>([] { polled_process_heap{growth{.initial = 1, .limit = 1}}; }),
              testing::HasSubstr("limit of 1 bytes is no multiple of " + std::to_string(granule)));
  device_buffer<u64*> const blocks(threads);
  EXPECT_EQ(take<of_polled>(blocks), 0u) << "unbound";
  polled_process_heap const made{growth{.initial = 16 * granule, .limit = 16 * granule}};
  EXPECT_EQ(take<of_polled>(blocks), threads);
}

}  // namespace growing_process_heap_test
