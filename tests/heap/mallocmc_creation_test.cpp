// SPDX-License-Identifier: Apache-2.0
// Warpheap as mallocMC's creation policy, called as mallocMC's device allocator calls it. With
// mallocMC and alpaka themselves: archive/proofs/mallocmc.sh.
#include "warpheap/heap/mallocmc_creation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace mallocmc_creation_test {

using namespace warpheap;
using namespace warpheap::literals;

struct accelerator {};
struct padding {};
struct device {};
struct no_queue {};

/// As mallocMC::DeviceAllocator: derives from the policy, and lies in device memory.
struct device_allocator : mallocmc_creation<> {
  void* pool;
};

void init_heap(device_allocator* holder, void* pool, size_t bytes) {
  device some_device;
  no_queue some_queue;
  mallocmc_creation<>::initHeap<accelerator>(some_device, some_queue, holder, pool, bytes);
}

#if defined(__CUDACC__)

constexpr size_t pool_bytes = 32_MiB;
constexpr u32 threads = 1024;

unsigned slots_of(size_t bytes, device_allocator* holder) {
  device some_device;
  no_queue some_queue;
  return mallocmc_creation<>::getAvailableSlotsHost<accelerator>(some_device, some_queue, bytes, holder);
}

struct take_blocks {
  WARPHEAP_DEVICE void operator()(device_allocator* holder, u64* blocks) const {
    u64 const i = global_thread_index();
    void* const block = holder->create<padding>(accelerator{}, static_cast<u32>(16 + i));
    blocks[i] = holder->isOOM(block, 16 + i) ? 0 : reinterpret_cast<u64>(block);
  }
};

struct give {
  WARPHEAP_DEVICE void operator()(device_allocator* holder, u64* blocks) const {
    holder->destroy(accelerator{}, reinterpret_cast<void*>(blocks[global_thread_index()]));
  }
};

struct count_slots {
  WARPHEAP_DEVICE void operator()(device_allocator* holder, u64* count) const {
    *count = holder->getAvailableSlotsAccelerator<padding>(accelerator{}, 1024);
  }
};

TEST(MallocmcCreation, ServesTheDeviceAllocatorFromItsPool) {
  device_buffer<u8> const pool(pool_bytes);
  device_buffer<device_allocator> const holder(1);
  device_buffer<u64> const blocks(threads);
  init_heap(holder.data(), pool.data(), pool_bytes);
  unsigned const before = slots_of(1024, holder.data());
  ASSERT_GT(before, 20000u);

  launch({threads / 256, 256}, take_blocks{}, holder.data(), blocks.data());
  synchronize();
  auto taken = blocks.to_host();
  std::sort(taken.begin(), taken.end());
  EXPECT_GE(taken.front(), reinterpret_cast<u64>(pool.data()));
  EXPECT_LT(taken.back(), reinterpret_cast<u64>(pool.data()) + pool_bytes);
  EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end());
  unsigned const between = slots_of(1024, holder.data());
  EXPECT_LT(between, before);
  device_buffer<u64> const counted(1);
  launch({1, 1}, count_slots{}, holder.data(), counted.data());
  synchronize();
  EXPECT_EQ(counted.to_host().front(), between);

  launch({threads / 256, 256}, give{}, holder.data(), blocks.data());
  synchronize();
  EXPECT_EQ(slots_of(1024, holder.data()), before);
}

TEST(MallocmcCreation, RefusesAPoolThatIsTooSmall) {
  device_buffer<u8> const pool(1000);
  device_buffer<device_allocator> const holder(1);
  EXPECT_THROW(init_heap(holder.data(), pool.data(), 1000), std::invalid_argument);
}

#endif

TEST(MallocmcCreation, RefusesMemoryThatKernelsCannotReach) {
  std::vector<u8> pool(4_MiB);
  device_allocator holder{};
  EXPECT_THROW(init_heap(&holder, pool.data(), pool.size()), std::invalid_argument);
}

TEST(MallocmcCreation, TellsItsNameToInfo) {
  EXPECT_EQ(mallocmc_creation<>::classname().find("Warpheap slab_bitmap"), 0u);
}

}  // namespace mallocmc_creation_test
