// malloc, free, new and delete of device code, served by one heap of ours, in programs whose
// kernels are not edited:
//
//   nvcc -include warpheap/heap/override.hpp kernels.cu      each unit, or with -rdc=true at least one of a program
//   warpheap::override_heap heap{4_GiB};                     host: the heap, for as long as it lives
//
// The names themselves are in override_names.hpp, the heap in override_heap.hpp.
// docs/guide/drop_in_replacement.md has the rest.
#pragma once

#include "override_names.hpp"

#include "override_heap.hpp"
