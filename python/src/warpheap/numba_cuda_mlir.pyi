# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels of numba_cuda_mlir, by what warpheap.numba has for numba-cuda."""

from .numba import HeapType, array, prepare_args, replace_malloc

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]
