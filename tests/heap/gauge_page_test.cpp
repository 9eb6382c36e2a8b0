// SPDX-License-Identifier: Apache-2.0
// The page on which a program shows a heap's gauge: whole readings, and pages that are not to be
// shown.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "support/runtime_folder.hpp"
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

/// The newest reading of a page in memory.
std::optional<gauge_figures> newest(gauge_page const& page) {
  auto const copy = gauge_page::newest([&](void* to, size_t bytes) {
    std::memcpy(to, &page, bytes);
    return true;
  });
  if (!copy) return std::nullopt;
  return copy->figures();
}

class GaugePage : public testing::Test {
 protected:
  test::runtime_folder runtime;
};

// gauge.P2
TEST_F(GaugePage, NeverShowsPartsOfTwoReadings) {
  shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
  auto& page = page_of(memory);
  auto const folder = page_folder::make();
  auto const view = shared_page_view::open(folder, memory.name());
  ASSERT_TRUE(view);
  std::atomic<bool> stops{false};
  page.publish(all_equal_to(1));
  page.show();
  std::thread writer{[&] {
    // relaxed: it only ends the loop.
    for (u64 number = 2; !stops.load(std::memory_order_relaxed); ++number) {
      page.publish(all_equal_to(number));
      if (number % 8 != 0) continue;
      auto const end = std::chrono::steady_clock::now() + std::chrono::microseconds{2};
      while (std::chrono::steady_clock::now() < end) continue;
    }
  }};
  u64 readings = 0, last = 0, different = 0;
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (different < 500 && std::chrono::steady_clock::now() < end) {
    auto const seen = gauge_page::newest([&](void* to, size_t bytes) { return view->read(to, bytes); });
    if (!seen) continue;
    auto const value = common_value(seen->figures());
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

TEST_F(GaugePage, KeepsTheLastReadingOfAWriterThatStopsAnywhere) {
  for (size_t written = 0; written <= gauge_page::words; ++written) {
    auto const page = std::make_unique<gauge_page>();
    page->publish(all_equal_to(1));
    page->publish(all_equal_to(2));
    page->show();
    // As publish() does, up to some word.
    for (size_t i = 0; i < written; ++i) page->readings[(page->published + 1) % 2][i] = 3;
    auto const seen = newest(*page);
    ASSERT_TRUE(seen);
    EXPECT_EQ(common_value(*seen), 2u) << written;
  }
}

TEST_F(GaugePage, IsShownWhenItIsMadeAndUntilItIsGone) {
  {
    shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
    fill(page_of(memory), "particles");
    page_of(memory).version = gauge_page::current_version;
    EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
    EXPECT_TRUE(runtime.has(memory.name())) << "a page in the making is not removed";
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

TEST_F(GaugePage, ShowsHeapsOfOneNameEachByItself) {
  shared_page const first{gauge_page::prefix, sizeof(gauge_page)}, second{gauge_page::prefix, sizeof(gauge_page)};
  for (auto const* const each : {&first, &second}) {
    fill(page_of(*each), "graph");
    page_of(*each).show();
  }
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("graph", "graph"));
}

TEST_F(GaugePage, EndsTextsOfStrangersWhereThePageHasRoom) {
  shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(memory), std::string(gauge_page::text_bytes, 'x'));
  page_of(memory).show();
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre(std::string(gauge_page::text_bytes - 1, 'x')));
}

TEST_F(GaugePage, OfAnotherVersionIsCountedAndNotRead) {
  shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(memory), "future");
  page_of(memory).show();
  page_of(memory).version = gauge_page::current_version + 1;
  ASSERT_EQ(truncate(runtime.page(memory.name()).c_str(), 16), 0) << "it may be shorter";
  EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
  EXPECT_EQ(read_published_heaps().of_other_versions, 1u);
}

/// A page that another program could hold: whole, shown, and locked.
class held_page {
 public:
  explicit held_page(std::filesystem::path const& path) : file_{open(path.c_str(), O_RDWR | O_CREAT, 0600)} {
    auto const page = std::make_unique<gauge_page>();
    fill(*page, "held");
    page->show();
    if (write(file_, page.get(), sizeof(gauge_page)) != sizeof(gauge_page) || flock(file_, LOCK_EX) != 0)
      throw std::runtime_error{"no page"};
  }
  held_page(held_page const&) = delete;
  held_page& operator=(held_page const&) = delete;
  ~held_page() { close(file_); }
  int file() const { return file_; }

 private:
  int file_;
};

TEST_F(GaugePage, IsAWholeRegularFileOfThisUserOrNotShown) {
  page_folder::make();
  auto const at = [&](char const* name) { return runtime.page(std::string{gauge_page::prefix} + "." + name); };
  held_page const good{at("good")}, cut{at("cut")}, empty{at("empty")}, strangers{at("strangers")};
  ASSERT_EQ(ftruncate(cut.file(), sizeof(gauge_page) - 1), 0);
  ASSERT_EQ(ftruncate(empty.file(), 0), 0);
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink(at("good"), at("link"));
  std::filesystem::create_directory(at("folder"));
  u64 shown = 2;
  if (test::may_give_files_away()) shown -= fchown(strangers.file(), test::another_user, test::another_user) == 0;
  EXPECT_EQ(heaps_of(getpid()).size(), shown) << "good, and strangers as long as it is none";
  for (auto const* const name : {"good", "cut", "empty", "strangers", "fifo", "link", "folder"})
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(at(name)))) << name << " is in use, or no page";
}

TEST_F(GaugePage, OfAProgramThatWasKilledEarlyIsRemoved) {
  page_folder::make();
  auto const left = runtime.page(std::string{gauge_page::prefix} + ".left");
  for (off_t const length : {sizeof(gauge_page), sizeof(u64), size_t{0}}) {
    { held_page const held{left}; }
    ASSERT_EQ(truncate(left.c_str(), length), 0);
    EXPECT_THAT(heaps_of(getpid()), testing::IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(left)) << length;
  }
}

TEST_F(GaugePage, IsReadBesideAProgramThatTruncatesIt) {
  page_folder::make();
  held_page const held{runtime.page(std::string{gauge_page::prefix} + ".cut")};
  test::child_process const other{[&] {
    for (;;)
      for (off_t const length : {0, 8, 4096})
        if (ftruncate(held.file(), length) != 0) return;
  }};
  for (u32 i = 0; i < 20'000; ++i) ASSERT_LE(read_published_heaps().heaps.size(), 1u);
}

TEST_F(GaugePage, OfAKilledProgramIsNotShownAndRemoved) {
  shared_page const mine{gauge_page::prefix, sizeof(gauge_page)};
  fill(page_of(mine), "mine");
  page_of(mine).show();
  test::child_process child{[] {
    shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
    fill(page_of(memory), "the child's");
    page_of(memory).show();
    test::child_process::wait_for_kill();
  }};
  auto const page = std::string{gauge_page::prefix} + "." + std::to_string(page_parts::process_namespace()) + "." +
                    std::to_string(child.id()) + ".0";
  EXPECT_TRUE(child.wait_until([&] { return !heaps_of(child.id()).empty(); }));
  EXPECT_THAT(heaps_of(child.id()), testing::ElementsAre("the child's"));
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("mine")) << "two programs, side by side";
  child.kill();
  EXPECT_THAT(heaps_of(child.id()), testing::IsEmpty());
  EXPECT_FALSE(runtime.has(page));
  EXPECT_THAT(heaps_of(getpid()), testing::ElementsAre("mine"));
}

}  // namespace gauge_page_test
