// SPDX-License-Identifier: Apache-2.0
// Lanes claim and release the blocks of a few words at once: no block ever has two owners.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/structure/bitmap.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

/// Claims until every word is full; `owners[block]` counts how often a block was handed out.
struct claim_all {
  WARPHEAP_DEVICE void operator()(u64* words, u32 word_count, u64 valid, u32* owners) const {
    random_sequence random{global_thread_index()};
    auto const first = random.below(word_count);
    for (u32 i = 0; i < word_count; ++i) {
      auto const word = (first + i) % word_count;
      while (u64 got = bitmap{words}.claim(word, 1 + random.below(8), valid)) {
        for (; got != 0; got &= got - 1) {
          atomic_ref<u32>{owners[64 * word + lowest_bit(got)]}.fetch_add(1, order::relaxed);
        }
      }
    }
  }
};

// bitmap.M1, bitmap.M2
TEST(Bitmap, ClaimsEachFreeBlockOnce) {
  constexpr u32 word_count = 3;
  constexpr u64 valid = 0x0000'7fff'ffff'fff1;
  for_each_schedule(50, [&] {
    device_buffer<u64> words(word_count);
    device_buffer<u32> owners(64 * word_count);
    launch({2, 48}, claim_all{}, words.data(), word_count, valid, owners.data());
    synchronize();
    for (auto const word : words.to_host()) EXPECT_EQ(word, valid);
    auto const owned = owners.to_host();
    for (u32 block = 0; block < owned.size(); ++block) {
      ASSERT_EQ(owned[block], valid >> block % 64 & 1) << "block of memory " << block;
    }
  });
}

/// One lane claims what it can of one word and says what it got.
struct claim_once {
  WARPHEAP_DEVICE void operator()(u64* word, u32 wanted, u64 valid, u64* got) const {
    *got = bitmap{word}.claim(0, wanted, valid);
  }
};

TEST(Bitmap, ClaimTakesTheLowestFreeBlocksUpToTheWantedNumber) {
  device_buffer<u64> word(std::vector<u64>{0b0011'0101});
  device_buffer<u64> got(1);
  launch({1, 1}, claim_once{}, word.data(), 3u, u64{0xff}, got.data());
  EXPECT_EQ(got[0], 0b0100'1010u);
  launch({1, 1}, claim_once{}, word.data(), 64u, u64{0xff}, got.data());
  EXPECT_EQ(got[0], 0b1000'0000u);
  launch({1, 1}, claim_once{}, word.data(), 1u, u64{0xff}, got.data());
  EXPECT_EQ(got[0], 0u);
  EXPECT_EQ(word[0], 0xffu);
}

/// Every lane releases all blocks of a word and counts what the release says it cleared.
struct release_all {
  WARPHEAP_DEVICE void operator()(u64* words, u32* cleared) const {
    auto const really = bitmap{words}.release(0, ~u64{0});
    atomic_ref<u32>{*cleared}.fetch_add(popcount(really), order::relaxed);
  }
};

TEST(Bitmap, ADoubleFreeIsSeenByAllButOne) {
  for_each_schedule(50, [&] {
    device_buffer<u64> words(std::vector<u64>{0xf0f0});
    device_buffer<u32> cleared(1);
    launch({2, 40}, release_all{}, words.data(), cleared.data());
    synchronize();
    EXPECT_EQ(cleared[0], 8u);
    EXPECT_EQ(words[0], 0u);
  });
}

/// Owners count in their block without atomics, so a second owner, or a stale view of the block,
/// loses a count.
template <class Bitmap>
struct count_in_owned_blocks {
  WARPHEAP_DEVICE void operator()(u64* words, u32 rounds, u32* blocks, u32* uses) const {
    Bitmap const taken{words};
    for (u32 done = 0; done < rounds;) {
      auto const got = taken.claim(0, 2, 0b111);
      if (got == 0) simt::pause(20);
      for (u64 rest = got; rest != 0; rest &= rest - 1, ++done) {
        atomic_ref<u32> const block{blocks[lowest_bit(rest)]};
        block.store(block.load(order::relaxed) + 1, order::relaxed);
        atomic_ref<u32>{*uses}.fetch_add(1, order::relaxed);
      }
      if (got != 0) taken.release(0, got);
    }
  }
};

/// Whether all counts are there after all owners are done.
template <class Bitmap>
bool keeps_counts() {
  device_buffer<u64> words(1);
  device_buffer<u32> blocks(3);
  device_buffer<u32> uses(1);
  launch({2, 4}, count_in_owned_blocks<Bitmap>{}, words.data(), 4u, blocks.data(), uses.data());
  synchronize();
  return words[0] == 0 && uses[0] >= 32 && blocks[0] + blocks[1] + blocks[2] == uses[0];
}

// bitmap.M3
TEST(Bitmap, WhatAnOwnerDidHappensBeforeTheNextOwner) {
  for_each_schedule(200, [] { EXPECT_TRUE(keeps_counts<bitmap>()); });
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// The bitmap with a weaker release: what was done to a block may be seen late by its next owner.
struct bitmap_without_release : bitmap {
  WARPHEAP_DEVICE u64 release(u32 word, u64 mask) const {
    return mask & atomic_ref<u64>{words[word]}.fetch_and(~mask, order::relaxed);
  }
};

TEST(Bitmap, ADroppedReleaseIsCaught) {
  EXPECT_TRUE(find_failing_schedule(200, keeps_counts<bitmap_without_release>).has_value());
}
#endif

}  // namespace
