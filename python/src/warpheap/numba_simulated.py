# SPDX-License-Identifier: Apache-2.0
"""Heaps inside kernels that numba-cuda's simulator runs, as Python.

The simulator's jit() refuses options of the compiler's. Here it takes them, so that a program is the same with and without a GPU.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import cuda as _cuda
from numba.cuda.simulator.kernel import FakeCUDAKernel as _FakeCUDAKernel

from .allocators import type_of
from .heap import Heap
from .simulated_heap import view as array

__all__ = ["HeapType", "array", "prepare_args", "replace_malloc"]


class HeapType:
    """The simulator compiles nothing, and so needs no types."""

    def __init__(self, allocator: str = "slab_bitmap"):
        type_of(allocator)
        self.allocator = allocator


def prepare_args(kernel_type: Any, value: Any, stream: Any = None, retr: Any = None) -> tuple[Any, Any]:
    """What a kernel is given: a heap itself, if it is open."""
    if isinstance(value, Heap):
        value.handle
    return kernel_type, value


def replace_malloc(heap: Heap) -> list[Any]:
    """The simulator links no code, so this is an error."""
    raise NotImplementedError("replace_malloc() needs a GPU: NUMBA_ENABLE_CUDASIM is set, and Numba's simulator links no code")


class _Refusal:
    """The extension of kernels without ours, which a GPU refuses too."""

    @staticmethod
    def prepare_args(kernel_type: Any, value: Any, stream: Any = None, retr: Any = None) -> tuple[Any, Any]:
        if isinstance(value, Heap):
            raise TypeError("a heap is an argument of a kernel without extensions=[warpheap.numba]")
        return kernel_type, value


_OF_THE_COMPILER = {"forceinline", "launch_bounds", "lineinfo", "lto", "max_registers"}


def _taking_options(jit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(jit)
    def taking(*arguments: Any, extensions: Any = (), **options: Any) -> Any:
        def extended(kernel: Any) -> Any:
            has_ours = any(getattr(each, "prepare_args", None) is prepare_args for each in extensions)
            kernel.extensions = [*extensions, *([] if has_ours else [_Refusal])]
            return kernel

        made = jit(*arguments, **{name: value for name, value in options.items() if name not in _OF_THE_COMPILER})
        return extended(made) if isinstance(made, _FakeCUDAKernel) else lambda function: extended(made(function))

    return taking


_cuda.jit = _taking_options(_cuda.jit)
