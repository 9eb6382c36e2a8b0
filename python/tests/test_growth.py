# SPDX-License-Identifier: Apache-2.0
"""Heaps with a limit: what is refused, and when memory comes and goes. The GPU is a fake one."""

import gc
import struct
import threading
import weakref

import pytest

import warpheap
from fake_gpu import GRANULE, FakeGpu
from heaps import heap_that_is_open
from warpheap import driver, growth, inspection
from warpheap.growth import Growth

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def gpu(monkeypatch):
    bindings = pytest.importorskip("cuda.bindings.driver")
    return FakeGpu(bindings, 64 * GIB).install(monkeypatch)


def small_heap(limit=64, **more):
    """Two granules of a limit in granules."""
    return warpheap.Heap(2 * GRANULE, limit=limit * GRANULE, chunk=GRANULE, **more)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"nbytes": 2 * GIB, "limit": GIB}, f"heap of {2 * GIB} bytes: .* at most its limit of {GIB}"),
        ({"nbytes": -1, "limit": GIB}, "heap of -1 bytes"),
        ({"nbytes": 0, "limit": 0}, "limit of 0 bytes: it must be above 0"),
        ({"nbytes": 0, "limit": 1 << 43}, f"limit of {1 << 43} bytes: .* at most {(1 << 43) - 1}"),
        ({"nbytes": 0, "limit": GIB, "chunk": -1}, "chunk of -1 bytes"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused_before_a_device_is_looked_for(sizes, words):
    with pytest.raises(warpheap.HeapSizeError, match=words):
        warpheap.Heap(**sizes)


def test_what_cannot_grow_is_refused_before_a_device_is_looked_for():
    others = [name for name in warpheap.allocators if name != "slab_bitmap"]
    for allocator in others:
        with pytest.raises(warpheap.GrowthError, match=f"{allocator} cannot grow: .* those that can: slab_bitmap$") as caught:
            warpheap.Heap(MIB, allocator, limit=GIB)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(warpheap.GrowthError, match="`limit`, or `memory`"):
        warpheap.Heap(MIB, memory=object(), limit=GIB)
    with pytest.raises(warpheap.GrowthError, match="a chunk of 4096 bytes is for a heap with a limit"):
        warpheap.Heap(MIB, chunk=4096)
    with pytest.raises(warpheap.GrowthError, match="slab_bitmap_growing is the allocator of heaps with a limit"):
        warpheap.Heap(MIB, "slab_bitmap_growing")
    with pytest.raises(warpheap.UnknownAllocatorError, match="'nosuch'"):
        warpheap.Heap(MIB, "nosuch", limit=GIB)
    for wrong in ({"limit": "1"}, {"limit": 1.5 * GIB}, {"limit": GIB, "chunk": "1"}):
        with pytest.raises(TypeError, match="must be a whole number"):
            warpheap.Heap(MIB, **wrong)


def test_sizes_that_the_device_does_not_map_are_refused(gpu):
    with pytest.raises(warpheap.HeapSizeError, match=f"limit of {GIB + 1} bytes: it must be a multiple of {GRANULE}"):
        warpheap.Heap(MIB, limit=GIB + 1)
    with pytest.raises(warpheap.HeapSizeError, match=f"chunk of {MIB} bytes: it must be a multiple of {GRANULE}"):
        warpheap.Heap(MIB, limit=GIB, chunk=MIB)
    gpu.manages_memory = 0
    with pytest.raises(warpheap.GrowthError, match="device 0 has no virtual memory management"):
        warpheap.Heap(MIB, limit=GIB)
    assert gpu.is_empty()


@pytest.mark.parametrize(
    ("sizes", "made"),
    [
        (Growth(0, 64 * GRANULE, 0), Growth(0, 64 * GRANULE, 2 * GRANULE)),
        (Growth(1, 64 * GRANULE, 0), Growth(GRANULE, 64 * GRANULE, 2 * GRANULE)),
        (Growth(1, 33 * GRANULE, 0), Growth(GRANULE, 33 * GRANULE, 2 * GRANULE)),
        (Growth(1, GRANULE, 0), Growth(GRANULE, GRANULE, GRANULE)),
        (Growth(4 * GRANULE, 5 * GRANULE, 3 * GRANULE), Growth(4 * GRANULE, 5 * GRANULE, 3 * GRANULE)),
        (Growth(0, GRANULE, 8 * GRANULE), Growth(0, GRANULE, GRANULE)),
    ],
)
def test_pools_begin_with_whole_granules(sizes, made):
    assert sizes.in_granules(GRANULE) == made


def test_a_heap_without_a_limit_does_not_grow():
    fixed = heap_that_is_open()
    uses = (lambda: fixed.grow(1), fixed.poll, fixed.trim, lambda: fixed.committed_bytes, lambda: fixed.requested_bytes)
    for use in uses:
        with pytest.raises(warpheap.GrowthError, match="without a limit"):
            use()
    fixed.close()
    for use in uses:
        with pytest.raises(warpheap.ClosedHeapError):
            use()


def test_a_heap_that_grows_says_what_it_is(gpu):
    with small_heap() as grows:
        assert (grows.allocator, grows.nbytes, grows.committed_bytes) == ("slab_bitmap_growing", 64 * GRANULE, 2 * GRANULE)
        assert f"{2 * GRANULE} of {64 * GRANULE} bytes" in repr(grows) and grows.requested_bytes == 0
    with warpheap.Heap(0, grows.allocator, limit=GRANULE) as empty:
        assert (empty.allocator, empty.committed_bytes) == (grows.allocator, 0)
    for use in (lambda: grows.grow(1), grows.poll, grows.trim, lambda: grows.committed_bytes, lambda: grows.requested_bytes):
        with pytest.raises(warpheap.ClosedHeapError):
            use()


def test_memory_is_mapped_before_the_heap_is_told(gpu):
    with small_heap(limit=8) as grows:
        gpu.calls.clear()
        assert grows.grow(GRANULE + 1) == 2 * GRANULE
        chunk = ["cuMemCreate", "cuMemMap", "cuMemRelease"]
        assert gpu.calls == [*chunk, "cuMemSetAccess", "extend", "note_added"], "two chunks in one part"
        assert gpu.known == grows.committed_bytes == 4 * GRANULE
        gpu.calls.clear()
        assert grows.grow(0) == 0 and gpu.calls == []
        assert grows.grow(1 << 60) == 4 * GRANULE and gpu.known == 8 * GRANULE
        assert grows.grow(1) == 0


def test_chunks_are_mapped_four_by_four(gpu):
    with small_heap(limit=16) as grows:
        gpu.calls.clear()
        assert grows.grow(9 * GRANULE) == 9 * GRANULE
        assert gpu.calls.count("cuMemMap") == 3 and gpu.calls.count("cuMemSetAccess") == 1


def test_growth_by_what_is_no_size_is_refused(gpu):
    with small_heap() as grows:
        for size in (1.5, "1", None):
            with pytest.raises(TypeError, match="nbytes"):
                grows.grow(size)
        with pytest.raises(warpheap.HeapSizeError, match="growth by -1 bytes"):
            grows.grow(-1)
        with pytest.raises(TypeError, match="stream"):
            grows.grow(1, stream="0")


def test_memory_is_unmapped_when_the_heap_has_given_it_up(gpu):
    with small_heap() as grows:
        before = gpu.left
        grows.grow(6 * GRANULE)
        gpu.used_end = 3 * GRANULE + 1
        gpu.calls.clear()
        assert grows.trim() == 2 * GRANULE, "of the parts of four and two chunks, the last"
        order = [name for name in gpu.calls if not name.startswith(("cuMemcpy", "cuMemset"))]
        wait = "cuStreamSynchronize"
        assert order == ["find_used_end", wait, "decommit", wait, "shrink", wait, "cuMemUnmap"]
        assert gpu.known == grows.committed_bytes == 6 * GRANULE
        gpu.used_end = 0
        assert grows.trim() == 4 * GRANULE and gpu.left == before, "all but what it had at first"
        assert grows.trim() == 0
        assert grows.grow(GRANULE) == GRANULE


def test_memory_that_a_kernel_took_meanwhile_stays(gpu):
    with small_heap() as grows:
        grows.grow(2 * GRANULE)
        gpu.stays = 1
        gpu.calls.clear()
        assert grows.trim() == 0 and grows.committed_bytes == gpu.known == 4 * GRANULE
        assert "cuMemUnmap" not in gpu.calls and gpu.calls[-2:] == ["extend", "note_added"]
        gpu.stays = 0
        assert grows.trim() == 2 * GRANULE


def test_where_the_device_lacks_the_memory_nothing_changes(gpu):
    with small_heap() as grows:
        gpu.left = 3 * GRANULE
        gpu.calls.clear()
        words = f"{4 * GRANULE} bytes more of a pool that has {2 * GRANULE}: device 0 lacks the memory for {4 * GRANULE} bytes"
        with pytest.raises(warpheap.OutOfMemoryError, match=words) as caught:
            grows.grow(4 * GRANULE)
        assert isinstance(caught.value, MemoryError)
        assert gpu.left == 3 * GRANULE and grows.committed_bytes == 2 * GRANULE and "extend" not in gpu.calls
        assert grows.grow(3 * GRANULE) == 3 * GRANULE


@pytest.mark.parametrize("refused", ["cuMemMap", "cuMemSetAccess", "cuMemCreate"])
def test_where_the_driver_refuses_nothing_changes(gpu, refused):
    with small_heap() as grows:
        before = gpu.left
        gpu.refused = refused
        with pytest.raises(warpheap.CudaError, match=f"{refused}: planted"):
            grows.grow(GRANULE)
        gpu.refused = ""
        assert gpu.left == before and grows.committed_bytes == 2 * GRANULE and not gpu.created
        assert grows.grow(GRANULE) == GRANULE


def test_what_a_failed_launch_did_not_tell_is_told_by_the_next(gpu):
    with small_heap() as grows:
        gpu.refused = "cuLaunchKernel"
        with pytest.raises(warpheap.CudaError):
            grows.grow(GRANULE)
        gpu.refused = ""
        assert grows.committed_bytes == 3 * GRANULE and gpu.known == 2 * GRANULE
        assert grows.poll() == 0 and gpu.known == 3 * GRANULE


def test_a_poll_grows_by_what_was_requested_since_the_last(gpu):
    with small_heap() as grows:
        assert grows.poll() == 0
        gpu.request(5 * GRANULE - 1)
        gpu.request(1)
        assert grows.requested_bytes == 5 * GRANULE
        assert grows.poll() == 5 * GRANULE and gpu.known == grows.committed_bytes == 7 * GRANULE
        gpu.calls.clear()
        assert grows.poll() == 0 and gpu.calls == []
        gpu.request(1)
        assert grows.requested_bytes == 5 * GRANULE + 1 and grows.poll() == GRANULE
        gpu.request(1 << 62)
        assert grows.poll() == 56 * GRANULE, "up to the limit"


def test_a_poll_grows_by_no_more_than_calls_lacked_at_one_time(gpu):
    with small_heap() as grows:
        for _ in range(40):
            gpu.request(GRANULE // 4, at_once=2 * GRANULE)
        assert grows.poll() == 2 * GRANULE and grows.poll() == 0, "the tries are answered"
        gpu.request(1, at_once=2 * GRANULE)
        assert grows.poll() == GRANULE, "a try needs no more than it asked for"


def test_a_pool_grows_by_whole_chunks_from_any_size(gpu):
    with warpheap.Heap(1, limit=16 * GRANULE, chunk=3 * GRANULE) as grows:
        assert grows.committed_bytes == GRANULE
        assert grows.grow(1) == 3 * GRANULE and grows.grow(4 * GRANULE) == 6 * GRANULE
        assert grows.grow(1 << 60) == 6 * GRANULE and grows.committed_bytes == 16 * GRANULE


def test_a_poll_takes_what_there_is(gpu):
    with small_heap() as grows:
        gpu.left = 6 * GRANULE
        gpu.request(16 * GRANULE)
        assert grows.poll() == 4 * GRANULE, "a half of a half"
        assert grows.poll() == 0, "the request is answered"
        gpu.left = 0
        gpu.request(GRANULE)
        assert grows.poll() == 0 and grows.committed_bytes == 6 * GRANULE


def test_a_heap_that_ends_gives_everything_back(gpu):
    before = gpu.left
    grows = small_heap()
    grows.grow(3 * GRANULE)
    grows.close()
    grows.close()
    assert gpu.is_empty() and gpu.left == before
    grows = small_heap()
    seen = weakref.ref(grows)
    del grows
    gc.collect()
    assert seen() is None and gpu.is_empty() and gpu.left == before


RELEASES = ["cuCtxSynchronize", "cuMemUnmap", "cuMemAddressFree", "cuMemFreeHost", "cuMemFree"]


@pytest.mark.parametrize("refused", RELEASES)
def test_a_close_that_fails_says_so_and_the_next_goes_on(gpu, refused):
    before = gpu.left
    grows = small_heap()
    grows.grow(3 * GRANULE)
    gpu.refused = refused
    for _ in range(2):
        with pytest.raises(warpheap.CudaError, match=f"{refused}: planted"):
            grows.close()
        assert grows.closed and not gpu.is_empty()
        with pytest.raises(warpheap.ClosedHeapError):
            grows.poll()
    gpu.refused = ""
    grows.close()
    assert gpu.is_empty() and gpu.left == before
    gpu.calls.clear()
    grows.close()
    assert gpu.calls == []


@pytest.mark.parametrize("refused", RELEASES)
def test_a_heap_that_was_not_closed_warns_of_what_it_keeps(gpu, refused):
    grows = small_heap()
    gpu.refused = refused
    with pytest.warns(RuntimeWarning, match=f"keeps memory of device 0: {refused}: planted"):
        del grows
        gc.collect()


def test_an_error_of_the_block_is_not_replaced_by_one_of_close(gpu):
    with pytest.warns(RuntimeWarning, match="cuMemUnmap: planted"), pytest.raises(KeyError, match="mine"):
        with small_heap() as grows:
            gpu.refused = "cuMemUnmap"
            raise KeyError("mine")
    assert not gpu.is_empty()
    gpu.refused = ""
    grows.close()
    assert gpu.is_empty()
    with pytest.raises(warpheap.CudaError, match="planted"):
        with small_heap() as grows:
            gpu.refused = "cuMemUnmap"


def test_memory_that_went_with_its_context_is_not_given_back(gpu, monkeypatch):
    grows = small_heap()
    monkeypatch.setattr(driver, "context_number", lambda: 2)
    gpu.calls.clear()
    grows.close()
    assert grows.closed and gpu.calls == []


USES = {
    "grow": lambda grows: grows.grow(GRANULE),
    "poll": lambda grows: grows.poll(),
    "trim": lambda grows: grows.trim(),
    "reset": lambda grows: grows.reset(),
    "available_slots": lambda grows: grows.available_slots(64),
    "committed_bytes": lambda grows: grows.committed_bytes,
    "requested_bytes": lambda grows: grows.requested_bytes,
    "check": lambda grows: grows.check(),
    "statistics_now": lambda grows: grows.statistics_now(),
}


@pytest.mark.parametrize("use", USES)
def test_close_and_every_use_take_turns(gpu, monkeypatch, use):
    """A use that was called before close(), and comes after it, finds the heap closed and calls no driver."""
    monkeypatch.setattr(inspection, "inspect", lambda *arguments: arguments[-1](0, 0, 0, 0, 0))
    grows, came = small_heap(), []

    def run():
        try:
            came.append(USES[use](grows))
        except warpheap.WarpheapError as problem:
            came.append(problem)

    with grows._lock:  # as another thread's call has it
        user, closer = threading.Thread(target=run), threading.Thread(target=grows.close)
        user.start()
        user.join(0.1)
        gpu.calls.clear()
        grows._closed = True  # as close() will, if it comes first
        closer.start()
        closer.join(0.1)
        assert user.is_alive() and closer.is_alive() and gpu.calls == [] and not gpu.is_empty()
    user.join()
    closer.join()
    assert isinstance(came[0], warpheap.ClosedHeapError) and gpu.is_empty()


def test_memory_that_a_trim_could_not_unmap_stays_in_use(gpu, monkeypatch):
    with small_heap() as grows:
        grows.grow(4 * GRANULE)
        grows.grow(4 * GRANULE)
        unmap, done = gpu.cuMemUnmap, []

        def fail_later(address, nbytes):
            if done:
                raise warpheap.CudaError("planted")
            done.append(unmap(address, nbytes))

        monkeypatch.setattr(gpu, "cuMemUnmap", fail_later)
        with pytest.raises(warpheap.CudaError, match="planted"):
            grows.trim()
        monkeypatch.undo()
        gpu.install(monkeypatch)
        assert (grows.committed_bytes, gpu.known) == (6 * GRANULE, 2 * GRANULE)
        assert grows.poll() == 0 and gpu.known == 6 * GRANULE, "of mapped memory alone"
        assert grows.trim() == 4 * GRANULE


@pytest.mark.parametrize("refused", ["cuMemAddressReserve", "cuMemCreate", "cuMemHostAlloc", "cuMemHostGetDevicePointer", "place"])
def test_a_heap_that_cannot_be_made_leaves_nothing_behind(gpu, monkeypatch, refused):
    before = gpu.left
    if refused == "place":
        monkeypatch.setattr(gpu, "place", lambda *_: (_ for _ in ()).throw(warpheap.CudaError("planted")))
    gpu.refused = refused
    with pytest.raises(warpheap.WarpheapError, match="planted"):
        small_heap()
    assert gpu.is_empty() and gpu.left == before


def test_a_device_without_the_memory_for_metadata_says_how_much_it_lacks(gpu):
    gpu.left = 0
    with pytest.raises(warpheap.OutOfMemoryError, match=f"a limit of {64 * GRANULE} bytes: .* lacks the memory for {GRANULE} bytes"):
        small_heap()
    gpu.left = 2 * GRANULE
    with pytest.raises(warpheap.OutOfMemoryError, match=f"{2 * GRANULE} bytes more of a pool that has 0"):
        small_heap()
    assert gpu.is_empty()


def test_the_words_of_requests_are_those_of_the_headers():
    source = "#include <warpheap/warpheap.hpp>\n#include <warpheap/policy/growth_state.hpp>\n"
    source += f"static_assert(warpheap::growth_word::count == {growth.SHARED_WORDS});\n"
    source += f"static_assert(warpheap::growth_word::unmet == {growth.UNMET});\n"
    source += f"static_assert(warpheap::growth_word::at_once == {growth.AT_ONCE});\n"
    warpheap.compile(source, "sm_80", "ptx")


def test_the_fake_gpu_sees_a_wrong_order(gpu, monkeypatch):
    """What these tests rely on: a heap that is told of memory which is not mapped is caught."""
    with small_heap() as grows:
        monkeypatch.setattr(growth.GrowingPool, "_map", lambda *_: None)
        with pytest.raises(AssertionError):
            grows.grow(GRANULE)


def test_statistics_of_now_are_read_on_a_stream_that_waits_for_no_other(gpu, monkeypatch):
    counts, streams = warpheap.HeapStatistics(*range(11)), []
    monkeypatch.setattr(driver, "copy_rows", lambda to, begin, nbytes, pitch, rows, stream: streams.append(stream))

    def inspect(allocator, what, handle, pool_bytes, metadata_bytes, read):
        read(0, handle, 8, 8, 1)
        return struct.pack("<11Q", *counts)

    monkeypatch.setattr(inspection, "inspect", inspect)
    with small_heap() as heap:
        assert heap.statistics() == heap.statistics_now() == heap.statistics_now() == counts
        (apart,) = gpu.streams
        assert streams == [0, apart, apart]
    assert gpu.is_empty()
    with pytest.raises(warpheap.ClosedHeapError):
        heap.statistics_now()
