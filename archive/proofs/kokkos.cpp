// SPDX-License-Identifier: Apache-2.0
// A program on Kokkos, whose kernel calls malloc and free as any device code may. Kokkos itself was
// compiled before, with relocatable device code. Only main() knows of Warpheap.
#include <Kokkos_Core.hpp>

#include <cstdio>
#include <cstdlib>

#include "warpheap.h"

static void check(warpheap_status status, char const* what) {
  if (status == WARPHEAP_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, warpheap_last_error());
  std::exit(1);
}

// The sum of each row's numbers, which are in a block of the row's own while its thread runs.
static unsigned long long sum_rows(unsigned rows, unsigned length) {
  unsigned long long sum = 0;
  Kokkos::parallel_reduce(
      "sum_rows", Kokkos::RangePolicy<Kokkos::Cuda>(0, rows),
      KOKKOS_LAMBDA(unsigned row, unsigned long long& partial) {
        auto* const numbers = static_cast<unsigned*>(malloc(length * sizeof(unsigned)));
        if (!numbers) return;
        for (unsigned k = 0; k < length; ++k) numbers[k] = row + k;
        for (unsigned k = length; k-- > 0;) partial += numbers[k];
        free(numbers);
      },
      sum);
  return sum;
}

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  unsigned const rows = 1 << 20, length = 100;
  warpheap_settings settings = {};
  settings.size = "2GiB";
  settings.counts = 1;
  warpheap_heap* heap = nullptr;
  check(warpheap_create(&heap, &settings), "warpheap_create");
  check(warpheap_bind_program(heap), "warpheap_bind_program");
  unsigned long long const sum = sum_rows(rows, length);
  warpheap_statistics seen = {};
  seen.struct_bytes = sizeof seen;
  check(warpheap_read_statistics(heap, &seen), "warpheap_read_statistics");
  check(warpheap_destroy(heap), "warpheap_destroy");

  unsigned long long expected = 0;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < length; ++k) expected += row + k;
  std::printf("sum %llu of %llu; the heap counted %llu calls, %llu frees, %llu live\n", sum, expected, seen.calls,
              seen.frees, seen.live_blocks);
  bool const right = sum == expected && seen.calls == rows && seen.frees == rows && seen.live_blocks == 0;
  std::puts(right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
