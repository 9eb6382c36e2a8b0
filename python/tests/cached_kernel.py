# SPDX-License-Identifier: Apache-2.0
"""A program of the tests: a kernel with cache=True, of the package in the first argument, with our code changed by the second.

It prints how often the kernel was found in the cache, and why another kernel cannot be there. Without a GPU it compiles for one.
"""

import importlib
import sys
import types as python_types

import numpy

import warpheap
from conftest import devices
from heaps import heap_that_is_open
from warpheap import numba_support

package, change = sys.argv[1:]
digest = numba_support.headers_digest()
numba_support.headers_digest = lambda: digest + change
cuda = importlib.import_module(f"{package}.cuda")
whn = importlib.import_module("warpheap.numba" if package == "numba" else "warpheap.numba_cuda_mlir")
if not devices():
    warpheap.driver.architecture = lambda device=None: "sm_80"
    if package == "numba":
        from numba.cuda import codegen, dispatcher

        dispatcher.get_current_device = lambda: python_types.SimpleNamespace(compute_capability=(8, 0))
        dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin()
        codegen.CUDACodeLibrary._ensure_cc = lambda library, cc: cc or (8, 0, "")
        codegen.JITCUDACodegen.magic_tuple = lambda generator: ((13, 0), (8, 0))
    else:
        from numba_cuda_mlir import tools

        tools._cached_cc = (8, 0)


@cuda.jit(extensions=[whn], cache=True)
def kernel(heap, out):
    numbers = heap.new(numpy.int64, 4)
    if numbers.size > 0:  # numba_cuda_mlir 0.6 takes the lowest bit of a size for its truth
        numbers[3] = 7
        out[0] = numbers[3]
        heap.free(numbers)


kernel.compile((whn.HeapType(), cuda.types.int64[::1]))
hits, misses = (sum(counts.values()) for counts in (kernel.stats.cache_hits, kernel.stats.cache_misses))
print(f"{hits} hits, {misses} misses")
if devices():
    out = cuda.to_device(numpy.zeros(1, numpy.int64))
    with warpheap.Heap(64 << 20) as heap:
        kernel[1, 1](heap, out)
        assert out.copy_to_host()[0] == 7 and heap.statistics().live_blocks == 0
outer = heap_that_is_open()


@cuda.jit(extensions=[whn], cache=True)
def kernel_around_a_heap(out):
    out[0] = outer.malloc(8)


def kernel_in_a_function(inner):
    @cuda.jit(extensions=[whn], cache=True)
    def kernel(out):
        out[0] = inner.malloc(8)

    return kernel


for refused in (kernel_around_a_heap, kernel_in_a_function(outer)):
    try:
        refused.compile((cuda.types.int64[::1],))
    except Exception as problem:
        print(problem)
