// The index under many lanes: exact at rest by toggling, an upper bound at rest by setting and clearing, and found
// whatever the neighbours do.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/structure/bitmap_index.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

static_assert(bitmap_index::levels_for(1) == 1 && bitmap_index::words_for(1) == 1);
static_assert(bitmap_index::levels_for(512) == 1 && bitmap_index::words_for(512) == 8);
static_assert(bitmap_index::levels_for(513) == 2 && bitmap_index::words_for(513) == 9 + 1);
static_assert(bitmap_index::levels_for(1u << 15) == 2 && bitmap_index::words_for(1u << 15) == 512 + 8);
static_assert(bitmap_index::levels_for(1u << 21) == 3 && bitmap_index::levels_for((1u << 21) + 1) == 4);
static_assert(bitmap_index::words_for(bitmap_index::max_items) == (1u << 18) + (1u << 12) + 64 + 1);

/// The words of an index in which `in` are set, summaries exact; made on the host.
std::vector<u64> index_words(u32 items, std::vector<u32> const& in) {
  std::vector<u64> words(bitmap_index::words_for(items));
  for (auto item : in) {
    u32 base = 0;
    for (u32 depth = 0; depth < bitmap_index::levels_for(items); ++depth, item /= 64) {
      words[base + item / 64] |= u64{1} << item % 64;
      base += bitmap_index::level_words(items, depth);
    }
  }
  return words;
}

// --- find -----------------------------------------------------------------------------------------------------------

/// Lane i searches from starts[i].
struct find_from {
  WARPHEAP_DEVICE void operator()(u64* words, u32 items, u32 const* starts, u32 searches, u32* found) const {
    auto const i = global_thread_index();
    if (i < searches) found[i] = bitmap_index{words, items}.find(starts[i]);
  }
};

std::vector<u32> find_all(std::vector<u64> const& words, u32 items, std::vector<u32> const& starts) {
  device_buffer<u64> on_device(words);
  device_buffer<u32> from(starts);
  device_buffer<u32> found(starts.size());
  launch(shape_for(starts.size(), 64), find_from{}, on_device.data(), items, from.data(),
         static_cast<u32>(starts.size()), found.data());
  synchronize();
  return found.to_host();
}

/// The first of the sorted items `in` at or cyclically after `start`.
u32 next_of(std::vector<u32> const& in, u32 start) {
  if (in.empty()) return bitmap_index::none;
  auto const next = std::lower_bound(in.begin(), in.end(), start);
  return next == in.end() ? in.front() : *next;
}

constexpr u32 sizes[] = {1, 63, 64, 65, 512, 513, 4'097, 32'768, 32'769, 300'000, (1u << 21) + 1, 1u << 24};

/// The items, and where to search from: the ends, the items' neighbours, and random places.
struct sample {
  std::vector<u32> in, starts;
};

sample draw_sample(u32 items, u32 set_items, random_sequence& random) {
  sample drawn;
  for (u32 i = 0; i < set_items; ++i) drawn.in.push_back(random.below(items));
  std::sort(drawn.in.begin(), drawn.in.end());
  drawn.in.erase(std::unique(drawn.in.begin(), drawn.in.end()), drawn.in.end());
  drawn.starts = {0, items - 1};
  for (u32 i = 0; i < 40; ++i) drawn.starts.push_back(random.below(items));
  for (u32 i = 0; i < std::min<size_t>(drawn.in.size(), 20); ++i) {
    drawn.starts.push_back(drawn.in[i]);
    drawn.starts.push_back(drawn.in[i] + 1 < items ? drawn.in[i] + 1 : 0);
  }
  return drawn;
}

TEST(BitmapIndex, FindsTheNextItemFromEverywhereAtEverySize) {
  random_sequence random{4};
  for (u32 const items : sizes) {
    for (u32 const set_items : {0u, 1u, 3u, 200u}) {
      auto const [in, starts] = draw_sample(items, set_items, random);
      auto const found = find_all(index_words(items, in), items, starts);
      for (u32 i = 0; i < starts.size(); ++i) {
        ASSERT_EQ(found[i], next_of(in, starts[i])) << items << " items, " << in.size() << " in, from " << starts[i];
      }
    }
  }
}

TEST(BitmapIndex, SearchPassesOverSummaryBitsWithNothingBelow) {
  random_sequence random{5};
  for (u32 const items : {64u, 4'097u, 32'769u, 300'000u}) {
    for (u32 const set_items : {0u, 2u}) {
      auto const [in, starts] = draw_sample(items, set_items, random);
      auto words = index_words(items, in);
      // All summary bits that stand for a word are set, as if every item had been here a moment ago.
      auto base = bitmap_index::level_words(items, 0);
      for (u32 depth = 1; depth < bitmap_index::levels_for(items); ++depth) {
        for (u32 bit = 0; bit < bitmap_index::level_words(items, depth - 1); ++bit) {
          words[base + bit / 64] |= u64{1} << bit % 64;
        }
        base += bitmap_index::level_words(items, depth);
      }
      auto const found = find_all(words, items, starts);
      for (u32 i = 0; i < starts.size(); ++i) {
        ASSERT_EQ(found[i], next_of(in, starts[i])) << items << " items, " << in.size() << " in, from " << starts[i];
      }
    }
  }
}

// --- toggle ---------------------------------------------------------------------------------------------------------

/// Toggles items one after the other, and says what each saw around it. One lane.
struct toggle_in_order {
  WARPHEAP_DEVICE void operator()(u64* words, u32 items, u32 const* order_of, u32 toggles, u64* seen) const {
    for (u32 i = 0; i < toggles; ++i) seen[i] = bitmap_index{words, items}.toggle(order_of[i]);
  }
};

TEST(BitmapIndex, ToggleTellsWhatWasAroundTheItem) {
  u32 const items = 40'000;
  // Words that become empty and come back, so that the levels above change too.
  device_buffer<u32> const order_of(std::vector<u32>{64, 127, 64, 65, 127, 65, 5, 64, 39'999});
  device_buffer<u64> const words(bitmap_index::words_for(items)), seen(order_of.size());
  launch({1, 1}, toggle_in_order{}, words.data(), items, static_cast<u32 const*>(order_of.data()),
         static_cast<u32>(order_of.size()), seen.data());
  synchronize();
  u64 const first = 1, second = 2, last = u64{1} << 63;
  EXPECT_EQ(seen.to_host(), (std::vector<u64>{0, first, first | last, last, second | last, second, 0, 0, 0}));
}

/// Lanes put items in and out, `flags` saying whose turn it is, and toggle the index after the flag, however late.
template <class Index>
struct toggle_by_flag {
  WARPHEAP_DEVICE void operator()(u64* words, u32 items, u32 stride, u32 range, u32 rounds, u64* flags) const {
    Index const index{words, items};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      auto const item = stride * random.below(range);
      atomic_ref<u64>{flags[item / 64]}.fetch_xor(u64{1} << item % 64, order::relaxed);
      index.toggle(item);
    }
  }
};

/// Whether the index is exact after lanes have toggled `range` items, `stride` apart.
template <class Index>
bool toggles_to_rest(u32 items, u32 stride, u32 range, launch_shape shape) {
  device_buffer<u64> words(bitmap_index::words_for(items));
  device_buffer<u64> flags(bitmap_index::level_words(items, 0));
  launch(shape, toggle_by_flag<Index>{}, words.data(), items, stride, range, 5u, flags.data());
  synchronize();
  auto const at_rest = words.to_host();
  auto const wanted = flags.to_host();
  auto const is_in = [&](u32 item) { return (wanted[item / 64] >> item % 64 & 1) != 0; };
  return bitmap_index::is_exact(at_rest.data(), items, is_in);
}

TEST(BitmapIndex, TogglesLeaveItExactAtRest) {
  // Few items of one word, so that it is often emptied and filled; then one item a word, so that summaries are.
  for_each_schedule(100, [] { EXPECT_TRUE((toggles_to_rest<bitmap_index>(600, 1, 3, {2, 8}))); });
  for_each_schedule(100, [] { EXPECT_TRUE((toggles_to_rest<bitmap_index>(40'000, 64, 2, {2, 8}))); });
  for_each_schedule(20, [] { EXPECT_TRUE((toggles_to_rest<bitmap_index>(40'000, 4'096, 9, {3, 40}))); });
}

#if !defined(__CUDACC__)
/// The index with a summary that is set and cleared in place of toggled.
class index_with_assigned_summary {
 public:
  WARPHEAP_DEVICE index_with_assigned_summary(u64* words, u32 items)
      : words_{words}, summary_{words + bitmap_index::level_words(items, 0)} {}

  WARPHEAP_DEVICE void toggle(u32 item) const {
    auto const bit = u64{1} << item % 64;
    auto const old = atomic_ref<u64>{words_[item / 64]}.fetch_xor(bit, order::relaxed);
    auto const word = u64{1} << item / 64 % 64;
    atomic_ref<u64> const summary{summary_[item / 64 / 64]};
    if (old == 0) summary.fetch_or(word, order::relaxed);
    if (old == bit) summary.fetch_and(~word, order::relaxed);
  }

 private:
  u64* words_;
  u64* summary_;
};

TEST(BitmapIndex, AnAssignedSummaryIsCaught) {
  auto const sound = [] { return toggles_to_rest<index_with_assigned_summary>(600, 1, 3, {2, 8}); };
  EXPECT_TRUE(test::find_failing_schedule(200, sound).has_value());
}
#endif

// --- set and clear --------------------------------------------------------------------------------------------------

/// Every lane has an item of its own, `stride` apart, that it puts in and out; odd lanes leave theirs in.
template <class Index>
struct set_and_clear_own {
  WARPHEAP_DEVICE void operator()(u64* words, u32 items, u32 stride, u32 rounds) const {
    Index const index{words, items};
    auto const item = stride * static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      index.set(item);
      index.clear(item);
    }
    if (global_thread_index() % 2 == 1) index.set(item);
  }
};

/// Whether the index is an upper bound after lanes have put their own items, `stride` apart, in and out.
template <class Index>
bool sets_to_rest(u32 items, u32 stride, launch_shape shape) {
  device_buffer<u64> words(bitmap_index::words_for(items));
  launch(shape, set_and_clear_own<Index>{}, words.data(), items, stride, 3u);
  synchronize();
  auto const at_rest = words.to_host();
  auto const stayed = [&](u32 item) {
    return item % stride == 0 && item / stride < shape.blocks * shape.threads && item / stride % 2 == 1;
  };
  return bitmap_index::is_upper_bound(at_rest.data(), items, stayed);
}

TEST(BitmapIndex, SetsAndClearsLeaveAnUpperBoundAtRest) {
  for_each_schedule(100, [] { EXPECT_TRUE(sets_to_rest<bitmap_index>(600, 1, {2, 2})); });
  for_each_schedule(100, [] { EXPECT_TRUE(sets_to_rest<bitmap_index>(40'000, 64, {2, 2})); });
  for_each_schedule(20, [] { EXPECT_TRUE(sets_to_rest<bitmap_index>(40'000, 64, {3, 40})); });
}

#if !defined(__CUDACC__)
/// The index whose clear does not look at the word again after it has cleared the summary.
class index_without_second_look {
 public:
  WARPHEAP_DEVICE index_without_second_look(u64* words, u32 items)
      : index_{words, items}, words_{words}, summary_{words + bitmap_index::level_words(items, 0)} {}

  WARPHEAP_DEVICE void set(u32 item) const { index_.set(item); }
  WARPHEAP_DEVICE void clear(u32 item) const {
    auto const bit = u64{1} << item % 64;
    auto const old = atomic_ref<u64>{words_[item / 64]}.fetch_and(~bit, order::relaxed);
    if (old != bit) return;
    atomic_ref<u64>{summary_[item / 64 / 64]}.fetch_and(~(u64{1} << item / 64 % 64), order::acquire);
  }

 private:
  bitmap_index index_;
  u64* words_;
  u64* summary_;
};

TEST(BitmapIndex, AClearWithoutSecondLookIsCaught) {
  auto const sound = [] { return sets_to_rest<index_without_second_look>(600, 1, {2, 2}); };
  EXPECT_TRUE(test::find_failing_schedule(200, sound).has_value());
}
#endif

// --- find beside changes --------------------------------------------------------------------------------------------

/// The first thread block changes every item but one that stays in; the second searches.
struct search_beside_changes {
  WARPHEAP_DEVICE void operator()(u64* words, u32 items, u32 stays, u32 rounds, u32* missed) const {
    bitmap_index const index{words, items};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      auto const item = 64 * (stays / 64) + random.below(3) * 64 + random.below(2);
      if (simt::block_index() != 0) {
        auto const found = index.find(random.below(items)) != bitmap_index::none;
        if (!found) atomic_ref<u32>{*missed}.fetch_add(1, order::relaxed);
      } else if (item != stays) {
        index.toggle(item);
      }
    }
  }
};

TEST(BitmapIndex, AnItemThatStaysInIsFoundWhateverItsNeighboursDo) {
  constexpr u32 items = 5'000, stays = 64 * 40;
  for_each_schedule(100, [&] {
    device_buffer<u64> words(index_words(items, {stays}));
    device_buffer<u32> missed(1);
    launch({2, 6}, search_beside_changes{}, words.data(), items, stays, 8u, missed.data());
    synchronize();
    EXPECT_EQ(missed[0], 0u);
  });
}

}  // namespace
