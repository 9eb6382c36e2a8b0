# SPDX-License-Identifier: Apache-2.0
"""What a heap does in kernels of Numba, with types, for checkers of users' kernels.

numba_support.py makes the methods' device code, and simulated_heap.py runs them in Numba's simulator. The
host cannot allocate from a heap on a GPU: there they are these, which say so.
"""

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def _refuse(method: str) -> NoReturn:
    raise TypeError(f"{method}() of a heap is for kernels: pass the heap to one with extensions=[warpheap.numba]")


class KernelMethods:
    """A heap's methods in kernels. A negative size is too large for any heap; what an allocator cannot do returns 0."""

    def malloc(self, nbytes: int) -> int:
        """In a kernel: the address of a block of at least `nbytes` bytes; 0 if there is no memory, or for 0 bytes."""
        _refuse("malloc")

    def calloc(self, count: int, nbytes: int) -> int:
        """In a kernel: the address of `count` times `nbytes` bytes, all zero; 0 if there is no memory."""
        _refuse("calloc")

    def aligned_alloc(self, alignment: int, nbytes: int) -> int:
        """In a kernel: an address that is a multiple of `alignment`, a power of two; 0 if there is no memory."""
        _refuse("aligned_alloc")

    def realloc(self, memory: int, nbytes: int) -> int:
        """In a kernel: the address of the block with its new size, which may have moved. 0 leaves the old block as it was, but for 0 bytes, which free it."""
        _refuse("realloc")

    def new(self, dtype: "DTypeLike", count: int) -> "NDArray[Any]":
        """In a kernel: an array of `count` elements in a block of its own; of none, with size 0, if there is no memory.

        The elements are not initialised. free() takes the array.
        """
        _refuse("new")

    def free(self, memory: "int | NDArray[Any]") -> int:
        """In a kernel: frees a block, by its address or by the array that new() returned. Returns 0."""
        _refuse("free")

    def usable_size(self, memory: int) -> int:
        """In a kernel: bytes of the block at this address."""
        _refuse("usable_size")
