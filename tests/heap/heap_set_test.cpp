// SPDX-License-Identifier: Apache-2.0
// Heaps of several GPUs: blocks that another member frees. Members that name one device twice test
// all but the wires; where there are two GPUs, both are used.
#include <algorithm>

#include "heap_set_fixture.hpp"
#include "support/message_of.hpp"

namespace heap_set_test {

using test::message_of;
using testing::HasSubstr;

static_assert(__is_trivially_copyable(set_ref) && sizeof(set_ref) == 32);
static_assert(sizeof(heap_ref) == 16, "heaps that are in no set take no more");

TEST(HeapSet, HasAHeapOnEachDeviceThatIsNamed) {
  heap_set const set{1_MiB, two()};
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(set.device(0), 0);
  EXPECT_EQ(set.device(1), two()[1]);
  EXPECT_EQ(set.heap(1).pool_bytes(), 1_MiB);
  EXPECT_GT(set.heap(0).metadata_bytes(), heap{1_MiB}.metadata_bytes() + 1_MiB / 128) << "the mailbox";
  EXPECT_EQ(set.statistics(0).metadata_bytes, set.heap(0).metadata_bytes());
  EXPECT_EQ(heap_set{1_MiB}.size(), static_cast<u32>(backend::device_count()));
  expect_quiet(set, 0);
}

TEST(HeapSet, GetsBackAllMemoryThatAnotherMemberFreed) {
  for (u64 const bytes : {16, 64, 1000, 4096, 32768, 200'000}) {
    heap_set const set{1_MiB, two()};
    u64 const fit = set.heap(0).available_slots(bytes);
    launch_shape const shape = shape_for(2 * fit, 64);
    taken blocks{set, 0, shape, bytes};
    u64 const got = blocks.count();
    EXPECT_EQ(got, fit) << bytes;
    EXPECT_EQ(blocks.free_as(set, 1), 0u);
    EXPECT_EQ(set.pending(0), got);
    EXPECT_EQ(set.pending(1), 0u);
    expect_quiet(set, got);
    drain(set);
    EXPECT_EQ(set.pending(0), 0u);
    expect_quiet(set, 0);
    EXPECT_EQ(set.heap(0).available_slots(bytes), fit);
    EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
  }
}

TEST(HeapSet, DrainsWhenACallFindsNoMemory) {
  heap_set const set{1_MiB, two()};
  for (u32 round = 0; round < 3; ++round) {
    for (u64 const bytes : {64u, 8192u, 65536u}) {
      u64 const fit = 1_MiB / bytes;
      taken blocks{set, 0, shape_for(fit, 64), bytes};
      EXPECT_EQ(blocks.count(), fit) << "after foreign frees of all blocks of another size";
      EXPECT_EQ(blocks.free_as(set, 1), 0u);
    }
  }
  EXPECT_EQ(set.statistics().failures, set.statistics(0).failures);
  drain(set);
  expect_quiet(set, 0);
}

TEST(HeapSet, LetsARingOfMembersFreeTheirNeighboursBlocks) {
  for (bool const drains : {false, true}) {
    std::vector<int> devices = on_one(5);
    devices[2] = two()[1];
    heap_set const set{1_MiB, devices};
    for (u32 round = 0; round < 4; ++round) {
      std::vector<taken> blocks;
      blocks.reserve(set.size());
      for (u32 i = 0; i < set.size(); ++i) blocks.emplace_back(set, i, launch_shape{16, 64}, 1024);
      for (u32 i = 0; i < set.size(); ++i) {
        EXPECT_EQ(blocks[i].count(), 1024u);
        EXPECT_EQ(blocks[i].free_as(set, (i + 1) % set.size()), 0u);
        EXPECT_EQ(set.pending(i), 1024u);
      }
      if (drains) drain(set);
    }
    drain(set);
    expect_quiet(set, 0);
  }
}

TEST(HeapSet, CountsMisuseFromAfarAndCorruptsNothing) {
  heap_set const set{1_MiB, two()};
  taken const ours{set, 0, {1, 64}, 256}, theirs{set, 1, {1, 64}, 256};
  auto const blocks = ours.addresses();
  u8* const first = static_cast<u8*>(blocks[0]);
  free_as(set, 1, {first, first});  // twice while it waits
  EXPECT_EQ(set.pending(0), 1u);
  EXPECT_EQ(set.statistics(0).double_frees, 1u);
  drain(set);
  free_as(set, 1, {first});  // again when it is free
  free_as(set, 1, {first + 256 * 17});
  drain(set);
  EXPECT_EQ(set.statistics(0).double_frees, 2u);
  EXPECT_EQ(set.statistics(0).foreign_frees, 0u);
  EXPECT_EQ(set.statistics(0).live_blocks, 62u) << "the first block, and one that happened to be there";

  u8* const second = static_cast<u8*>(blocks[40]);
  free_as(set, 1, {second + 16, second + 128});  // interior: the owner's counts
  drain(set);
  EXPECT_EQ(set.statistics(0).foreign_frees, 2u);
  free_as(set, 1, {second + 8, second + 1});  // an address that can be no block is not posted
  EXPECT_EQ(set.statistics(1).foreign_frees, 2u);
  int const nowhere = 0;
  free_as(set, 1, {const_cast<int*>(&nowhere), reinterpret_cast<void*>(~u64{15}), nullptr});
  EXPECT_EQ(set.statistics(1).foreign_frees, 4u);
  EXPECT_EQ(set.pending(0) + set.pending(1), 0u);
  EXPECT_EQ(set.statistics(0).live_blocks, 62u);
  expect_quiet(set, 62 + 64);
}

/// Kernel: what a reference says of an address.
struct ask_about {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* addresses, u32* answers) const {
    u64 const me = global_thread_index();
    answers[me] =
        heap.owner(addresses[me]) + (heap.contains(addresses[me]) ? 100 : 0) + 1000 * heap.size() + 10000 * heap.self();
  }
};

TEST(HeapSetRef, KnowsWhoseAnAddressIs) {
  heap_set const set{1_MiB, {0, two()[1], 0}};
  taken const zero{set, 0, {1, 1}, 64}, one{set, 1, {1, 1}, 64}, two{set, 2, {1, 1}, 64};
  int nothing = 0;
  device_buffer<void*> const addresses(
      std::vector<void*>{zero.addresses()[0], one.addresses()[0], two.addresses()[0], &nothing, nullptr});
  device_buffer<u32> const answers(5);
  for (u32 const member : {0, 1, 2}) {
    run_as(set, member, {1, 5}, ask_about{}, addresses.data(), answers.data());
    EXPECT_THAT(answers.to_host(),
                testing::ElementsAre(3100 + 10000 * member, 3101 + 10000 * member, 3102 + 10000 * member,
                                     3003 + 10000 * member, 3003 + 10000 * member));
  }
}

/// Kernel: calloc, and what the plain heap offers.
struct use_all_calls {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32* wrong) const {
    u32* const zeros = static_cast<u32*>(heap.calloc(25, 4));
    bool right = zeros != nullptr && heap.local().usable_size(zeros) >= 100;
    for (u32 i = 0; right && i < 25; ++i) right = zeros[i] == 0;
    right = right && heap.calloc(~size_t{0}, 2) == nullptr && heap.malloc(0) == nullptr;
    void* const grown = heap.local().realloc(zeros, 5000);
    right = right && grown && heap.owner(grown) == heap.self();
    heap.free(grown);
    if (!right) atomic_ref<u32, scope::system>{*wrong}.fetch_add(1, order::relaxed);
  }
};

TEST(HeapSetRef, HasTheOtherCallsToo) {
  heap_set const set{1_MiB, two()};
  device_buffer<u32> const wrong(1);
  for (u32 const member : {0, 1}) run_as(set, member, {2, 33}, use_all_calls{}, wrong.data());
  EXPECT_EQ(wrong[0], 0u);
  expect_quiet(set, 0);
}

TEST(HeapSet, ForgetsBlocksAndWaitingFreesWhenReset) {
  heap_set set{1_MiB, two()};
  taken blocks{set, 0, {1, 64}, 4096};
  taken const others{set, 1, {1, 64}, 4096};
  blocks.free_as(set, 1);
  free_as(set, 1, {blocks.addresses()[0]});
  EXPECT_EQ(set.pending(0), 64u);
  set.reset(0);
  EXPECT_EQ(set.pending(0), 0u);
  EXPECT_EQ(set.statistics(0).double_frees, 0u);
  expect_quiet(set, 64);
  EXPECT_EQ((taken{set, 0, {4, 64}, 4096}.count()), 256u) << "nobody else frees them now";
  drain(set);
  expect_quiet(set, 64 + 256);
  set.reset();
  expect_quiet(set, 0);
}

TEST(HeapSet, Moves) {
  heap_set first{1_MiB, two()};
  taken blocks{first, 0, {1, 64}, 64};
  heap_set second{std::move(first)};
  EXPECT_EQ(blocks.free_as(second, 1), 0u);
  heap_set third{1_MiB, on_one(1)};
  third = std::move(second);
  EXPECT_EQ(third.size(), 2u);
  EXPECT_EQ(third.pending(0), 64u);
  drain(third);
  expect_quiet(third, 0);
}

TEST(HeapSet, RefusesBadInput) {
  auto const message = [](size_t bytes, std::vector<int> const& devices) {
    return message_of<std::invalid_argument>([&] { heap_set{bytes, devices}; });
  };
  EXPECT_THAT(message(1_MiB, {}), HasSubstr("no devices"));
  EXPECT_THAT(message(1_MiB, on_one(17)), HasSubstr("heap set of 17 members: the most is 16"));
  EXPECT_THAT(message(1_MiB, {0, -1}), HasSubstr("device -1"));
  EXPECT_THAT(message(1_MiB, {0, 999}), HasSubstr("device 999: there are " + std::to_string(backend::device_count())));
  EXPECT_THAT(message(1000, {0}), HasSubstr("heap of 1000 bytes"));
  EXPECT_THROW((heap_set{size_t{1} << 50, {0}}), out_of_memory);
  heap_set set{1_MiB, on_one(16)};
  EXPECT_THROW(set.device(16), std::out_of_range);
  EXPECT_THROW(set.drain(16), std::out_of_range);
}

template <class Allocator>
class SetOf : public testing::Test {};
using members =
    testing::Types<default_allocator, scatter_allocator, ring_buffer_allocator, tbuddy_allocator, throughput_allocator,
                   ualloc_allocator, rw_bitmap_allocator, corw_allocator, rw_malloc_allocator, halloc_allocator>;
TYPED_TEST_SUITE(SetOf, members);

TYPED_TEST(SetOf, AnyAllocatorThatKnowsItsPoolGetsItsBlocksBack) {
  basic_heap_set<TypeParam> const set{16_MiB, two()};
  constexpr u64 bytes = 1024;
  launch_shape const shape{400, 64};
  u64 first = 0;
  for (u32 round = 0; round < 4; ++round) {
    taken blocks{set, 0, shape, bytes};
    if (round == 0) first = blocks.count();
    EXPECT_GE(blocks.count() * 10, first * 9);
    EXPECT_GT(blocks.count(), 2000u);
    EXPECT_EQ(blocks.free_as(set, 1), 0u);
    EXPECT_GT(set.pending(0), 0u);
    if (round == 2) drain(set);
  }
  drain(set);
  if constexpr (basic_heap_set<TypeParam>::heap_type::takes_snapshots) expect_quiet(set, 0);
}

// Two GPUs.

/// Kernel of GPU 1: frees what GPU 0 puts into places, until all has come.
struct free_what_comes {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* places, u32 rounds, u64* wrong) const {
    u64 const me = global_thread_index();
    atomic_ref<u64, scope::system> const place{places[me]};
    for (u32 round = 0; round < rounds; ++round) {
      backoff wait;
      u64 block = 0;
      // acquire: what the other GPU wrote; pairs with its release.
      while ((block = place.exchange(0, order::acq_rel)) == 0) wait.while_working();
      if (*reinterpret_cast<u64*>(block) != me) atomic_ref<u64, scope::system>{*wrong}.fetch_add(1, order::relaxed);
      heap.free(reinterpret_cast<void*>(block));
    }
  }
};

/// Kernel of GPU 0: as many blocks as rounds for each thread, far more than the pool has.
struct send_blocks {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* places, u32 rounds, u64 bytes) const {
    u64 const me = global_thread_index();
    atomic_ref<u64, scope::system> const place{places[me]};
    for (u32 round = 0; round < rounds; ++round) {
      backoff wait;
      u64* block = nullptr;
      while (!(block = static_cast<u64*>(heap.malloc(bytes)))) wait.while_working();
      *block = me;
      while (place.load(order::relaxed) != 0) wait.while_working();
      place.exchange(reinterpret_cast<u64>(block), order::acq_rel);
    }
  }
};

TEST(HeapSetOnTwoGpus, PassesBlocksFromOneToTheOther) {
  if (backend::device_count() < 2) GTEST_SKIP() << "needs two GPUs; this machine has " << backend::device_count();
  constexpr launch_shape shape{64, 128};
  constexpr u64 threads = 64 * 128;
  for (u64 const bytes : {64u, 4096u}) {
    heap_set const set{32_MiB, {0, 1}};
    device_buffer<u64> const places(threads), wrong(1);
    {
      backend::device_scope const current{1};
      launch(shape, free_what_comes{}, set.ref(1), places.data(), 100u, wrong.data());
    }
    run_as(set, 0, shape, send_blocks{}, places.data(), 100u, bytes);
    backend::device_scope const current{1};
    synchronize();
    EXPECT_EQ(wrong[0], 0u);
    drain(set);
    expect_quiet(set, 0);
    EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
  }
}

}  // namespace heap_set_test
