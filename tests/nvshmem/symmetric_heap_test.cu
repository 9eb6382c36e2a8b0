// SPDX-License-Identifier: Apache-2.0
// Heaps in symmetric memory. The program runs itself again as the processes of a job: 2, or as many
// as its first argument says; or it is one of a job that mpirun starts. All PEs run the same tests
// in the same order, so a test that fails goes on to its end.
#include <gtest/gtest.h>

#include <warpheap/nvshmem/symmetric_heap.hpp>

#include "pes/launcher.hpp"

namespace warpheap { namespace {

constexpr size_t pool_bytes = size_t{64} << 20;
constexpr u32 threads = 1 << 15;

/// Names that every PE can read: one for each thread of the PE they are on.
struct names {
  symmetric_memory memory{threads * sizeof(remote_ptr)};
  remote_ptr* data() const { return static_cast<remote_ptr*>(memory.begin()); }
};

/// Waits for this PE's kernels, then for the other PEs.
void meet() {
  synchronize();
  nvshmem_barrier_all();
}

u32 left_neighbour() {
  return static_cast<u32>(nvshmem_my_pe() + nvshmem_n_pes() - 1) % static_cast<u32>(nvshmem_n_pes());
}

u64 WARPHEAP_HOST_DEVICE content(u32 pe, u32 thread, u32 word) { return u64{pe} << 40 | u64{thread} << 8 | word; }

/// Kernel: each thread makes a block, fills it, and tells its name.
struct make_blocks {
  WARPHEAP_DEVICE void operator()(symmetric_heap::ref_type heap, remote_ptr* told, u32 bytes) const {
    u32 const thread = simt::block_index() * simt::block_dim() + simt::thread_index();
    if (thread >= threads) return;
    auto* const words = static_cast<u64*>(heap.malloc(bytes));
    for (u32 i = 0; words && i < bytes / 8; ++i) words[i] = content(heap.pe(), thread, i);
    told[thread] = heap.remote(words);
  }
};

/// Kernel: each thread reads a block of PE `from` by its name, by get() or by pointer, counts words
/// that are not what that PE wrote, and frees it `frees` times.
struct read_and_free {
  WARPHEAP_DEVICE void operator()(symmetric_heap::ref_type heap, remote_ptr const* told, u32 from, u32 bytes,
                                  bool by_pointer, u32 frees, u64* wrong) const {
    u32 const thread = simt::block_index() * simt::block_dim() + simt::thread_index();
    if (thread >= threads) return;
    remote_ptr block;
    nvshmem_getmem(&block, told + thread, sizeof block, static_cast<int>(from));
    for (u32 i = 0; block && i < bytes / 8; ++i) {
      u64 seen = 0;
      auto const* const there = static_cast<u64 const*>(heap.pointer(block + 8 * i));
      if (by_pointer && there) seen = *there;
      else if (!heap.get(&seen, block + 8 * i, 8)) seen = ~u64{0};
      if (seen != content(from, thread, i)) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    }
    if (!block) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    for (u32 i = 0; i < frees; ++i) heap.free(block);
  }
};

template <class Kernel, class... Arguments>
void run(Kernel kernel, Arguments... arguments) {
  launch(stream_view{}, shape_for(threads, 128), kernel, arguments...);
}

class SymmetricHeap : public testing::Test {
 protected:
  /// Blocks of every PE, made and named.
  void make(u32 bytes) {
    run(make_blocks{}, heap.ref(), told.data(), bytes);
    meet();
  }
  /// The left neighbour's blocks, read and freed by this PE.
  void free_of_neighbour(u32 bytes, bool by_pointer, u32 frees = 1) {
    run(read_and_free{}, heap.ref(), static_cast<remote_ptr const*>(told.data()), left_neighbour(), bytes, by_pointer,
        frees, wrong.data());
    meet();
    EXPECT_EQ(wrong[0], 0u);
  }
  void expect_whole() {
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
    EXPECT_EQ(heap.pending(), 0u);
    EXPECT_TRUE(heap.check_invariants().empty());
  }

  symmetric_heap heap{pool_bytes};
  names told;
  device_buffer<u64> wrong{1};
};

TEST_F(SymmetricHeap, GivesBlocksBackThatAnotherPeHasFreed) {
  for (bool const by_pointer : {false, true}) {
    make(64);
    EXPECT_EQ(heap.statistics().live_blocks, threads);
    free_of_neighbour(64, by_pointer);
    if (heap.pes() > 1) {
      EXPECT_EQ(heap.pending(), threads);
      heap.drain();
    }
    meet();
    expect_whole();
  }
}

TEST_F(SymmetricHeap, ARefusedCallTakesWhatOtherPesHaveFreed) {
  u32 const bytes = pool_bytes / threads;  // all of the pool
  for (int round = 0; round < 3; ++round) {
    make(bytes);  // the second time nothing is free but for the mailbox
    EXPECT_EQ(heap.statistics().live_blocks, threads);
    free_of_neighbour(bytes, true);
  }
  heap.drain();
  meet();
  expect_whole();
}

TEST_F(SymmetricHeap, CountsABlockThatIsFreedTwiceFromAfar) {
  make(64);
  free_of_neighbour(64, true, 2);
  heap.drain();
  meet();
  EXPECT_EQ(heap.statistics().double_frees, threads);
  expect_whole();
}

/// Kernel, one thread: frees names that no block has, of this PE and of another.
struct free_nonsense {
  WARPHEAP_DEVICE void operator()(symmetric_heap::ref_type heap, u32 other, u64 bytes) const {
    heap.free(remote_ptr{});               // nothing
    heap.free(remote_ptr{heap.pes(), 0});  // no such PE
    heap.free(remote_ptr{other, bytes});   // beyond the pool
    heap.free(remote_ptr{other, 8});       // no block begins there
    heap.free(remote_ptr{heap.pe(), 24});  // nor there
  }
};

TEST_F(SymmetricHeap, CountsAndIgnoresNamesThatNoBlockHas) {
  make(64);
  launch({1, 1}, free_nonsense{}, heap.ref(), left_neighbour(), u64{heap.heap().pool_bytes()} + (1 << 20));
  meet();
  heap.drain();
  EXPECT_EQ(heap.statistics().live_blocks, threads);
  EXPECT_GE(heap.statistics().foreign_frees + heap.statistics().double_frees, 4u);
  EXPECT_TRUE(heap.check_invariants().empty());
  meet();
}

/// Kernel, one thread: writes into the neighbour's first block, and tells whether names outside any
/// pool were refused.
struct put_words {
  WARPHEAP_DEVICE void operator()(symmetric_heap::ref_type heap, remote_ptr const* told, u32 to, u64* refused) const {
    remote_ptr block;
    nvshmem_getmem(&block, told, sizeof block, static_cast<int>(to));
    u64 word = content(heap.pe(), 77, 7);
    if (!heap.put(block, &word, sizeof word)) *refused = 100;
    *refused += !heap.put(remote_ptr{heap.pes(), 0}, &word, 8) + !heap.get(&word, remote_ptr{to, u64{1} << 47}, 8) +
                !heap.get(&word, remote_ptr{}, 8) + (heap.pointer(remote_ptr{heap.pes(), 0}) == nullptr);
    nvshmem_quiet();
  }
};
/// Kernel, one thread: reads the first word of a block of its own.
struct read_own {
  WARPHEAP_DEVICE void operator()(symmetric_heap::ref_type heap, remote_ptr const* told, u64* word) const {
    *word = *static_cast<u64 const*>(heap.pointer(told[0]));
  }
};

TEST_F(SymmetricHeap, WritesIntoABlockOfAnotherPe) {
  make(64);
  launch({1, 1}, put_words{}, heap.ref(), static_cast<remote_ptr const*>(told.data()), left_neighbour(), wrong.data());
  meet();
  EXPECT_EQ(wrong[0], 4u);
  launch({1, 1}, read_own{}, heap.ref(), static_cast<remote_ptr const*>(told.data()), wrong.data());
  synchronize();
  EXPECT_EQ(wrong[0], content((heap.pe() + 1) % heap.pes(), 77, 7));
  meet();
}

TEST_F(SymmetricHeap, ResetForgetsTheFreesThatWait) {
  make(64);
  free_of_neighbour(64, true);
  heap.heap().reset();
  meet();
  expect_whole();
  make(64);
  heap.drain();
  meet();
  EXPECT_EQ(heap.statistics().live_blocks, threads);
  meet();
}

TEST(SymmetricHeapMade, IsRefusedToAllIfTheyAskForDifferentSizes) {
  if (nvshmem_n_pes() == 1) GTEST_SKIP() << "one PE";
  EXPECT_THROW(symmetric_heap{pool_bytes << nvshmem_my_pe()}, std::invalid_argument);
}

TEST(SymmetricHeapMade, IsRefusedBelowTheLeastSize) { EXPECT_THROW(symmetric_heap{1000}, std::invalid_argument); }

TEST(SymmetricHeapMade, IsRefusedToAllWhereThereIsTooLittleMemory) {
  EXPECT_THROW(symmetric_heap{size_t{1} << 44}, out_of_memory);
}

/// What a process that is no PE can test.
int checks_without_a_job(char** arguments) {
  int failed = 0;
  auto const expect = [&](bool holds, char const* what) {
    if (!holds) ++failed, std::fprintf(stderr, "FAILED: %s\n", what);
  };
  try {
    symmetric_memory const none{1};
    expect(false, "symmetric memory before NVSHMEM starts is an error");
  } catch (std::logic_error const&) {
  }
  setenv("WARPHEAP_TEST_DIES", "1", 1);
  expect(tool::run_as_pes(2, arguments) == 3, "when a PE dies, the job ends with its status");
  unsetenv("WARPHEAP_TEST_DIES");
  setenv("WARPHEAP_TEST_LEAVES", "1", 1);
  expect(tool::run_as_pes(2, arguments) == 4, "a PE sees that PE 0 ends before they meet");
  unsetenv("WARPHEAP_TEST_LEAVES");
  for (char const* const place : {"2 2 0 3 4", "-1 2 0 3 4", "0 1 -1 3 4", "0 1", "one"}) {
    setenv(tool::pe_place::variable, place, 1);
    try {
      tool::pe_place::given();
      expect(false, "a place that cannot be is an error");
    } catch (std::invalid_argument const&) {
    }
  }
  unsetenv(tool::pe_place::variable);
  return failed;
}

}}  // namespace warpheap

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (!warpheap::tool::is_of_a_job()) {
    int const failed = warpheap::checks_without_a_job(arguments);
    return warpheap::tool::run_as_pes(count > 1 ? std::atoi(arguments[1]) : 2, arguments) + failed;
  }
  auto const place = warpheap::tool::pe_place::given();
  if (std::getenv("WARPHEAP_TEST_DIES") && place->pe == 1) return 3;
  if (std::getenv("WARPHEAP_TEST_LEAVES") && place->pe == 0) return 0;
  try {
    warpheap::tool::nvshmem_job const job;
    return RUN_ALL_TESTS();
  } catch (std::runtime_error const&) {
    return 4;
  }
}
