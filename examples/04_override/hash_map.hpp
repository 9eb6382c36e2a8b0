// SPDX-License-Identifier: Apache-2.0
// A hash map on the GPU, built and emptied once.
#pragma once

struct map_result {
  unsigned long long checksum = 0;  ///< of all keys and values that were found in the map
  unsigned long long missing = 0;   ///< words that found no memory
  float build_ms = 0;
  float empty_ms = 0;
};

/// Counts words of a made-up text, `words` of them, in a hash map, and empties it.
map_result build_map(unsigned words);
