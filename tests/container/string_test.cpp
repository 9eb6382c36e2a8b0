// SPDX-License-Identifier: Apache-2.0
// Text that lanes write: the same characters as the host's library makes of the same calls, and a
// zero behind them after every call, also after those that the heap refused.
#include "warpheap/container/string.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "container/heaps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace string_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::ElementsAre;

using view = warpheap::string_view;
constexpr u32 npos = view::npos;

static_assert(view{}.empty() && view{static_cast<char const*>(nullptr)}.empty() && view{"abc"}.size() == 3);
static_assert(view{"warpheap"}.find('p') == 3 && view{"warpheap"}.find('p', 4) == 7 && view{"warp"}.find('x') == npos);
static_assert(view{"warpheap"}.find("heap") == 4 && view{"warpheap"}.find("heaps") == npos && view{"ab"}.find("") == 0);
static_assert(view{"aab"}.find("ab") == 1 && view{"abab"}.find("ab", 1) == 2 && view{"ab"}.find("", 2) == 2);
static_assert(view{"ab"}.find("", 3) == npos && view{"ab"}.find('a', npos) == npos);
static_assert(view{"warpheap"}.substr(4) == "heap" && view{"warpheap"}.substr(1, 2) == "ar");
static_assert(view{"warp"}.substr(4).empty() && view{"warp"}.substr(9, 2).empty() &&
              view{"warp"}.substr(3, npos) == "p");
static_assert(view{"warpheap"}.starts_with("warp") && !view{"warp"}.starts_with("warpheap") && view{}.starts_with(""));
static_assert(view{"a"} < "b" && view{"a"} < "aa" && !(view{"b"} < "aa") && view{"\x7f"} < "\x80" && view{} < "a");
static_assert(view{"a"}.compare("a") == 0 && view{"a"}.compare("b") < 0 && view{"ab"}.compare("a") > 0);
static_assert(view{"abc", 2} == "ab" && view{"ab"} != "abc");

/// What is added to a text, drawn alike for kernels and for the host.
struct addition {
  u32 what;
  u64 number;
  u32 width;

  WARPHEAP_HOST_DEVICE explicit addition(random_sequence& random) {
    what = random.below(9);
    u64 const high = random.next();
    number = (high << 32 | random.next()) >> random.below(64);
    width = random.below(21);
  }
  WARPHEAP_HOST_DEVICE double fraction() const { return static_cast<double>(static_cast<i64>(number)) / 1024; }
};

WARPHEAP_HOST_DEVICE char const* phrase(u64 number) {
  char const* const phrases[] = {"", "a", "of a warp", "a text of more than thirty characters, "};
  return phrases[number % 4];
}

template <class Ref>
WARPHEAP_DEVICE bool add(Ref const& heap, string& text, addition const& next) {
  switch (next.what) {
    case 0: return text.append(heap, phrase(next.number));
    case 1: return text.append(heap, phrase(3), next.width);
    case 2: return text.append(heap, static_cast<char>('a' + next.number % 26));
    case 3: return text.append(heap, next.number);
    case 4: return text.append(heap, static_cast<int>(next.number));
    case 5: return text.append_hex(heap, next.number, next.width);
    case 6: return text.append(heap, next.fraction(), next.width % 8);
    case 7: return text.append(heap, static_cast<float>(next.fraction()));
    default: return text.append(heap, text.substr(next.width, 30));
  }
}

std::string added(std::string const& text, addition const& next) {
  char printed[400] = "";
  auto const width = static_cast<int>(next.width);
  switch (next.what) {
    case 0: return text + phrase(next.number);
    case 1: return text + std::string{phrase(3)}.substr(0, next.width);
    case 2: return text + static_cast<char>('a' + next.number % 26);
    case 3: return text + std::to_string(next.number);
    case 4: return text + std::to_string(static_cast<int>(next.number));
    case 5: std::snprintf(printed, sizeof printed, "%0*llx", width ? width : 1, next.number); break;
    case 6: std::snprintf(printed, sizeof printed, "%.*f", width % 8, next.fraction()); break;
    case 7:
      std::snprintf(printed, sizeof printed, "%f", static_cast<double>(static_cast<float>(next.fraction())));
      break;
    default: return text + (next.width < text.size() ? text.substr(next.width, 30) : "");
  }
  return text + printed;
}

/// What a lane did.
struct tally {
  u64 served;  ///< a bit for each call
  u32 wrong;   ///< calls after which the zero was elsewhere, or a refused text had changed
};

constexpr u32 calls = 24;

/// Kernel: each lane writes a text, and cuts it now and then.
struct write {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u64 seed, string* texts, tally* seen) const {
    u64 const me = global_thread_index();
    random_sequence random{seed * 1024 + me};
    string text;
    for (u32 call = 0; call < calls; ++call) {
      addition const next{random};
      u32 const before = text.size();
      bool const served = add(heap, text, next);
      if (served) seen[me].served |= u64{1} << call;
      bool const as_before = text.size() == before;
      // string.S1
      if (text.c_str()[text.size()] != 0 || text.size() > text.capacity() || (!served && !as_before)) ++seen[me].wrong;
      if (call % 8 == 7) text.truncate(text.size() / 2);
      if (call % 8 == 3) text.shrink_to_fit(heap);
      if (call % 8 == 4) text.reserve(heap, next.width);
      if (text.c_str()[text.size()] != 0) ++seen[me].wrong;
    }
    texts[me] = text;
  }
};

/// Kernel: gives the texts back.
struct destroy_all {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, string* texts) const {
    texts[global_thread_index()].destroy(heap);
  }
};

template <class Heap>
void expect_texts(launch_shape shape, bool refuses) {
  u64 const threads = u64{shape.blocks} * shape.threads, seed = schedule_seed() + 1;
  Heap const heap{4_MiB};
  device_buffer<string> const texts(threads);
  device_buffer<tally> const seen(threads);
  launch(shape, write{}, heap.ref(), seed, texts.data(), seen.data());
  synchronize();
  bool refused = false;
  for (u64 t = 0; t < threads; ++t) {
    random_sequence random{seed * 1024 + t};
    std::string expected;
    tally const mine = seen[t];
    for (u32 call = 0; call < calls; ++call) {
      addition const next{random};
      if (mine.served >> call & 1) expected = added(expected, next);
      else refused = true;
      if (call % 8 == 7) expected.resize(expected.size() / 2);
    }
    EXPECT_EQ(texts[t].to_std_string(), expected);
    EXPECT_EQ(mine.wrong, 0u);
  }
  EXPECT_EQ(refused, refuses);
  launch(shape, destroy_all{}, heap.ref(), texts.data());
  synchronize();
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  if constexpr (requires { heap.check_blocks(); }) {
    EXPECT_EQ(heap.check_blocks().size() + heap.error_count(), 0u);
  }
}

TEST(String, HasTheCharactersThatTheHostsLibraryMakes) {
  for_each_schedule(20, [] {
    expect_texts<heap>({1, 1}, false);
    expect_texts<heap>({2, 40}, false);
    expect_texts<checked<heap>>({2, 40}, false);
  });
}

TEST(String, IsAsItWasWhenTheHeapRefuses) {
  for_each_schedule(20, [] { expect_texts<refusing_heap>({2, 40}, true); });
}

/// Kernel: what a text and its empty copy answer.
struct ask {
  WARPHEAP_DEVICE void operator()(heap_ref heap, u32* answers, u32* left) const {
    string text, none;
    text.append(heap, "lane ");
    text.append(heap, 12);
    answers[0] = text == "lane 12" && "lane 12" == text && text != none && none == "";
    answers[1] = text < "lane 2" && none < text && !(text < text) && text.compare("lane") > 0;
    answers[2] = text.starts_with("lane") && !text.starts_with("lanes") && text.find(' ') == 4;
    answers[3] = text.find("12") == 5 && text.find("13") == npos && text.substr(5) == "12";
    answers[4] = none.c_str()[0] == 0 && none.empty() && none.capacity() == 0;
    answers[5] = none.append(heap, "") && none.append(heap, none) && none.append(heap, "none of it", 0);
    answers[6] = none.capacity() == 0;
    text[0] = 'L';
    text.append(heap, true);
    text.append(heap, static_cast<u8>(200));
    text.append(heap, i64{-9'223'372'036'854'775'807} - 1);
    answers[7] = text == "Lane 121200-9223372036854775808";
    text.clear();
    answers[8] = text.empty() && text.c_str()[0] == 0 && text.capacity() > 20;
    answers[9] =
        text.append(heap, -2.5, 0) && text.append(heap, 1.0 / 3, 99) && text == "-20.33333333333333331482961625624739";
    bool const fits = text.reserve(heap, 500) && text.capacity() >= 500;
    text.shrink_to_fit(heap);
    answers[10] = fits && text.capacity() < 48 && text.c_str()[text.size()] == 0;
    answers[11] = !text.reserve(heap, ~u64{0}) && !text.reserve(heap, ~u32{0}) && text.size() == 36;
    text.destroy(heap);
    none.shrink_to_fit(heap);
    *left = text.size() + text.capacity();
  }
};

TEST(String, ComparesSearchesAndConverts) {
  heap const heap{1_MiB};
  device_buffer<u32> const answers(12), left(1);
  launch({1, 1}, ask{}, heap.ref(), answers.data(), left.data());
  synchronize();
  EXPECT_THAT(answers.to_host(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(left[0], 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

constexpr u32 line_of_append = __LINE__ + 5;
struct leak {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    string text;
    text.append(heap, 7);
  }
};

TEST(String, TellsACheckedHeapTheLineOfTheCall) {
  checked<heap> heap{1_MiB};
  launch({1, 1}, leak{}, heap.ref());
  synchronize();
  ASSERT_EQ(heap.leaks().size(), 1u);
  EXPECT_THAT(heap.leaks()[0].describe(), testing::HasSubstr("string_test.cpp:" + std::to_string(line_of_append)));
}

}  // namespace string_test
