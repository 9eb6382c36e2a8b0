// SPDX-License-Identifier: Apache-2.0
// One lane and a model: which blocks are live says exactly what the heap must answer. A request is
// refused if and only if there is no place for it, a run lies at the lowest place, and counts of
// blocks, bytes, slots and misuses are the model's.
#include <algorithm>
#include <map>
#include <vector>

#include "policy/creation/slab_bitmap/pool_fixture.hpp"
#include "warpheap/util/random.hpp"

namespace slab_bitmap_test {

using namespace warpheap;
using test::tiny_pool;

constexpr u64 slab_bytes = tiny_pool::slab_bytes;

/// A call: a request of `bytes` at a multiple of `alignment` (0: by create), or, without bytes, a
/// free of what call `frees` got, `beyond` bytes behind its begin.
struct call {
  u64 bytes = 0, alignment = 0;
  u32 frees = 0, beyond = 0;
  bool asks = true;
};

/// What one lane got and saw.
struct answer {
  u64 address = 0, usable = 0;
  bool owned = false;
};

struct call_in_order {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, call const* calls, u32 count, answer* answers) const {
    for (u32 i = 0; i < count; ++i) {
      call const now = calls[i];
      if (!now.asks) {
        heap.destroy(reinterpret_cast<u8*>(answers[now.frees].address) + now.beyond);
        continue;
      }
      void* const block = now.alignment ? heap.create_aligned(now.alignment, now.bytes) : heap.create(now.bytes);
      answers[i] = {reinterpret_cast<u64>(block), heap.usable_size(block), heap.owns(block)};
    }
  }
};

/// The live blocks of a pool of some slabs, and the answers that they allow.
class model {
 public:
  model(u64 begin, u32 slabs) : begin_{begin}, slabs_{slabs} {}

  bool is_run(u64 bytes, u64 alignment) const { return std::max(bytes, alignment) > slab_bytes; }
  static u32 class_for(u64 bytes, u64 alignment) {
    u32 found = size_class_of(bytes);
    while (alignment > 16 && class_bytes(found) % alignment != 0) ++found;
    return found;
  }
  u64 size_of(u64 bytes, u64 alignment) const {
    return is_run(bytes, alignment) ? align_up(bytes, slab_bytes) : class_bytes(class_for(bytes, alignment));
  }

  /// The lowest run for a request; 0 if there is none.
  u64 lowest_run(u64 bytes, u64 alignment) const {
    u64 const length = (bytes - 1) / slab_bytes + 1;
    for (u64 first = 0; length <= slabs_ && first + length <= slabs_; ++first) {
      u64 taken = 0;
      for (u64 slab = first; slab < first + length; ++slab) taken += blocks_in(slab);
      u64 const address = begin_ + first * slab_bytes;
      if (taken == 0 && address % std::max<u64>(alignment, 1) == 0) return address;
    }
    return 0;
  }

  u64 slots(u64 bytes) const {
    if (bytes == 0) return 0;
    u64 sum = 0, row = 0;
    u64 const size = size_of(bytes, 1), length = size / slab_bytes;
    for (u64 slab = 0; slab < slabs_; ++slab) {
      bool const is_empty = blocks_in(slab) == 0;
      if (size > slab_bytes) {
        row = is_empty ? row + 1 : 0;
        if (row == length) ++sum, row = 0;
      } else if (is_empty || size_in(slab) == size) {
        sum += slab_bytes / size - blocks_in(slab);
      }
    }
    return sum;
  }

  bool is_free(u64 address, u64 bytes) const {
    auto const behind = live_.upper_bound(address);
    bool const above = behind == live_.end() || behind->first >= address + bytes;
    return above && (behind == live_.begin() || std::prev(behind)->first + std::prev(behind)->second <= address);
  }
  bool is_live(u64 address) const { return live_.count(address) != 0; }
  void add(u64 address, u64 bytes) { live_[address] = bytes; }
  void remove(u64 address) { live_.erase(address); }
  u64 blocks() const { return live_.size(); }
  u64 bytes() const {
    u64 sum = 0;
    for (auto const& block : live_) sum += block.second;
    return sum;
  }

 private:
  /// Blocks that begin or end in a slab, and the size of one of them.
  u64 blocks_in(u64 slab) const { return count_in(slab).first; }
  u64 size_in(u64 slab) const { return count_in(slab).second; }
  std::pair<u64, u64> count_in(u64 slab) const {
    u64 const from = begin_ + slab * slab_bytes;
    std::pair<u64, u64> found{0, 0};
    for (auto const& [address, bytes] : live_)
      if (address < from + slab_bytes && address + bytes > from) found = {found.first + 1, bytes};
    return found;
  }

  u64 begin_, slabs_;
  std::map<u64, u64> live_;
};

/// Requests of all kinds, and frees of earlier ones, some twice and some inside of a block.
std::vector<call> drawn_calls(u32 count, u64 seed) {
  random_sequence random{seed};
  constexpr u64 sizes[] = {0,    1,    16,    17,    48,    100,   1000,  4096,   5000,
                           8192, 8193, 16384, 16385, 20000, 40000, 65536, 200000, 1u << 20};
  constexpr u64 alignments[] = {1, 16, 64, 256, 4096, 16384, 32768, 65536, 1u << 20};
  std::vector<call> calls;
  while (calls.size() < count) {
    call next;
    // Fills up, then empties, in turn.
    next.asks = calls.empty() || random.below(8) < (calls.size() / 64 % 2 == 0 ? 6 : 3);
    if (next.asks) {
      next.bytes = random.below(40) == 0 ? ~u64{0} >> random.below(3) : sizes[random.below(18)];
      if (random.below(3) == 0) next.alignment = alignments[random.below(9)];
    } else {
      do next.frees = random.below(static_cast<u32>(calls.size()));
      while (!calls[next.frees].asks);
      next.beyond = random.below(16) == 0 ? 8 : 0;
    }
    calls.push_back(next);
  }
  return calls;
}

void expect_as_the_model(u32 slabs, u32 count) {
  tiny_pool const pool{slabs};
  auto const calls = drawn_calls(count, test::schedule_seed() * 10 + slabs);
  device_buffer<call> const list{calls};
  device_buffer<answer> const answers(count);
  launch({1, 1}, call_in_order{}, pool.allocator(), static_cast<call const*>(list.data()), count, answers.data());
  synchronize();
  auto const said = answers.to_host();
  u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool());
  model expected{begin, slabs};
  u64 refused = 0, misuses = 0;
  for (u32 i = 0; i < count; ++i) {
    call const& now = calls[i];
    SCOPED_TRACE(testing::Message() << "call " << i << ", " << now.bytes << " bytes at " << now.alignment);
    if (!now.asks) {
      u64 const address = said[now.frees].address + now.beyond;
      if (address != 0 && !expected.is_live(address)) ++misuses;
      else expected.remove(address);
      continue;
    }
    u64 const address = said[i].address;
    if (now.bytes == 0) {
      ASSERT_EQ(address, 0u);
      continue;
    }
    bool const is_run = expected.is_run(now.bytes, now.alignment);
    if (is_run) {
      ASSERT_EQ(address, expected.lowest_run(now.bytes, now.alignment));
    } else {
      u64 const size = expected.size_of(now.bytes, now.alignment);
      ASSERT_EQ(address != 0, expected.slots(size) != 0);
    }
    refused += address == 0;
    ASSERT_EQ(said[i].owned, address != 0);
    u64 const size = address == 0 ? 0 : expected.size_of(now.bytes, now.alignment);
    ASSERT_EQ(said[i].usable, size);
    if (address == 0) continue;
    ASSERT_TRUE(address >= begin && address + size <= begin + slabs * slab_bytes);
    ASSERT_TRUE(expected.is_free(address, size));
    ASSERT_EQ(address % std::max<u64>(now.alignment, 16), 0u);
    expected.add(address, size);
  }
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  auto const counts = pool.allocator().snapshot().statistics();
  EXPECT_EQ(counts.live_blocks, expected.blocks());
  EXPECT_EQ(counts.live_bytes, expected.bytes());
  EXPECT_EQ(counts.failures, refused);
  EXPECT_EQ(counts.double_frees + counts.foreign_frees, misuses);
  for (u64 const bytes :
       {u64{0}, u64{16}, u64{100}, u64{1000}, u64{8192}, u64{8193}, u64{16384}, u64{16385}, u64{40000}, ~u64{0}})
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), bytes == ~u64{0} ? 0 : expected.slots(bytes)) << bytes;
}

TEST(SlabBitmap, AnswersAsTheLiveBlocksSay) {
  for (u32 const slabs : {1u, 2u, 9u, 70u})
    test::for_each_schedule(16, [&] { expect_as_the_model(slabs, slabs < 70 ? 300 : 600); });
}

struct ask_where_the_pool_is {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 const* addresses, u32 count, u32* contained) const {
    for (u32 i = 0; i < count; ++i) contained[i] = heap.contains(reinterpret_cast<void const*>(addresses[i]));
  }
};

TEST(SlabBitmap, ContainsThePoolAndNothingElse) {
  tiny_pool const pool{3};
  u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool()), end = begin + 3 * slab_bytes;
  std::vector<u64> const addresses{0, begin - 1, begin, begin + 20000, end - 1, end, end + 1};
  device_buffer<u64> const list{addresses};
  device_buffer<u32> const contained(addresses.size());
  launch({1, 1}, ask_where_the_pool_is{}, pool.allocator(), static_cast<u64 const*>(list.data()),
         static_cast<u32>(addresses.size()), contained.data());
  synchronize();
  EXPECT_EQ(contained.to_host(), (std::vector<u32>{0, 0, 1, 1, 1, 0, 0}));
}

/// The lanes of a mask ask together, each for its own size.
struct ask_as_a_warp {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, lane_mask mask, u64 const* sizes, answer* answers) const {
    u32 const lane = simt::lane_id();
    if ((mask >> lane & 1) == 0) return;
    void* const block = heap.create_warp(mask, sizes[lane]);
    answers[lane] = {reinterpret_cast<u64>(block), heap.usable_size(block), heap.owns(block)};
  }
};

TEST(SlabBitmap, ServesEachLaneOfAWarpItsOwnSize) {
  test::for_each_schedule(40, [] {
    constexpr u32 slabs = warp_lanes + 8;
    tiny_pool const pool{slabs};
    random_sequence random{test::schedule_seed()};
    constexpr u64 all_sizes[] = {0, 1, 16, 16, 64, 64, 64, 1000, 8192, 16384, 16385, 40000};
    std::vector<u64> sizes(warp_lanes);
    for (auto& size : sizes) size = all_sizes[random.below(12)];
    lane_mask const mask = test::schedule_seed() % 3 == 0 ? full_mask : static_cast<lane_mask>(mix(random.next())) | 2;
    device_buffer<u64> const list{sizes};
    device_buffer<answer> const answers(warp_lanes);
    launch({1, warp_lanes}, ask_as_a_warp{}, pool.allocator(), mask, static_cast<u64 const*>(list.data()),
           answers.data());
    synchronize();
    auto const said = answers.to_host();
    u64 const begin = reinterpret_cast<u64>(pool.allocator().table().pool());
    model live{begin, slabs};
    for (u32 lane = 0; lane < warp_lanes; ++lane) {
      bool const asks = (mask >> lane & 1) != 0 && sizes[lane] != 0;
      if (!asks) {
        EXPECT_EQ(said[lane].address, 0u);
        continue;
      }
      // Runs of all lanes have more slabs than there are, at worst: only those may be refused.
      if (said[lane].address == 0 && sizes[lane] > slab_bytes) continue;
      u64 const size = live.size_of(sizes[lane], 1);
      EXPECT_EQ(said[lane].usable, size);
      EXPECT_TRUE(live.is_free(said[lane].address, size));
      live.add(said[lane].address, size);
    }
    pool.expect_quiet(live.blocks());
  });
}

}  // namespace slab_bitmap_test
