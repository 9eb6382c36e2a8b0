// SPDX-License-Identifier: Apache-2.0
// The default heap and every other allocator.
#pragma once

#include "allocator/halloc.hpp"
#include "allocator/queue.hpp"
#include "allocator/random_walk.hpp"
#include "allocator/ring_buffer.hpp"
#include "allocator/rw_malloc.hpp"
#include "allocator/scatter.hpp"
#include "allocator/tbuddy.hpp"
#include "allocator/throughput.hpp"
#include "allocator/toolkit.hpp"
#include "allocator/ualloc.hpp"
#include "warpheap.hpp"
