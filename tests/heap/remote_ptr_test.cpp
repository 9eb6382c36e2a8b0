// SPDX-License-Identifier: Apache-2.0
// The name of a block for all processes of a job: PE and offset come out as they went in.
#include <gtest/gtest.h>

#include <warpheap/heap/remote_ptr.hpp>

namespace {

using warpheap::remote_ptr, warpheap::u32, warpheap::u64;

TEST(RemotePtr, TellsThePeAndOffsetItWasMadeOf) {
  for (u32 const pe : {0u, 1u, 255u, remote_ptr::most_pes - 1})
    for (u64 const offset : {u64{0}, u64{16}, u64{1} << 40, remote_ptr::most_bytes - 1}) {
      remote_ptr const made{pe, offset};
      EXPECT_TRUE(made);
      EXPECT_EQ(made.pe(), pe);
      EXPECT_EQ(made.offset(), offset);
      EXPECT_EQ(remote_ptr::from_bits(made.bits()), made);
    }
}

TEST(RemotePtr, IsNullOnlyIfItNamesNoBlock) {
  EXPECT_FALSE(remote_ptr{});
  EXPECT_EQ(remote_ptr{}.bits(), 0u);  // memory of zeros is full of null names
  EXPECT_FALSE(remote_ptr{} == (remote_ptr{0, 0}));
}

TEST(RemotePtr, PlusBytesStaysOnItsPe) {
  remote_ptr const moved = remote_ptr{7, 4096} + 24;
  EXPECT_EQ(moved, (remote_ptr{7, 4120}));
}

}  // namespace
