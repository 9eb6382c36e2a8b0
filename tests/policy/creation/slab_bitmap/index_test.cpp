// SPDX-License-Identifier: Apache-2.0
// Indexes of slabs: each holds the slabs that it should, whatever lanes do at once, and `find`
// names one of them from any start, in pools of any size.
#include "warpheap/policy/creation/slab_bitmap/index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace slab_bitmap_index_test {

using namespace warpheap;
using slab_bitmap_parts::slab_index;

/// The slabs whose bits are set in the words of an index.
std::vector<u32> slabs_in(std::vector<u64> const& words, u32 slabs) {
  std::vector<u32> in;
  for (u32 slab = 0; slab < slabs; ++slab)
    if (words[slab / 64] >> (slab % 64) & 1) in.push_back(slab);
  return in;
}

/// slab.X2: a summary bit is set if and only if its word is not zero; and no bit lies beyond the
/// slabs.
bool has_exact_summary(std::vector<u64> const& words, u32 slabs) {
  u32 const width = slab_index::width(slabs);
  for (u32 at = 0; at < 64 * slab_index::width(width); ++at)
    if ((words[width + at / 64] >> (at % 64) & 1) != (at < width && words[at] != 0 ? 1u : 0u)) return false;
  return true;
}

/// Each lane updates all slabs of the list, each as often as its number in the list says, and
/// begins at another one.
struct xor_all {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32 const* list, u32 count) const {
    slab_index const index{words, slabs};
    for (u32 i = 0; i < count; ++i) {
      u32 const at = static_cast<u32>(i + 7 * global_thread_index()) % count;
      for (u32 times = at % 3; times != 0; --times) index.xor_bit(list[at]);
    }
  }
};

// slab.X1, slab.X2
TEST(SlabBitmapIndex, HoldsTheSlabsToggledAnOddNumberOfTimes) {
  random_sequence random{3};
  for (u32 const slabs : {1u, 64u, 130u, 4097u, 9000u}) {
    std::vector<u32> list;
    for (u32 i = 0; i < 24; ++i) list.push_back(random.below(slabs));
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    u32 const count = static_cast<u32>(list.size());
    for (launch_shape const shape : {launch_shape{1, 1}, {3, 1}, {2, 2}})
      test::for_each_schedule(12, [&] {
        device_buffer<u64> const words(slab_index::words_for(slabs));
        device_buffer<u32> const places{list};
        launch(shape, xor_all{}, words.data(), slabs, static_cast<u32 const*>(places.data()), count);
        synchronize();
        u32 const lanes = shape.blocks * shape.threads;
        std::vector<u32> expected;
        for (u32 i = 0; i < count; ++i)
          if (lanes * (i % 3) % 2 != 0) expected.push_back(list[i]);
        EXPECT_EQ(slabs_in(words.to_host(), slabs), expected);
        EXPECT_TRUE(has_exact_summary(words.to_host(), slabs));
      });
  }
}

/// Two lanes a slab: each sets and clears the bits of its slabs; lane 0 of the two clears last.
struct set_and_clear {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* wrong) const {
    slab_index const index{words, slabs};
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 slab = me; slab < slabs; slab += simt::grid_dim() * simt::block_dim()) {
      u64 const bit = u64{1} << (slab % 64);
      index.set(slab);
      index.set(slab);
      if ((index.newest(slab) & bit) == 0 || (index.load(slab) & bit) == 0) *wrong = 1;
      index.clear(slab, order::relaxed);
      index.clear(slab, order::relaxed);
      if ((index.newest(slab) & bit) != 0 || (index.load(slab) & bit) != 0) *wrong = 1;
      if (slab % 3 == 0) index.set(slab);
    }
  }
};

TEST(SlabBitmapIndex, HoldsTheSlabsSetLast) {
  constexpr u32 slabs = 200;
  for (launch_shape const shape : {launch_shape{1, 1}, {3, 1}, {2, 2}})
    test::for_each_schedule(24, [&] {
      device_buffer<u64> const words(slab_index::words_for(slabs));
      device_buffer<u32> const wrong(1);
      launch(shape, set_and_clear{}, words.data(), slabs, wrong.data());
      synchronize();
      std::vector<u32> expected;
      for (u32 slab = 0; slab < slabs; slab += 3) expected.push_back(slab);
      EXPECT_EQ(slabs_in(words.to_host(), slabs), expected);
      EXPECT_EQ(wrong[0], 0u);
    });
}

/// slab.X3 at rest: a word that is not zero has its summary bit, and no thread holds C.
bool has_safe_summary(std::vector<u64> const& words, u32 slabs) {
  u32 const width = slab_index::width(slabs), each = slab_index::words_a_summary;
  for (u32 at = 0; at < width; ++at)
    if (words[at] != 0 && (words[width + at / each] >> (at % each) & 1) == 0) return false;
  for (u32 i = 0; i < slab_index::summaries(slabs); ++i)
    if (words[width + i] >> each != 0) return false;
  return true;
}

/// Each lane sets and clears slabs of its own, and clears summaries of words that it sees empty.
/// One slab of three is in at the end.
struct set_and_clear_stale {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* wrong) const {
    slab_index const index{words, slabs};
    u32 const lanes = simt::grid_dim() * simt::block_dim();
    for (u32 round = 0; round < 2; ++round)
      for (u32 slab = static_cast<u32>(global_thread_index()); slab < slabs; slab += lanes) {
        index.set(slab);
        index.tell(slab);
        // Ours is in, and the call that made it so has returned.
        if (!index.may_name_any(true)) *wrong = 1;
        if (slab % 3 == 0 && round == 1) continue;
        index.clear(slab, order::relaxed);
        if (index.newest(slab) == 0) index.clear_stale_word(slab / 64);
      }
  }
};

// slab.X3
TEST(SlabBitmapIndex, ItsSummaryNamesEveryWordThatIsNotEmpty) {
  for (u32 const slabs : {3u, 65u, 66u, 130u, 2049u})
    for (launch_shape const shape : {launch_shape{1, 1}, {1, 3}, {3, 1}, {2, 2}})
      test::for_each_schedule(slabs < 200 ? 200 : 4, [&] {
        device_buffer<u64> const words(slab_index::words_for(slabs));
        device_buffer<u32> const wrong(1);
        launch(shape, set_and_clear_stale{}, words.data(), slabs, wrong.data());
        synchronize();
        EXPECT_EQ(slabs_in(words.to_host(), slabs).size(), (slabs + 2) / 3);
        EXPECT_TRUE(has_safe_summary(words.to_host(), slabs));
        EXPECT_EQ(wrong[0], 0u);
      });
}

struct clear_each_word {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* named) const {
    slab_index const index{words, slabs};
    named[0] = index.may_name_any(true);
    for (u32 at = 0; at < slab_index::width(slabs); ++at) index.clear_stale_word(at);
    named[1] = index.may_name_any(true);
    named[2] = index.may_name_any(false);
  }
};

TEST(SlabBitmapIndex, ClearsSummariesOfEmptyWordsAndNoOthers) {
  for (u32 const slabs : {1u, 64u, 2048u, 2049u, 9000u})
    for (bool const is_empty : {true, false}) {
      u32 const width = slab_index::width(slabs);
      std::vector<u64> held(slab_index::words_for(slabs));
      if (!is_empty) held[width - 1] = 1;
      for (u32 at = 0; at < width; ++at)
        held[width + at / slab_index::words_a_summary] |= u64{1} << (at % slab_index::words_a_summary);
      device_buffer<u64> const words{held};
      device_buffer<u32> const named(3);
      launch({1, 1}, clear_each_word{}, words.data(), slabs, named.data());
      synchronize();
      EXPECT_EQ(named.to_host(), (std::vector<u32>{1, !is_empty, !is_empty})) << slabs;
      EXPECT_TRUE(has_safe_summary(words.to_host(), slabs));
    }
}

struct find_from_everywhere {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32* found) const {
    slab_index const index{words, slabs};
    for (u64 start = global_thread_index(); start < slabs; start += 64)
      found[start] = index.find(static_cast<u32>(start));
  }
};

std::vector<u32> found_from_everywhere(std::vector<u64> const& words, u32 slabs) {
  device_buffer<u64> const index{words};
  device_buffer<u32> const found(slabs);
  launch({1, 64}, find_from_everywhere{}, index.data(), slabs, found.data());
  synchronize();
  return found.to_host();
}

/// Words in which the slabs of `in` are set, and the summary bits of their words and of `others`.
std::vector<u64> index_of(u32 slabs, std::vector<u32> const& in, std::vector<u32> const& others = {}) {
  u32 const width = slab_index::width(slabs);
  std::vector<u64> words(slab_index::words_for(slabs));
  auto const name = [&](u32 at) { words[width + at / 64] |= u64{1} << (at % 64); };
  for (u32 const slab : in) {
    words[slab / 64] |= u64{1} << (slab % 64);
    name(slab / 64);
  }
  for (u32 const at : others) name(at);
  return words;
}

/// The bit of `word` that comes first from bit `start % 64` on and around.
u32 first_around(u64 word, u32 start) { return (start + lowest_bit(rotate_left(word, 0 - start))) % 64; }

/// The slab that `find` is to name: of the start's own word; else of the first word that is not
/// empty, groups of 64 words from the start's own on and around, in each group words in the same
/// way. A group's words are looked at only if the summary names them.
u32 expected_from(std::vector<u64> const& words, u32 slabs, u32 start) {
  u32 const width = slab_index::width(slabs), groups = slab_index::width(width);
  if (u64 const own = words[start / 64]) return start / 64 * 64 + first_around(own, start);
  for (u32 turn = 0; turn < groups && turn < 16; ++turn) {
    u32 const group = (start / 4096 + turn) % groups;
    for (u32 i = 0; i < 64; ++i) {
      u32 const at = 64 * group + (start / 64 + i) % 64;
      if (at < width && words[at] != 0) return 64 * at + first_around(words[at], start);
    }
  }
  return slab_index::none;
}

TEST(SlabBitmapIndex, FindsTheNextWordThatIsNotEmpty) {
  random_sequence random{11};
  for (u32 const slabs : {1u, 63u, 65u, 200u, 4096u, 4097u, 9000u, 70000u})
    for (u32 const count : {0u, 1u, 2u, 5u}) {
      std::vector<u32> in, empty_words;
      for (u32 i = 0; i < count; ++i) in.push_back(random.below(slabs));
      // The summary is a hint: words may have become empty since.
      for (u32 i = 0; i < count; ++i) empty_words.push_back(random.below(slab_index::width(slabs)));
      auto const words = index_of(slabs, in, empty_words);
      auto const found = found_from_everywhere(words, slabs);
      for (u32 start = 0; start < slabs; start += slabs < 10000 ? 1 : 23)
        ASSERT_EQ(found[start], expected_from(words, slabs, start)) << slabs << " slabs from " << start;
    }
}

// So lanes that start at different places do not all fight for one slab.
TEST(SlabBitmapIndex, DifferentStartsLeadToDifferentSlabs) {
  for (u32 const slabs : {64u, 640u, 9000u}) {
    std::vector<u32> all;
    for (u32 slab = 0; slab < slabs; ++slab) all.push_back(slab);
    auto const found = found_from_everywhere(index_of(slabs, all), slabs);
    for (u32 start = 0; start < slabs; ++start) ASSERT_EQ(found[start], start);
  }
}

}  // namespace slab_bitmap_index_test
