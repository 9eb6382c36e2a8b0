// SPDX-License-Identifier: Apache-2.0
// Sets of slabs: a slab that is put in can be found and is taken out once, whatever others do
// meanwhile.
#include "warpheap/structure/slab_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace slab_set_test {

using namespace warpheap;

struct find_from {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32 const* in, u32 count, u32* found) const {
    slab_set const set{words, slabs};
    for (u32 i = 0; i < count; ++i) set.add(in[i]);
    for (u32 start = 0; start < slabs; ++start) found[start] = set.find(start);
    for (u32 i = 0; i < count; ++i) found[slabs + i] = set.remove(in[i]) + 2 * set.remove(in[i]);
    found[slabs + count] = set.find(0);
  }
};

TEST(SlabSet, FindsTheNextOneAround) {
  random_sequence random{5};
  for (u32 const slabs : {1u, 63u, 64u, 65u, 200u, 4096u, 4097u, 9000u})
    for (u32 const count : {0u, 1u, 2u, 5u}) {
      std::vector<u32> in(count);
      for (auto& slab : in) slab = random.below(slabs);
      std::sort(in.begin(), in.end());
      in.erase(std::unique(in.begin(), in.end()), in.end());
      device_buffer<u64> const words(slab_set::words_for(slabs));
      device_buffer<u32> const list{in.empty() ? std::vector<u32>{0} : in}, found(slabs + count + 1);
      u32 const size = static_cast<u32>(in.size());
      launch({1, 1}, find_from{}, words.data(), slabs, static_cast<u32 const*>(list.data()), size, found.data());
      synchronize();
      auto const answers = found.to_host();
      for (u32 start = 0; start < slabs; ++start) {
        u32 const answer = answers[start];
        if (in.empty()) {
          ASSERT_EQ(answer, slab_set::none);
          continue;
        }
        // Within the start's own word the answer is the next slab; in later words it is any word's
        // first.
        ASSERT_TRUE(std::binary_search(in.begin(), in.end(), answer)) << slabs << " slabs from " << start;
        auto const next = std::lower_bound(in.begin(), in.end(), start);
        bool const here = next != in.end() && *next / 64 == start / 64;
        ASSERT_TRUE(!here || answer == *next) << answer;
      }
      for (u32 i = 0; i < size; ++i) ASSERT_EQ(answers[slabs + i], 1u) << "taken out once";
      ASSERT_EQ(answers[slabs + size], slab_set::none);
      auto const left = words.to_host();
      EXPECT_TRUE(std::all_of(left.begin(), left.end(), [](u64 word) { return word == 0; }));
    }
}

struct add_a_run {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* answers) const {
    slab_set const set{words, slabs};
    set.add_all(3, u64{0b1011} << 60);
    set.add_all(4, 0);
    answers[0] = set.count_near(3 * 64 + 7);
    answers[1] = set.count_near(4 * 64);
    u32 i = 2;
    for (u32 slab = set.find(0); slab != slab_set::none; slab = set.find(0)) {
      answers[i++] = slab;
      set.remove(slab);
    }
    answers[i] = set.count_near(3 * 64);
  }
};

TEST(SlabSet, AddsARunByOneOperation) {
  device_buffer<u64> const words(slab_set::words_for(9000));
  device_buffer<u32> const answers(6);
  launch({1, 1}, add_a_run{}, words.data(), 9000u, answers.data());
  synchronize();
  EXPECT_EQ(answers.to_host(), (std::vector<u32>{3, 0, 3 * 64 + 60, 3 * 64 + 61, 3 * 64 + 63, 0}));
  auto const left = words.to_host();
  EXPECT_TRUE(std::all_of(left.begin(), left.end(), [](u64 word) { return word == 0; }));
}

struct find_from_everywhere {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* found) const {
    slab_set const set{words, slabs};
    for (u64 start = global_thread_index(); start < slabs; start += 64)
      found[start] = set.find(static_cast<u32>(start));
  }
};

/// The first slab of the start's word from `start` on; else the first one of a later word, around
/// to the start's own.
u32 next_around(std::vector<u64> const& words, u32 low_words, u32 start) {
  if (u64 const near = words[start / 64] & ~low_mask(start % 64)) return start / 64 * 64 + lowest_bit(near);
  for (u32 turn = 1; turn <= low_words; ++turn) {
    u32 const at = (start / 64 + turn) % low_words;
    if (words[at] != 0) return 64 * at + lowest_bit(words[at]);
  }
  return slab_set::none;
}

// A summary bit may name a word that is empty by now.
TEST(SlabSet, LooksOnBehindSummaryBitsOfEmptyWords) {
  random_sequence random{17};
  for (u32 const slabs : {64u, 200u, 4096u, 4097u, 9000u})
    for (u32 const count : {0u, 1u, 3u}) {
      u32 const low_words = slab_set::low_words(slabs);
      std::vector<u64> words(slab_set::words_for(slabs));
      auto const name = [&](u32 at) { words[low_words + at / 64] |= u64{1} << (at % 64); };
      for (u32 i = 0; i < low_words; i += 1 + random.below(3)) name(i);
      for (u32 i = 0; i < count; ++i) {
        u32 const slab = random.below(slabs);
        words[slab / 64] |= u64{1} << (slab % 64);
        name(slab / 64);
      }
      device_buffer<u64> const set{words};
      device_buffer<u32> const found(slabs);
      launch({1, 64}, find_from_everywhere{}, set.data(), slabs, found.data());
      synchronize();
      auto const answers = found.to_host();
      for (u32 start = 0; start < slabs; ++start)
        ASSERT_EQ(answers[start], next_around(words, low_words, start)) << slabs << " slabs from " << start;
    }
}

/// Each lane puts slabs of its own into words that it shares with the other lanes, and takes some
/// out again.
struct share_words {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs) const {
    slab_set const set{words, slabs};
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 slab = me; slab < slabs; slab += 64) {
      set.add(slab);
      set.remove(slab);
      if (me != 0) continue;
      set.add_all(slab / 64, 1);
    }
  }
};

// slab_set.S3: a remove that makes a word empty, beside an add that fills it again.
TEST(SlabSet, AWordThatIsNotEmptyIsNamed) {
  for (launch_shape const shape : {launch_shape{2, 1}, {3, 1}, {1, 3}})
    test::for_each_schedule(200, [&] {
      constexpr u32 slabs = 16 * 64;
      device_buffer<u64> const words(slab_set::words_for(slabs));
      launch(shape, share_words{}, words.data(), slabs);
      synchronize();
      EXPECT_TRUE(slab_set::is_upper_bound(words.to_host().data(), slabs));
    });
}

/// Every lane takes a slab out, holds it alone for a moment, and puts it back.
struct take_and_put {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32 rounds, u32* owners, u32* counts) const {
    slab_set const set{words, slabs};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const slab = set.find(random.below(slabs));
      if (slab == slab_set::none || !set.remove(slab)) continue;
      // relaxed, in two steps: the set's release and acquire make it one.
      atomic_ref<u32> const times{owners[slab]};
      times.store(times.load(order::relaxed) + 1, order::relaxed);
      atomic_ref<u32>{counts[0]}.fetch_add(1, order::relaxed);
      simt::pause(1);
      if (round % 2 == 0) set.add(slab);
      else set.add_all(slab / 64, u64{1} << (slab % 64));
    }
  }
};

// slab_set.S1
TEST(SlabSet, HandsEachSlabToOneAtATime) {
  for (u32 const slabs : {1u, 3u, 130u})
    test::for_each_schedule(60, [&] {
      device_buffer<u64> const words(slab_set::words_for(slabs));
      device_buffer<u32> const owners(slabs), counts(1), list(1), found(slabs + 2);
      std::vector<u64> full(words.size());
      for (u32 slab = 0; slab < slabs; ++slab) full[slab / 64] |= u64{1} << (slab % 64);
      full[slab_set::low_words(slabs)] = low_mask(slab_set::low_words(slabs));
      backend::copy_bytes(words.data(), full.data(), 8 * full.size());
      launch({2, 33}, take_and_put{}, words.data(), slabs, 6u, owners.data(), counts.data());
      synchronize();
      u32 sum = 0;
      for (u32 const times : owners.to_host()) sum += times;
      EXPECT_EQ(sum, counts[0]);
      EXPECT_GT(sum, 0u);
      auto const left = words.to_host();
      for (u32 slab = 0; slab < slabs; ++slab) EXPECT_TRUE(slab_set::contains(left.data(), slab));
      EXPECT_TRUE(slab_set::is_upper_bound(left.data(), slabs));
    });
}

}  // namespace slab_set_test
