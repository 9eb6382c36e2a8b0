// SPDX-License-Identifier: Apache-2.0
// The list of published heaps as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/heap_list.hpp"

namespace warpheap::tool { namespace {

using testing::HasSubstr;
using testing::Not;

published_heap some_heap(std::string const& name) {
  return {.process = 4711,
          .program = "train",
          .name = name,
          .allocator = "slab_bitmap",
          .device = "NVIDIA H200 0000:19:00.0",
          .age_seconds = 0.2,
          .figures = {.pool_bytes = u64{8} << 30,
                      .committed_bytes = u64{2} << 30,
                      .live_bytes = u64{1} << 30,
                      .live_blocks = 12345678,
                      .highest_live_bytes = (u64{1} << 30) + (u64{1} << 29),
                      .failures = 17,
                      .largest_failed_bytes = 3 << 20}};
}

TEST(HeapList, HasALineForEachHeapWhereThereIsRoom) {
  published_heaps seen{{some_heap("particles"), some_heap("fields")}, 0};
  EXPECT_EQ(
      heap_list(seen, 200),
      "2 heaps\n\n"
      " pid  program  heap       allocator    device                        pool  committed      live   %    blocks"
      "   highest  failures  largest failed\n"
      "4711  train    particles  slab_bitmap  NVIDIA H200 0000:19:00.0  8.00 GiB   2.00 GiB  1.00 GiB  50  12345678"
      "  1.50 GiB        17        3.00 MiB\n"
      "4711  train    fields     slab_bitmap  NVIDIA H200 0000:19:00.0  8.00 GiB   2.00 GiB  1.00 GiB  50  12345678"
      "  1.50 GiB        17        3.00 MiB\n");
}

TEST(HeapList, NamesTheHeapInEveryPartWhereLinesAreShort) {
  auto const text = heap_list({{some_heap("particles")}, 0}, 100);
  size_t lines_of_heap = 0;
  for (size_t at = 0; (at = text.find("4711  train    particles", at)) != std::string::npos; ++at) ++lines_of_heap;
  EXPECT_EQ(lines_of_heap, 2u);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 100u) << text;
}

TEST(HeapList, SaysThatThereIsNone) { EXPECT_EQ(heap_list({}, 80), "no running program publishes a heap\n"); }

TEST(HeapList, SaysWhatItCannotShow) {
  EXPECT_THAT(heap_list({{}, 2}, 80), HasSubstr("not shown: 2 of programs with another version of Warpheap\n"));
}

TEST(HeapList, SaysWhichReadingsAreOld) {
  auto old = some_heap("stuck");
  old.age_seconds = 61.4;
  auto const text = heap_list({{some_heap("fresh"), old}, 0}, 200);
  EXPECT_THAT(text, HasSubstr("\nstuck of 4711: as of 61 s ago\n"));
  EXPECT_THAT(text, Not(HasSubstr("fresh of")));
}

TEST(HeapList, GivesATerminalNoCommandsOfStrangers) {
  auto const text = heap_list({{some_heap("red\x1b[31m\nline")}, 0}, 200);
  EXPECT_THAT(text, HasSubstr("red?[31m?line"));
}

TEST(HeapList, ShowsNoSizeWhereNothingFailed) {
  auto heap = some_heap("sound");
  heap.figures.failures = heap.figures.largest_failed_bytes = 0;
  EXPECT_THAT(heap_list({{heap}, 0}, 200), HasSubstr("         0               -\n"));
}

TEST(HeapList, HasNoShareOfAPoolWithoutMemory) {
  EXPECT_EQ(live_share({}), 0);
  EXPECT_EQ(live_share({.committed_bytes = 200, .live_bytes = 50}), 0.25);
}

TEST(ShortBytes, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(1023), "1023 B");
  EXPECT_EQ(short_bytes(1024), "1.00 KiB");
  EXPECT_EQ(short_bytes(10230), "9.99 KiB");
  EXPECT_EQ(short_bytes(10239), "10.0 KiB");
  EXPECT_EQ(short_bytes((u64{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(short_bytes(u64{100} << 30), "100 GiB");
  EXPECT_EQ(short_bytes(~u64{0}), "16.0 EiB");
}

}}  // namespace warpheap::tool
