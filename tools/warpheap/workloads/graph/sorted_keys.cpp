// SPDX-License-Identifier: Apache-2.0
#include "sorted_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace warpheap::tool {

namespace {

/// A digit has at most 2^11 values. A pass writes to as many places in turn, which fit the
/// second-level cache and its address translation.
constexpr u32 most_digit_bits = 11;

u32 bits_of(u64 limit) { return static_cast<u32>(std::bit_width(std::max<u64>(limit, 2) - 1)); }
u32 digits_of_half(u64 limit) { return (bits_of(limit) + most_digit_bits - 1) / most_digit_bits; }

/// Turns each chunk's counts into the place of its first item of each value: after all smaller
/// items, and after the equal ones of the chunks before.
void counts_to_places(std::vector<std::vector<u64>>& counts) {
  u64 place = 0;
  for (size_t value = 0; value < counts.front().size(); ++value)
    for (auto& of_chunk : counts) {
      u64 const count = of_chunk[value];
      of_chunk[value] = place;
      place += count;
    }
}

/// Moves `from` to `to`, ordered by `bits` bits from `shift` up; equal ones keep their order.
void sort_by_digit(entry_keys const& from, entry_keys& to, u32 shift, u32 bits, parallel_work& work) {
  auto const chunks = chunked::for_threads(from.size(), usual_chunk);
  u64 const mask = (u64{1} << bits) - 1;
  std::vector<std::vector<u64>> places(chunks.count(), std::vector<u64>(mask + 1));
  // Plain pointers: through vectors the compiler reloads them after every store.
  u64 const* const keys = from.data();
  work.pass(chunks.count(), [&places, chunks, keys, shift, mask](u64 chunk) {
    u64* const counts = places[chunk].data();
    for (u64 i = chunks.first(chunk), last = chunks.last(chunk); i < last; ++i) ++counts[keys[i] >> shift & mask];
  });
  counts_to_places(places);
  work.pass(chunks.count(), [&places, chunks, keys, shift, mask, moved = to.data()](u64 chunk) {
    u64* const place = places[chunk].data();
    for (u64 i = chunks.first(chunk), last = chunks.last(chunk); i < last; ++i)
      moved[place[keys[i] >> shift & mask]++] = keys[i];
  });
}

/// Moves the first of all equal keys of `from` to `to`, which becomes as long as needed.
void keep_first(entry_keys const& from, entry_keys& to, parallel_work& work) {
  chunked const chunks{from.size(), usual_chunk};
  auto const is_first = [&](u64 i) { return i == 0 || from[i] != from[i - 1]; };
  std::vector<u64> places(chunks.count() + 1);
  work.pass(chunks.count(), [&](u64 chunk) {
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) places[chunk + 1] += is_first(i);
  });
  std::partial_sum(places.begin(), places.end(), places.begin());
  work.pass(chunks.count(), [&](u64 chunk) {
    u64 place = places[chunk];
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i)
      if (is_first(i)) to[place++] = from[i];
  });
  to.resize(places.back());
}

}  // namespace

void sort_unique(entry_keys& keys, u64 limit, parallel_work& work) {
  if (keys.empty()) return;
  entry_keys other(keys.size());
  u32 const digits = digits_of_half(limit), bits = (bits_of(limit) + digits - 1) / digits;
  for (u32 const half : {0u, 32u})
    for (u32 digit = 0; digit < digits; ++digit) {
      sort_by_digit(keys, other, half + digit * bits, bits, work);
      keys.swap(other);
    }
  keep_first(keys, other, work);
  keys.swap(other);
}

u64 sort_passes(u64 limit) { return 2 * 2 * digits_of_half(limit) + 2; }

}  // namespace warpheap::tool
