// SPDX-License-Identifier: Apache-2.0
// Heaps over pools that grow: what is there, what is not, and what growth and trimming leave alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#if !defined(__CUDACC__)
#include <sys/resource.h>
#endif

#include "support/message_of.hpp"
#include "support/numbered_blocks.hpp"
#include "support/schedules.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace growing_heap_test {

using namespace warpheap;
using test::message_of;
using test::take_numbered;
using test::verify_numbered_and_free;
using namespace warpheap::literals;
using testing::HasSubstr;

static_assert(sizeof(growing_allocator) == 16);

size_t const granule = reserve_pool::growing::granularity();

constexpr u64 block_words = 512, block_bytes = 8 * block_words;  // 4 KiB

/// What a grid of `threads` threads got, each at most one block of 4 KiB.
class taken_blocks {
 public:
  taken_blocks(growing_heap const& heap, u32 threads) : shape_{(threads + 63) / 64, 64}, blocks_(64 * shape_.blocks) {
    launch(shape_, take_numbered{}, heap.ref(), block_words, blocks_.data());
    synchronize();
  }

  u64 served() const {
    auto const all = blocks_.to_host();
    return all.size() - std::count(all.begin(), all.end(), nullptr);
  }
  std::vector<u64*> addresses() const {
    auto all = blocks_.to_host();
    std::erase(all, nullptr);
    std::sort(all.begin(), all.end());
    return all;
  }
  /// How many blocks were overwritten.
  u64 free_into(growing_heap const& heap) {
    device_buffer<u64> const wrong(1);
    launch(shape_, verify_numbered_and_free{}, heap.ref(), block_words, blocks_.data(), wrong.data());
    synchronize();
    return wrong[0];
  }

 private:
  launch_shape shape_;
  device_buffer<u64*> blocks_;
};

void expect_quiet(growing_heap const& heap, u64 live) {
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
  EXPECT_EQ(heap.statistics().live_blocks, live);
  EXPECT_EQ(heap.statistics().pool_bytes, heap.committed_bytes());
}

/// Where in the pool the last of some blocks begins.
u64 highest_offset(growing_heap const& heap, taken_blocks const& blocks) {
  return reinterpret_cast<u64>(blocks.addresses().back()) - reinterpret_cast<u64>(heap.memory()[0].begin);
}

TEST(GrowingHeap, ServesWhatIsCommittedAndNoMore) {
  growing_heap heap{growth{.initial = 1, .limit = 16 * granule, .chunk = granule}};
  EXPECT_EQ(heap.committed_bytes(), granule);
  EXPECT_EQ(heap.pool_bytes(), 16 * granule);
  u64 const fit = granule / block_bytes;
  EXPECT_EQ(heap.available_slots(block_bytes), fit);
  EXPECT_EQ(heap.available_slots(granule), 1u);
  taken_blocks blocks{heap, static_cast<u32>(2 * fit)};
  EXPECT_EQ(blocks.served(), fit);
  expect_quiet(heap, fit);
  EXPECT_EQ(blocks.free_into(heap), 0u);
  expect_quiet(heap, 0);
}

TEST(GrowingHeap, WithNothingCommittedServesNobody) {
  growing_heap heap{growth{.initial = 0, .limit = 2 * granule}};
  EXPECT_EQ(heap.committed_bytes(), 0u);
  EXPECT_EQ((taken_blocks{heap, 64}.served()), 0u);
  EXPECT_EQ(heap.statistics().failures, 64u);
  EXPECT_EQ(heap.grow(1), granule);
  taken_blocks blocks{heap, 64};
  EXPECT_EQ(blocks.served(), 64u);
  EXPECT_EQ(blocks.free_into(heap), 0u);
}

TEST(GrowingHeap, GrowsUnderLiveBlocksWhichStayWhereTheyAre) {
  growing_heap heap{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  u64 const fit = granule / block_bytes;
  taken_blocks first{heap, static_cast<u32>(fit)};
  EXPECT_EQ(first.served(), fit);
  EXPECT_EQ(heap.grow(granule + 1), 2 * granule) << "whole chunks";
  EXPECT_EQ(heap.committed_bytes(), 3 * granule);
  expect_quiet(heap, fit);
  taken_blocks second{heap, static_cast<u32>(4 * fit)};
  EXPECT_EQ(second.served(), 2 * fit);
  auto const low = first.addresses(), high = second.addresses();
  EXPECT_LT(low.back(), high.front());
  EXPECT_EQ(first.free_into(heap), 0u);
  EXPECT_EQ(second.free_into(heap), 0u);
  expect_quiet(heap, 0);
}

TEST(GrowingHeap, StopsAtItsLimit) {
  growing_heap heap{growth{.initial = granule, .limit = 5 * granule, .chunk = 2 * granule}};
  EXPECT_EQ(heap.committed_bytes(), granule);
  EXPECT_EQ(heap.grow(1), 2 * granule) << "a chunk";
  EXPECT_EQ(heap.grow(100 * granule), 2 * granule);
  EXPECT_EQ(heap.grow(1), 0u);
  EXPECT_EQ(heap.grow(0), 0u);
  EXPECT_EQ(heap.available_slots(granule), 5u);
  EXPECT_EQ(heap.available_slots(5 * granule), 1u);
  EXPECT_EQ(heap.trim(), 4 * granule);
  EXPECT_EQ(heap.grow(3 * granule), 4 * granule) << "whole chunks";
  EXPECT_EQ(heap.trim(), 4 * granule);
  EXPECT_EQ(heap.grow(~size_t{0}), 4 * granule);
  expect_quiet(heap, 0);
}

TEST(GrowingHeap, TakesAnyChunkForOneOfAtMostTheLimit) {
  for (size_t const chunk :
       {5 * granule, 64 * granule, size_t{1} << 62, size_t{1} << 63, ~size_t{0} / granule * granule}) {
    growing_heap heap{growth{.initial = 1, .limit = 4 * granule, .chunk = chunk}};
    EXPECT_EQ(heap.committed_bytes(), granule) << chunk;
    EXPECT_EQ(heap.grow(1), 3 * granule) << chunk;
    EXPECT_EQ(heap.trim(), 3 * granule) << chunk;
    EXPECT_EQ(heap.grow(~size_t{0}), 3 * granule) << chunk;
  }
}

TEST(GrowingPool, BeginsWithWhatWasAskedForHoweverLargeItsChunksAre) {
  for (size_t const limit : {64_MiB, 1_GiB, 32_GiB}) {
    reserve_pool::growing pool{growth{.initial = 64_MiB, .limit = limit}};
    pool.acquire(limit + granule);
    EXPECT_EQ(pool.committed(), 64_MiB) << limit;
  }
}

TEST(GrowingHeap, TrimsTheChunksAtTheEndThatNobodyUses) {
  growing_heap heap{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  for (u32 chunk = 1; chunk < 8; ++chunk) heap.grow(granule);
  u64 const fit = granule / block_bytes;
  taken_blocks all{heap, static_cast<u32>(8 * fit)};
  EXPECT_EQ(all.served(), 8 * fit);
  EXPECT_EQ(heap.trim(), 0u);
  expect_quiet(heap, 8 * fit);
  EXPECT_EQ(all.free_into(heap), 0u);
  taken_blocks few{heap, 64};
  u64 const kept = (highest_offset(heap, few) / granule + 1) * granule;
  EXPECT_EQ(heap.trim(), 8 * granule - kept);
  EXPECT_EQ(heap.committed_bytes(), kept);
  expect_quiet(heap, 64);
  EXPECT_EQ(heap.available_slots(block_bytes), kept / block_bytes - 64);
  EXPECT_EQ(few.free_into(heap), 0u);
  EXPECT_EQ(heap.trim(), kept - granule) << "all but what it began with";
  EXPECT_EQ(heap.trim(), 0u);
  heap.reset();
  synchronize();
  expect_quiet(heap, 0);
  EXPECT_EQ(heap.grow(2 * granule), 2 * granule);
  taken_blocks again{heap, static_cast<u32>(4 * fit)};
  EXPECT_EQ(again.served(), 3 * fit);
  EXPECT_EQ(again.free_into(heap), 0u);
  expect_quiet(heap, 0);
}

TEST(GrowingPool, GivesBackAsOneWhatWasMappedAsOne) {
  reserve_pool::growing pool{growth{.initial = granule, .limit = 12 * granule, .chunk = granule}};
  pool.acquire(13 * granule);
  pool.commit(6 * granule);  // four as one, two as one
  for (u64 const used : {u64{0}, u64{1}, u64{granule}}) EXPECT_EQ(pool.kept_for(used), granule) << used;
  for (u64 const used : {granule + 1, 3 * granule, 5 * granule}) EXPECT_EQ(pool.kept_for(used), 5 * granule) << used;
  for (u64 const used : {5 * granule + 1, 7 * granule}) EXPECT_EQ(pool.kept_for(used), 7 * granule) << used;
  pool.decommit(5 * granule);
  EXPECT_EQ(pool.kept_for(5 * granule), 5 * granule);
  for (u32 chunk = 0; chunk < 7; ++chunk) pool.commit(1);
  EXPECT_EQ(pool.committed(), 12 * granule);
  EXPECT_EQ(pool.kept_for(6 * granule + 1), 7 * granule) << "single chunks";
  pool.decommit(granule);
  EXPECT_EQ(pool.committed(), granule);
}

TEST(GrowingHeap, GrowsAndTrimsManyTimes) {
  growing_heap heap{growth{.initial = 0, .limit = 16 * granule, .chunk = granule}};
  u64 const fit = granule / block_bytes;
  for (u32 round = 1; round <= 12; ++round) {
    EXPECT_EQ(heap.grow(round * granule), round * granule);
    taken_blocks blocks{heap, static_cast<u32>((round + 1) * fit)};
    ASSERT_EQ(blocks.served(), round * fit);
    if (round % 3 == 0) {
      heap.reset();
      synchronize();
    } else {
      ASSERT_EQ(blocks.free_into(heap), 0u);
    }
    expect_quiet(heap, 0);
    ASSERT_EQ(heap.trim(), round * granule);
  }
}

TEST(GrowingHeap, AResetKeepsWhatWasCommitted) {
  growing_heap heap{growth{.initial = granule, .limit = 4 * granule, .chunk = granule}};
  stream const on;
  device_buffer<u64*> const blocks(256);
  heap.grow(granule, on);
  launch(on, {4, 64}, take_numbered{}, heap.ref(), block_words, blocks.data());
  synchronize(on);
  heap.reset(on);
  synchronize(on);
  expect_quiet(heap, 0);
  EXPECT_EQ(heap.available_slots(granule), 2u);
}

/// Kernel: every thread asks again until it has a block, or has asked `most` times.
struct ask_patiently {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u32 most, void** blocks) const {
    void* mine = nullptr;
    for (u32 i = 0; !mine && i < most; ++i) {
      mine = heap.malloc(bytes);
      if (!mine) simt::pause(1000);
    }
    blocks[global_thread_index()] = mine;
  }
};

TEST(GrowingHeap, GrowsBesideAKernelThatUsesIt) {
  u64 served_late = 0;
  test::for_each_schedule(60, [&] {
    growing_heap heap{growth{.initial = 0, .limit = 2 * granule, .chunk = granule}};
    constexpr launch_shape shape{2, 24};
    device_buffer<void*> const blocks(48);
    stream const ours, theirs;
    launch(ours, shape, ask_patiently{}, heap.ref(), u64{40000}, test::on_gpu ? 1000000u : 200u, blocks.data());
    heap.grow(granule, theirs);
    synchronize();
    auto held = blocks.to_host();
    std::erase(held, nullptr);
    EXPECT_EQ(std::set<void*>(held.begin(), held.end()).size(), held.size());
    expect_quiet(heap, held.size());
    served_late += held.size();
  });
  EXPECT_GT(served_late, 0u);
}

TEST(GrowingHeap, IsMovedWithAllThatItHas) {
  growing_heap made{growth{.initial = granule, .limit = 4 * granule, .chunk = granule}};
  taken_blocks blocks{made, 64};
  growing_heap moved{std::move(made)};
  growing_heap assigned{growth{.initial = 0, .limit = granule}};
  assigned = std::move(moved);
  EXPECT_EQ(assigned.grow(granule), granule);
  EXPECT_EQ(blocks.free_into(assigned), 0u);
  expect_quiet(assigned, 0);
  EXPECT_EQ(assigned.available_slots(granule), 2u);
}

TEST(GrowingHeap, TellsHowMuchIsCommitted) {
  growing_heap heap{growth{.initial = granule, .limit = 64 * granule}};
  EXPECT_THAT(heap.info(), HasSubstr("reserve_pool growing"));
  EXPECT_THAT(heap.info(), HasSubstr("committed " + std::to_string(granule) + " bytes"));
  EXPECT_EQ(heap.grow(1), 2 * granule) << "chunks of a 32nd";
  EXPECT_THAT(heap.info(), HasSubstr("committed " + std::to_string(3 * granule) + " bytes"));
}

TEST(GrowingHeap, RefusesSizesThatDoNotFitTogether) {
  auto const said = [](growth plan) { return message_of<std::invalid_argument>([&] { growing_heap{plan}; }); };
  std::string const unit = std::to_string(granule);
  EXPECT_THAT(said({.initial = 0, .limit = 0}), HasSubstr("limit of 0 bytes is no multiple of " + unit));
  EXPECT_THAT(said({.initial = 0, .limit = granule + 4096}), HasSubstr(std::to_string(granule + 4096)));
  EXPECT_THAT(said({.initial = 0, .limit = 2 * granule, .chunk = granule / 2}),
              HasSubstr("chunk of " + std::to_string(granule / 2) + " bytes is no multiple of " + unit));
  EXPECT_THAT(said({.initial = 3 * granule, .limit = 2 * granule}),
              HasSubstr("initial size of " + std::to_string(3 * granule) + " bytes is above the limit of " +
                        std::to_string(2 * granule)));
  EXPECT_THAT(said({.initial = 0, .limit = ~size_t{0} / granule * granule}), HasSubstr("is above"));
}

TEST(GrowingHeap, IsAsItWasWhenTheSystemHasNoMoreMemory) {
#if defined(__CUDACC__)
  size_t free_bytes = 0, total = 0;
  cuda_backend::throw_on_error(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  size_t const limit = (total + total / 4) / granule * granule;
#else
  size_t const limit = 4_GiB;
#endif
  growing_heap heap{growth{.initial = granule, .limit = limit, .chunk = granule * 64}};
  size_t const before = heap.committed_bytes();
  taken_blocks blocks{heap, 64};
#if !defined(__CUDACC__)
  rlimit unlimited{};
  getrlimit(RLIMIT_DATA, &unlimited);
  rlimit const little{.rlim_cur = 1_GiB, .rlim_max = unlimited.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &little), 0);
#endif
  auto const message = message_of<out_of_memory>([&] { heap.grow(limit); });
#if defined(__CUDACC__)
  EXPECT_THAT(message, HasSubstr(std::to_string(4 * granule * 64) + " bytes")) << "four chunks are one part";
#else
  setrlimit(RLIMIT_DATA, &unlimited);
  EXPECT_THAT(message, HasSubstr(std::to_string(limit - before) + " bytes"));
#endif
  EXPECT_EQ(heap.committed_bytes(), before);
  expect_quiet(heap, 64);
  EXPECT_EQ(heap.grow(1), granule * 64);
  EXPECT_EQ(blocks.free_into(heap), 0u);
  taken_blocks all{heap, static_cast<u32>(65 * granule / block_bytes)};
  EXPECT_EQ(all.served(), 65 * granule / block_bytes);
  EXPECT_EQ(heap.trim(), 0u) << "the last chunk is in use";
  EXPECT_EQ(all.free_into(heap), 0u);
  EXPECT_EQ(heap.trim(), granule * 64);
  EXPECT_EQ(heap.committed_bytes(), before);
  expect_quiet(heap, 0);
}

#if defined(__CUDACC__)
// The graph was captured when the heap was small.
TEST(GrowingHeap, AGraphSeesGrowth) {
  growing_heap heap{growth{.initial = granule, .limit = 4 * granule, .chunk = granule}};
  u64 const fit = granule / block_bytes;
  constexpr u32 threads = 64 * 64;
  device_buffer<u64*> const blocks(threads);
  stream on;
  cuda_backend::throw_on_error(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  heap.reset(on);
  launch(on, {64, 64}, take_numbered{}, heap.ref(), block_words, blocks.data());
  cudaGraph_t graph;
  cuda_backend::throw_on_error(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t replayable;
  cuda_backend::throw_on_error(cudaGraphInstantiate(&replayable, graph, 0), "cudaGraphInstantiate");
  for (u64 const chunks : {1u, 2u, 4u}) {
    heap.grow(chunks * granule - heap.committed_bytes());
    synchronize();
    for (u32 replay = 0; replay < 2; ++replay) {
      cuda_backend::throw_on_error(cudaGraphLaunch(replayable, on), "cudaGraphLaunch");
      synchronize(on);
      auto const got = blocks.to_host();
      EXPECT_EQ(threads - std::count(got.begin(), got.end(), nullptr), chunks * fit);
      expect_quiet(heap, chunks * fit);
    }
  }
  cudaGraphExecDestroy(replayable);
  cudaGraphDestroy(graph);
}
#endif

}  // namespace growing_heap_test
