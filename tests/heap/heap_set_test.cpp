// Heaps of several GPUs: blocks that another member frees. Members that name one device twice test
// all but the wires; where there are two GPUs, both are used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/message_of.hpp"
#include "support/schedules.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace heap_set_test {

using namespace warpheap;
using namespace warpheap::literals;
using test::message_of;
using testing::HasSubstr;
using testing::IsEmpty;

using set_ref = heap_set::ref_type;
static_assert(__is_trivially_copyable(set_ref) && sizeof(set_ref) == 32);
static_assert(sizeof(heap_ref) == 16, "heaps that are in no set take no more");

/// Kernel: every thread asks once, and writes its number over all of its block.
struct take_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 words, u64** blocks) const {
    u64 const me = global_thread_index();
    u64* const block = static_cast<u64*>(heap.malloc(8 * words));
    for (u64 i = 0; block && i < words; ++i) block[i] = me;
    blocks[me] = block;
  }
};

/// Kernel: counts the threads whose block does not hold their number, and frees the blocks.
struct verify_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 words, u64* const* blocks, u64* wrong) const {
    u64 const me = global_thread_index();
    u64* const block = blocks[me];
    bool right = true;
    for (u64 i = 0; block && i < words; ++i) right = right && block[i] == me;
    if (!right) atomic_ref<u64, scope::system>{*wrong}.fetch_add(1, order::relaxed);
    heap.free(block);
  }
};

/// Kernel: frees addresses.
struct free_these {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* addresses, u32 count) const {
    u64 const me = global_thread_index();
    if (me < count) heap.free(addresses[me]);
  }
};

/// Runs a kernel as member `i`.
template <class Set, class Functor, class... Arguments>
void run_as(Set const& set, u32 i, launch_shape shape, Functor functor, Arguments... arguments) {
  backend::device_scope const current{set.device(i)};
  launch(shape, functor, set.ref(i), arguments...);
  synchronize();
}

/// Blocks that a grid took as one member.
class taken {
 public:
  template <class Set>
  taken(Set const& set, u32 member, launch_shape shape, u64 bytes)
      : shape_{shape}, words_{bytes / 8}, blocks_(u64{shape.blocks} * shape.threads) {
    run_as(set, member, shape, take_each{}, words_, blocks_.data());
  }

  std::vector<void*> addresses() const {
    std::vector<void*> found;
    for (u64* const block : blocks_.to_host())
      if (block) found.push_back(block);  // NOLINT(performance-inefficient-vector-operation)
    EXPECT_EQ(std::set<void*>(found.begin(), found.end()).size(), found.size());
    return found;
  }
  u64 count() const { return addresses().size(); }

  /// How many blocks were overwritten.
  template <class Set>
  u64 free_as(Set const& set, u32 member) {
    device_buffer<u64> const wrong(1);
    run_as(set, member, shape_, verify_and_free{}, words_, blocks_.data(), wrong.data());
    return wrong[0];
  }

 private:
  launch_shape shape_;
  u64 words_;
  device_buffer<u64*> blocks_;
};

template <class Set>
void free_as(Set const& set, u32 member, std::vector<void*> const& addresses) {
  device_buffer<void*> const list(addresses);
  u32 const count = static_cast<u32>(addresses.size());
  run_as(set, member, shape_for(count, 32), free_these{}, list.data(), count);
}

template <class Set>
void drain(Set const& set) {
  set.drain();
  for (u32 i = 0; i < set.size(); ++i) {
    backend::device_scope const current{set.device(i)};
    synchronize();
  }
}

template <class Set>
void expect_quiet(Set const& set, u64 live) {
  EXPECT_THAT(set.check_invariants(), IsEmpty());
  EXPECT_EQ(set.statistics().live_blocks, live);
}

/// Two members: on two devices where there are two.
std::vector<int> two() { return {0, backend::device_count() > 1 ? 1 : 0}; }
std::vector<int> on_one(u32 members) { return std::vector<int>(members, 0); }

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
  free_as(set, 1, {second + 8, second + 1});  // what can be no block is posted to nobody
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
using members = testing::Types<default_allocator, tbuddy_allocator, throughput_allocator, ualloc_allocator,
                               rw_bitmap_allocator, corw_allocator, rw_malloc_allocator, halloc_allocator>;
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

// Schedules. Half of the thread blocks of one launch act as member 0, the others as member 1.

struct both_members {
  set_ref refs[2];
};
both_members both(heap_set const& set) { return {{set.ref(0), set.ref(1)}}; }

/// Kernel: threads of member 1 free the blocks of a full heap, and say so. Threads of member 0 wait
/// for that, and ask for as many: each must get one. Others there drain all the time.
struct free_then_take {
  WARPHEAP_DEVICE void operator()(both_members heaps, void* const* freed, u32 wanted, u32* said, void** got) const {
    u32 const me = simt::block_index() / 2 * simt::block_dim() + simt::thread_index();
    if (simt::block_index() % 2 == 1) {
      if (me >= wanted) return;
      heaps.refs[1].free(freed[me]);
      // release: the free is done; pairs with the wait below.
      atomic_ref<u32>{*said}.fetch_add(1, order::release);
    } else if (me >= wanted) {
      for (u32 i = 0; i < 3; ++i) detail::drain_member{}(heaps.refs[0].local());
    } else {
      backoff wait;
      while (atomic_ref<u32>{*said}.load(order::acquire) != wanted) wait.pause();
      got[me] = heaps.refs[0].malloc(32768);
    }
  }
};

TEST(HeapSet, RefusesNobodyWhileEnoughHadBeenFreedFromAfar) {
  u64 turn = 0;
  test::for_each_schedule(500, [&] {
    launch_shape const shapes[] = {{2, 1}, {2, 31}, {2, 33}, {4, 8}, {6, 5}};
    auto const shape = shapes[turn++ % 5];
    u32 const threads = shape.blocks / 2 * shape.threads;
    u32 const wanted = std::min(31u, threads < 8 ? threads : threads - 4);
#if !defined(__CUDACC__)
    auto roomy = host::current_execution();  // those that are waited for must run
    roomy.sm_count = 4;
    roomy.blocks_per_sm = 2;
    host::scoped_execution const use{roomy};
#endif
    heap_set const set{1_MiB, on_one(2)};
    taken const all{set, 0, {1, 32}, 32768};
    device_buffer<void*> const freed(all.addresses()), got(wanted);
    device_buffer<u32> const said(1);
    launch(shape, free_then_take{}, both(set), freed.data(), wanted, said.data(), got.data());
    synchronize();
    auto const blocks = got.to_host();
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), wanted);
    expect_quiet(set, 32);
    EXPECT_EQ(set.pending(0), 0u);
  });
}

/// Kernel: every thread takes blocks of its member, and hands each to a thread of the other, which
/// verifies and frees it.
struct trade {
  WARPHEAP_DEVICE void operator()(both_members heaps, u32 rounds, u32 bytes, u64* places, u32* counts) const {
    u32 const side = simt::block_index() % 2, me = static_cast<u32>(global_thread_index());
    set_ref const mine = heaps.refs[side];
    for (u32 round = 0; round < rounds; ++round) {
      u64* const block = static_cast<u64*>(mine.malloc(bytes));
      if (block) {
        contents::acquire(block, bytes);
        for (u32 i = 0; i < bytes / 8; i += 16) block[i] = reinterpret_cast<u64>(block) + i;
      }
      atomic_ref<u32>{counts[block ? 0 : 1]}.fetch_add(1, order::relaxed);
      // acq_rel: what we wrote, for the thread that gets it; what that one wrote, for us.
      u64* const theirs = reinterpret_cast<u64*>(
          atomic_ref<u64>{places[me / 2]}.exchange(reinterpret_cast<u64>(block), order::acq_rel));
      if (theirs) give_back(mine, theirs, bytes, counts);
    }
  }

  WARPHEAP_DEVICE static void give_back(set_ref mine, u64* block, u32 bytes, u32* counts) {
    bool right = true;
    for (u32 i = 0; i < bytes / 8; i += 16) right = right && block[i] == reinterpret_cast<u64>(block) + i;
    if (!right) atomic_ref<u32>{counts[2]}.fetch_add(1, order::relaxed);
    if (!mine.local().contains(block)) atomic_ref<u32>{counts[3]}.fetch_add(1, order::relaxed);
    contents::release(block, bytes);
    mine.free(block);
  }
};

TEST(HeapSet, KeepsContentsWhileMembersTradeBlocks) {
  u64 served = 0, refused = 0, from_afar = 0, turn = 0;
  test::for_each_schedule(250, [&] {
    launch_shape const shapes[] = {{2, 1}, {2, 31}, {4, 33}, {6, 7}, {4, 32}};
    u32 const sizes[] = {65536, 65536, 32768, 131072, 65536};
    u32 const which = turn++ % 5;
    auto const shape = shapes[which];
    heap_set const set{1_MiB, on_one(2)};
    u64 const threads = u64{shape.blocks} * shape.threads;
    device_buffer<u64> const places((threads + 1) / 2);
    device_buffer<u32> const counts(4);
    launch(shape, trade{}, both(set), 6u, sizes[which], places.data(), counts.data());
    synchronize();
    EXPECT_EQ(counts[2], 0u);
    served += counts[0];
    refused += counts[1];
    from_afar += counts[3];
    EXPECT_THAT(set.check_invariants(), IsEmpty());
    std::vector<void*> left;
    for (u64 const block : places.to_host())
      if (block) left.push_back(reinterpret_cast<void*>(block));
    EXPECT_EQ(set.statistics().live_blocks, left.size() + set.pending(0) + set.pending(1));
    free_as(set, 1, left);
    drain(set);
    expect_quiet(set, 0);
    EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
  });
  EXPECT_GT(served, 0u);
  EXPECT_GT(from_afar, 0u);
  EXPECT_TRUE(refused > 0 || test::on_gpu);
}

/// Kernel: threads of member 1 free blocks, and those of member 0 drain, as the host's kernel does.
struct free_beside_drains {
  WARPHEAP_DEVICE void operator()(both_members heaps, void* const* freed, u32 count) const {
    u32 const me = simt::block_index() / 2 * simt::block_dim() + simt::thread_index();
    if (simt::block_index() % 2 == 0) detail::drain_member{}(heaps.refs[0].local());
    else if (me < count) heaps.refs[1].free(freed[me]);
  }
};

TEST(HeapSet, FreesEachBlockOnceWherePostsAndDrainsMeet) {
  test::for_each_schedule(150, [&] {
    heap_set const set{1_MiB, on_one(2)};
    for (u32 const bytes : {64u, 4096u}) {
      taken const blocks{set, 0, {2, 66}, bytes};
      auto const all = blocks.addresses();
      device_buffer<void*> const freed(all);
      u32 const count = static_cast<u32>(all.size());
      launch({8, 33}, free_beside_drains{}, both(set), freed.data(), count);
      synchronize();
      EXPECT_THAT(set.check_invariants(), IsEmpty());
      EXPECT_EQ(set.statistics(0).live_blocks, set.pending(0));
      drain(set);
      expect_quiet(set, 0);
      EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
    }
  });
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
      while ((block = place.exchange(0, order::acq_rel)) == 0) wait.pause();
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
      while (!(block = static_cast<u64*>(heap.malloc(bytes)))) wait.pause();
      *block = me;
      while (place.load(order::relaxed) != 0) wait.pause();
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
