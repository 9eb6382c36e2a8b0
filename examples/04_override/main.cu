// SPDX-License-Identifier: Apache-2.0
// Unedited kernels on our heap: hash_map.cu is compiled as it is, and once more with the options
//
//   -include warpheap/heap/override.hpp -Dbuild_map=build_map_on_warpheap
//
// of which the second only distinguishes the two in one program.
#include <warpheap/heap/override.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

#include "hash_map.hpp"

map_result build_map_on_warpheap(unsigned words);

namespace {

using namespace warpheap::literals;

constexpr unsigned words = 1u << 20;

template <class Build>
map_result measure(char const* allocator, Build build) {
  build(words);  // warms up
  auto const made = build(words);
  std::printf("%-12s built in %8.2f ms, emptied in %8.2f ms, checksum %016llx\n", allocator, made.build_ms,
              made.empty_ms, made.checksum);
  if (made.missing) std::printf("%-12s had no memory for %llu words\n", allocator, made.missing);
  return made;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no GPU here, so nothing was run\n");
    return 0;
  }
  // CUDA's own heap has 8 MiB unless a program says otherwise before its first kernel.
  if (cudaDeviceSetLimit(cudaLimitMallocHeapSize, 512_MiB) != cudaSuccess) return 1;
  auto const cudas = measure("CUDA's", build_map);

  // from here on, hash_map.cu's second compilation allocates from it
  warpheap::override_heap const heap{512_MiB};
  auto const ours = measure("Warpheap's", build_map_on_warpheap);

  auto const live = heap.heap().statistics().live_blocks;
  std::printf("checksums are %s; %llu blocks are live\n", cudas.checksum == ours.checksum ? "the same" : "different",
              live);
  return cudas.checksum == ours.checksum && cudas.missing == 0 && ours.missing == 0 && live == 0 ? 0 : 1;
}
