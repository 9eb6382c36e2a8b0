// SPDX-License-Identifier: Apache-2.0
// The heap behind device code's malloc, free, new and delete: what its functions answer bound and
// unbound, in one unit and in two. tests/override checks that kernels' own calls reach them, which
// needs nvcc.
#include "warpheap/heap/override.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "override_units.hpp"
#include "support/message_of.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace override_test {

using namespace warpheap;
using test::message_of;
using namespace warpheap::literals;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr launch_shape shape{3, 45};  // the last warp of a thread block is partial
constexpr u64 threads = 135;

struct free_all {
  WARPHEAP_DEVICE void operator()(void* const* blocks) const { device_heap.free(blocks[global_thread_index()]); }
};

/// One pointer from each function.
struct ask_once {
  static constexpr u32 ways = 6;

  WARPHEAP_DEVICE void operator()(void* earlier, void** results) const {
    results[0] = device_heap.malloc(100);
    results[1] = device_heap.calloc(10, 10);
    results[2] = device_heap.realloc(earlier, 300);
    results[3] = device_heap.aligned_alloc(512, 100);
    results[4] = device_heap.make(0);
    results[5] = device_heap.make(0, 1024);
  }
};

std::vector<void*> ask(void* earlier = nullptr) {
  device_buffer<void*> const results(ask_once::ways);
  launch({1, 1}, ask_once{}, earlier, results.data());
  synchronize();
  return results.to_host();
}

void free_blocks(std::vector<void*> const& blocks) {
  device_buffer<void*> const list{blocks};
  launch({1, static_cast<u32>(blocks.size())}, free_all{}, list.data());
  synchronize();
}

TEST(OverrideHeap, GivesNothingAndIgnoresFreesWhileUnbound) {
  EXPECT_THAT(ask(), Each(nullptr));
  device_buffer<u64> const memory(1);
  free_blocks({memory.data(), nullptr});
  {
    override_heap const made{4_MiB};
    auto const blocks = ask();
    EXPECT_THAT(blocks, Each(testing::NotNull()));
    EXPECT_EQ(made.heap().statistics().live_blocks, ask_once::ways);
  }
  EXPECT_THAT(ask(), Each(nullptr));
}

TEST(OverrideHeap, ServesEveryFunctionFromTheHeap) {
  override_heap const made{4_MiB};
  auto const first = ask();
  EXPECT_EQ(reinterpret_cast<u64>(first[3]) % 512, 0u);
  EXPECT_EQ(reinterpret_cast<u64>(first[5]) % 1024, 0u);
  EXPECT_EQ(std::set<void*>(first.begin(), first.end()).size(), ask_once::ways) << "new gives each object an address";
  auto const second = ask(first[0]);
  EXPECT_NE(second[2], first[0]) << "300 bytes do not fit where 100 are";
  EXPECT_EQ(made.heap().statistics().live_blocks, 2 * ask_once::ways - 1);

  free_blocks({first.begin() + 1, first.end()});
  free_blocks(second);
  auto const after = made.heap().statistics();
  EXPECT_EQ(after.live_blocks, 0u);
  EXPECT_EQ(after.double_frees + after.foreign_frees, 0u);
  EXPECT_THAT(made.heap().check_invariants(), IsEmpty());
}

struct ask_aligned {
  WARPHEAP_DEVICE void operator()(void** blocks) const {
    auto const me = global_thread_index();
    blocks[me] = me % 2 ? device_heap.make(100, 512) : device_heap.aligned_alloc(512, 100);
  }
};

TEST(OverrideHeap, AlignsEveryBlock) {
  override_heap const made{4_MiB};
  device_buffer<void*> const blocks(threads);
  launch(shape, ask_aligned{}, blocks.data());
  synchronize();
  for (void* const block : blocks.to_host()) {
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<u64>(block) % 512, 0u);
  }
}

TEST(OverrideHeap, IsOneForAllUnits) {
  override_heap const made{4_MiB};
  device_buffer<void*> const blocks(threads);
  allocate_in_other_unit(shape, blocks.data(), 64);
  synchronize();
  EXPECT_EQ(made.heap().statistics().live_blocks, threads);
  launch(shape, free_all{}, blocks.data());
  synchronize();
  EXPECT_EQ(made.heap().statistics().live_blocks, 0u);

  auto const mine = ask();
  device_buffer<void*> const list{mine};
  free_in_other_unit({1, ask_once::ways}, list.data());
  synchronize();
  EXPECT_EQ(made.heap().statistics().live_blocks, 0u);
  EXPECT_EQ(made.heap().statistics().foreign_frees, 0u);
}

TEST(OverrideHeap, CountsForeignPointersAndIgnoresThem) {
  override_heap const made{4_MiB};
  device_buffer<u64> const memory(64);
  free_blocks({memory.data(), memory.data() + 32});
  EXPECT_EQ(made.heap().statistics().foreign_frees, 2u);
  EXPECT_THAT(made.heap().check_invariants(), IsEmpty());
}

TEST(OverrideHeap, AnswersNullWhenItIsFullAndServesAgainAfterFrees) {
  override_heap const made{1_MiB};
  device_buffer<void*> const blocks(threads);
  allocate_in_other_unit(shape, blocks.data(), 12'000);
  synchronize();
  auto const got = blocks.to_host();
  auto const served = threads - static_cast<u64>(std::count(got.begin(), got.end(), nullptr));
  EXPECT_GT(served, 0u);
  EXPECT_LT(served, threads);
  free_in_other_unit(shape, blocks.data());
  allocate_in_other_unit({1, 45}, blocks.data(), 12'000);
  synchronize();
  EXPECT_EQ(made.heap().statistics().live_blocks, 45u);
}

// override.O2
TEST(OverrideHeap, IsOneAtATime) {
  {
    override_heap const first{1_MiB};
    EXPECT_THAT(message_of<std::logic_error>([] { override_heap{1_MiB}; }), HasSubstr("the process has one"));
    EXPECT_THAT(ask(), Each(testing::NotNull())) << "the first is still bound";
  }
  EXPECT_THROW(override_heap{100}, std::invalid_argument);
  override_heap const next{1_MiB};
  EXPECT_THAT(ask(), Each(testing::NotNull()));
}

/// A unit of this program's allocator that records what it was told, or refuses to be told
/// anything.
struct pretended_unit {
  using binding_type = bound_heap<default_allocator>;
  static inline binding_type told{};
  static inline bool refuses = false;

  static void write(void const* binding) {
    if (refuses) throw backend_error{"no kernel image"};
    told = *static_cast<binding_type const*>(binding);
  }
  static void read(void* binding) { *static_cast<binding_type*>(binding) = told; }
  static constexpr detail::unit_variable variable{write, read};
  static constexpr char const* allocator() { return detail::allocator_text<default_allocator>(); }
  static bool is_bound() { return told.is_bound(); }
  static void start() {
    told = {};
    refuses = false;
  }
};

// override.O3
TEST(OverrideHeap, RefusesUnitsThatWereCompiledForAnotherAllocator) {
  {
    detail::override_unit const other{"other.cu", "another allocator", pretended_unit::variable};
    auto const message = message_of<std::logic_error>([] { override_heap{1_MiB}; });
    EXPECT_THAT(message, HasSubstr("other.cu was compiled for another allocator"));
    EXPECT_THAT(ask(), Each(nullptr));
  }
  override_heap const made{1_MiB};
  EXPECT_THAT(ask(), Each(testing::NotNull()));
}

// override.O1
TEST(OverrideHeap, SaysWhichUnitTheDeviceCannotRunAndBindsNone) {
  pretended_unit::start();
  {
    detail::override_unit const stubborn{"stubborn.cu",
                                         pretended_unit::allocator(),
                                         {[](void const*) { throw backend_error{"no kernel image"}; }, nullptr}};
    detail::override_unit const newest{"newest.cu", pretended_unit::allocator(), pretended_unit::variable};
    auto const message = message_of<backend_error>([] { override_heap{1_MiB}; });
    EXPECT_THAT(message, testing::AllOf(HasSubstr("stubborn.cu"), HasSubstr("no kernel image")));
    EXPECT_FALSE(pretended_unit::is_bound());
    EXPECT_THAT(ask(), Each(nullptr));
  }
  override_heap const made{1_MiB};
  EXPECT_THAT(ask(), Each(testing::NotNull()));
}

TEST(OverrideHeap, UnbindsTheOthersWhenOneUnitCannotBeUnbound) {
  pretended_unit::start();
  detail::override_unit const newest{"newest.cu", pretended_unit::allocator(), pretended_unit::variable};
  {
    override_heap const made{1_MiB};
    EXPECT_TRUE(pretended_unit::is_bound());
    pretended_unit::refuses = true;
  }
  EXPECT_THAT(ask(), Each(nullptr));
}

TEST(OverrideHeap, BindsAUnitThatComesWhileItLives) {
  pretended_unit::start();
  {
    override_heap const made{1_MiB};
    detail::override_unit const late{"late.cu", pretended_unit::allocator(), pretended_unit::variable};
    EXPECT_TRUE(pretended_unit::is_bound());
  }
  pretended_unit::start();
  detail::override_unit const later{"later.cu", pretended_unit::allocator(), pretended_unit::variable};
  EXPECT_FALSE(pretended_unit::is_bound()) << "the heap is gone";
}

TEST(OverrideHeap, UnbindsAUnitThatCameWhileItLived) {
  pretended_unit::start();
  auto made = std::make_unique<override_heap>(1_MiB);
  detail::override_unit const late{"late.cu", pretended_unit::allocator(), pretended_unit::variable};
  EXPECT_TRUE(pretended_unit::is_bound());
  made.reset();
  EXPECT_FALSE(pretended_unit::is_bound());
}

TEST(OverrideHeap, SaysWhenAskedWhyAUnitThatCameLaterIsNotBound) {
  pretended_unit::start();
  override_heap made{1_MiB};
  {
    detail::override_unit const other{"other.cu", "another allocator", pretended_unit::variable};
    EXPECT_FALSE(pretended_unit::is_bound());
    EXPECT_THAT(message_of<std::logic_error>([&] { made.bind(); }), HasSubstr("other.cu was compiled for another"));
  }
  pretended_unit::refuses = true;
  detail::override_unit const late{"late.cu", pretended_unit::allocator(), pretended_unit::variable};
  EXPECT_THAT(message_of<backend_error>([&] { made.bind(); }), HasSubstr("late.cu cannot be given its heap"));
  pretended_unit::refuses = false;
  made.bind();
  EXPECT_TRUE(pretended_unit::is_bound());
}

/// Whether `memory` lies in memory that the backend has allocated.
bool is_allocated(void const* memory) {
#if defined(__CUDACC__)
  cudaPointerAttributes found{};
  return cudaPointerGetAttributes(&found, memory) == cudaSuccess && found.type == cudaMemoryTypeDevice;
#else
  return host::detail::describe_address(reinterpret_cast<u64>(memory)).starts_with("buffer");
#endif
}

TEST(OverrideHeap, GivesItsMemoryBack) {
  auto made = std::make_unique<override_heap>(64_MiB);
  void const* const block = ask()[0];
  EXPECT_TRUE(is_allocated(block));
  made.reset();
  EXPECT_FALSE(is_allocated(block));
}

TEST(OverrideHeap, TakesNoMemoryIfAUnitCannotBeBound) {
  pretended_unit::start();
  pretended_unit::refuses = true;
  detail::override_unit const stubborn{"stubborn.cu", pretended_unit::allocator(), pretended_unit::variable};
  EXPECT_THAT(message_of<backend_error>([] { override_heap{u64{1} << 60}; }), HasSubstr("stubborn.cu"));
}

}  // namespace override_test
