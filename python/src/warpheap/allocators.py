"""The allocators by name, and the C++ types that they are."""

from .errors import UnknownAllocatorError

_TYPES = {
    "slab_bitmap": "warpheap::default_allocator",
    "ring_buffer": "warpheap::ring_buffer_allocator",
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


def type_of(allocator: str) -> str:
    """The C++ type of the allocator called `allocator`."""
    try:
        return _TYPES[allocator]
    except (KeyError, TypeError):
        raise UnknownAllocatorError(f"no allocator is called {allocator!r}; there are: {', '.join(NAMES)}") from None
