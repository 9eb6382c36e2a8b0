// SPDX-License-Identifier: Apache-2.0
// Where pools come from: the caller's memory that starts anywhere, pinned memory of the host, and
// memory resources of both spellings, by reference and by value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/message_of.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace reserve_pool_test {

using namespace warpheap;
using test::message_of;
using namespace warpheap::literals;
using testing::HasSubstr;

template <class ReservePool, class Alignment = alignment::shrink<16>>
using heap_in =
    basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::return_null, ReservePool, Alignment>>;

/// Fills the heap with blocks of 1000 bytes by one grid, writes all of each, and frees.
struct fill_write_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* served) const {
    u8* blocks[64];
    u64 count = 0;
    while (count < 64 && (blocks[count] = static_cast<u8*>(heap.malloc(1000)))) {
      for (u64 i = 0; i < 1000; ++i) blocks[count][i] = static_cast<u8>(i + global_thread_index());
      ++count;
    }
    atomic_ref<u64>{*served}.fetch_add(count, order::relaxed);
    for (u64 i = 0; i < count; ++i) heap.free(blocks[i]);
  }
};

template <class Heap>
void expect_works(Heap const& heap) {
  device_buffer<u64> const served(1);
  launch({2, 32}, fill_write_free{}, heap.ref(), served.data());
  synchronize();
  EXPECT_GE(served[0], heap.pool_bytes() / 1280);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

TEST(ExternalPool, StartsAnywhereAndTouchesNothingOutside) {
  constexpr u64 bytes = 3_MiB, before = 4096, behind = 4096;
  for (u64 const offset : {0, 1, 15, 16, 17, 255, 4095, 4096}) {
    std::vector<u8> const pattern(before + 4096 + bytes + behind, 0xa7);
    device_buffer<u8> const memory{pattern};
    {
      heap_in<reserve_pool::external> const heap{memory.data() + before + offset, bytes};
      EXPECT_GE(heap.pool_bytes(), bytes - bytes / 32) << "less metadata and one slab";
      EXPECT_LE(heap.pool_bytes() + heap.metadata_bytes(), bytes);
      EXPECT_THAT(heap.info(), HasSubstr("reserve_pool external"));
      EXPECT_EQ(heap.statistics().pool_bytes, heap.pool_bytes());
      expect_works(heap);
    }
    auto const after = memory.to_host();
    EXPECT_EQ(std::count(after.begin(), after.begin() + before + offset, 0xa7), static_cast<i64>(before + offset));
    EXPECT_EQ(std::count(after.begin() + before + offset + bytes, after.end(), 0xa7),
              static_cast<i64>(4096 + behind - offset));
  }
}

TEST(ExternalPool, SaysHowMuchItNeeds) {
  device_buffer<u8> const memory(4_MiB);
  using heap = heap_in<reserve_pool::external>;
  auto const message = message_of<std::invalid_argument>([&] { heap{memory.data(), 1_MiB}; });
  EXPECT_THAT(message, HasSubstr(std::to_string(1_MiB)));
  // The size that the message names is enough, from any start; a byte less may not be.
  auto const least = std::stoull(message.substr(message.rfind(' ') + 1));
  EXPECT_GE((heap{memory.data() + 1, least}.pool_bytes()), heap::minimum_bytes);
  EXPECT_THAT(message_of<std::invalid_argument>([&] { heap{memory.data(), 0}; }), HasSubstr("0 bytes"));
  EXPECT_THAT(message_of<std::invalid_argument>([&] { heap{nullptr, 0}; }), HasSubstr("0 bytes"));
}

TEST(ExternalPool, HoldsTwoHeapsSideBySide) {
  device_buffer<u8> const memory(4_MiB);
  heap_in<reserve_pool::external> const one{memory.data(), 2_MiB}, other{memory.data() + 2_MiB, 2_MiB};
  expect_works(one);
  expect_works(other);
}

TEST(HostMemory, ServesKernelsAndIsThereForTheHost) {
  heap_in<reserve_pool::host_memory> const heap{2_MiB};
  EXPECT_THAT(heap.info(), HasSubstr("reserve_pool host_memory"));
  expect_works(heap);
}

TEST(HostMemory, SaysHowMuchItAskedFor) {
  std::string message;
  try {
    heap_in<reserve_pool::host_memory> const heap{1_GiB << 20};
  } catch (out_of_memory const& error) {
    message = error.what();
  }
  EXPECT_THAT(message, testing::ContainsRegex("[0-9]{16}"));
}

/// Memory of the device, by the spelling of CCCL 3.1 and later.
struct sync_resource {
  int* held;
  void* allocate_sync(size_t bytes, size_t alignment) {
    if (bytes > 64_MiB) throw std::bad_alloc{};
    EXPECT_EQ(alignment, 256u);
    ++*held;
    return backend::allocate_bytes(bytes);
  }
  void deallocate_sync(void* memory, size_t bytes, size_t) {
    EXPECT_GT(bytes, 1_MiB);
    --*held;
    backend::deallocate_bytes(memory);
  }
};

/// Memory of the device, by the spelling of CCCL 3.0; neither copied nor moved.
struct plain_resource {
  int held = 0;
  plain_resource() = default;
  plain_resource(plain_resource const&) = delete;
  void* allocate(size_t bytes, size_t) {
    ++held;
    return backend::allocate_bytes(bytes);
  }
  void deallocate(void* memory, size_t, size_t) {
    --held;
    backend::deallocate_bytes(memory);
  }
};

/// Both spellings: the newer one is taken.
struct both_spellings : sync_resource {
  void* allocate(size_t, size_t) { throw std::logic_error{"the stream-ordered one"}; }
  void deallocate(void*, size_t, size_t) { std::abort(); }
};

static_assert(reserve_pool::memory_source<sync_resource> && reserve_pool::memory_source<plain_resource&>);
static_assert(!reserve_pool::memory_source<std::vector<int>>);

TEST(MemoryResource, IsHeldByValueAndGivesItsMemoryBackOnce) {
  int held = 0;
  using heap = heap_in<reserve_pool::memory_resource<sync_resource>>;
  {
    heap first{2_MiB, reserve_pool::memory_resource{sync_resource{&held}}};
    heap second{1_MiB, reserve_pool::memory_resource{sync_resource{&held}}};
    EXPECT_EQ(held, 2);
    expect_works(first);
    heap moved{std::move(first)};
    second = std::move(moved);
    EXPECT_EQ(second.pool_bytes(), 2_MiB);
    expect_works(second);
  }
  EXPECT_EQ(held, 0);
}

TEST(MemoryResource, IsHeldByReference) {
  plain_resource resource;
  {
    using pool = reserve_pool::memory_resource<plain_resource&>;
    heap_in<pool> const heap{2_MiB, pool{resource}};
    EXPECT_EQ(resource.held, 1);
    expect_works(heap);
  }
  EXPECT_EQ(resource.held, 0);
}

TEST(MemoryResource, PrefersTheNewerSpelling) {
  int held = 0;
  using pool = reserve_pool::memory_resource<both_spellings>;
  heap_in<pool> const heap{1_MiB, pool{both_spellings{{&held}}}};
  EXPECT_EQ(held, 1);
}

TEST(MemoryResource, TurnsARefusalIntoOutOfMemory) {
  int held = 0;
  using pool = reserve_pool::memory_resource<sync_resource>;
  std::string message;
  try {
    heap_in<pool> const heap{1_GiB, pool{sync_resource{&held}}};
  } catch (out_of_memory const& error) {
    message = error.what();
  }
  EXPECT_THAT(message, testing::ContainsRegex("refused 10[0-9]{8} bytes: .*bad_alloc"));
  EXPECT_EQ(held, 0);
}

/// A creation policy that says where its pool was put.
struct placed_where {
  static constexpr allocator_traits traits{.alignment = 4096};
  void* memory = nullptr;
  size_t bytes = 0;

  WARPHEAP_DEVICE void* create(size_t) const { return nullptr; }
  WARPHEAP_DEVICE void destroy(void*) const {}
  static size_t required_bytes(size_t pool_bytes) { return pool_bytes; }
  static placed_where place(void* memory, size_t pool_bytes) { return {memory, pool_bytes}; }
  void initialize(stream_view) const {}
  size_t pool_bytes() const { return bytes; }
  size_t metadata_bytes() const { return 0; }
};

/// Device memory that starts at an odd place.
struct odd_memory {
  reserve_pool::device_memory memory;
  void* acquire(size_t bytes) { return static_cast<u8*>(memory.acquire(bytes + 3)) + 3; }
};

TEST(AlignmentPolicy, DecidesWhereAPoolBegins) {
  using alignment::shrink;
  device_buffer<u8> const memory(3_MiB);
  auto const begin = reinterpret_cast<u64>(memory.data());
  basic_heap<allocator<placed_where, distribution::none, oom::return_null, reserve_pool::external, shrink<4096>>> const
      given{memory.data() + 1, 2_MiB};
  auto const at = reinterpret_cast<u64>(given.ref().creation().memory);
  EXPECT_EQ(at % 4096, 0u);
  EXPECT_GT(at, begin);
  EXPECT_LE(at + given.pool_bytes(), begin + 1 + 2_MiB);
  basic_heap<allocator<placed_where, distribution::none, oom::return_null, odd_memory, shrink<256>>> const taken{1_MiB};
  EXPECT_EQ(reinterpret_cast<u64>(taken.ref().creation().memory) % 256, 0u);
  EXPECT_EQ(taken.pool_bytes(), 1_MiB);
}

TEST(ToolkitLimit, HasNoPool) {
  toolkit_heap const heap{1_MiB};
  EXPECT_THAT(heap.info(), HasSubstr("reserve_pool toolkit_limit"));
  EXPECT_EQ(heap.pool_bytes(), 1_MiB);
  toolkit_allocator copy;
  backend::copy_bytes(&copy, reinterpret_cast<void const*>(heap.handle()), sizeof copy);
  EXPECT_EQ(copy.creation().pool_bytes(), 1_MiB) << "its handle is memory beside the pool";
}

TEST(Shrink, TrimsAPoolToItsAlignment) {
  auto const pool = [](u64 begin, u64 bytes) { return memory_range{reinterpret_cast<void*>(begin), bytes}; };
  auto const trimmed = [&](memory_range left, u64 begin, u64 bytes) {
    return left.begin == reinterpret_cast<void*>(begin) && left.bytes == bytes;
  };
  using alignment::shrink;
  EXPECT_TRUE(trimmed(shrink<16>::align_pool(pool(4096, 160)), 4096, 160));
  EXPECT_TRUE(trimmed(shrink<16>::align_pool(pool(4097, 160)), 4112, 144));
  EXPECT_TRUE(trimmed(shrink<16>::align_pool(pool(4111, 161)), 4112, 160));
  EXPECT_TRUE(trimmed(shrink<1>::align_pool(pool(4097, 3)), 4097, 3));
  EXPECT_TRUE(trimmed(shrink<4096>::align_pool(pool(4097, 8191)), 8192, 4096));
  EXPECT_EQ(shrink<4096>::align_pool(pool(4097, 4000)).bytes, 0u);
  EXPECT_EQ(shrink<16>::align_pool(pool(4097, 0)).bytes, 0u);
}

}  // namespace reserve_pool_test
