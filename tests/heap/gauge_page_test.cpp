// The page on which a program shows a heap's gauge: whole readings, and pages that are not to be
// shown.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "warpheap/heap/gauge_page.hpp"

namespace gauge_page_test {

using namespace warpheap;

/// Figures that are all `number`, but for the time.
gauge_figures all_equal_to(u64 number) {
  std::array<u64, gauge_page::words> words;
  words.fill(number);
  return std::bit_cast<gauge_figures>(words);
}

/// What the figures are all equal to; nullopt if they differ.
std::optional<u64> common_value(gauge_figures const& figures) {
  auto const words = std::bit_cast<std::array<u64, gauge_page::words>>(figures);
  for (u64 const word : words)
    if (word != words[0]) return std::nullopt;
  return words[0];
}

gauge_page& page_of(shared_page const& memory) { return *static_cast<gauge_page*>(memory.data()); }

void fill(gauge_page& page, std::string const& heap) {
  page.process = static_cast<u64>(getpid());
  std::strcpy(page.program, "program");
  heap.copy(page.heap, gauge_page::text_bytes);
  std::strcpy(page.allocator, "allocator");
  std::strcpy(page.device, "device");
  page.publish(all_equal_to(7));
}

/// Names of the heaps that `process` publishes.
std::vector<std::string> heaps_of(pid_t process) {
  std::vector<std::string> names;
  for (auto const& each : read_published_heaps().heaps)
    if (each.process == static_cast<u64>(process)) names.push_back(each.name);
  return names;
}

bool is_there(std::string const& name) {
  struct stat is = {};
  return stat(("/dev/shm/" + name).c_str(), &is) == 0;
}

TEST(GaugePage, NeverShowsPartsOfTwoReadings) {
  auto const page = std::make_unique<gauge_page>();
  std::atomic<bool> stops{false};
  page->publish(all_equal_to(1));
  std::thread writer{[&] {
    // relaxed: it only ends the loop.
    for (u64 number = 2; !stops.load(std::memory_order_relaxed); ++number) {
      page->publish(all_equal_to(number));
      if (number % 64 == 0) std::this_thread::yield();
    }
  }};
  u64 readings = 0, last = 0, different = 0;
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (different < 500 && std::chrono::steady_clock::now() < end) {
    auto const seen = page->newest();
    if (!seen) continue;
    auto const value = common_value(*seen);
    if (!value || *value < last) {
      ADD_FAILURE() << "torn, or older than the one before, after " << readings << " readings";
      break;
    }
    different += *value != last;
    last = *value;
    ++readings;
  }
  stops.store(true, std::memory_order_relaxed);
  writer.join();
  EXPECT_GE(different, 500u) << "the writer ran meanwhile";
}

TEST(GaugePage, KeepsTheLastReadingOfAWriterThatStopsAnywhere) {
  for (size_t written = 0; written <= gauge_page::words; ++written) {
    auto const page = std::make_unique<gauge_page>();
    page->publish(all_equal_to(1));
    page->publish(all_equal_to(2));
    // As publish() does, up to some word.
    for (size_t i = 0; i < written; ++i) page->readings[(page->published + 1) % 2][i] = 3;
    auto const seen = page->newest();
    ASSERT_TRUE(seen);
    EXPECT_EQ(common_value(*seen), 2u) << written;
  }
}

TEST(GaugePage, IsShownWhenItIsMadeAndUntilItIsGone) {
  {
    shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
    fill(page_of(memory), "particles");
    page_of(memory).version = gauge_page::current_version;
    EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
    EXPECT_TRUE(is_there(memory.name())) << "a page in the making is not removed";
    page_of(memory).show();
    auto const all = read_published_heaps().heaps;
    auto const mine = std::find_if(all.begin(), all.end(),
                                   [](auto const& each) { return each.process == static_cast<u64>(getpid()); });
    ASSERT_NE(mine, all.end());
    EXPECT_EQ(mine->name, "particles");
    EXPECT_EQ(mine->program, "program");
    EXPECT_EQ(mine->allocator, "allocator");
    EXPECT_EQ(mine->device, "device");
    EXPECT_EQ(common_value(mine->figures), 7u);
    EXPECT_GT(mine->age_seconds, 0) << "it was read at 7 ns";
  }
  EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
}

TEST(GaugePage, ShowsHeapsOfOneNameEachByItself) {
  shared_page const first{gauge_page::prefix, sizeof(gauge_page)}, second{gauge_page::prefix, sizeof(gauge_page)};
  for (auto const* const each : {&first, &second}) {
    fill(page_of(*each), "graph");
    page_of(*each).show();
  }
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("graph", "graph"));
}

TEST(GaugePage, EndsTextsOfStrangersWhereThePageHasRoom) {
  shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(memory), std::string(gauge_page::text_bytes, 'x'));
  page_of(memory).show();
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre(std::string(gauge_page::text_bytes - 1, 'x')));
}

TEST(GaugePage, OfAnotherVersionIsCountedAndNotRead) {
  u64 const before = read_published_heaps().of_other_versions;
  shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(memory), "future");
  page_of(memory).show();
  page_of(memory).version = gauge_page::current_version + 1;
  EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
  EXPECT_GT(read_published_heaps().of_other_versions, before);
}

TEST(GaugePage, OfAKilledProgramIsNotShownAndRemoved) {
  shared_page const mine{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(mine), "mine");
  page_of(mine).show();
  test::child_process child{[] {
    shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
    fill(page_of(memory), "the child's");
    page_of(memory).show();
    test::child_process::wait_for_kill();
  }};
  auto const page = std::string{gauge_page::prefix} + "." + std::to_string(child.id()) + ".0";
  EXPECT_TRUE(child.wait_until([&] { return !heaps_of(child.id()).empty(); }));
  EXPECT_THAT(heaps_of(child.id()), testing::ElementsAre("the child's"));
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("mine")) << "two programs, side by side";
  child.kill();
  EXPECT_THAT(heaps_of(child.id()), testing::IsEmpty());
  EXPECT_FALSE(is_there(page));
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("mine"));
}

}  // namespace gauge_page_test
