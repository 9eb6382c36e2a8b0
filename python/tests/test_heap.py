"""Heaps on a GPU. What a kernel gets from one is checked in CuPy, whose compiler sees the headers."""

import gc
import subprocess
import sys

import numpy
import pytest

import warpheap
from warpheap import driver
from warpheap.allocators import type_of

MIB = 1 << 20
THREADS = 1 << 14

SOURCE = """
#include <warpheap/warpheap.hpp>
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


def blocks_hold_their_contents(heap):
    import cupy

    take, give = kernels(heap.allocator)
    got, wrong = cupy.zeros(THREADS, cupy.uint64), cupy.zeros(1, cupy.uint32)
    handle = numpy.uint64(heap.handle)
    take((THREADS // 256,), (256,), (handle, got))
    addresses = numpy.sort(got.get())
    give((THREADS // 256,), (256,), (handle, got, wrong))
    assert addresses[0] != 0 and (numpy.diff(addresses) >= 64).all() and not wrong.get()[0]


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_threads_allocate_from_every_allocator(allocator):
    pytest.importorskip("cupy")
    with warpheap.Heap(256 * MIB, allocator) as heap:
        assert 128 * MIB <= heap.nbytes <= 256 * MIB and heap.device == 0 and heap.handle
        for _ in range(3):
            blocks_hold_their_contents(heap)
        heap.reset()
        blocks_hold_their_contents(heap)


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_reset_frees_every_block(allocator):
    cupy = pytest.importorskip("cupy")
    with warpheap.Heap(256 * MIB, allocator) as heap:
        fresh = heap.available_slots(64)
        assert fresh >= THREADS
        take, _ = kernels(allocator)
        take((THREADS // 256,), (256,), (numpy.uint64(heap.handle), cupy.zeros(THREADS, cupy.uint64)))
        assert heap.available_slots(64) < fresh
        heap.reset()
        assert heap.available_slots(64) == fresh


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_a_heap_lies_in_memory_of_the_caller(allocator):
    cupy = pytest.importorskip("cupy")
    memory = cupy.empty(512 * MIB + 7, cupy.uint8)
    begin = memory.data.ptr
    with warpheap.Heap(None, allocator, memory=memory[3:]) as heap:
        assert 256 * MIB < heap.nbytes < 512 * MIB
        assert begin < heap.handle < begin + memory.nbytes
        blocks_hold_their_contents(heap)
    memory.fill(0xA5)
    with warpheap.Heap(256 * MIB, allocator, memory=memory[3:]) as heap:
        blocks_hold_their_contents(heap)
        assert heap.handle < begin + 3 + 256 * MIB
    assert (memory[3 + 256 * MIB :] == 0xA5).all() and (memory[:3] == 0xA5).all()


@pytest.mark.gpu
def test_a_heap_lies_in_memory_of_other_packages():
    cupy = pytest.importorskip("cupy")

    class Buffer:
        ptr, size = 0, 0

    memory = cupy.zeros(16 * MIB, cupy.uint8)
    buffer = Buffer()
    buffer.ptr, buffer.size = memory.data.ptr, memory.nbytes
    with warpheap.Heap(None, memory=buffer) as heap:
        blocks_hold_their_contents(heap)
    torch = pytest.importorskip("torch")
    with warpheap.Heap(None, memory=torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")) as heap:
        blocks_hold_their_contents(heap)


@pytest.mark.gpu
def test_streams_of_other_packages_are_understood():
    cupy = pytest.importorskip("cupy")
    streams = [None, 0, cupy.cuda.Stream()]
    try:
        import torch

        streams.append(torch.cuda.Stream())
    except ImportError:
        pass
    for stream in streams:
        with warpheap.Heap(16 * MIB, stream=stream) as heap:
            heap.reset(stream)
            assert heap.available_slots(64, stream) >= THREADS


@pytest.mark.gpu
def test_memory_comes_back():
    def free():
        with driver.current(0):
            return driver.call("cuMemGetInfo")[0]

    warpheap.Heap(MIB).close()
    before = free()
    heap = warpheap.Heap(1 << 30)
    assert free() <= before - (1 << 30)
    heap.close()
    heap.close()
    assert free() == before and heap.closed and "closed" in repr(heap)
    for use in (lambda: heap.handle, heap.reset, lambda: heap.available_slots(64), heap.__enter__):
        with pytest.raises(warpheap.ClosedHeapError):
            use()
    heap = warpheap.Heap(1 << 30)
    del heap
    gc.collect()
    assert free() == before
    for _ in range(3):
        with pytest.raises(warpheap.OutOfMemoryError):
            warpheap.Heap(1 << 42)
    assert free() == before


@pytest.mark.gpu
def test_the_callers_context_stays_current():
    before = int(driver.call("cuCtxGetCurrent"))
    warpheap.Heap(MIB).close()
    assert int(driver.call("cuCtxGetCurrent")) == before


@pytest.mark.gpu
def test_bad_memory_and_devices_are_refused():
    cupy = pytest.importorskip("cupy")
    with pytest.raises(warpheap.NoDeviceError, match="99"):
        warpheap.Heap(MIB, device=99)
    with pytest.raises(warpheap.HeapSizeError, match="1000"):
        warpheap.Heap(None, memory=cupy.zeros(1000, cupy.uint8))
    with pytest.raises(warpheap.HeapSizeError, match=str(2 * MIB)):
        warpheap.Heap(2 * MIB, memory=cupy.zeros(MIB, cupy.uint8))
    with pytest.raises(warpheap.MemoryArgumentError, match="contiguous"):
        warpheap.Heap(None, memory=cupy.zeros((4096, 4096), cupy.uint8)[:, ::2])

    class Pinned:
        size = 16 * MIB
        ptr = cupy.cuda.alloc_pinned_memory(16 * MIB).ptr

    with pytest.raises(warpheap.MemoryArgumentError):
        warpheap.Heap(None, memory=Pinned())


@pytest.mark.gpu
def test_memory_of_another_device_is_refused():
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")
    with cupy.cuda.Device(1):
        memory = cupy.zeros(16 * MIB, cupy.uint8)
    with pytest.raises(warpheap.MemoryArgumentError, match="device 1's"):
        warpheap.Heap(None, device=0, memory=memory)
    with warpheap.Heap(16 * MIB, device=1) as heap:
        assert heap.device == 1


def test_bad_arguments_are_refused_before_a_device_is_looked_for():
    with pytest.raises(warpheap.UnknownAllocatorError, match="'nosuch'"):
        warpheap.Heap(MIB, "nosuch")
    for size in (-1, 0, MIB - 1, 1 << 43, 1 << 70):
        with pytest.raises(warpheap.HeapSizeError, match=str(size)):
            warpheap.Heap(size)
    for size in (1.5, "1", [MIB]):
        with pytest.raises(TypeError, match="nbytes"):
            warpheap.Heap(size)
    with pytest.raises(TypeError, match="None"):
        warpheap.Heap(None)
    with pytest.raises(TypeError, match="device"):
        warpheap.Heap(MIB, device="0")
    with pytest.raises(TypeError, match="stream"):
        warpheap.Heap(MIB, stream="0")
    with pytest.raises(TypeError, match="ndarray"):
        warpheap.Heap(None, memory=numpy.zeros(2 * MIB, numpy.uint8))

    class ReadOnly:
        __cuda_array_interface__ = {"data": (4096, True), "shape": (2 * MIB,), "typestr": "|u1", "version": 3}

    with pytest.raises(warpheap.MemoryArgumentError, match="read-only"):
        warpheap.Heap(None, memory=ReadOnly())


def test_without_a_gpu_the_error_says_so():
    code = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''; import warpheap; warpheap.Heap(1 << 20)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "NoDeviceError" in said
