// SPDX-License-Identifier: Apache-2.0
#include "random_order.hpp"

#include <algorithm>
#include <bit>

#include "warpheap/util/random.hpp"

namespace warpheap::tool {

namespace {

/// A bucket has about this many items: 128 KiB.
constexpr u64 items_of_bucket = u64{1} << 14;
constexpr u32 most_bucket_bits = 14;

/// The buckets that items draw.
class bucket_draw {
 public:
  bucket_draw(u64 items, u64 seed) : seed_{mix(seed)} {
    bits_ = std::min(static_cast<u32>(std::bit_width(items / items_of_bucket)), most_bucket_bits);
  }
  u64 buckets() const { return u64{1} << bits_; }
  u64 operator()(u64 item) const { return bits_ ? mix(seed_ + item) >> (64 - bits_) : 0; }

  /// The sequence that shuffles a bucket.
  random_sequence sequence(u64 bucket) const { return random_sequence{~seed_ + bucket}; }

 private:
  u64 seed_;
  u32 bits_;
};

}  // namespace

edges_array random_order(edges_array const& items, u64 size, u64 seed, parallel_work& work) {
  bucket_draw const bucket_of{items.size(), seed};
  auto const chunks = chunked::for_threads(items.size(), usual_chunk);
  std::vector<std::vector<u64>> places(chunks.count(), std::vector<u64>(bucket_of.buckets()));
  work.pass(chunks.count(), [&](u64 chunk) {
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i) ++places[chunk][bucket_of(i)];
  });

  // Buckets up to the one that has the last wanted item.
  std::vector<u64> firsts{0};
  while (firsts.back() < size) {
    u64 place = firsts.back();
    for (auto& of_chunk : places) place += std::exchange(of_chunk[firsts.size() - 1], place);
    firsts.push_back(place);
  }
  u64 const buckets = firsts.size() - 1;

  edges_array ordered(firsts.back());
  work.pass(chunks.count(), [&](u64 chunk) {
    for (u64 i = chunks.first(chunk); i < chunks.last(chunk); ++i)
      if (u64 const bucket = bucket_of(i); bucket < buckets) ordered[places[chunk][bucket]++] = items[i];
  });
  work.pass(buckets, [&](u64 bucket) {
    auto random = bucket_of.sequence(bucket);
    auto* const first = ordered.data() + firsts[bucket];
    for (u64 left = firsts[bucket + 1] - firsts[bucket]; left > 1; --left)
      std::swap(first[left - 1], first[random.below(static_cast<u32>(left))]);
  });
  ordered.resize(size);
  return ordered;
}

}  // namespace warpheap::tool
