# SPDX-License-Identifier: Apache-2.0
"""Heaps without a device, for what is decided before one is asked."""

import threading

import warpheap


def heap_that_is_open(allocator="slab_bitmap", handle=0x7F1234560000):
    """A heap of device 0 as a kernel's compilation sees it; only its close() works."""
    heap = object.__new__(warpheap.Heap)
    heap._allocator, heap._handle, heap._device, heap._pool_bytes = allocator, handle, 0, 1 << 20
    heap._growth, heap._closed, heap._lock = None, False, threading.Lock()
    heap.close = lambda: setattr(heap, "_closed", True)
    return heap
