// SPDX-License-Identifier: Apache-2.0
// Tables of a join made from a seed: the build table has each key once, as the table of a primary
// key; each probe tuple has the key of some build tuple, or a key that no build tuple has.
#pragma once

#include "settings.hpp"

namespace warpheap::tool {

struct join_recipe {
  u64 build_tuples = 0, probe_tuples = 0;
  double match = 1;  ///< share of the probe tuples that have a partner, in [0, 1]
  double skew = 0;   ///< exponent of Zipf's law by which partners are chosen; 0: all are as likely
  u64 seed = 1;
};

/// The number of probe tuples that have a partner, exactly one each: floor(match * probe_tuples),
/// or 0 if nothing is built.
u64 partners_of(join_recipe const& recipe);

struct join_tables {
  join_table build, probe;
};

join_tables make_join_tables(join_recipe const& recipe);

/// log2 of the partitions into which tables are cut unless it is said otherwise.
u32 default_partition_bits(u64 build_tuples);

/// Draws ranks 1 … `ranks`, each with a probability in proportion to 1 / rank^exponent, from
/// uniform numbers in [0, 1).
///
/// Rejection-inversion: the bars of the histogram are covered by the area under a curve whose
/// integral has an inverse. A draw that falls beside its bar is drawn again; more than half of them
/// hit, whatever the exponent.
/// Source: Hörmann and Derflinger, Rejection-inversion to generate variates from monotone discrete
/// distributions, 1996.
class zipf_law {
 public:
  /// `ranks` at least 1, `exponent` not negative.
  zipf_law(u64 ranks, double exponent);

  template <class Uniform>
  u64 draw(Uniform&& uniform) const {
    for (;;) {
      double const area = last_ + uniform() * (first_ - last_);
      u64 const rank = rank_at(area);
      if (hits(area, rank)) return rank;
    }
  }

 private:
  double integral(double x) const;
  u64 rank_at(double area) const;
  bool hits(double area, u64 rank) const;

  u64 ranks_;
  double exponent_;
  double first_, last_;  ///< the ends of the area
};

}  // namespace warpheap::tool
