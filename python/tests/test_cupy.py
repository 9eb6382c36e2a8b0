# SPDX-License-Identifier: Apache-2.0
"""CuPy: the options, and RawModule and RawKernel of every allocator on a GPU."""

import numpy
import pytest

import warpheap
import warpheap.cupy
from warpheap.allocators import type_of

SOURCE = """
#include <warpheap/all.hpp>
#include <warpheap/heap/c_functions.hpp>
extern "C" __global__ void take(unsigned long long heap, void** got) {
  got[blockIdx.x * blockDim.x + threadIdx.x] = warpheap::ref_of<ALLOCATOR>(heap).malloc(64);
}
"""


def test_the_options_compile_with_those_that_cupy_adds():
    """CuPy's RawModule passes these two as well. Its -I and --std are ours here too, so they are left out."""
    digest = [word for word in warpheap.cupy.options() if word.startswith("-D")]
    options = ["-ftz=true", "--device-as-default-execution-space", "-rdc=false", *digest]
    assert b".entry take" in warpheap.compile(SOURCE.replace("ALLOCATOR", type_of("slab_bitmap")), "sm_80", "ptx", options)


def test_the_options_change_with_the_headers(monkeypatch):
    before = warpheap.cupy.options()
    assert "--std=c++20" in before and f"-I{warpheap.get_include()}" in before
    monkeypatch.setattr(warpheap.cupy, "headers_digest", lambda: "0" * 64)
    assert warpheap.cupy.options() != before


@pytest.mark.gpu
def test_a_raw_kernel_and_a_raw_module_allocate():
    cupy = pytest.importorskip("cupy")
    source = SOURCE.replace("ALLOCATOR", type_of("slab_bitmap"))
    alone = cupy.RawKernel(source, "take", options=warpheap.cupy.options())
    of_module = cupy.RawModule(code=source, options=warpheap.cupy.options()).get_function("take")
    with warpheap.Heap(None, memory=cupy.empty(64 << 20, cupy.uint8)) as heap:
        fresh = heap.available_slots(64)
        for kernel in (alone, of_module):
            got = cupy.zeros(4096, cupy.uint64)
            kernel((16,), (256,), (numpy.uint64(heap.handle), got))
            addresses = numpy.sort(got.get())
            assert addresses[0] != 0 and (numpy.diff(addresses) >= 64).all()
        assert heap.available_slots(64) <= fresh - 2 * 4096
