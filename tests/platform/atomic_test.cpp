// SPDX-License-Identifier: Apache-2.0
// Atomics on whichever backend this is compiled for: every kind of value, operation, order and
// scope.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using test::for_each_schedule;

constexpr unsigned seeds_of_atomics = 12;

template <class T>
struct use_every_atomic {
  WARPHEAP_DEVICE void operator()(T* words, T* olds) const {
    T const one = 1;
    auto const bit = static_cast<T>(one << simt::thread_index());
    olds[simt::thread_index()] = atomic_ref<T>{words[0]}.fetch_add(3, order::relaxed);
    atomic_ref<T>{words[1]}.fetch_sub(2, order::acq_rel);
    atomic_ref<T>{words[2]}.fetch_or(bit, order::release);
    atomic_ref<T>{words[3]}.fetch_and(static_cast<T>(~bit), order::acquire);
    atomic_ref<T>{words[4]}.fetch_xor(bit, order::seq_cst);
    atomic_ref<T, scope::system>{words[5]}.exchange(7, order::acq_rel);
    auto seen = atomic_ref<T>{words[6]}.load(order::acquire);
    while (!atomic_ref<T>{words[6]}.compare_exchange(seen, seen + 5, order::acq_rel, order::relaxed)) {
    }
    atomic_ref<T, scope::block>{words[7]}.store(9, order::seq_cst);
  }
};

template <class T>
void every_atomic_counts_each_lane_once() {
  for_each_schedule(seeds_of_atomics, [] {
    constexpr u32 lanes = sizeof(T) == 4 ? 31 : 63;
    T const bits = (T{1} << lanes) - 1;
    device_buffer<T> words(std::vector<T>{0, 2 * lanes, 0, bits, 0, 0, 0, 0});
    device_buffer<T> olds(lanes);
    launch({1, lanes}, use_every_atomic<T>{}, words.data(), olds.data());
    synchronize();
    EXPECT_EQ(words.to_host(), (std::vector<T>{3 * lanes, 0, bits, 0, bits, 7, 5 * lanes, 9}));
    std::vector<bool> seen(lanes);
    for (T const old : olds.to_host()) {
      ASSERT_TRUE(old % 3 == 0 && old / 3 < lanes && !seen[static_cast<size_t>(old / 3)]);
      seen[static_cast<size_t>(old / 3)] = true;
    }
  });
}

TEST(Atomic, EveryOperationCountsEachLaneOnceIn4Bytes) { every_atomic_counts_each_lane_once<u32>(); }
TEST(Atomic, EveryOperationCountsEachLaneOnceIn8Bytes) { every_atomic_counts_each_lane_once<u64>(); }

/// Each lane adds to its two words by turns, and looks at the words of all in pairs.
struct look_at_pairs {
  WARPHEAP_DEVICE void operator()(u64* words, u32 pairs, u32* faults) const {
    u64* const mine = words + 2 * global_thread_index();
    for (u64 turn = 1; turn <= 4; ++turn) {
      atomic_ref<u64>{mine[0]}.store(turn, order::relaxed);
      atomic_ref<u64>{mine[1]}.store(turn << 32, order::relaxed);
      word_pair const own = load_pair(mine);
      bool fits = own.first == turn && own.second == turn << 32;
      for (u32 i = 0; i < pairs; ++i) {
        word_pair const seen = load_pair(words + 2 * i);
        fits = fits && seen.first <= 4 && seen.second <= u64{4} << 32 && seen.second % (u64{1} << 32) == 0;
      }
      if (!fits) atomic_ref<u32>{*faults}.fetch_add(1, order::relaxed);
    }
  }
};

TEST(Atomic, LoadsTwoWordsByOneCall) {
  for_each_schedule(seeds_of_atomics, [] {
    device_buffer<u64> words(2 * 66);
    device_buffer<u32> faults(1);
    launch({2, 33}, look_at_pairs{}, words.data(), 66u, faults.data());
    synchronize();
    EXPECT_EQ(faults[0], 0u);
  });
}

struct failing_compare_exchange {
  WARPHEAP_DEVICE void operator()(u64* word, u64* result) const {
    u64 expected = 5;
    result[0] = atomic_ref<u64>{*word}.compare_exchange(expected, 6, order::acq_rel, order::acquire);
    result[1] = expected;
    result[2] = atomic_ref<u64>{*word}.compare_exchange(expected, 6, order::relaxed, order::relaxed);
  }
};

TEST(Atomic, CompareExchangeTellsWhatItFound) {
  for_each_schedule(4, [] {
    device_buffer<u64> word(std::vector<u64>{1ull << 40});
    device_buffer<u64> result(3);
    launch({1, 1}, failing_compare_exchange{}, word.data(), result.data());
    synchronize();
    EXPECT_EQ(result.to_host(), (std::vector<u64>{0, 1ull << 40, 1}));
    EXPECT_EQ(word[0], 6u);
  });
}

template <class T>
struct reach_for_extremes {
  WARPHEAP_DEVICE void operator()(T const* values, T* lowest, T* highest, u32* faults) const {
    T const own = values[global_thread_index()];
    T const low = atomic_ref<T>{*lowest}.fetch_min(own, order::relaxed);
    T const high = atomic_ref<T>{*highest}.fetch_max(own, order::acq_rel);
    T const low_now = atomic_ref<T>{*lowest}.load(order::relaxed),
            high_now = atomic_ref<T>{*highest}.load(order::relaxed);
    if (low_now > low || low_now > own || high_now < high || high_now < own)
      atomic_ref<u32>{*faults}.fetch_add(1, order::relaxed);
  }
};

/// On both sides of zero and of the halves' border, the extremes of the type among them.
template <class T>
std::vector<T> scattered_values() {
  using limits = std::numeric_limits<T>;
  std::vector<T> values = {0, 1, static_cast<T>(-1), limits::max() / 2, static_cast<T>(limits::max() / 2 + 1)};
  for (T i = 2; values.size() < 62; ++i) values.push_back(static_cast<T>(i % 2 ? i * i : 0 - i * i));
  values.push_back(limits::max());
  values.push_back(limits::min());
  return values;
}

template <class T>
class AtomicInteger : public testing::Test {};
using integer_types = testing::Types<int, unsigned int, long, unsigned long, long long, unsigned long long>;
TYPED_TEST_SUITE(AtomicInteger, integer_types);

TYPED_TEST(AtomicInteger, MinAndMaxFindTheExtremesOfAllLanes) {
  auto const values = scattered_values<TypeParam>();
  for_each_schedule(seeds_of_atomics, [&] {
    device_buffer<TypeParam> const given(values), lowest(1), highest(1);
    device_buffer<u32> faults(1);
    launch({2, 32}, reach_for_extremes<TypeParam>{}, given.data(), lowest.data(), highest.data(), faults.data());
    synchronize();
    EXPECT_EQ(lowest[0], std::min(TypeParam{0}, std::numeric_limits<TypeParam>::min()));
    EXPECT_EQ(highest[0], std::numeric_limits<TypeParam>::max());
    EXPECT_EQ(faults[0], 0u);
  });
}

template <class T>
struct wrap_around {
  WARPHEAP_DEVICE void operator()(T* word, T lowest) const {
    atomic_ref<T>{word[0]}.fetch_sub(lowest, order::relaxed);
    atomic_ref<T>{word[1]}.fetch_add(static_cast<T>(-1), order::relaxed);
    word[2] = atomic_ref<T>{word[3]}.fetch_sub(static_cast<T>(5), order::relaxed);
  }
};

TYPED_TEST(AtomicInteger, SumsWrapAround) {
  using limits = std::numeric_limits<TypeParam>;
  // minus itself, where T is signed
  auto const lowest = static_cast<TypeParam>(limits::max() / 2 + 1);
  for_each_schedule(4, [&] {
    device_buffer<TypeParam> word(std::vector<TypeParam>{0, limits::min(), 0, 2});
    launch({1, 1}, wrap_around<TypeParam>{}, word.data(), limits::is_signed ? limits::min() : lowest);
    synchronize();
    EXPECT_EQ(word.to_host(), (std::vector<TypeParam>{limits::is_signed ? limits::min() : lowest, limits::max(), 2,
                                                      static_cast<TypeParam>(-3)}));
  });
}

template <class T, scope Scope>
struct try_order {
  WARPHEAP_DEVICE void operator()(T* words, u32 how_index) const {
    order const how = static_cast<order>(how_index);
    atomic_ref<T, Scope> const word{words[0]};
    words[1] = word.load(how);
    word.store(T{40}, how);
    words[2] = word.exchange(T{50}, how);
    T expected = 50;
    words[3] = word.compare_exchange(expected, T{60}, how, how) ? T{1} : T{0};
    words[4] = word.compare_exchange(expected, T{70}, how, how) ? T{1} : T{0};
    words[5] = expected;
    words[6] = word.fetch_add(T{3}, how);
    words[7] = word.fetch_sub(T{1}, how);
    if constexpr (atomic_integer<T>) {
      words[8] = word.fetch_min(T{8}, how);
      words[9] = word.fetch_max(T{10}, how);
      words[10] = word.fetch_or(T{5}, how);
      words[11] = word.fetch_and(T{9}, how);
      words[12] = word.fetch_xor(T{1}, how);
    }
  }
};

template <class T, scope Scope>
void every_order_computes() {
  std::vector<T> expected = {62, 30, 40, 1, 0, 60, 60, 63, 0, 0, 0, 0, 0};
  if (atomic_integer<T>) expected = {8, 30, 40, 1, 0, 60, 60, 63, 62, 8, 10, 15, 9};
  for (u32 how = 0; how <= static_cast<u32>(order::seq_cst); ++how) {
    device_buffer<T> words(std::vector<T>{30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    launch({1, 1}, try_order<T, Scope>{}, words.data(), how);
    synchronize();
    EXPECT_EQ(words.to_host(), expected) << "order " << how;
  }
}

template <class T>
class AtomicNumber : public testing::Test {};
using number_types = testing::Types<int, unsigned int, long long, unsigned long long, float, double>;
TYPED_TEST_SUITE(AtomicNumber, number_types);

TYPED_TEST(AtomicNumber, EveryOperationComputesInEveryOrderAndScope) {
  for_each_schedule(4, [] {
    every_order_computes<TypeParam, scope::block>();
    every_order_computes<TypeParam, scope::device>();
    every_order_computes<TypeParam, scope::system>();
  });
}

template <class T>
struct add_fractions {
  WARPHEAP_DEVICE void operator()(T* sums, T* olds) const {
    u64 const thread = global_thread_index();
    olds[thread] = atomic_ref<T>{sums[0]}.fetch_add(T(0.25), order::relaxed);
    atomic_ref<T>{sums[1]}.fetch_sub(T(1.5), order::relaxed);
    // the largest, as atomic_value.hpp advises
    T seen = atomic_ref<T>{sums[2]}.load(order::relaxed);
    T const own = static_cast<T>(thread) - T(99.5);
    while (seen < own && !atomic_ref<T>{sums[2]}.compare_exchange(seen, own, order::relaxed, order::relaxed)) {
    }
  }
};

template <class T>
class AtomicFloat : public testing::Test {};
using float_types = testing::Types<float, double>;
TYPED_TEST_SUITE(AtomicFloat, float_types);

TYPED_TEST(AtomicFloat, SumsCountEachLaneOnceWithItsFraction) {
  for_each_schedule(seeds_of_atomics, [] {
    device_buffer<TypeParam> sums(std::vector<TypeParam>{TypeParam(0.125), -8, -1000}), olds(64);
    launch({2, 32}, add_fractions<TypeParam>{}, sums.data(), olds.data());
    synchronize();
    EXPECT_EQ(sums.to_host(), (std::vector<TypeParam>{TypeParam(16.125), -104, TypeParam(-36.5)}));
    auto found = olds.to_host();
    std::sort(found.begin(), found.end());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], TypeParam(0.125) + TypeParam(0.25) * TypeParam(i));
  });
}

/// words[0] is 0.0, words[1] a NaN; `results` are ones where all is well.
template <class T>
struct compare_bits {
  WARPHEAP_DEVICE void operator()(T* words, u32* results) const {
    using atomic_detail::to_word;
    atomic_ref<T> const zero{words[0]}, nan{words[1]};
    T expected = T(-0.0);
    results[0] = !zero.compare_exchange(expected, T(1), order::relaxed, order::relaxed);
    results[1] = to_word(expected) == to_word(T(0.0));
    zero.store(T(-0.0), order::relaxed);
    results[2] = to_word(zero.load(order::relaxed)) == to_word(T(-0.0));
    // -0.0 - 0.0 is -0.0
    results[3] = to_word(zero.fetch_sub(T(0.0), order::relaxed)) == to_word(T(-0.0));
    // -0.0 + 0.0 is 0.0
    results[4] = to_word(zero.fetch_add(T(0.0), order::relaxed)) == to_word(T(-0.0));
    results[5] = to_word(zero.exchange(T(2.75), order::relaxed)) == to_word(T(0.0));
    expected = nan.load(order::relaxed);
    auto const payload = to_word(expected);
    T const same = expected;
    results[6] = same != expected;
    results[7] = nan.compare_exchange(expected, T(3.5), order::relaxed, order::relaxed);
    results[8] = to_word(expected) == payload && words[1] == T(3.5);
  }
};

TYPED_TEST(AtomicFloat, ValuesAreComparedAndMovedAsBits) {
  for_each_schedule(4, [] {
    auto const nan = std::bit_cast<TypeParam>(
        std::bit_cast<atomic_detail::atomic_word<TypeParam>>(std::numeric_limits<TypeParam>::quiet_NaN()) | 5);
    device_buffer<TypeParam> words(std::vector<TypeParam>{0, nan});
    device_buffer<u32> results(9);
    launch({1, 1}, compare_bits<TypeParam>{}, words.data(), results.data());
    synchronize();
    EXPECT_EQ(results.to_host(), std::vector<u32>(9, 1));
    EXPECT_EQ(words.to_host(), (std::vector<TypeParam>{TypeParam(2.75), TypeParam(3.5)}));
  });
}

struct list_node {
  list_node* next;
  u32 value;
  u32 padding[3];
};

struct build_list {
  WARPHEAP_DEVICE void operator()(list_node* nodes, list_node** fresh, list_node** last, list_node** head) const {
    list_node* const own = atomic_ref<list_node*>{*fresh}.fetch_add(1, order::relaxed);
    list_node* const other = atomic_ref<list_node*>{*last}.fetch_sub(2, order::relaxed);
    own->value = static_cast<u32>(own - nodes) + 1000 * static_cast<u32>(other - nodes);
    atomic_ref<list_node*> const top{*head};
    list_node* seen = top.load(order::relaxed);
    // release: the node's contents happen before any walk over it; here that is the host's, after
    // the kernel
    for (own->next = seen; !top.compare_exchange(seen, own, order::release, order::relaxed);) own->next = seen;
  }
};

TEST(AtomicPointer, CountsInElementsAndLinksEveryNodeOnce) {
  for_each_schedule(seeds_of_atomics, [] {
    constexpr u32 lanes = 70;
    device_buffer<list_node> nodes(lanes);
    auto const heads = [&](list_node* first) { return std::vector<list_node*>{first}; };
    device_buffer<list_node*> fresh(heads(nodes.data())), last(heads(nodes.data() + 2 * lanes)), head(1);
    launch({2, lanes / 2}, build_list{}, nodes.data(), fresh.data(), last.data(), head.data());
    synchronize();
    EXPECT_EQ(fresh[0], nodes.data() + lanes);
    EXPECT_EQ(last[0], nodes.data());
    std::vector<u32> walked, others;
    auto const copies = nodes.to_host();
    for (list_node const* at = head[0]; at; at = copies[walked.back()].next) {
      ASSERT_LT(walked.size(), lanes);
      walked.push_back(static_cast<u32>(at - nodes.data()));
      EXPECT_EQ(copies[walked.back()].value % 1000, walked.back());
      others.push_back(copies[walked.back()].value / 1000);
    }
    std::sort(walked.begin(), walked.end());
    std::sort(others.begin(), others.end());
    std::vector<u32> each(lanes), even(lanes);
    for (u32 i = 0; i < lanes; ++i) each[i] = i, even[i] = 2 * i + 2;
    EXPECT_EQ(walked, each);
    EXPECT_EQ(others, even);
  });
}

struct hand_over_nothing {
  WARPHEAP_DEVICE void operator()(void** word, u32* results) const {
    atomic_ref<void*> const place{*word};
    void* expected = nullptr;
    results[0] = !place.compare_exchange(expected, word, order::acq_rel, order::acquire) && expected == results;
    results[1] = place.compare_exchange(expected, word, order::acq_rel, order::acquire);
    results[2] = place.exchange(nullptr, order::fenced) == word && place.load(order::acquire) == nullptr;
  }
};

TEST(AtomicPointer, PointersToVoidAreExchanged) {
  for_each_schedule(4, [] {
    device_buffer<u32> results(3);
    device_buffer<void*> word(std::vector<void*>{results.data()});
    launch({1, 1}, hand_over_nothing{}, word.data(), results.data());
    synchronize();
    EXPECT_EQ(results.to_host(), std::vector<u32>(3, 1));
  });
}

/// One thread block publishes a pointer to a double by a maximum; the other waits for it and reads
/// the double.
struct publish_by_maximum {
  WARPHEAP_DEVICE void operator()(double* datum, double** where, i32* flag, double* got) const {
    if (simt::block_index() == 0) {
      atomic_ref<double>{*datum}.store(0.375, order::relaxed);
      atomic_ref<double*>{*where}.store(datum, order::relaxed);
      atomic_ref<i32>{*flag}.fetch_max(-1, order::release);  // pairs with the acquire below
    } else {
      while (atomic_ref<i32>{*flag}.load(order::acquire) != -1) simt::pause(32);
      double* const found = atomic_ref<double*>{*where}.load(order::relaxed);
      *got = found ? atomic_ref<double>{*found}.load(order::relaxed) : -1;
    }
  }
};

TEST(Atomic, AMaximumReleasesWhatCameBefore) {
  for_each_schedule(100, [] {
#if !defined(__CUDACC__)
    if (backend::current_execution().sm_count * backend::current_execution().blocks_per_sm < 2) return;
#endif
    device_buffer<double> datum(1), got(1);
    device_buffer<double*> where(1);
    device_buffer<i32> flag(std::vector<i32>{-2});
    launch({2, 1}, publish_by_maximum{}, datum.data(), where.data(), flag.data(), got.data());
    synchronize();
    EXPECT_EQ(got[0], 0.375);
  });
}

}}  // namespace warpheap
