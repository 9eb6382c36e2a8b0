// SPDX-License-Identifier: Apache-2.0
// Addresses whose memory comes and goes.
#include "warpheap/platform/address_range.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace address_range_test {

using namespace warpheap;
using backend::address_range;

size_t const unit = address_range::granularity();

/// Kernel: writes every word's number, plus `salt`.
struct write_words {
  WARPHEAP_DEVICE void operator()(u64* words, u64 count, u64 salt) const {
    for (u64 i = global_thread_index(); i < count; i += u64{simt::block_dim()} * simt::grid_dim()) words[i] = i + salt;
  }
};

/// Kernel: counts the words that hold something else.
struct count_wrong_words {
  WARPHEAP_DEVICE void operator()(u64 const* words, u64 count, u64 salt, u64* wrong) const {
    for (u64 i = global_thread_index(); i < count; i += u64{simt::block_dim()} * simt::grid_dim())
      if (words[i] != i + salt) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
  }
};

u64* words_at(address_range const& range, size_t offset) { return reinterpret_cast<u64*>(range.begin() + offset); }

void write(address_range const& range, size_t offset, size_t bytes, u64 salt) {
  launch({2, 64}, write_words{}, words_at(range, offset), u64{bytes / 8}, salt);
  synchronize();
}

u64 wrong(address_range const& range, size_t offset, size_t bytes, u64 salt) {
  device_buffer<u64> const count(1);
  launch({2, 64}, count_wrong_words{}, static_cast<u64 const*>(words_at(range, offset)), u64{bytes / 8}, salt,
         count.data());
  synchronize();
  return count[0];
}

TEST(AddressRange, HasMemoryWhereItWasMapped) {
  address_range range{16 * unit};
  EXPECT_EQ(reinterpret_cast<u64>(range.begin()) % address_range::alignment, 0u);
  EXPECT_EQ(range.bytes(), 16 * unit);
  range.map(0, unit, unit);
  range.map(8 * unit, 2 * unit, 2 * unit);
  range.map(unit, unit, unit);
  write(range, 0, 2 * unit, 7);
  write(range, 8 * unit, 2 * unit, 9);
  EXPECT_EQ(wrong(range, 0, 2 * unit, 7), 0u);
  EXPECT_EQ(wrong(range, 8 * unit, 2 * unit, 9), 0u);
  range.unmap(unit, unit);
  EXPECT_EQ(wrong(range, 0, unit, 7), 0u);
  range.map(unit, unit, unit);
  write(range, unit, unit, 1);
  EXPECT_EQ(wrong(range, unit, unit, 1), 0u);
}

TEST(AddressRange, MapsSeveralPartsAtATimeAndGivesBackAnyOfThem) {
  address_range range{16 * unit};
  range.map(unit, 7 * unit, 2 * unit);  // the last part is smaller
  write(range, unit, 7 * unit, 3);
  EXPECT_EQ(wrong(range, unit, 7 * unit, 3), 0u);
  range.unmap(3 * unit, 4 * unit);
  EXPECT_EQ(wrong(range, unit, 2 * unit, 3), 0u);
  range.map(3 * unit, 4 * unit, 4 * unit);
  write(range, 3 * unit, 4 * unit, 4);
  EXPECT_EQ(wrong(range, 3 * unit, 4 * unit, 4), 0u);
  range.unmap(unit, 6 * unit);
  range.unmap(7 * unit, unit);
  range.map(0, 16 * unit, 16 * unit);  // nothing is left there
}

TEST(AddressRange, BeginsWhereItIsWantedIfThatIsFree) {
  auto* const wanted = address_range{64 * unit}.begin();  // free again at the semicolon
  {
    address_range first{16 * unit, false, wanted}, second{16 * unit, false, wanted};
    EXPECT_EQ(first.begin(), wanted);
    EXPECT_NE(second.begin(), wanted);
    EXPECT_EQ(reinterpret_cast<u64>(second.begin()) % address_range::alignment, 0u);
    first.map(0, 16 * unit, unit);
    second.map(0, 16 * unit, unit);
    write(first, 0, 16 * unit, 7);
    write(second, 0, 16 * unit, 9);
    EXPECT_EQ(wrong(first, 0, 16 * unit, 7), 0u);
    EXPECT_EQ(wrong(second, 0, 16 * unit, 9), 0u);
  }
  EXPECT_EQ((address_range{64 * unit, false, wanted}.begin()), wanted) << "all of it was given back";
}

TEST(AddressRange, ReservedAtAnAddressIsThereOrRefused) {
  auto* const wanted = address_range{64 * unit}.begin();
  auto const refusal = [&](auto error, u8* at) {
    return test::message_of<decltype(error)>([&] { reserve_addresses(16 * unit, false, at); });
  };
  auto const first = reserve_addresses(16 * unit, false, wanted);
  EXPECT_EQ(first.begin(), wanted);
  EXPECT_THAT(refusal(out_of_memory{""}, wanted), testing::HasSubstr("is taken"));
  EXPECT_THAT(refusal(std::invalid_argument{""}, wanted + 4096), testing::HasSubstr("no multiple of 2097152"));
  EXPECT_NE(reserve_addresses(16 * unit, false, nullptr).begin(), nullptr);
}

#if defined(__CUDACC__)
size_t free_memory() {
  size_t free = 0, total = 0;
  cuda_backend::throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

TEST(AddressRange, MapsNothingWhenTheDeviceHasNotEnough) {
  size_t const before = free_memory(), part = size_t{1} << 30, whole = before / part * part + 4 * part;
  address_range range{whole};
  EXPECT_THAT(test::message_of<out_of_memory>([&] { range.map(0, whole, part); }),
              testing::HasSubstr(std::to_string(part)));
  EXPECT_GE(free_memory() + part, before) << "but for what others have taken meanwhile";
  range.map(0, part, part);
  write(range, 0, unit, 1);
  EXPECT_EQ(wrong(range, 0, unit, 1), 0u);
}

TEST(AddressRange, LetsOtherDevicesInIfTheyMay) {
  int devices = 0, reaches = 0;
  cuda_backend::throw_on_error(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices > 1) cuda_backend::throw_on_error(cudaDeviceCanAccessPeer(&reaches, 1, 0), "cudaDeviceCanAccessPeer");
  if (!reaches) GTEST_SKIP() << "no second device that reaches the first";
  address_range range{4 * unit, true};
  range.map(0, 2 * unit, unit);
  write(range, 0, 2 * unit, 6);
  cuda_backend::device_scope const on{1};
  EXPECT_EQ(wrong(range, 0, 2 * unit, 6), 0u);
  write(range, 0, 2 * unit, 7);
  cuda_backend::device_scope const back{0};
  EXPECT_EQ(wrong(range, 0, 2 * unit, 7), 0u);
}
#endif

TEST(AddressRange, MovesWithItsMemory) {
  address_range first{4 * unit};
  first.map(2 * unit, unit, unit);
  write(first, 2 * unit, unit, 5);
  auto* const begin = first.begin();
  address_range second{std::move(first)}, third;
  third = std::move(second);
  EXPECT_EQ(third.begin(), begin);
  EXPECT_EQ(wrong(third, 2 * unit, unit, 5), 0u);
  third.map(0, unit, unit);
  third.unmap(2 * unit, unit);
}

TEST(AddressRange, RefusesMoreAddressesThanThereAre) {
  constexpr size_t bytes = size_t{1} << 60;
  EXPECT_THAT(test::message_of<out_of_memory>([] { address_range{bytes}; }), testing::HasSubstr(std::to_string(bytes)));
}

#if !defined(__CUDACC__)
TEST(AddressRangeDeathTest, HasNoMemoryElsewhere) {
  address_range range{4 * unit};
  range.map(0, unit, unit);
  range.begin()[unit - 1] = 1;
  EXPECT_DEATH(range.begin()[unit] = 1, "");
  range.unmap(0, unit);
  EXPECT_DEATH(range.begin()[0] = 1, "");
}
#endif

}  // namespace address_range_test
