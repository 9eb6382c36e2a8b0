# SPDX-License-Identifier: Apache-2.0
"""Heaps of Numba's simulator: their promises to kernels, and kernels that use them."""

import ctypes
import os
import pathlib
import random
import subprocess
import sys
import threading

import numpy
import pytest

import warpheap
from warpheap.simulated_heap import SimulatedHeap

MIB = 1 << 20


def test_blocks_hold_their_contents_until_they_are_freed():
    """Calls of several threads, in an order that the seed decides in part."""
    heap, wrong = SimulatedHeap(MIB), []

    def use(seed):
        order, mine = random.Random(seed), {}
        for turn in range(400):
            size = order.choice((1, 8, 24, 100, 4000, 70000))
            way = order.randrange(4)
            if way == 0 and mine:
                memory = order.choice(list(mine))
                was = mine.pop(memory)
                moved = heap.realloc(memory, size)
                mine[moved or memory] = was[:size] if moved else was
            elif way == 1 and mine:
                memory, was = mine.popitem()
                wrong.extend([seed] if ctypes.string_at(memory, len(was)) != was else [])
                heap.free(memory)
            elif memory := heap.aligned_alloc(64, size) if way == 2 else heap.malloc(size):
                mine[memory] = bytes([1 + seed + turn % 100]) * size
                ctypes.memmove(memory, mine[memory], size)
                wrong.extend([seed] if memory % (64 if way == 2 else 16) or heap.usable_size(memory) < size else [])
        for memory, was in mine.items():
            wrong.extend([seed] if ctypes.string_at(memory, len(was)) != was else [])
            heap.free(memory)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = heap.statistics()
    assert not wrong and (counts.live_blocks, counts.double_frees, counts.foreign_frees) == (0, 0, 0)
    assert counts.failures > 0, "the pool was never full"
    assert heap.available_slots(heap.nbytes) == 1, "all holes are one again"


def test_a_full_heap_returns_0_and_counts_it():
    heap = SimulatedHeap(MIB)
    blocks = [heap.malloc(MIB // 8) for _ in range(9)]
    assert blocks.count(0) >= 1 and len(set(blocks) - {0}) == 9 - blocks.count(0)
    assert heap.live()["address"].tolist() == sorted(set(blocks) - {0}) and set(heap.live()["size"]) == {MIB // 8}
    failures = heap.statistics().failures
    assert failures == blocks.count(0)
    for memory in (heap.malloc(-1), heap.malloc(1 << 62), heap.calloc(1 << 40, 1 << 40), heap.aligned_alloc(16, MIB)):
        assert memory == 0
    assert heap.statistics().failures == failures + 4
    assert (heap.malloc(0), heap.aligned_alloc(3, 8), heap.aligned_alloc(0, 8)) == (0, 0, 0)
    assert heap.statistics().failures == failures + 4
    heap.reset()
    assert heap.statistics()[2:] == (0,) * 9 and heap.malloc(heap.nbytes)


def test_wrong_frees_are_counted_and_ignored():
    heap = SimulatedHeap(MIB)
    memory, other = heap.malloc(64), heap.malloc(64)
    heap.free(memory)
    heap.free(memory)
    heap.free(0)
    for foreign in (12345, other + 16, other + 1):
        heap.free(foreign)
    counts = heap.statistics()
    assert (counts.live_blocks, counts.double_frees, counts.foreign_frees) == (1, 1, 3)


def test_calloc_gives_zeros_and_realloc_keeps_what_fits():
    heap = SimulatedHeap(MIB)
    memory = heap.malloc(256)
    ctypes.memset(memory, 0xA5, 256)
    heap.free(memory)
    memory = heap.calloc(32, 8)
    assert ctypes.string_at(memory, 256) == bytes(256)
    ctypes.memmove(memory, bytes(range(256)), 256)
    assert heap.realloc(memory, 200) == memory
    smaller = heap.realloc(memory, 100)
    assert smaller != memory and ctypes.string_at(smaller, 100) == bytes(range(100))
    assert heap.realloc(smaller, 2 * MIB) == 0 and ctypes.string_at(smaller, 100) == bytes(range(100))
    assert heap.realloc(smaller, 0) == 0 and heap.statistics().live_blocks == 0
    assert heap.usable_size(heap.realloc(0, 10)) >= 10


def test_a_closed_heap_is_an_error():
    with SimulatedHeap(MIB) as heap:
        memory = heap.malloc(8)
    for call in (lambda: heap.malloc(8), lambda: heap.free(memory), heap.statistics, heap.live, heap.reset, lambda: heap.handle):
        with pytest.raises(warpheap.ClosedHeapError):
            call()
    heap.close()


def test_arguments_are_those_of_a_heap():
    with pytest.raises(warpheap.UnknownAllocatorError):
        SimulatedHeap(MIB, "nosuch")
    with pytest.raises(warpheap.HeapSizeError, match="the least is 1048576"):
        SimulatedHeap(5)
    with pytest.raises(warpheap.NoDeviceError, match="number 1"):
        SimulatedHeap(MIB, device=1)
    with pytest.raises(TypeError, match="integers, and was given 1.5"):
        SimulatedHeap(MIB).malloc(1.5)
    with pytest.raises(warpheap.HeapSizeError, match="blocks of -1 bytes"):
        SimulatedHeap(MIB).available_slots(-1)


def test_a_heap_lies_in_an_array():
    memory = numpy.zeros(MIB, numpy.uint16)
    heap = SimulatedHeap(MIB, memory=memory)
    block = heap.malloc(heap.nbytes)
    assert MIB - 32 < heap.nbytes <= MIB and memory.ctypes.data <= block < memory.ctypes.data + 16
    ctypes.memset(block, 1, heap.nbytes)
    assert not memory[MIB // 2 :].any() and memory[8 : MIB // 2 - 8].all()
    memory.flags.writeable = False
    for wrong in (5, [1, 2], memory, numpy.zeros(MIB, numpy.uint16)[::2]):
        with pytest.raises(warpheap.MemoryArgumentError, match="is no contiguous, writable array"):
            SimulatedHeap(None, memory=wrong)
    with pytest.raises(warpheap.HeapSizeError, match="memory that has 2097152"):
        SimulatedHeap(4 * MIB, memory=numpy.zeros(MIB, numpy.uint16))


def test_a_heap_with_a_limit_has_all_of_it():
    heap = SimulatedHeap(MIB, limit=4 * MIB)
    assert heap.allocator == "slab_bitmap_growing" and heap.committed_bytes == heap.nbytes > 3 * MIB
    assert (heap.grow(MIB), heap.poll(), heap.trim()) == (0, 0, 0)
    assert heap.malloc(3 * MIB) and not heap.malloc(2 * MIB) and heap.requested_bytes == 2 * MIB
    with pytest.raises(warpheap.GrowthError):
        SimulatedHeap(MIB).grow(MIB)


KERNELS = """
import threading
import numpy
import pytest
import warpheap
import warpheap.numba
from numba import cuda
from numba.cuda import types
from warpheap.numba import array

RECORD = numpy.dtype([("key", numpy.int32), ("value", numpy.float64)], align=True)
outer = warpheap.Heap(1 << 20)

@cuda.jit(extensions=[warpheap.numba], cache=True)
def kernel(heap, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    memory = heap.malloc(64)
    numbers, records, none = array(memory, 8, numpy.float64), heap.new(RECORD, 3), heap.new(numpy.int8, -1)
    numbers[7] = i
    records[2].key = 1
    cuda.syncthreads()
    address = outer.calloc(1, 8)
    out[i] = numbers[7] + records[2].key + array(address, 1, numpy.int64)[0] + none.size
    heap.free(none)
    heap.free(records)
    if i % 2:
        heap.free(memory)

out = cuda.to_device(numpy.full(96, -1.0))
with warpheap.Heap(1 << 20) as heap:
    kernel[3, 32](heap, out)
    assert (out.copy_to_host() == numpy.arange(96) + 1).all()
    counts = heap.statistics()
    assert (counts.live_blocks, counts.live_bytes, counts.foreign_frees) == (48, 48 * 64, 0), counts
    assert outer.statistics().live_blocks == 96

with warpheap.Heap(None, memory=cuda.to_device(numpy.zeros(1 << 17, numpy.int64))) as small:
    @cuda.jit(extensions=[warpheap.numba])
    def fill(heap, got):
        got[cuda.grid(1)] = heap.new(types.float64, 1 << 14).size
    got = numpy.zeros(16)
    fill[1, 16](small, got)
    assert set(got) == {0, 1 << 14} and small.statistics().failures == list(got).count(0)
with pytest.raises(warpheap.ClosedHeapError):
    fill[1, 16](small, got)
with pytest.raises(TypeError, match="without extensions"):
    cuda.jit(fill.fn)[1, 16](outer, got)
for wrong in (lambda: warpheap.numba.HeapType("nosuch"), lambda: warpheap.numba.replace_malloc(outer)):
    with pytest.raises((warpheap.UnknownAllocatorError, NotImplementedError)):
        wrong()
print("done")
"""


def simulated(*command):
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment)


def test_kernels_of_the_simulator_use_heaps(tmp_path):
    pytest.importorskip("numba.cuda", exc_type=ImportError)
    program = tmp_path / "kernels.py"
    program.write_text(KERNELS)
    done = simulated(program)
    assert done.stdout == "done\n", done.stderr


def test_the_example_of_lists_runs_in_the_simulator():
    pytest.importorskip("numba.cuda", exc_type=ImportError)
    done = simulated(pathlib.Path(__file__).parent.parent / "examples" / "numba_lists.py", "--threads", "300")
    assert done.returncode == 0 and "300 threads" in done.stdout, done.stderr


def test_with_the_variable_heaps_are_the_simulators(monkeypatch):
    for value in ("", "0"):
        monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", value)
        assert type(warpheap.Heap.__new__(warpheap.Heap)) is warpheap.Heap
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    with warpheap.Heap(MIB) as heap:
        assert type(heap) is SimulatedHeap


def test_a_heap_on_a_gpu_refuses_what_is_for_kernels():
    heap = object.__new__(warpheap.Heap)
    assert not isinstance(heap, SimulatedHeap)
    for call in (lambda: heap.malloc(8), lambda: heap.new(numpy.int8, 1), lambda: heap.free(0)):
        with pytest.raises(TypeError, match=r"\(\) of a heap is for kernels"):
            call()
