// SPDX-License-Identifier: Apache-2.0
// Frames of one size, and requests that are refused above it: PIConGPU's 8 KiB, and small ones of
// an odd size, which fill no pool to its end.
#include "suite.hpp"
#include "warpheap/all.hpp"

WARPHEAP_CONFORMANCE(ring_buffer, warpheap::ring_buffer_allocator, warpheap::conformance::contention::full, 2);

constexpr warpheap::creation::ring_buffer_config odd_frames{.frame_bytes = 2000};
using ring_of_2000 = warpheap::plain_allocator<warpheap::creation::ring_buffer<odd_frames>>;

WARPHEAP_CONFORMANCE(ring_buffer_2000, ring_of_2000, warpheap::conformance::contention::full, 3);
