// SPDX-License-Identifier: Apache-2.0
// malloc, free, new and delete of device code, served by one heap of ours, in programs whose
// kernels are not edited:
//
//   nvcc -include warpheap/heap/override.hpp kernels.cu   each unit; with -rdc=true at least one
//   warpheap::override_heap heap{4_GiB};                  host: the heap, for as long as it lives
//
// The names are in override_names.hpp, the heap is in override_heap.hpp.
// docs/guide/drop_in_replacement.md has the rest.
#pragma once

#include "override_names.hpp"

#include "override_heap.hpp"
