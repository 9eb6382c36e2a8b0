# SPDX-License-Identifier: Apache-2.0
"""Heaps with a limit on a GPU: bursts after growth, what trim gives back, requests of refused calls, graphs."""

import threading

import numpy
import pytest

import warpheap
from warpheap import driver
from warpheap.allocators import HEADERS, type_of
from warpheap.virtual_memory import granularity

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

THREADS, WORDS = 1 << 14, 1024
BLOCK = 4 * WORDS  # 64 MiB in all
GIB = 1 << 30

SOURCE = HEADERS + """#include <warpheap/heap/c_functions.hpp>
using heap_type = {};
extern "C" __global__ void take(unsigned long long heap, unsigned words, unsigned** got) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (got[i]) return;
  got[i] = static_cast<unsigned*>(warpheap::ref_of<heap_type>(heap).malloc(4 * words));
  if (got[i]) for (unsigned word = 0; word < words; ++word) got[i][word] = i + word;
}}
extern "C" __global__ void give(unsigned long long heap, unsigned words, unsigned** got, unsigned* wrong) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (!got[i]) return;
  for (unsigned word = 0; word < words; ++word)
    if (got[i][word] != i + word) atomicAdd(wrong, 1);
  warpheap::ref_of<heap_type>(heap).free(got[i]);
  got[i] = nullptr;
}}
"""


class Blocks:
    """At most one block of 4 KiB for each thread, full of numbers."""

    def __init__(self, heap):
        import warpheap.cupy

        module = cupy.RawModule(code=SOURCE.format(type_of(heap.allocator)), options=warpheap.cupy.options())
        self.heap, self.got, self.wrong = heap, cupy.zeros(THREADS, cupy.uint64), cupy.zeros(1, cupy.uint32)
        self._take, self._give = module.get_function("take"), module.get_function("give")

    def launch_take(self) -> None:
        """Each thread without a block asks for one."""
        self._take((THREADS // 256,), (256,), (numpy.uint64(self.heap.handle), numpy.uint32(WORDS), self.got))

    def take(self) -> int:
        """How many threads have a block then."""
        self.launch_take()
        held = self.got.get()
        held = numpy.sort(held[held != 0])
        assert (numpy.diff(held) >= BLOCK).all()
        return len(held)

    def give(self) -> int:
        """Frees the blocks. How many words of them were wrong."""
        words = (numpy.uint64(self.heap.handle), numpy.uint32(WORDS), self.got, self.wrong)
        self._give((THREADS // 256,), (256,), words)
        return int(self.wrong.get()[0])


@pytest.fixture
def granule():
    return granularity(0)


@pytest.fixture
def heap(granule):
    with warpheap.Heap(granule, limit=GIB, chunk=granule) as made:
        yield made


def test_a_burst_that_is_larger_than_the_heap_was_is_served_after_growth(heap, granule):
    blocks, fits = Blocks(heap), granule // BLOCK
    assert heap.committed_bytes == granule and heap.nbytes == GIB
    assert heap.available_slots(BLOCK) == blocks.take() == fits < THREADS
    came = heap.grow(THREADS * BLOCK)
    assert came >= THREADS * BLOCK and heap.committed_bytes == granule + came
    assert blocks.take() == THREADS
    assert heap.check() == [] and heap.statistics().pool_bytes == heap.committed_bytes
    assert blocks.give() == 0, "contents, of blocks from before the growth too"
    assert heap.statistics().live_blocks == 0 and heap.check() == []


def test_trim_gives_back_what_nobody_uses(heap, granule):
    blocks, fits = Blocks(heap), granule // BLOCK
    came = heap.grow(THREADS * BLOCK)
    assert blocks.take() == THREADS
    assert heap.trim() < came and heap.committed_bytes >= THREADS * BLOCK
    assert blocks.give() == 0
    heap.trim()
    assert heap.committed_bytes == granule and heap.trim() == 0
    assert heap.check() == [] and heap.available_slots(BLOCK) == fits == blocks.take()
    assert heap.grow(granule) == granule and blocks.take() == 2 * fits and blocks.give() == 0


def test_reset_keeps_what_came(heap, granule):
    blocks, fits = Blocks(heap), granule // BLOCK
    heap.grow(3 * granule)
    assert blocks.take() == 4 * fits
    heap.reset()
    blocks.got.fill(0)
    assert heap.check() == [] and blocks.take() == 4 * fits


def test_a_poll_grows_by_what_was_refused(heap, granule):
    blocks, fits = Blocks(heap), granule // BLOCK
    assert heap.poll() == 0 and heap.requested_bytes == 0
    assert blocks.take() == fits
    refused = (THREADS - fits) * BLOCK
    assert heap.requested_bytes == refused
    assert heap.poll() == -(-refused // granule) * granule
    assert heap.poll() == 0
    assert blocks.take() == THREADS
    assert blocks.give() == 0 and heap.check() == []


def test_a_heap_that_began_with_nothing_is_polled_up_to_its_limit(granule):
    with warpheap.Heap(0, limit=4 * granule, chunk=granule) as heap:
        blocks = Blocks(heap)
        assert blocks.take() == 0 and heap.requested_bytes == THREADS * BLOCK
        assert heap.poll() == 4 * granule == heap.committed_bytes
        assert blocks.take() == 4 * granule // BLOCK and heap.poll() == 0 and blocks.give() == 0


def test_growth_and_a_burst_are_in_order_on_a_stream(heap):
    blocks, stream = Blocks(heap), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        heap.grow(THREADS * BLOCK, stream)
        blocks.launch_take()
    stream.synchronize()
    assert (blocks.got.get() != 0).all() and blocks.give() == 0


def test_a_graph_that_was_captured_before_the_growth_sees_it(heap, granule):
    blocks, stream = Blocks(heap), cupy.cuda.Stream(non_blocking=True)
    blocks.take()  # the kernel is loaded
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        heap.reset(stream)
        blocks.got.data.memset_async(0, blocks.got.nbytes, stream)
        blocks.launch_take()
        graph = stream.end_capture()
    for chunks in (1, 2, 4):
        heap.grow(chunks * granule - heap.committed_bytes)
        cupy.cuda.Device().synchronize()
        for _ in range(2):
            graph.launch(stream)
            stream.synchronize()
            assert int((blocks.got.get() != 0).sum()) == chunks * granule // BLOCK
    assert heap.check() == []


def test_kernels_of_numba_post_requests(heap):
    cuda = pytest.importorskip("numba.cuda")
    numba_heaps = pytest.importorskip("warpheap.numba")

    @cuda.jit(extensions=[numba_heaps])
    def take(heap, got):
        i = cuda.grid(1)
        if i < got.size and got[i] == 0:
            got[i] = heap.malloc(4096)

    @cuda.jit(extensions=[numba_heaps])
    def give(heap, got):
        i = cuda.grid(1)
        if i < got.size:
            heap.free(got[i])

    got = cuda.to_device(numpy.zeros(THREADS, numpy.int64))
    launch = take[THREADS // 256, 256]
    launch(heap, got)
    refused = int((got.copy_to_host() == 0).sum())
    assert 0 < refused < THREADS and heap.requested_bytes == refused * BLOCK
    assert heap.poll() >= refused * BLOCK
    launch(heap, got)
    assert (got.copy_to_host() != 0).all()
    launch = give[THREADS // 256, 256]
    launch(heap, got)
    assert heap.statistics().live_blocks == 0 and heap.check() == []


def test_threads_grow_one_heap(heap, granule):
    start, came = threading.Barrier(8), []

    def grow():
        start.wait()
        for _ in range(4):
            came.append(heap.grow(granule))

    threads = [threading.Thread(target=grow) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came == [granule] * 32 and heap.committed_bytes == 33 * granule
    assert heap.available_slots(BLOCK) == 33 * granule // BLOCK and heap.check() == []


def test_a_heap_is_as_it_was_when_the_device_has_no_more_memory(granule):
    with driver.current(0):
        total = driver.call("cuMemGetInfo")[1]
    limit = (total + total // 4) // granule * granule
    with warpheap.Heap(granule, limit=limit, chunk=64 * granule) as heap:
        blocks, before = Blocks(heap), heap.committed_bytes
        assert blocks.take() == min(THREADS, before // BLOCK)
        with pytest.raises(warpheap.OutOfMemoryError, match=f"{limit} bytes more of a pool that has {before}: device 0"):
            heap.grow(limit)
        assert heap.committed_bytes == before and heap.check() == []
        assert heap.grow(1) == 64 * granule and blocks.give() == 0


def test_memory_of_a_heap_that_ended_is_there_for_the_next(granule):
    with driver.current(0):
        total = driver.call("cuMemGetInfo")[1]
    size = total // 3 // granule * granule
    for _ in range(6):  # all together would be twice the device's memory
        with warpheap.Heap(size, limit=size) as heap:
            assert heap.committed_bytes == size
