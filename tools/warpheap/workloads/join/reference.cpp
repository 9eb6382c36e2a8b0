// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <unordered_map>

#include "tuple.hpp"

namespace warpheap::tool {

join_sum reference_join(join_table const& build, join_table const& probe) {
  struct group {
    u64 tuples = 0, sum = 0;
  };
  std::unordered_map<u32, group> groups;
  groups.reserve(build.keys.size());
  for (size_t i = 0; i < build.keys.size(); ++i) {
    auto& [tuples, sum] = groups[build.keys[i]];
    ++tuples;
    sum += build_factor(build.keys[i], build.payloads[i]);
  }
  join_sum made;
  for (size_t i = 0; i < probe.keys.size(); ++i) {
    auto const partners = groups.find(probe.keys[i]);
    if (partners == groups.end()) continue;
    // Tables are of less than 2^32 tuples each, so the number does not overflow.
    made.tuples += partners->second.tuples;
    made.checksum += partners->second.sum * probe_factor(probe.keys[i], probe.payloads[i]);
  }
  return made;
}

}  // namespace warpheap::tool
