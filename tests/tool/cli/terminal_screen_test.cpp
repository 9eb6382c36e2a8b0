// SPDX-License-Identifier: Apache-2.0
// A text in place of the last one on a terminal.
#include <gtest/gtest.h>

#include "cli/terminal_screen.hpp"

namespace warpheap::tool { namespace {

TEST(TerminalScreen, ReplacesEachLineAndWipesTheRest) {
  EXPECT_EQ(screen_text("one\n\ntwo\n", 80, 24), "\x1b[Hone\x1b[K\n\x1b[K\ntwo\x1b[K\n\x1b[J");
  EXPECT_EQ(screen_text("no line end", 80, 24), "\x1b[Hno line end\x1b[K\n\x1b[J");
  EXPECT_EQ(screen_text("", 80, 24), "\x1b[H\x1b[J");
}

TEST(TerminalScreen, ShowsWhatThereIsRoomFor) {
  EXPECT_EQ(screen_text("abcdef\nghi\njkl\n", 4, 3), "\x1b[Habcd\x1b[K\nghi\x1b[K\n\x1b[J")
      << "the last line stays free";
  EXPECT_EQ(screen_text("abc\n", 80, 1), "\x1b[H\x1b[J");
}

}}  // namespace warpheap::tool
