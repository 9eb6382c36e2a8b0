// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <gtest/gtest.h>

namespace warpheap::archive { namespace {

warpheap_statistics seen() {
  warpheap_statistics told{};
  told.pool_bytes = told.committed_bytes = 2ull << 30;
  told.highest_live_bytes = 3 << 20;
  told.calls = 10;
  told.frees = 4;
  return told;
}

TEST(ArchiveReport, SaysHowMuchWasLive) {
  EXPECT_EQ(report_of(seen(), false), "warpheap: at most 3 MiB live of a pool of 2 GiB, 0 refused");
  EXPECT_EQ(report_of(seen(), true), "warpheap: at most 3 MiB live of a pool of 2 GiB, 10 calls, 4 frees, 0 refused");
}

TEST(ArchiveReport, SaysWhyCallsWereRefused) {
  auto told = seen();
  told.refused_calls = 5;
  told.refusals = 7;  // a call that waits is refused more than once
  told.largest_refused_bytes = 4096;
  EXPECT_EQ(
      report_of(told, true),
      "warpheap: at most 3 MiB live of a pool of 2 GiB, 10 calls, 4 frees, 5 refused: the pool of 2 GiB was full, "
      "the largest was for 4 KiB");
  told.largest_refused_bytes = told.pool_bytes;
  EXPECT_EQ(report_of(told, false),
            "warpheap: at most 3 MiB live of a pool of 2 GiB, 7 refused: one was for more than the pool of 2 GiB");
}

TEST(ArchiveReport, SaysHowMuchOfAPoolHasMemory) {
  auto told = seen();
  told.committed_bytes = 1 << 20;
  EXPECT_EQ(report_of(told, false), "warpheap: at most 3 MiB live of a pool of 2 GiB (1 MiB have memory), 0 refused");
}

}}  // namespace warpheap::archive
