// SPDX-License-Identifier: Apache-2.0
#include "tables.hpp"

#include <algorithm>
#include <cmath>

#include "warpheap/util/random.hpp"

namespace warpheap::tool {

zipf_law::zipf_law(u64 ranks, double exponent)
    : ranks_{ranks},
      exponent_{exponent},
      first_{integral(1.5) - 1},
      last_{integral(static_cast<double>(ranks) + 0.5)} {}

/// The integral of x^-exponent from 1 to `x`.
double zipf_law::integral(double x) const {
  double const power = 1 - exponent_, log = std::log(x);
  return std::abs(power * log) < 1e-8 ? log : std::expm1(power * log) / power;
}

u64 zipf_law::rank_at(double area) const {
  double const power = 1 - exponent_;
  double const log = std::abs(power * area) < 1e-8 ? area : std::log1p(std::max(power * area, -1.0)) / power;
  double const x = std::min(std::exp(log), static_cast<double>(ranks_));
  return std::clamp<u64>(static_cast<u64>(std::llround(x)), 1, ranks_);
}

bool zipf_law::hits(double area, u64 rank) const {
  auto const x = static_cast<double>(rank);
  return area >= integral(x + 0.5) - std::pow(x, -exponent_);
}

/// Tuples of the build table in a partition, about; but a table has at most
/// 2^most_default_partition_bits partitions.
static constexpr u64 tuples_of_a_partition = 4096;
static constexpr u32 most_default_partition_bits = 12;

u32 default_partition_bits(u64 build_tuples) {
  u32 bits = 0;
  while (bits < most_default_partition_bits && build_tuples >> bits > tuples_of_a_partition) ++bits;
  return bits;
}

u64 partners_of(join_recipe const& recipe) {
  return recipe.build_tuples == 0 ? 0 : static_cast<u64>(recipe.match * static_cast<double>(recipe.probe_tuples));
}

join_tables make_join_tables(join_recipe const& recipe) {
  join_tables made;
  random_sequence random{recipe.seed};
  // A bijection of the indices: keys are distinct, and those of indices beyond the build table are
  // not in it.
  auto const scramble = static_cast<u32>(mix(recipe.seed ^ recipe.build_tuples) >> 32);
  auto const key_of = [&](u64 index) { return mix32(static_cast<u32>(index) ^ scramble); };
  auto const uniform = [&] { return (static_cast<double>(random.next()) + 0.5) / 4294967296.0; };

  made.build.keys.resize(recipe.build_tuples);
  made.build.payloads.resize(recipe.build_tuples);
  for (u64 i = 0; i < recipe.build_tuples; ++i) {
    made.build.keys[i] = key_of(i);
    made.build.payloads[i] = random.next();
  }

  zipf_law const law{std::max<u64>(recipe.build_tuples, 1), recipe.skew};
  auto const strangers = static_cast<double>((u64{1} << 32) - recipe.build_tuples);
  u64 const partners = partners_of(recipe);
  made.probe.keys.resize(recipe.probe_tuples);
  made.probe.payloads.resize(recipe.probe_tuples);
  for (u64 i = 0; i < recipe.probe_tuples; ++i) {
    u64 const index =
        i < partners ? law.draw(uniform) - 1 : recipe.build_tuples + static_cast<u64>(uniform() * strangers);
    made.probe.keys[i] = key_of(index);
    made.probe.payloads[i] = random.next();
  }
  // Shuffles, so that tuples with a partner lie anywhere. The order of a table does not matter to a
  // join that partitions, but it does to one that does not.
  for (u64 i = recipe.probe_tuples; i > 1; --i)
    std::swap(made.probe.keys[i - 1], made.probe.keys[random.below(static_cast<u32>(i))]);
  return made;
}

}  // namespace warpheap::tool
