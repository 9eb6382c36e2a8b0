// SPDX-License-Identifier: Apache-2.0
// Kernels of units that know nothing of Warpheap get their memory from our heap. Built twice. In
// one build every unit is a device program of its own, compiled with override.hpp. The other uses
// -rdc=true: this unit and kernels.cu have an allocator of the program's choice, and the linker
// serves other_unit.cu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels.hpp"
#include "spellings.hpp"
#include "warpheap/heap/override.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace override_test { namespace {

using namespace warpheap;
using namespace warpheap::literals;
using testing::IsEmpty;

constexpr u32 threads = 1000;  // the last warp is partial

/// A heap from which everything was freed, and that saw no double or foreign free.
void expect_clean(override_heap const& made) {
  auto const now = made.heap().statistics();
  EXPECT_EQ(now.live_blocks, 0u);
  EXPECT_EQ(now.double_frees, 0u);
  EXPECT_EQ(now.foreign_frees, 0u);
  EXPECT_THAT(made.heap().check_invariants(), IsEmpty());
}

TEST(DropIn, UsesTheAllocatorThatTheProgramNames) {
  override_heap const made{1_GiB};
#if defined(__CUDACC_RDC__)
  EXPECT_EQ(made.heap().statistics().slabs, 1_GiB >> 14);
#else
  static_assert(std::is_same_v<override_heap, basic_override_heap<default_allocator>>);
  EXPECT_LT(made.heap().statistics().slabs, 1_GiB >> 14);
#endif
}

TEST(DropIn, OneUnitsMallocIsTheOtherUnitsFree) {
  override_heap const made{64_MiB};
  device_buffer<node*> const lists(threads);
  device_buffer<u32> const sums(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 10), cudaSuccess);
  EXPECT_EQ(made.heap().statistics().live_blocks, 10 * threads);
  ASSERT_EQ(sum_and_free_lists(threads, lists.data(), sums.data()), cudaSuccess);
  EXPECT_THAT(sums.to_host(), testing::Each(45u));
  expect_clean(made);
}

/// A block that plain malloc gave, and what device code is told of it.
struct ask_about_a_block {
  WARPHEAP_DEVICE void operator()(u64* said) const {
    said[0] = available_slots(4096);
    void* const block = ::malloc(4096);
    said[1] = usable_size(block);
    said[2] = owns(block);
    said[3] = available_slots(4096);
    ::free(block);
    said[4] = usable_size(block) + owns(block);
  }
};

TEST(DropIn, TellsDeviceCodeOfTheBlocksOfMalloc) {
  override_heap const made{64_MiB};
  device_buffer<u64> const said(5);
  launch({1, 1}, ask_about_a_block{}, said.data());
  synchronize();
  EXPECT_EQ(said.to_host(), (std::vector<u64>{16384, 4096, 1, 16383, 0}));
  expect_clean(made);
}

TEST(DropIn, ServesEverySpellingOfDeviceAllocation) {
  override_heap const made{64_MiB};
  expect_each_spelling_of(made.heap());
}

TEST(DropIn, ServesMoreThanCudasOwnHeapHas) {
  std::size_t own = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&own, cudaLimitMallocHeapSize), cudaSuccess);
  u64 const length = 2 * own / (threads * sizeof(node)) + 1;
  override_heap const made{4 * own};
  device_buffer<node*> const lists(threads);
  device_buffer<u32> const sums(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), static_cast<u32>(length)), cudaSuccess);
  EXPECT_EQ(made.heap().statistics().live_blocks, length * threads);
  ASSERT_EQ(sum_and_free_lists(threads, lists.data(), sums.data()), cudaSuccess);
  expect_clean(made);
}

TEST(DropIn, NewConstructsAndDeleteDestroys) {
  override_heap const made{64_MiB};
  device_buffer<tally> const counts(1);
  ASSERT_EQ(make_shapes(threads, counts.data()), cudaSuccess);
  auto const now = counts[0];
  EXPECT_EQ(now.wrong, 0u);
  EXPECT_EQ(now.made, threads + 3 * threads);  // a shape each, and 1 to 5 in an array
  EXPECT_EQ(now.destroyed, now.made);
  EXPECT_EQ(made.heap().statistics().failures, 0u);
  expect_clean(made);
}

TEST(DropIn, NewAlignsAsTheTypeSays) {
  override_heap const made{64_MiB};
  device_buffer<tally> const counts(1);
  ASSERT_EQ(make_aligned(threads, counts.data()), cudaSuccess);
  auto const now = counts[0];
  EXPECT_EQ(now.wrong, 0u);
  EXPECT_GT(now.made, threads);
  EXPECT_EQ(now.destroyed, now.made);
  expect_clean(made);
}

TEST(DropIn, DeleteOfNullDoesNothing) {
  override_heap const made{1_MiB};
  ASSERT_EQ(delete_null(threads), cudaSuccess);
  expect_clean(made);
}

TEST(DropIn, AnswersNullWhenTheHeapIsFullAndServesAgain) {
  override_heap const made{16_MiB};
  device_buffer<tally> const counts(1);
  ASSERT_EQ(exhaust(threads, 1024, counts.data()), cudaSuccess);
  auto const now = counts[0];
  EXPECT_EQ(now.failed, threads) << "every thread goes on until it gets nullptr";
  EXPECT_GE(now.made, 16_MiB / 1024 * 9 / 10);
  expect_clean(made);
  device_buffer<node*> const lists(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  EXPECT_EQ(made.heap().statistics().live_blocks, threads);
}

TEST(DropIn, GivesNothingWithoutAHeap) {
  device_buffer<node*> const lists(threads);
  { override_heap const gone{1_MiB}; }
  ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  EXPECT_THAT(lists.to_host(), testing::Each(nullptr));
}

TEST(DropIn, LeavesTheHostsMallocAndNewAlone) {
  override_heap const made{1_MiB};
  auto* const block = static_cast<char*>(host_malloc(100'000));
  char* const array = host_new(100'000);
  ASSERT_TRUE(block && array);
  EXPECT_GE(malloc_usable_size(block), 100'000u);
  EXPECT_GE(malloc_usable_size(array), 100'000u);
  std::memset(block, 1, 100'000);
  std::memset(array, 2, 100'000);
  free(block);
  delete[] array;
  EXPECT_EQ(sum_on_host(100), 4950u);
  expect_clean(made);

  device_buffer<u32> const sums(threads);
  ASSERT_EQ(sum_on_device(threads, 100, sums.data()), cudaSuccess);
  EXPECT_THAT(sums.to_host(), testing::Each(4950u));
  EXPECT_GT(made.heap().statistics().empty_slabs, 0u) << "on the device the same function asks our heap";
  expect_clean(made);
}

/// Calls what only device code compiled with override.hpp can call, and new with an alignment.
__global__ void call_what_cuda_has_not(u32* wrong, int const* foreign) {
  auto const expect = [&](bool holds) { atomicAdd(wrong, !holds); };
  auto* const zeros = static_cast<u32*>(calloc(100, sizeof(u32)));
  expect(zeros && zeros[0] == 0 && zeros[99] == 0);
  zeros[99] = 99;
  auto* const more = static_cast<u32*>(std::realloc(zeros, 4000));
  expect(more && more[99] == 99);
  free(more);
  void* const wide = std::aligned_alloc(512, 1024);
  expect(wide && reinterpret_cast<u64>(wide) % 512 == 0);
  free(wide);
  struct alignas(128) line {
    u32 words[32];
  };
  auto* const lines = new line[3];
  expect(lines && reinterpret_cast<u64>(lines) % 128 == 0);
  delete[] lines;
  auto* const quiet = new (std::nothrow_t{}) node{3, nullptr};
  expect(quiet && quiet->value == 3);
  delete quiet;
  void* const empty[] = {malloc(0), calloc(0, 8), std::aligned_alloc(64, 0), new (std::nothrow_t{}) char[0]};
  for (void* const each : empty) {
    expect(each != nullptr);
    free(each);
  }
  auto* const none = new (std::nothrow_t{}) char[u64{1} << 40];
  expect(none == nullptr);
  free(const_cast<int*>(foreign));
}

TEST(DropIn, AddsNamesThatCudaHasNot) {
  override_heap const made{64_MiB};
  device_buffer<u32> const wrong(1);
  device_buffer<int> const foreign(1);
  call_what_cuda_has_not<<<2, 50>>>(wrong.data(), foreign.data());
  synchronize();
  EXPECT_EQ(wrong[0], 0u);
  auto const now = made.heap().statistics();
  EXPECT_EQ(now.live_blocks, 0u);
  EXPECT_EQ(now.double_frees, 0u);
  EXPECT_EQ(now.foreign_frees, 100u) << "a pointer of the host's cudaMalloc is counted and ignored";
}

/// Makes a device current, and restores the one before at the end.
class on_device {
 public:
  explicit on_device(int device) { EXPECT_EQ(cudaSetDevice(device), cudaSuccess); }
  ~on_device() { cudaSetDevice(0); }
};

TEST(DropIn, ServesTheDeviceOnWhichItWasMade) {
  if (int devices = 0; cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) GTEST_SKIP() << "one device";
  auto made = std::make_unique<override_heap>(64_MiB);
  {
    on_device const other{1};
    device_buffer<node*> const lists(threads);
    ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
    EXPECT_THAT(lists.to_host(), testing::Each(nullptr)) << "unbound on the other";
    made->bind();
    int current = -1;
    ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 1);
    ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
    EXPECT_THAT(lists.to_host(), testing::Each(nullptr)) << "bind() binds the heap's own";
  }
  device_buffer<node*> const lists(threads);
  device_buffer<u32> const sums(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 3), cudaSuccess);
  EXPECT_EQ(made->heap().statistics().live_blocks, 3 * threads);
  ASSERT_EQ(sum_and_free_lists(threads, lists.data(), sums.data()), cudaSuccess);
  expect_clean(*made);
  {
    on_device const other{1};
    made.reset();
    made = std::make_unique<override_heap>(64_MiB);
    device_buffer<node*> const there(threads);
    ASSERT_EQ(build_lists(threads, there.data(), 3), cudaSuccess);
    EXPECT_EQ(made->heap().statistics().live_blocks, 3 * threads);
  }
  ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  EXPECT_THAT(lists.to_host(), testing::Each(nullptr)) << "unbound by its end, though another device was current";
}

// The last test: a reset frees all memory on the device.
// override.O4
TEST(DropIn, OutlivesAResetOfTheDeviceAndFreesNothingThen) {
  auto made = std::make_unique<override_heap>(64_MiB);
  {
    device_buffer<node*> const lists(threads);
    ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  }
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  device_buffer<node*> const lists(threads);
  ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  EXPECT_THAT(lists.to_host(), testing::Each(nullptr)) << "unbound, as at the start";
  device_buffer<u64> const successor(64_MiB / sizeof(u64));  // likely where the pool was
  made.reset();
  EXPECT_EQ(cudaMemset(successor.data(), 1, successor.size() * sizeof(u64)), cudaSuccess);
  EXPECT_EQ(successor[successor.size() - 1], 0x0101010101010101u);
  override_heap const next{64_MiB};
  ASSERT_EQ(build_lists(threads, lists.data(), 1), cudaSuccess);
  EXPECT_EQ(next.heap().statistics().live_blocks, threads);
}

}}  // namespace override_test
