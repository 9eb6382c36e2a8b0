// SPDX-License-Identifier: Apache-2.0
// UAlloc alone: blocks of up to 1 KiB. tests/policy/ has it on pools of a few bins under many more
// schedules.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(ualloc, warpheap::ualloc_allocator, warpheap::conformance::contention::full, 24);
