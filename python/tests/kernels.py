# SPDX-License-Identifier: Apache-2.0
"""Kernels of CuPy that take blocks and give them back."""

import numpy
import pytest

from warpheap.allocators import type_of

THREADS = 1 << 14

SOURCE = """
#include <warpheap/all.hpp>
#include <warpheap/heap/c_functions.hpp>
using heap_type = {};
extern "C" __global__ void take(unsigned long long handle, void** got) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  got[i] = warpheap::ref_of<heap_type>(handle).malloc(64);
  if (got[i]) for (unsigned word = 0; word < 16; ++word) static_cast<unsigned*>(got[i])[word] = i;
}}
extern "C" __global__ void give(unsigned long long handle, void** got, unsigned* wrong) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (!got[i]) return;
  for (unsigned word = 0; word < 16; ++word)
    if (static_cast<unsigned*>(got[i])[word] != i) atomicAdd(wrong, 1);
  warpheap::ref_of<heap_type>(handle).free(got[i]);
}}
"""


def kernels(allocator):
    cupy = pytest.importorskip("cupy")
    import warpheap.cupy

    module = cupy.RawModule(code=SOURCE.format(type_of(allocator)), options=warpheap.cupy.options())
    return module.get_function("take"), module.get_function("give")


def take_blocks(heap):
    """A block of 64 bytes for each thread; their addresses, in CuPy's memory."""
    import cupy

    take, _ = kernels(heap.allocator)
    got = cupy.zeros(THREADS, cupy.uint64)
    take((THREADS // 256,), (256,), (numpy.uint64(heap.handle), got))
    return got


def give_blocks(heap, got):
    """Frees the blocks; how many words of them were wrong."""
    import cupy

    _, give = kernels(heap.allocator)
    wrong = cupy.zeros(1, cupy.uint32)
    give((THREADS // 256,), (256,), (numpy.uint64(heap.handle), got, wrong))
    return wrong.get()[0]


def slow_kernel():
    """Runs for about 0.2 seconds."""
    cupy = pytest.importorskip("cupy")
    code = 'extern "C" __global__ void slow() { for (long long end = clock64() + 300000000; clock64() < end;); }'
    return cupy.RawKernel(code, "slow")
