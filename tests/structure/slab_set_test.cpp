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

/// Every lane takes a slab out, holds it alone for a moment, and puts it back.
struct take_and_put {
  WARPHEAP_DEVICE void operator()(u64* words, u32 slabs, u32 rounds, u32* owners, u32* counts) const {
    slab_set const set{words, slabs};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const slab = set.find(random.below(slabs));
      if (slab == slab_set::none || !set.remove(slab)) continue;
      // relaxed exchange would do for ownership; the plain increment rests on the set's release and
      // acquire.
      owners[slab] += 1;
      atomic_ref<u32>{counts[0]}.fetch_add(1, order::relaxed);
      simt::pause(1);
      set.add(slab);
    }
  }
};

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
