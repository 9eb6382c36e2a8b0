# SPDX-License-Identifier: Apache-2.0
"""The allocators by name, and the C++ types that they are."""

from .errors import GrowthError, UnknownAllocatorError

# Where the types are declared.
HEADERS = "#include <warpheap/all.hpp>\n#include <warpheap/heap/growing_heap.hpp>\n"

_TYPES = {
    "slab_bitmap": "warpheap::default_allocator",
    "ring_buffer": "warpheap::ring_buffer_allocator",
    "queue_pages": "warpheap::queue_pages_allocator",
    "queue_chunks": "warpheap::queue_chunks_allocator",
    "queue_pages_virtual": "warpheap::queue_pages_virtual_allocator",
    "queue_chunks_virtual": "warpheap::queue_chunks_virtual_allocator",
    "rw": "warpheap::rw_allocator",
    "rw_bitmap": "warpheap::rw_bitmap_allocator",
    "corw": "warpheap::corw_allocator",
    "rw_malloc": "warpheap::rw_malloc_allocator",
    "scatter": "warpheap::scatter_allocator",
    "halloc": "warpheap::halloc_allocator",
    "tbuddy": "warpheap::tbuddy_allocator",
    "ualloc": "warpheap::ualloc_allocator",
    "throughput": "warpheap::throughput_allocator",
}

NAMES = tuple(_TYPES)

_GROWING = {"slab_bitmap": "slab_bitmap_growing"}  # what an allocator is called in heaps with a limit
_TYPES["slab_bitmap_growing"] = "warpheap::polled_allocator"

WITH_LIMIT = tuple(_GROWING.values())


def type_of(allocator: str) -> str:
    """The C++ type of the allocator called `allocator`."""
    try:
        return _TYPES[allocator]
    except (KeyError, TypeError):
        raise UnknownAllocatorError(f"no allocator is called {allocator!r}; there are: {', '.join(_TYPES)}") from None


def grows(allocator: str) -> bool:
    """Whether this is the name of an allocator whose pool grows."""
    return allocator in WITH_LIMIT


def growing(allocator: str) -> str:
    """The name of this allocator where its pool grows."""
    type_of(allocator)
    if grows(allocator):
        return allocator
    if allocator not in _GROWING:
        raise GrowthError(f"the pool of {allocator} cannot grow: leave `limit` out; those that can: {', '.join(_GROWING)}")
    return _GROWING[allocator]
