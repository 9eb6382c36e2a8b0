# SPDX-License-Identifier: Apache-2.0
"""What statistics(), check() and live() say of heaps that kernels have used."""

import ctypes

import numpy
import pytest

import warpheap
from kernels import THREADS, give_blocks, slow_kernel, take_blocks

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu
MIB = 1 << 20


@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_live_blocks_are_those_that_kernels_hold(allocator):
    with warpheap.Heap(256 * MIB, allocator) as heap:
        fresh = heap.statistics()
        assert fresh[:4] == (heap.nbytes, heap.metadata_nbytes, 0, 0) and len(heap.live()) == 0
        got = take_blocks(heap)
        live, counts = heap.live(), heap.statistics()
        assert (live["address"] == numpy.sort(got.get())).all() and (live["size"] >= 64).all()
        assert (counts.live_blocks, counts.live_bytes) == (THREADS, live["size"].sum())
        assert heap.check() == []
        assert give_blocks(heap, got) == 0
        assert heap.statistics()[2:4] == (0, 0) and len(heap.live()) == 0 and heap.check() == []
        assert heap.statistics().failures == 0


def test_refusals_and_frees_that_were_wrong_are_counted():
    with warpheap.Heap(MIB) as heap:
        got, more = take_blocks(heap), take_blocks(heap)
        held = int((got != 0).sum() + (more != 0).sum())
        counts = heap.statistics()
        assert 0 < held == counts.live_blocks < 2 * THREADS and counts.failures == 2 * THREADS - held
        give_blocks(heap, got)
        assert heap.statistics().double_frees == 0
        give_blocks(heap, got)
        counts = heap.statistics()
        assert counts.double_frees + counts.foreign_frees == int((got != 0).sum())


@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_damage_is_found(allocator):
    memory = cupy.zeros(64 * MIB // 8, cupy.uint64)
    with warpheap.Heap(None, allocator, memory=memory) as heap:
        take_blocks(heap)
        live, used = heap.live(), memory.get()
        heap.reset()
        changed = used != memory.get()  # by the blocks and their metadata
        memory.set(used)
        first = (live["address"].astype(numpy.int64) - memory.data.ptr) // 8
        for begin, words in zip(first, live["size"].astype(numpy.int64) // 8):
            changed[begin : begin + words] = False
        assert heap.check() == []
        words = numpy.random.default_rng(1).permutation(numpy.flatnonzero(changed))[:40]
        reports = []
        for word in map(int, words):
            memory[word] ^= 1 << (word % 64)
            reports += heap.check()
            heap.statistics()
            memory[word] = used[word]
        assert reports and all(reports), f"{len(words)} words were damaged"
        assert heap.check() == []


def test_a_reference_that_was_overwritten_is_told():
    memory = cupy.zeros(16 * MIB, cupy.uint8)
    with warpheap.Heap(None, memory=memory) as heap:
        begin = heap.handle - memory.data.ptr
        kept = memory[begin : begin + 16].copy()
        memory[begin : begin + 16] = 0
        assert heap.check() == ["the heap's reference in device memory has been overwritten"]
        with pytest.raises(warpheap.DamagedHeapError):
            heap.statistics()
        memory[begin : begin + 16] = kept
        assert heap.check() == []


SPINNING = """
extern "C" __global__ void spin(volatile unsigned* told) {
  if (threadIdx.x == 0) {
    told[0] = 1;  // it runs
    for (long long end = clock64() + 20000000000ll; !told[1] && clock64() < end;);
    told[2] = told[1];
  }
  __syncthreads();
}
"""


def test_statistics_come_while_a_kernel_runs_everywhere():
    """A kernel holds every multiprocessor until the host has seen the counts."""
    address = cupy.cuda.runtime.hostAlloc(64, 2)  # mapped
    told = numpy.frombuffer((ctypes.c_uint32 * 16).from_address(address), numpy.uint32)
    told[:] = 0
    spin, count = cupy.RawKernel(SPINNING, "spin"), cupy.cuda.Device().attributes["MultiProcessorCount"]
    try:
        with warpheap.Heap(64 * MIB) as heap:
            got = take_blocks(heap)
            heap.statistics_now()  # compiles what it needs
            spin((2 * count,), (1024,), (numpy.uint64(address),))
            while not told[0]:
                pass
            counts = heap.statistics_now()
            running = told[2] == 0
            told[1] = 1
            cupy.cuda.Device().synchronize()
            assert running and told[2] == 1, "the kernel did not wait for the host"
            assert counts == heap.statistics() and counts.live_blocks == THREADS
            assert give_blocks(heap, got) == 0
    finally:
        cupy.cuda.runtime.freeHost(address)


def test_statistics_come_while_kernels_allocate():
    with warpheap.Heap(256 * MIB) as heap:
        heap.statistics_now()
        for _ in range(20):
            got = take_blocks(heap)
            counts = heap.statistics_now()
            assert 0 <= counts.live_blocks <= THREADS and counts.pool_bytes == heap.nbytes
            assert heap.statistics().live_blocks == THREADS
            assert give_blocks(heap, got) == 0


def test_work_on_the_stream_comes_first():
    stream = cupy.cuda.Stream(non_blocking=True)
    slow = slow_kernel()
    with warpheap.Heap(64 * MIB) as heap:
        take_blocks(heap)
        cupy.cuda.Device().synchronize()
        with stream:
            slow((1,), (1,), ())
        heap.reset(stream)
        assert heap.statistics(stream).live_blocks == 0
        assert heap.check(stream) == [] and len(heap.live(stream)) == 0
