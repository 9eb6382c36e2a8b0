// SPDX-License-Identifier: Apache-2.0
// The owner of a pool: made, moved, asked, reset, and gone without a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "support/message_of.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace heap_test {

using namespace warpheap;
using test::message_of;
using namespace warpheap::literals;
using testing::HasSubstr;

/// Every thread's block, with its number in it.
struct allocate_numbered {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64** blocks) const {
    u64* const block = static_cast<u64*>(heap.malloc(100));
    if (block) *block = global_thread_index();
    blocks[global_thread_index()] = block;
  }
};

/// Counts the blocks that hold their thread's number, and frees them.
struct check_numbers_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* const* blocks, u64* right) const {
    u64* const block = blocks[global_thread_index()];
    if (block && *block == global_thread_index()) atomic_ref<u64>{*right}.fetch_add(1, order::relaxed);
    heap.free(block);
  }
};

constexpr launch_shape shape{3, 50};
constexpr u64 threads = 150;

/// Memory of the device that is counted while it is held.
class counted_memory {
 public:
  static constexpr char const* name = "counted_memory";
  static inline int held = 0;

  counted_memory() = default;
  counted_memory(counted_memory&& other) noexcept : memory_{std::exchange(other.memory_, nullptr)} {}
  counted_memory& operator=(counted_memory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~counted_memory() {
    held -= memory_ != nullptr;
    backend::deallocate_bytes(memory_);
  }
  void* acquire(size_t bytes) {
    memory_ = backend::allocate_bytes(bytes);
    ++held;
    return memory_;
  }

 private:
  void* memory_ = nullptr;
};

using counted_heap = basic_heap<
    allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, counted_memory, alignment::shrink<16>>>;

static_assert(std::is_nothrow_move_constructible_v<warpheap::heap> &&
              std::is_nothrow_move_assignable_v<warpheap::heap>);
static_assert(!std::is_copy_constructible_v<warpheap::heap> && !std::is_copy_assignable_v<warpheap::heap>);
static_assert(std::is_trivially_copyable_v<heap_ref> && sizeof(heap_ref) == 16);
static_assert(std::is_same_v<decltype(std::declval<warpheap::heap const&>().ref()), heap_ref>);

TEST(Heap, RefusesAPoolBelowTheMinimumAndNamesBoth) {
  for (size_t const bytes : {size_t{0}, size_t{1}, warpheap::heap::minimum_bytes - 1}) {
    auto const message = message_of<std::invalid_argument>([&] { warpheap::heap{bytes}; });
    EXPECT_THAT(message, HasSubstr(std::to_string(bytes)));
    EXPECT_THAT(message, HasSubstr(std::to_string(warpheap::heap::minimum_bytes)));
  }
}

TEST(Heap, SaysHowMuchItAskedForWhenTheDeviceHasNotThatMuch) {
  constexpr size_t bytes = size_t{1} << 49;
  EXPECT_THAT(message_of<out_of_memory>([&] { warpheap::heap{bytes}; }), testing::ContainsRegex("[0-9]{15}"));
  warpheap::heap const after{1_MiB};
  EXPECT_EQ(after.statistics().live_blocks, 0u);
}

TEST(Heap, GivesItsMemoryBackOnce) {
  {
    counted_heap first{1_MiB};
    EXPECT_EQ(counted_memory::held, 1);
    counted_heap second{std::move(first)};
    counted_heap third{2_MiB};
    EXPECT_EQ(counted_memory::held, 2);
    third = std::move(second);
    EXPECT_EQ(third.statistics().pool_bytes, 1_MiB);
  }
  EXPECT_EQ(counted_memory::held, 0);
  EXPECT_THROW(counted_heap{100}, std::invalid_argument);
  EXPECT_EQ(counted_memory::held, 0);
}

TEST(Heap, KeepsItsBlocksWhenMoved) {
  warpheap::heap made{4_MiB};
  device_buffer<u64*> const blocks(threads);
  device_buffer<u64> const right(1);
  launch(shape, allocate_numbered{}, made.ref(), blocks.data());
  synchronize();
  u64 const handle = made.handle();
  warpheap::heap moved{std::move(made)};
  warpheap::heap assigned{1_MiB};
  assigned = std::move(moved);
  EXPECT_EQ(assigned.handle(), handle);
  EXPECT_EQ(assigned.statistics().live_blocks, threads);
  launch(shape, check_numbers_and_free{}, assigned.ref(), blocks.data(), right.data());
  synchronize();
  EXPECT_EQ(right[0], threads);
  EXPECT_EQ(assigned.statistics().live_blocks, 0u);
  EXPECT_THAT(assigned.check_invariants(), testing::IsEmpty());
}

TEST(Heap, KeepsACopyOfItsReferenceAtItsHandle) {
  warpheap::heap const made{1_MiB};
  heap_ref const ref = made.ref();
  heap_ref copy;
  backend::copy_bytes(&copy, reinterpret_cast<void const*>(made.handle()), sizeof copy);
  EXPECT_EQ(std::memcmp(&copy, &ref, sizeof ref), 0);
}

TEST(Heap, TellsItsPoliciesAndSizes) {
  warpheap::heap const made{3_MiB};
  auto const text = made.info();
  for (auto const* word : {"slab_bitmap", "none", "return_null", "device_memory", "shrink<16>"})
    EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(text, HasSubstr(std::to_string(made.statistics().pool_bytes)));
  EXPECT_THAT(text, HasSubstr(std::to_string(made.statistics().metadata_bytes)));
  EXPECT_EQ(made.statistics().pool_bytes, 3_MiB);
  EXPECT_THAT(warpheap::toolkit_heap{1_MiB}.info(), HasSubstr("toolkit"));
}

constexpr creation::scatter_config small_pages{.page_bytes = 2048}, exact_chunks{.waste_factor = 1};
constexpr creation::halloc_config short_steps{.hash = {.step = 3}};
constexpr creation::random_walk_config few_pages_a_word{.word_pages = 16};
constexpr distribution::warp_coalesce_config pages_of_2k{.page_bytes = 2048};
constexpr oom::overflow_config small_second{.second_sixteenths = 1};

template <class Distribution, class Oom>
using slabs_with = basic_heap<
    allocator<creation::slab_bitmap<>, Distribution, Oom, reserve_pool::device_memory, alignment::shrink<16>>>;

// All these heaps have the sizes in common, so sizes cannot be what distinguishes them.
TEST(Heap, TellsHeapsOfDifferentConfigurationsApart) {
  std::vector<std::string> const texts{
      warpheap::heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::slab_bitmap<creation::slab_bitmap_config{.max_slab_log2 = 14}>>>{2_MiB}
          .info(),
      scatter_heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::scatter<small_pages>>>{2_MiB}.info(),
      basic_heap<plain_allocator<creation::scatter<exact_chunks>>>{2_MiB}.info(),
      halloc_heap{2_MiB}.info(),
      basic_heap<finely_aligned_allocator<creation::halloc<short_steps>>>{2_MiB}.info(),
      rw_bitmap_heap{2_MiB}.info(),
      corw_heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::random_walk<few_pages_a_word>>>{2_MiB}.info(),
      basic_heap<plain_allocator<creation::rw_malloc<creation::rw_malloc_config{.walk_windows = 4}>>>{2_MiB}.info(),
      rw_malloc_heap{2_MiB}.info(),
      ring_buffer_heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::ring_buffer<creation::ring_buffer_config{4096}>>>{2_MiB}.info(),
      tbuddy_heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::tbuddy<creation::tbuddy_config{.page_bytes = 2048}>>>{2_MiB}.info(),
      ualloc_heap{2_MiB}.info(),
      basic_heap<plain_allocator<creation::ualloc<creation::ualloc_config{.idle_bins = 8}>>>{2_MiB}.info(),
      throughput_heap{2_MiB}.info(),
      slabs_with<distribution::warp_coalesce, oom::return_null>{2_MiB}.info(),
      slabs_with<distribution::basic_warp_coalesce<pages_of_2k>, oom::return_null>{2_MiB}.info(),
      slabs_with<distribution::none, oom::trap>{2_MiB}.info(),
      slabs_with<distribution::none, oom::overflow_to<default_allocator>>{2_MiB}.info(),
      slabs_with<distribution::none, oom::overflow_to<default_allocator, small_second>>{2_MiB}.info(),
  };
  std::set<std::string> different;
  for (auto const& text : texts) {
    auto const pool = text.find("; pool ");
    ASSERT_NE(pool, std::string::npos) << text;
    different.insert(text.substr(0, pool));
  }
  EXPECT_EQ(different.size(), texts.size());
}

TEST(Heap, PutsTheSeparatorBetweenWhatItTells) {
  basic_heap<plain_allocator<creation::scatter<small_pages>>> const made{1_MiB};
  EXPECT_THAT(made.info(), testing::StartsWith("creation scatter<page_bytes 2048, access_blocks 8, "));
  EXPECT_THAT(made.info(), HasSubstr(">; distribution none; oom return_null; reserve_pool device_memory; alignment "
                                     "shrink<16>; pool 1048576 bytes; metadata "));
  EXPECT_THAT(made.info("\n"), HasSubstr(">\ndistribution none\noom return_null\nreserve_pool device_memory\n"));
}

TEST(Heap, ResetsInTheOrderOfItsStream) {
  warpheap::heap made{1_MiB};
  device_buffer<u64*> const blocks(threads);
  device_buffer<u64> const right(1);
  stream on;
  launch(on, shape, allocate_numbered{}, made.ref(), blocks.data());
  made.reset(on);
  launch(on, shape, allocate_numbered{}, made.ref(), blocks.data());
  synchronize(on);
  EXPECT_EQ(made.statistics().live_blocks, threads) << "the first kernel's blocks went, the second's came after";
  launch(on, shape, check_numbers_and_free{}, made.ref(), blocks.data(), right.data());
  synchronize(on);
  EXPECT_EQ(right[0], threads);
}

TEST(Heap, ServesTwoOfAKindSideBySide) {
  warpheap::heap one{1_MiB}, other{1_MiB};
  device_buffer<u64*> const ours(threads), theirs(threads);
  device_buffer<u64> const right(1);
  launch(shape, allocate_numbered{}, one.ref(), ours.data());
  launch(shape, allocate_numbered{}, other.ref(), theirs.data());
  other.reset();
  launch(shape, check_numbers_and_free{}, one.ref(), ours.data(), right.data());
  synchronize();
  EXPECT_EQ(right[0], threads);
  EXPECT_EQ(one.statistics().live_blocks + other.statistics().live_blocks, 0u);
}

}  // namespace heap_test
