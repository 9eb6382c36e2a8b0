// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <warpheap/util/size_text.hpp>

namespace warpheap::archive {

namespace {

std::string cause_of(warpheap_statistics const& seen) {
  if (seen.largest_refused_bytes >= seen.pool_bytes)
    return "one was for more than the pool of " + format_bytes(seen.pool_bytes);
  return "the pool of " + format_bytes(seen.pool_bytes) + " was full, the largest was for " +
         format_bytes(seen.largest_refused_bytes);
}

}  // namespace

std::string report_of(warpheap_statistics const& seen, bool counted) {
  std::string line = "warpheap: at most " + format_bytes(seen.highest_live_bytes) + " live of a pool of " +
                     format_bytes(seen.pool_bytes);
  if (seen.committed_bytes != seen.pool_bytes) line += " (" + format_bytes(seen.committed_bytes) + " have memory)";
  if (counted) line += ", " + std::to_string(seen.calls) + " calls, " + std::to_string(seen.frees) + " frees";
  auto const refused = counted ? seen.refused_calls : seen.refusals;
  line += ", " + std::to_string(refused) + " refused";
  return refused == 0 ? line : line + ": " + cause_of(seen);
}

}  // namespace warpheap::archive
