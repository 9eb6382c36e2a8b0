// SPDX-License-Identifier: Apache-2.0
// Prints what making a heap takes in C++: milliseconds of each of seven heaps, as a JSON array.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <warpheap/warpheap.hpp>

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: make_heap BYTES\n"), 2;
  unsigned long long const bytes = std::strtoull(words[1], nullptr, 10);
  if (cudaFree(nullptr) != cudaSuccess) return std::fprintf(stderr, "make_heap: no GPU\n"), 1;
  for (int round = -1; round < 7; ++round) {  // the first one loads the module
    auto const begin = std::chrono::steady_clock::now();
    warpheap::heap heap{bytes};
    cudaDeviceSynchronize();
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
    if (round >= 0) std::printf("%s%.4f", round ? ", " : "[", took.count());
  }
  std::puts("]");
}
