# SPDX-License-Identifier: Apache-2.0
"""A user's program with every public name, for `mypy --strict` to check; it is not run. test_types.py sees to the names."""

import pathlib
from typing import Any, assert_type

import numpy
from numba import cuda
from numpy.typing import NDArray

import warpheap
import warpheap.cupy
import warpheap.numba
import warpheap.numba_cuda_mlir
import warpheap.torch
from warpheap.numba import array

HANDLED: tuple[type[warpheap.WarpheapError], ...] = (
    warpheap.ClosedHeapError,
    warpheap.CompileError,
    warpheap.CompilerTooOldError,
    warpheap.CudaError,
    warpheap.DamagedHeapError,
    warpheap.GrowthError,
    warpheap.HeapSizeError,
    warpheap.MemoryArgumentError,
    warpheap.NoArchiveError,
    warpheap.NoCompilerError,
    warpheap.NoDeviceError,
    warpheap.NoHostCompilerError,
    warpheap.OutOfMemoryError,
    warpheap.UnknownAllocatorError,
    warpheap.VersionMismatchError,
)
outer = warpheap.Heap(1 << 20)


@cuda.jit(extensions=[warpheap.numba], cache=True)  # type: ignore[untyped-decorator]  # as Numba has no types
def kernel(heap: warpheap.Heap, out: NDArray[numpy.float64]) -> None:
    i = cuda.grid(1)
    memory = heap.malloc(64)
    if memory == 0:
        return
    view = array(memory, 8, numpy.float64)
    view[7] = i
    numbers = heap.new(numpy.float64, 8)
    if numbers.size == 0:
        return
    out[i] = numbers[0] + view[7] + heap.usable_size(memory)
    heap.free(heap.realloc(memory, 128))
    heap.free(numbers)
    outer.free(outer.calloc(2, 8))
    outer.free(outer.aligned_alloc(256, 8))


def look_at(heap: warpheap.Heap) -> warpheap.HeapStatistics:
    assert_type(heap.handle, int)
    assert_type(heap.nbytes + heap.metadata_nbytes + heap.device, int)
    assert_type(heap.allocator, str)
    assert_type(heap.closed, bool)
    assert_type(heap.grow(1 << 20) + heap.poll(stream=0) + heap.trim(), int)
    assert_type(heap.committed_bytes + heap.requested_bytes + heap.available_slots(64), int)
    assert_type(heap.check(), list[str])
    assert_type(heap.live(), NDArray[Any])
    heap.reset(stream=None)
    counts = heap.statistics()
    assert_type(counts.live_blocks + counts.live_bytes + counts.failures, int)
    return heap.statistics_now()


def compile_all() -> list[bytes | str]:
    folder = assert_type(warpheap.archive_folder(), pathlib.Path)
    code = warpheap.compile("", "sm_90", format="ptx", options=["-lineinfo"])
    functions = warpheap.compile_functions("sm_90", allocator=warpheap.allocators[0], prefix="mine")
    return [code, functions, warpheap.get_include(), warpheap.headers_digest(), str(folder)]


def main() -> None:
    assert_type(warpheap.cupy.options(), tuple[str, ...])
    assert_type(warpheap.torch.arguments(verbose=True), dict[str, Any])
    warpheap.torch.load_inline("name", "", "", functions=["f"])
    warpheap.numba.HeapType("scatter").allocator
    try:
        with warpheap.Heap(1 << 20, "slab_bitmap", device=0, limit=1 << 30, chunk=1 << 21) as heap:
            launch = kernel[1, 32]
            launch(heap, numpy.zeros(32))
            print(look_at(heap), compile_all(), warpheap.numba.replace_malloc(heap))
        warpheap.Heap(None, memory=numpy.zeros(1 << 20)).close()
    except HANDLED as problem:
        print(problem, warpheap.numba_cuda_mlir.array)


if __name__ == "__main__":
    main()
