// SPDX-License-Identifier: Apache-2.0
// Compiled as a program without CUDA compiles the inspection, and linked with the tests.
#define WARPHEAP_READER

#include "warpheap/all.hpp"
#include "warpheap/heap/growing_heap.hpp"
//
#include "inspection_functions.hpp"
