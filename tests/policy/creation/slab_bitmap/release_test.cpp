// SPDX-License-Identifier: Apache-2.0
// Frees of whatever addresses lanes name together: every block that is named comes back once, each
// other free is counted as what it is, and nothing else changes.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "pool_fixture.hpp"
#include "warpheap/util/random.hpp"

namespace slab_bitmap_release_test {

using namespace warpheap;
using test::tiny_pool;

constexpr u64 slab_bytes = tiny_pool::slab_bytes;
constexpr u32 pool_slabs = 20;  // more than fill_in_part() fills, also if lanes open one each

/// The live blocks of a pool, by address, with their bytes.
std::map<u64, u64> live_blocks(tiny_pool const& pool) {
  std::map<u64, u64> live;
  pool.allocator().snapshot().for_each_live(
      [&](void* block, size_t bytes) { live[reinterpret_cast<u64>(block)] = bytes; });
  return live;
}

/// Up to 12 blocks of each of these sizes, and at least 2; a third of each are free again. So slabs
/// have free blocks before their last one, and one is empty.
std::map<u64, u64> fill_in_part(tiny_pool const& pool, std::vector<u64> const& sizes) {
  for (u64 const bytes : sizes) {
    u32 const count = static_cast<u32>(std::clamp<u64>(slab_bytes / bytes, 2, 12));
    auto const blocks = test::allocate(pool, {1, count}, bytes);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0) << bytes << " bytes";
    std::vector<void*> freed;
    for (u32 i = 0; i < count; i += 3) freed.push_back(blocks[i]);
    test::release(pool, freed);
  }
  return live_blocks(pool);
}

/// What frees are that free nothing.
struct misuses {
  u64 twice = 0, foreign = 0;
};

/// The block size of the slab that holds an address, as its live blocks show it; 0 if none does.
u64 size_around(std::map<u64, u64> const& live, u64 pool, u64 address) {
  for (auto const& [block, bytes] : live)
    if (bytes <= slab_bytes && (block - pool) / slab_bytes == (address - pool) / slab_bytes) return bytes;
  return 0;
}

struct test_case {
  launch_shape shape;
  bool with_runs;  ///< of which a second free may count as either misuse
};

void expect_frees_what_is_named(test_case const& with) {
  tiny_pool const pool{pool_slabs};
  u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool());
  std::vector<u64> sizes{16, 48, 64, 80, 112, 1000, 4096, slab_bytes};
  if (with.with_runs) sizes.insert(sizes.begin(), 2 * slab_bytes);
  auto live = fill_in_part(pool, sizes);
  auto const before = pool.allocator().snapshot().statistics();
  random_sequence random{test::schedule_seed() + 1};
  // Neighbours often lie side by side, and some lanes name one block together.
  std::vector<u64> named, starts;
  for (auto const& [block, bytes] : live) starts.push_back(block);
  misuses expected;
  u32 const lanes = with.shape.blocks * with.shape.threads;
  for (u32 at = 0; named.size() < lanes;) {
    u64 const block = starts[at % starts.size()];
    switch (random.below(8)) {
      case 0: named.push_back(0); break;
      case 1: named.push_back(begin - 16 * (1 + random.below(4))); break;
      case 2: named.push_back(begin + pool_slabs * slab_bytes + 16 * random.below(4)); break;
      case 3: named.push_back(block + 16 * random.below(8)); break;
      case 4: named.push_back(block + 8); break;
      case 5: at = random.below(static_cast<u32>(starts.size())); [[fallthrough]];
      default: named.push_back(block); ++at;
    }
  }
  auto left = live;
  for (u64 const address : named) {
    if (address == 0 || left.erase(address) != 0) continue;
    u64 const size = address - begin < pool_slabs * slab_bytes ? size_around(live, begin, address) : 0;
    bool const starts_block = size != 0 && (address - begin) % slab_bytes % size == 0;
    ++(starts_block || live.count(address) != 0 ? expected.twice : expected.foreign);
  }
  std::vector<void*> list;
  list.reserve(named.size());
  for (u64 const address : named) list.push_back(reinterpret_cast<void*>(address));
  test::release(pool, list, with.shape);
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  EXPECT_EQ(live_blocks(pool), left);
  auto const counts = pool.allocator().snapshot().statistics();
  u64 const twice = counts.double_frees - before.double_frees, foreign = counts.foreign_frees - before.foreign_frees;
  EXPECT_EQ(twice + foreign, expected.twice + expected.foreign);
  EXPECT_TRUE(with.with_runs || twice == expected.twice) << twice << " of " << expected.twice;
}

TEST(SlabBitmapRelease, FreesEachBlockThatIsNamedAndCountsEveryOtherFree) {
  for (auto const shape : {launch_shape{1, 1}, {1, warp_lanes}, {3, 32}, {2, 7}})
    for (bool const with_runs : {false, true})
      test::for_each_schedule(24, [&] { expect_frees_what_is_named({shape, with_runs}); });
}

// A warp's blocks that lie in a row may go on in another bitmap word, or in the next slab. Where
// one is free already, only that lane's free counts as a second one.
TEST(SlabBitmapRelease, FreesBlocksInARowWhereverTheRowBegins) {
  for (u64 const bytes : {u64{16}, u64{64}, u64{1024}, slab_bytes / 2}) {
    u32 const count = static_cast<u32>(std::max(2 * slab_bytes / bytes, u64{64}));
    u32 const step = 1 + count / 64;
    for (u32 at = 0; at / 2 * step + warp_lanes <= count; ++at) {
      u32 const first = at / 2 * step, twice = at % 2;
      tiny_pool const pool{static_cast<u32>(count * bytes / slab_bytes)};
      std::vector<void*> blocks = test::allocate(pool, {count / warp_lanes, warp_lanes}, bytes);
      std::sort(blocks.begin(), blocks.end());
      ASSERT_NE(blocks.front(), nullptr) << bytes << " bytes";
      if (twice != 0) test::release(pool, {blocks[first + 13]}, {1, 1});
      test::release(pool, {blocks.begin() + first, blocks.begin() + first + warp_lanes}, {1, warp_lanes});
      ASSERT_EQ(live_blocks(pool).size(), count - warp_lanes) << bytes << " bytes, block " << first;
      pool.expect_quiet(count - warp_lanes, twice);
    }
  }
}

struct ask_sizes {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 step, u64 count, u32* sizes) const {
    for (u64 i = global_thread_index(); i < count; i += 64)
      sizes[i] = static_cast<u32>(heap.usable_size(heap.table().pool() + i * step - step));
  }
};

TEST(SlabBitmapRelease, KnowsTheBytesOfEachLiveBlockAndOfNothingElse) {
  test::for_each_schedule(6, [] {
    tiny_pool const pool{pool_slabs};
    u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool()), step = 8;
    auto live = fill_in_part(pool, {2 * slab_bytes, 16, 48, 64, 80, 112, 1000, 4096, slab_bytes});
    u64 const count = pool_slabs * slab_bytes / step + 2;
    device_buffer<u32> const sizes(count);
    launch({2, 32}, ask_sizes{}, pool.allocator(), step, count, sizes.data());
    synchronize();
    auto const found = sizes.to_host();
    for (u64 i = 0; i < count; ++i) {
      auto const block = live.find(begin + i * step - step);
      ASSERT_EQ(found[i], block == live.end() ? 0 : block->second) << i * step << " bytes into the pool";
    }
  });
}

/// The lanes of a warp hold all blocks, and are refused another one. They free theirs together, and
/// each asks again at once.
struct free_together_and_ask {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, u32 rounds, u32* refused) const {
    lane_mask const all = lanes_before(simt::block_dim());
    void* block = heap.create(bytes);
    for (u32 round = 0; round < rounds; ++round) {
      bool const full = simt::ballot(all, block != nullptr) == all;
      if (full && heap.create(bytes)) simt::trap("more blocks than there are");
      simt::ballot(all, true);
      heap.destroy(block);
      block = heap.create(bytes);
      if (!block) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
    }
    heap.destroy(block);
  }
};

// A lane whose free has returned finds a block, since the others hold one each at most: no lane
// returns before the lane that frees for all has put the slab back where scans look.
TEST(SlabBitmapRelease, ALaneThatHasFreedItsBlockFindsOne) {
  for (u32 const lanes : {2u, 4u, warp_lanes})
    test::for_each_schedule(lanes == warp_lanes ? 40 : 150, [&] {
      tiny_pool const pool{1};
      device_buffer<u32> const refused(1);
      launch({1, lanes}, free_together_and_ask{}, pool.allocator(), slab_bytes / lanes, 6u, refused.data());
      synchronize();
      EXPECT_EQ(refused[0], 0u) << lanes << " lanes";
      pool.expect_empty();
    });
}

#if !defined(__CUDACC__)

/// Reserves a warp's blocks of a slab as others do, and claims the first 16, and the others 16
/// further on.
struct claim_ahead {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 slab, void** held) const {
    auto const& table = heap.table();
    u32 const first = table.reserve(slab, warp_lanes).bump();
    for (u32 i = 0; i < warp_lanes; ++i) {
      u32 const index = first + (i < 16 ? i : 16 + i);
      table.blocks(slab).try_claim(index / 64, u64{1} << (index % 64), order::acquire);
      held[i] = table.data(slab) + u64{index} * 64;
    }
  }
};

// A full warp whose next blocks are taken in part keeps the others.
TEST(SlabBitmapRelease, AWarpThatGetsAPartOfItsBlocksIsServedTheRestElsewhere) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                    .policy = host::schedule_policy::round_robin,
                                    .masks = host::mask_policy::maximal}};
  tiny_pool const pool{4};
  auto const before = test::allocate(pool, {1, warp_lanes}, 64);
  u32 const slab = static_cast<u32>(
      (reinterpret_cast<u64>(before[0]) - reinterpret_cast<u64>(pool.allocator().table().pool())) / slab_bytes);
  device_buffer<void*> const others(warp_lanes);
  launch({1, 1}, claim_ahead{}, pool.allocator(), slab, others.data());
  synchronize();
  auto const got = test::allocate(pool, {1, warp_lanes}, 64);
  std::vector<void*> all = before;
  for (auto const& more : {others.to_host(), got}) all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(std::count(all.begin(), all.end(), nullptr), 0);
  EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(live_blocks(pool).size(), all.size());
  pool.expect_quiet(all.size());
  test::release(pool, all);
  pool.expect_empty();
}

#endif

}  // namespace slab_bitmap_release_test
