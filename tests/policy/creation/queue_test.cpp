// SPDX-License-Identifier: Apache-2.0
// Index queues over a handful of chunks: a heap is filled to its last page in every class and at
// odd shapes, chunks change their class, no lane is refused while a page stays free, and a page has
// one owner at a time whatever is freed.
#include <algorithm>
#include <stdexcept>

#include "policy/creation/queue/pool_fixture.hpp"
#include "support/refusals.hpp"

namespace warpheap::test { namespace {

template <class Queue>
class QueueOf : public testing::Test {};
using forms = testing::Types<WARPHEAP_QUEUE_FORMS(tiny_queues), WARPHEAP_QUEUE_FORMS(wordy_queues)>;
TYPED_TEST_SUITE(QueueOf, forms, queue_names);

/// What `lanes` lanes that ask once each for `bytes` got, in order of addresses.
template <class Pool>
std::vector<void*> served_of(Pool const& pool, launch_shape shape, u64 bytes) {
  auto got = allocate(pool, shape, bytes);
  std::erase(got, nullptr);
  std::sort(got.begin(), got.end());
  return got;
}

// queue.W1
TYPED_TEST(QueueOf, GivesEveryPageOfEveryClassToOneOwner) {
  for_each_schedule(40, [&] {
    for (u32 const chunks : {1u, 3u}) {
      queue_pool<TypeParam> const pool{chunks};
      for (u64 bytes = 16; bytes <= pool.chunk_bytes; bytes *= 2) {
        u64 const room = chunks * pool.chunk_bytes / bytes;
        EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), room);
        // More lanes than pages, in partial warps.
        launch_shape const shape{3, static_cast<u32>(room / 3 + 7)};
        auto const got = served_of(pool, shape, bytes);
        EXPECT_EQ(got.size(), room) << bytes;
        for (size_t i = 1; i < got.size(); ++i)
          EXPECT_GE(static_cast<u8*>(got[i]) - static_cast<u8*>(got[i - 1]), static_cast<i64>(bytes));
        EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 0u);
        pool.expect_quiet(room);
        release(pool, got);
        pool.expect_quiet(0);
      }
    }
  });
}

/// Every lane takes and frees pages of drawn classes, and then asks for whole chunks.
/// At rest: queue.C1, queue.V1, queue.V3, queue.W2, queue.W3, queue.W4
TYPED_TEST(QueueOf, MakesChunksOfAnyClassWholeAgain) {
  for_each_schedule(200, [&] {
    queue_pool<TypeParam> const pool{3};
    auto const report = report_of(
        pool, {2, 20}, tagged_churn<doubled_sizes>{.rounds = 6, .sizes = {16, 4}, .seed = schedule_seed() + 1});
    EXPECT_EQ(report.broken, 0u);
    EXPECT_GT(report.served, 0u);
    pool.expect_quiet(0);
    EXPECT_EQ(served_of(pool, {1, 5}, pool.chunk_bytes).size(), 3u);
    pool.expect_quiet(3);
  });
}

/// More lanes than pages: some are refused, but none while a page stays free.
TYPED_TEST(QueueOf, RefusesNoLaneWhileAPageStaysFree) {
  u64 refused = 0, served = 0;
  for_each_schedule(300, [&] {
    for (u64 const bytes : {u64{16}, u64{128}, queue_pool<TypeParam>::chunk_bytes}) {
      queue_pool<TypeParam> const pool{2};
      u64 const room = 2 * pool.chunk_bytes / bytes;
      auto blocks = allocate(pool, {1, static_cast<u32>(room)}, bytes);
      u64 const left = std::min<u64>(room, 1 + schedule_seed() % 3);
      std::vector<void*> const freed{blocks.end() - static_cast<i64>(left), blocks.end()};
      release(pool, freed);
      auto const seen = refusals_of(pool.allocator(), {2, 5}, addresses_of(freed), bytes, 4, schedule_seed());
      EXPECT_EQ(seen.unfounded, 0u);
      refused += seen.refused;
      served += seen.served;
      pool.expect_quiet(room - left);
    }
  });
  EXPECT_GT(served, 0u);
  EXPECT_GT(refused, 0u);
}

/// As above, for chunks of which a page of another class was freed last: they change their class.
TYPED_TEST(QueueOf, RefusesNoLaneWhileAChunkOfAnotherClassStaysEmpty) {
  for_each_schedule(300, [&] {
    queue_pool<TypeParam> const pool{2};
    u64 const room = 2 * pool.chunk_bytes / 16;
    auto small = allocate(pool, {1, static_cast<u32>(room)}, 16);
    std::sort(small.begin(), small.end());
    std::vector<u64> const places{reinterpret_cast<u64>(small[0])};
    release(pool, {small.begin(), small.begin() + static_cast<i64>(room / 2)});
    auto const seen = refusals_of(pool.allocator(), {2, 3}, places, pool.chunk_bytes, 4, schedule_seed());
    EXPECT_EQ(seen.unfounded, 0u);
    EXPECT_GT(seen.served, 0u);
    pool.expect_quiet(room / 2);
  });
}

/// Each thread block takes and frees pages of a size of its own.
struct sizes_by_block {
  template <class Queue>
  WARPHEAP_DEVICE void operator()(Queue heap, u32 rounds) const {
    for (u32 round = 0; round < rounds; ++round) heap.destroy(heap.create(16u << simt::block_index() % 3 * 2));
  }
};

/// Two situations that are rare elsewhere. A chunk in transit has its last word live before its
/// first, so a page is owned and freed while the first word has no class. And an item that one lane
/// pops is queued again at once, and popped by the next lane.
/// queue.C2
TYPED_TEST(QueueOf, FreesPagesOfChunksThatChangeTheirClass) {
  for_each_schedule(1500, [&] {
    queue_pool<TypeParam> const pool{1};
    launch({5, 3}, sizes_by_block{}, pool.allocator(), 4u);
    synchronize();
    pool.expect_quiet(0);
  });
}

/// In every round the first lane of each warp takes a page, and all lanes free it.
struct free_by_all {
  template <class Queue>
  WARPHEAP_DEVICE void operator()(Queue heap, u32 rounds, void** shared) const {
    void*& taken = shared[simt::warp_id()];
    for (u32 round = 0; round < rounds; ++round) {
      if (simt::lane_id() == 0) taken = heap.create(16u << round);
      simt::sync_warp(full_mask);
      heap.destroy(taken);
      simt::sync_warp(full_mask);
    }
  }
};

TYPED_TEST(QueueOf, FreesOnceAPageThatAWholeWarpFrees) {
  for_each_schedule(100, [&] {
    // A chunk for each class of each warp: no page is handed out again while it is being freed.
    queue_pool<TypeParam> const pool{8};
    device_buffer<void*> shared(2);
    launch({1, 64}, free_by_all{}, pool.allocator(), 4u, shared.data());
    synchronize();
    EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 0u);
    pool.expect_quiet(0, 31 * 2 * 4);
  });
}

TYPED_TEST(QueueOf, TellsAFreedPageFromAnAddressInside) {
  queue_pool<TypeParam> const pool{2};
  auto const placed = ask(pool, {64});
  free_addresses(pool, {placed[0].address + 16, placed[0].address + 1, placed[0].address - 1, 8});
  EXPECT_EQ(pool.allocator().snapshot().statistics().foreign_frees, 4u);
  pool.expect_quiet(1, 4);
  free_addresses(pool, {placed[0].address, placed[0].address});
  EXPECT_EQ(pool.allocator().snapshot().statistics().double_frees, 1u);
  pool.expect_quiet(0, 5);
}

TYPED_TEST(QueueOf, RefusesWhatIsLargerThanAChunk) {
  queue_pool<TypeParam> const pool{2};
  for (u64 const bytes : {u64{0}, pool.chunk_bytes + 1, u64{1} << 32, ~u64{0}}) {
    EXPECT_EQ(allocate(pool, {1, 1}, bytes)[0], nullptr) << bytes;
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 0u) << bytes;
  }
  EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 3u) << "no bytes are no failure";
  pool.expect_quiet(0);
}

/// So that no request needs a search while its class has a free page or a chunk is free.
TYPED_TEST(QueueOf, QueuesWhatIsFree) {
  queue_pool<TypeParam> const pool{4};
  auto const queued = [&] { return pool.allocator().snapshot().queued(0); };
  u32 const pages = static_cast<u32>(pool.chunk_bytes / 16);
  bool const by_pages = TypeParam::config.element == queue_element::page;
  ask(pool, {16});
  EXPECT_EQ(queued(), by_pages ? pages - 1 : 1);
  auto const rest = ask(pool, std::vector<u64>(pages - 1, 16));
  EXPECT_EQ(queued(), 0u);
  free_addresses(pool, {rest[1].address, rest[3].address});
  EXPECT_EQ(queued(), by_pages ? 2u : 1u);
  pool.expect_quiet(pages - 2);
}

struct flip {
  WARPHEAP_DEVICE void operator()(u32* word, u32 bits) const { *word ^= bits; }
};

// queue.H1, queue.V2
TYPED_TEST(QueueOf, SaysWhatIsWrongInAQueue) {
  using table_type = queue_parts::table<TypeParam::config>;
  u64 const bytes = 3 * TypeParam::config.chunk_bytes;
  device_buffer<u8> const memory(TypeParam::required_bytes(bytes));
  auto const heap = TypeParam::place(memory.data(), bytes);
  heap.initialize({});
  device_buffer<void*> const block(1);
  launch({1, 1}, create_each{}, heap, u64{16}, block.data());
  synchronize();
  auto const read = [](u32 const* word) {
    u32 held = 0;
    backend::copy_bytes(&held, word, sizeof held);
    return held;
  };
  auto const expect_told = [&](u32* word, u32 bits, std::string const& what) {
    EXPECT_TRUE(heap.snapshot().check_invariants().empty());
    for (bool const is_wrong : {true, false}) {
      launch({1, 1}, flip{}, word, bits);
      synchronize();
      auto const report = heap.snapshot().check_invariants();
      EXPECT_EQ(is_wrong,
                std::any_of(report.begin(), report.end(), [&](auto const& line) { return line.starts_with(what); }))
          << what << ", " << report.size() << " lines";
    }
  };
  auto const index = heap.table().index(0);
  // The page or chunk that has no bit is not queued.
  expect_told(index.queued, ~read(index.queued) & (read(index.queued) + 1), "queue.H1: ");
  expect_told(index.queue.words() + table_type::queue_type::available_word, 1,
              table_type::is_virtual ? "queue.V2: " : "ring_queue.Q1, ring_queue.Q3: ");
  if constexpr (!table_type::is_virtual) {
    u32* const slots = index.queue.words() + ring_queue::index_words;
    u32 filled = 0, empty = 0;
    while (read(slots + filled) == 0) ++filled;
    while (read(slots + empty) != 0) ++empty;
    expect_told(slots + filled, 1u << 30, "ring_queue.Q5, queue.H1: ");
    expect_told(slots + empty, 1, "ring_queue.Q5, queue.H1: ");
  }
}

using queue_of_pages = creation::queue<>;
using queue_of_chunks = queue_chunks_allocator::creation_type;

TEST(Queue, GivesChunksBackWhenTheirLastPageIsFreedIfItQueuesChunks) {
  queue_pool<queue_of_chunks> const chunks{4};
  release(chunks, allocate(chunks, {1, 20}, 16));
  EXPECT_EQ(chunks.allocator().snapshot().statistics().free_slabs, 4u);
  queue_pool<queue_of_pages> const pages{4};
  release(pages, allocate(pages, {1, 20}, 16));
  EXPECT_EQ(pages.allocator().snapshot().statistics().free_slabs, 3u);
  EXPECT_EQ(count_slots_by_grid(pages.allocator(), 8192), 4u);
  EXPECT_EQ(served_of(pages, {1, 5}, 8192).size(), 4u);
}

constexpr creation::queue_config no_power{.chunk_bytes = 3000};
constexpr creation::queue_config one_class{.chunk_bytes = 256, .least_bytes = 256};
static_assert(!is_valid(no_power) && is_valid(one_class));
static_assert(sizeof(queue_of_pages) == 16 && sizeof(queue_of_chunks) == 16);
static_assert(queue_of_pages::traits.self_aligned_up_to == 8192 && queue_of_pages::traits.largest_bytes == 8192);

TEST(Queue, TakesPoolsOfOneChunkUpToItsLimit) {
  EXPECT_THROW(queue_of_pages::required_bytes(8191), std::invalid_argument);
  EXPECT_THROW(queue_of_pages::required_bytes((size_t{16} << 30) + 8192), std::invalid_argument);
  EXPECT_GT(queue_of_pages::required_bytes(size_t{16} << 30), size_t{24} << 30);
  size_t const large = size_t{141} << 30;
  EXPECT_LT(queue_of_chunks::required_bytes(large), large + large / 32);
  queue_pool<creation::queue<one_class>> const pool{1};
  EXPECT_EQ(served_of(pool, {1, 40}, 1).size(), 1u);
  pool.expect_quiet(1);
}

TEST(Queue, IsAHeapLikeOthers) {
  queue_chunks_heap const heap{(size_t{1} << 20) + 5000};
  EXPECT_EQ(heap.available_slots(5000), 128u);
  EXPECT_NE(heap.info().find("creation queue_chunks"), std::string::npos);
  EXPECT_NE(queue_pages_heap{size_t{1} << 20}.info().find("creation queue_pages"), std::string::npos);
}

}}  // namespace warpheap::test
