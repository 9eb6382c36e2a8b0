# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba-cuda.

    @cuda.jit(extensions=[warpheap.numba])
    def kernel(heap, out):
        memory = heap.malloc(64)

The module is itself the extension: Numba calls prepare_args(). numba.pyi has its types and what they say.
"""

from .heap_arguments import simulates
from .missing import needed

with needed(__name__, "numba-cuda 0.30 or newer", "warpheap[numba]", "numba-cuda"):
    if simulates():
        from .numba_simulated import HeapType, array, prepare_args, replace_malloc
    else:
        from .numba_device import HeapType, array, prepare_args, replace_malloc

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]
