# SPDX-License-Identifier: Apache-2.0
"""Heaps on a GPU. What a kernel gets from one is checked in CuPy, whose compiler sees the headers."""

import gc
import subprocess
import sys

import numpy
import pytest

import warpheap
from heaps import heap_that_is_open
from kernels import THREADS, give_blocks, take_blocks
from warpheap import driver
from warpheap.setup_kernels import Record
from warpheap.memory import LentMemory

MIB = 1 << 20


def blocks_hold_their_contents(heap):
    got = take_blocks(heap)
    addresses = numpy.sort(got.get())
    assert addresses[0] != 0 and (numpy.diff(addresses) >= 64).all() and give_blocks(heap, got) == 0


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
    pytest.importorskip("cupy")
    with warpheap.Heap(256 * MIB, allocator) as heap:
        fresh = heap.available_slots(64)
        assert fresh >= THREADS
        take_blocks(heap)
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
        assert 256 * MIB <= heap.nbytes < 512 * MIB  # beyond 256 MiB the metadata of queue_pages doubles
        assert begin < heap.handle < begin + memory.nbytes
        blocks_hold_their_contents(heap)
    memory.fill(0xA5)
    with warpheap.Heap(256 * MIB, allocator, memory=memory[3:]) as heap:
        blocks_hold_their_contents(heap)
        assert heap.handle < begin + 3 + 256 * MIB
    assert (memory[3 + 256 * MIB :] == 0xA5).all() and (memory[:3] == 0xA5).all()


class Buffer:
    """Of RMM or cuda.core, as far as a heap looks at it."""

    def __init__(self, array):
        self.array, self.ptr, self.size = array, array.data.ptr, array.nbytes


class Exporter:
    """Of nothing but DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@pytest.mark.gpu
@pytest.mark.parametrize(
    "form", [Buffer, Exporter, lambda array: array.__dlpack__(), lambda array: array.__dlpack__(max_version=(1, 0))]
)
def test_a_heap_lies_in_memory_of_every_form(form):
    cupy = pytest.importorskip("cupy")
    memory = cupy.zeros(16 * MIB, cupy.uint8)
    begin = memory.data.ptr
    lent = form(memory)
    del memory
    with warpheap.Heap(None, memory=lent) as heap:
        del lent
        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        assert begin < heap.handle < begin + 16 * MIB
        blocks_hold_their_contents(heap)


@pytest.mark.gpu
def test_a_heap_lies_in_a_tensor():
    pytest.importorskip("cupy")
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4 * MIB, dtype=torch.float32, device="cuda")
    for memory in (tensor, torch.utils.dlpack.to_dlpack(tensor)):
        with warpheap.Heap(None, memory=memory) as heap:
            blocks_hold_their_contents(heap)
    with pytest.raises(warpheap.MemoryArgumentError, match="detach"):
        warpheap.Heap(None, memory=tensor.requires_grad_())
    with pytest.raises(warpheap.MemoryArgumentError, match="on the host"):
        warpheap.Heap(None, memory=torch.zeros(4 * MIB))


@pytest.mark.gpu
def test_a_heap_lies_in_an_array_of_numba():
    pytest.importorskip("cupy")
    numba_cuda = pytest.importorskip("numba.cuda")
    with warpheap.Heap(None, memory=numba_cuda.device_array(16 * MIB, numpy.uint8)) as heap:
        blocks_hold_their_contents(heap)


@pytest.mark.gpu
def test_a_heap_lies_in_a_buffer_of_rmm():
    pytest.importorskip("cupy")
    rmm = pytest.importorskip("rmm")
    with warpheap.Heap(None, memory=rmm.DeviceBuffer(size=16 * MIB)) as heap:
        blocks_hold_their_contents(heap)


@pytest.mark.gpu
def test_a_heap_lies_in_a_buffer_of_cuda_core():
    pytest.importorskip("cupy")
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    with warpheap.Heap(None, memory=device.allocate(16 * MIB, stream=device.default_stream)) as heap:
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


def every_use_is_refused(heap):
    questions = (heap.statistics, heap.check, heap.live)
    for use in (lambda: heap.handle, heap.reset, lambda: heap.available_slots(64), *questions, heap.__enter__):
        with pytest.raises(warpheap.ClosedHeapError, match="closed"):
            use()


def test_a_closed_heap_refuses_every_use():
    heap = heap_that_is_open()
    assert not heap.closed and heap.handle and heap.__enter__() is heap
    heap.close()
    assert heap.closed and "closed" in repr(heap)
    every_use_is_refused(heap)


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
    every_use_is_refused(heap)
    heap = warpheap.Heap(1 << 30)
    del heap
    gc.collect()
    assert free() == before
    for _ in range(3):
        with pytest.raises(warpheap.OutOfMemoryError):
            warpheap.Heap(1 << 42)
    assert free() >= before  # the driver may give back what it had kept


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

    with pytest.raises(warpheap.HeapSizeError, match="0 bytes"):
        warpheap.Heap(None, memory=cupy.zeros(0, cupy.uint8))

    class Pinned:
        size = 16 * MIB
        pinned = cupy.cuda.alloc_pinned_memory(16 * MIB)
        ptr = pinned.ptr

    with pytest.raises(warpheap.MemoryArgumentError, match="no device memory"):
        warpheap.Heap(None, memory=Pinned())

    class Freed:
        ptr, size = 1 << 46, 16 * MIB

    with pytest.raises(warpheap.MemoryArgumentError, match="no memory that CUDA knows"):
        warpheap.Heap(None, memory=Freed())


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
    odd = type("Odd", (), {"__cuda_stream__": (0,)})()
    for stream in ("0", 1.5, odd, type("Odd", (), {"ptr": "x"})()):
        with pytest.raises(TypeError, match="is no stream"):
            warpheap.Heap(MIB, stream=stream)
    for stream in (-1, 1 << 64, type("Odd", (), {"ptr": -5})()):
        with pytest.raises(ValueError, match="is no stream: its number is"):
            warpheap.Heap(MIB, stream=stream)


def test_without_a_gpu_the_error_says_so():
    code = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''; import warpheap; warpheap.Heap(1 << 20)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "NoDeviceError" in said


def test_blocks_of_sizes_that_are_none_are_refused():
    heap = heap_that_is_open()
    for size in (-1, 1 << 64):
        with pytest.raises(warpheap.HeapSizeError, match=str(size)):
            heap.available_slots(size)
    for size in (1.5, "64", None):
        with pytest.raises(TypeError, match="nbytes"):
            heap.available_slots(size)


@pytest.mark.parametrize(
    ("record", "given", "words"),
    [
        (Record(least_bytes=4096), LentMemory(1 << 40, 1000, None), "1000 bytes of memory: the least is 4096"),
        (Record(refused=1), None, f"slab_bitmap cannot manage {MIB} bytes on device 0"),
    ],
)
def test_what_set_up_says_of_a_size_is_raised(record, given, words, monkeypatch):
    monkeypatch.setattr(driver, "attribute", lambda device, name: 1)
    monkeypatch.setattr(warpheap.Heap, "_acquire", lambda self, nbytes: 1 << 40)
    monkeypatch.setattr(warpheap.Heap, "_read", lambda self, stream: record)
    for name in ("_write", "_launch"):
        monkeypatch.setattr(warpheap.Heap, name, lambda self, *arguments: None)
    with pytest.raises(warpheap.HeapSizeError, match=words):
        heap_that_is_open()._place(MIB if given is None else None, given, None, 0)
