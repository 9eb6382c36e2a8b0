// SPDX-License-Identifier: Apache-2.0
// Which member of a job has a vertex. Vertices are dealt by a hash that is a bijection: their
// places in an order that it makes are cut into one range a member. So every member has as many
// vertices, give or take one, and no table says which.
//
// The hash is Fibonacci's: vertex · m mod vertices, where m is about vertices / golden ratio and
// has no divisor in common with it. Neighbouring vertices then lie far apart, and whatever is
// regular in their numbers is spread. Source: Knuth, The Art of Computer Programming, volume 3,
// section 6.4.
#pragma once

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

class vertex_deal {
 public:
  /// Where a vertex is: number `local` of the vertices of member `owner`.
  struct place {
    u32 owner;
    u32 local;
  };

  vertex_deal() = default;
  /// `members` is 1 at least.
  vertex_deal(u32 vertices, u32 members)
      : vertices_{vertices}, members_{members}, multiplier_{members == 1 ? 1 : multiplier_for(vertices)} {}

  WARPHEAP_HOST_DEVICE u32 vertices() const { return vertices_; }
  WARPHEAP_HOST_DEVICE u32 members() const { return members_; }

  /// How many vertices the members before `member` have; `member` may be members().
  WARPHEAP_HOST_DEVICE u32 first(u32 member) const {
    return static_cast<u32>((u64{member} * vertices_ + members_ - 1) / members_);
  }
  WARPHEAP_HOST_DEVICE u32 count(u32 member) const { return first(member + 1) - first(member); }

  /// Where `vertex` is, which must be one of the graph's.
  WARPHEAP_HOST_DEVICE place find(u32 vertex) const {
    u64 const at = u64{vertex} * multiplier_ % vertices_;
    u32 const owner = static_cast<u32>(at * members_ / vertices_);
    return {owner, static_cast<u32>(at) - first(owner)};
  }

 private:
  static u32 multiplier_for(u32 vertices) {
    constexpr u64 golden = 2654435769;  // 2^32 / golden ratio
    u32 made = static_cast<u32>(golden * vertices >> 32);
    while (made > 1 && greatest_common_divisor(made, vertices) != 1) --made;
    return made ? made : 1;
  }

  static u32 greatest_common_divisor(u32 left, u32 right) {
    while (right) {
      u32 const rest = left % right;
      left = right;
      right = rest;
    }
    return left;
  }

  u32 vertices_ = 0;
  u32 members_ = 1;
  u32 multiplier_ = 1;
};

}  // namespace warpheap::tool
