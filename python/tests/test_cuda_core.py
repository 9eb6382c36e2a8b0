# SPDX-License-Identifier: Apache-2.0
"""The pages' way to compile with cuda.core's Program, whose cache does not see headers."""

import numpy
import pytest

import warpheap

core = pytest.importorskip("cuda.core")

SOURCE = """
#include <warpheap/warpheap.hpp>
#include <warpheap/heap/c_functions.hpp>
extern "C" __global__ void take(unsigned long long heap, void** got) {
  auto const memory = warpheap::ref_of<warpheap::default_allocator>(heap).malloc(64);
  got[blockIdx.x * blockDim.x + threadIdx.x] = memory;
}
"""


def options(arch, **more):
    return core.ProgramOptions(std="c++20", arch=arch, include_path=[warpheap.get_include()], **more)


def test_a_program_includes_the_headers():
    made = core.Program(SOURCE, "c++", options("sm_80")).compile("cubin")
    assert b".text.take" in bytes(made.code)
    with pytest.raises(Exception, match="warpheap.hpp"):
        core.Program(SOURCE, "c++", core.ProgramOptions(std="c++20", arch="sm_80")).compile("cubin")


def test_a_key_of_the_cache_has_the_headers():
    make_key = pytest.importorskip("cuda.core.utils").make_program_cache_key
    inputs = {"code": SOURCE, "code_type": "c++", "options": options("sm_80"), "target_type": "ptx"}
    with pytest.raises(ValueError, match="extra_digest"):
        make_key(**inputs)
    key = make_key(**inputs, extra_digest=warpheap.headers_digest().encode())
    assert key != make_key(**inputs, extra_digest=b"other headers")


@pytest.mark.gpu
@pytest.mark.parametrize("limit", [None, 1 << 30])  # code of slab_bitmap can use a heap that grows
def test_a_kernel_of_a_program_allocates(limit):
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = core.Program(SOURCE, "c++", options(f"sm_{device.arch}")).compile("cubin").get_kernel("take")
    with warpheap.Heap(64 << 20, stream=stream, limit=limit) as heap:
        fresh = heap.available_slots(64, stream)
        got = device.allocate(8 * 4096, stream=stream)
        core.launch(stream, core.LaunchConfig(grid=16, block=256), kernel, numpy.uint64(heap.handle), got)
        left = heap.available_slots(64, stream)
        assert 0 <= left <= fresh - 4096
        heap.reset(stream)
        assert heap.available_slots(64, stream) == fresh
        got.close(stream)
