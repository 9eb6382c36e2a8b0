# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba-cuda.

    @cuda.jit(extensions=[warpheap.numba])
    def kernel(heap, out):
        memory = heap.malloc(64)

The module is itself the extension: Numba calls prepare_args(). In its simulator the heaps are the host's.
"""

from typing import Any

from numpy.typing import DTypeLike, NDArray

from .heap import Heap

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]

class HeapType:
    """The type of the heaps of an allocator, for a kernel's signature."""

    allocator: str
    def __init__(self, allocator: str = "slab_bitmap"): ...

def array(memory: int, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """In a kernel: an array of `count` elements of type `dtype` at the address `memory`."""

def prepare_args(kernel_type: Any, value: Any, stream: Any = None, retr: Any = None) -> tuple[Any, Any]:
    """What a kernel with `extensions` of this module is given for a heap. An error if it cannot use it."""

def replace_malloc(heap: Heap) -> list[Any]:
    """For a kernel's `link`: its malloc and free, and those of all that is linked with it, are then the heap's.

    That includes the package's own runtime, which serves NumPy's arrays in kernels. The kernel
    keeps the heap from being collected, and must not run once the heap is closed.
    """
