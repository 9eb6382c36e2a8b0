// SPDX-License-Identifier: Apache-2.0
// The process's heap by functions of ours, beside the malloc that device code has anyway: what they
// answer with a heap and without, what may be asked of blocks, and that the heap is the one of
// override.hpp.
#include "warpheap/heap/global_heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "override_units.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace global_heap_test {

using warpheap::device_buffer;
using warpheap::global_heap;
using warpheap::global_thread_index;
using warpheap::launch;
using warpheap::synchronize;
using warpheap::u32;
using warpheap::u64;

constexpr u64 mebibyte = u64{1} << 20;

/// What device code is told of a block of 4 KiB, of an address that is no block, and of the rest.
struct answers {
  u64 usable = 99, usable_inside = 99, usable_freed = 99;
  u32 owned = 99, owned_inside = 99, owned_freed = 99;
  u64 slots_before = 99, slots_while = 99, slots_after = 99;
  u32 allocated = 99;
};

struct ask_about_a_block {
  WARPHEAP_DEVICE void operator()(answers* said) const {
    said->slots_before = warpheap::available_slots(4096);
    auto* const block = static_cast<unsigned char*>(warpheap::malloc(4096));
    said->allocated = block != nullptr;
    said->slots_while = warpheap::available_slots(4096);
    said->usable = warpheap::usable_size(block);
    said->owned = warpheap::owns(block);
    said->usable_inside = block ? warpheap::usable_size(block + 16) : 0;
    said->owned_inside = block && warpheap::owns(block + 16);
    warpheap::free(block);
    said->usable_freed = warpheap::usable_size(block);
    said->owned_freed = warpheap::owns(block);
    said->slots_after = warpheap::available_slots(4096);
  }
};

answers ask() {
  device_buffer<answers> const said{std::vector<answers>(1)};
  launch({1, 1}, ask_about_a_block{}, said.data());
  synchronize();
  return said[0];
}

TEST(GlobalHeap, TellsDeviceCodeOfItsBlocks) {
  global_heap const made{4 * mebibyte};
  auto const said = ask();
  EXPECT_EQ(said.allocated, 1u);
  EXPECT_EQ(said.usable, 4096u);
  EXPECT_EQ(said.owned, 1u);
  EXPECT_EQ(said.usable_inside + said.owned_inside + said.usable_freed + said.owned_freed, 0u);
  EXPECT_EQ(said.slots_before, 1024u);
  EXPECT_EQ(said.slots_while, 1023u);
  EXPECT_EQ(said.slots_after, 1024u);
  EXPECT_EQ(made.heap().available_slots(4096), 1024u);
}

TEST(GlobalHeap, HasNothingToTellWhileThereIsNone) {
  auto const said = ask();
  EXPECT_EQ(said.allocated + said.owned + said.owned_inside + said.owned_freed, 0u);
  EXPECT_EQ(said.usable + said.usable_inside + said.usable_freed, 0u);
  EXPECT_EQ(said.slots_before + said.slots_while + said.slots_after, 0u);
}

/// One block by each function, of which the last but one grows.
struct allocate_each_way {
  static constexpr u32 ways = 4;

  WARPHEAP_DEVICE void operator()(u64** blocks, u32* faults) const {
    auto const me = static_cast<u32>(global_thread_index());
    u64** const mine = blocks + ways * me;
    mine[0] = static_cast<u64*>(warpheap::malloc(8 + me));
    mine[1] = static_cast<u64*>(warpheap::calloc(3, 8));
    mine[2] = static_cast<u64*>(warpheap::malloc(8));
    mine[3] = static_cast<u64*>(warpheap::aligned_alloc(256, 8));
    for (u32 way = 0; way < ways; ++way)
      if (!mine[way]) {
        faults[me] = 1;
        return;
      }
    if (mine[1][0] != 0 || mine[1][2] != 0 || reinterpret_cast<u64>(mine[3]) % 256 != 0) faults[me] += 10;
    *mine[2] = me;
    mine[2] = static_cast<u64*>(warpheap::realloc(mine[2], 1000));
    if (!mine[2] || *mine[2] != me || warpheap::usable_size(mine[2]) < 1000) faults[me] += 100;
  }
};

TEST(GlobalHeap, ServesEveryFunctionAndOtherUnitsFreeWhatItServed) {
  constexpr u32 threads = 48;
  global_heap const made{4 * mebibyte};
  device_buffer<u64*> const blocks(u64{threads} * allocate_each_way::ways);
  device_buffer<u32> const faults(threads);
  launch({1, threads}, allocate_each_way{}, blocks.data(), faults.data());
  synchronize();
  EXPECT_EQ(faults.to_host(), std::vector<u32>(threads));
  EXPECT_EQ(made.heap().statistics().live_blocks, blocks.size());
  // That unit has its malloc from override.hpp.
  override_test::free_in_other_unit({allocate_each_way::ways, threads}, reinterpret_cast<void* const*>(blocks.data()));
  synchronize();
  auto const counts = made.heap().statistics();
  EXPECT_EQ(counts.live_blocks + counts.double_frees + counts.foreign_frees, 0u);
}

/// A block of device code's own malloc, on a GPU CUDA's.
struct allocate_beside {
  WARPHEAP_DEVICE void operator()(u32* faults) const {
    auto* const theirs = static_cast<u32*>(::malloc(64));
    void* const ours = warpheap::malloc(64);
    if (!theirs || !ours) *faults += 1;
    else *theirs = 1;
    if (warpheap::owns(theirs) || warpheap::usable_size(theirs) != 0) *faults += 10;
    if (!warpheap::owns(ours)) *faults += 100;
    warpheap::free(ours);
    ::free(theirs);
  }
};

TEST(GlobalHeap, LeavesMallocAsItWas) {
  global_heap const made{mebibyte};
  device_buffer<u32> const faults(1);
  launch({1, 1}, allocate_beside{}, faults.data());
  synchronize();
  EXPECT_EQ(faults[0], 0u);
  auto const counts = made.heap().statistics();
  EXPECT_EQ(counts.live_blocks + counts.double_frees + counts.foreign_frees, 0u);
}

// So a unit whose build has other default values, or another version's headers, does not pass for
// one of the same allocator.
TEST(GlobalHeap, TellsUnitsApartByConfigurationAndVersionToo) {
  std::string const text = warpheap::detail::allocator_text<warpheap::default_allocator>();
  EXPECT_THAT(text, testing::HasSubstr("default_allocator"));
  EXPECT_THAT(text, testing::HasSubstr("slab_bitmap_config{18"));
  EXPECT_THAT(text, testing::ContainsRegex("Version ?= ?" + std::to_string(WARPHEAP_VERSION)));
}

TEST(GlobalHeap, IsOneWithTheOverrideHeap) {
  warpheap::override_heap const made{mebibyte};
  EXPECT_EQ(ask().allocated, 1u);
  EXPECT_THROW(global_heap{mebibyte}, std::logic_error);
}

/// An allocator that cannot answer some questions has no function for them.
struct barely {
  static constexpr warpheap::allocator_traits traits{.alignment = 16};
  WARPHEAP_DEVICE void* create(size_t) const { return nullptr; }
  WARPHEAP_DEVICE void destroy(void*) const {}
};
using of_barely = warpheap::bound_heap<warpheap::plain_allocator<barely>>;
using of_default = warpheap::bound_heap<warpheap::default_allocator>;
static_assert(of_default::knows_sizes && of_default::knows_owners && of_default::counts_its_slots);
static_assert(!of_barely::knows_sizes && !of_barely::knows_owners && !of_barely::counts_its_slots);

}  // namespace global_heap_test
