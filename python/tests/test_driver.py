# SPDX-License-Identifier: Apache-2.0
"""Processes, contexts, threads and versions that a heap can meet."""

import subprocess
import sys
import threading
import types

import pytest

import warpheap
from kernels import slow_kernel
from warpheap import compiler, driver, setup_kernels

MIB = 1 << 20


def answer_of(code):
    """What a Python process prints that runs the code, after it ended well."""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize(("nvrtc", "known"), [((13, 5), (13, 0)), ((12, 9), (13, 0)), ((12, 0), (12, 0))])
def test_versions_that_fit_are_accepted(nvrtc, known):
    driver.check_compiler(nvrtc, known)


def test_versions_that_do_not_fit_are_named():
    with pytest.raises(warpheap.VersionMismatchError, match=r"NVRTC is 13\.5, .* CUDA 12\.8 at most: .*warpheap\[cu12\]"):
        driver.check_compiler((13, 5), (12, 8))
    with pytest.raises(warpheap.VersionMismatchError, match=r"12\.0.*11\.8 at most: install a newer driver"):
        driver.check_compiler((12, 0), (11, 8))


@pytest.fixture
def bindings():
    """The module of the driver's functions, which can be imported where there is no driver."""
    return pytest.importorskip("cuda.bindings.driver")


def test_a_driver_that_is_not_there_is_an_error(bindings, monkeypatch):
    def fail(flags):
        raise RuntimeError("planted")

    monkeypatch.setattr(bindings, "cuInit", fail)
    with pytest.raises(warpheap.NoDeviceError, match="no CUDA driver can be loaded: planted"):
        driver.load.__wrapped__()


@pytest.mark.parametrize(
    ("status", "words"),
    [("CUDA_ERROR_NO_DEVICE", "finds no GPU"), ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")],
)
def test_a_driver_that_does_not_start_is_an_error(bindings, monkeypatch, status, words):
    monkeypatch.setattr(bindings, "cuInit", lambda flags: (getattr(bindings.CUresult, status),))
    with pytest.raises(warpheap.NoDeviceError, match=words):
        driver.load.__wrapped__()


def test_bindings_that_are_not_there_are_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(warpheap.NoDeviceError, match=r"install warpheap\[cu13\] or \[cu12\]"):
        driver.load.__wrapped__()


def test_a_gpu_without_that_number_is_an_error(monkeypatch):
    answers = {"cuDeviceGetCount": 2, "cuCtxGetCurrent": 1, "cuCtxGetDevice": 1}
    monkeypatch.setattr(driver, "call", lambda name: answers[name])
    assert [driver.device_number(device) for device in (0, 1, None)] == [0, 1, 1]
    answers["cuCtxGetCurrent"] = 0
    assert driver.device_number(None) == 0
    for device in (-1, 2):
        with pytest.raises(warpheap.NoDeviceError, match=f"number {device}: there are 2"):
            driver.device_number(device)
    answers["cuDeviceGetCount"] = 0
    for device in (None, 0):
        with pytest.raises(warpheap.NoDeviceError, match="finds no GPU"):
            driver.device_number(device)


def test_refusals_of_the_driver_are_named(bindings, monkeypatch):
    refusals = types.SimpleNamespace(
        CUresult=bindings.CUresult,
        cuMemAlloc=lambda nbytes: (bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None),
        cuCtxSynchronize=lambda: (bindings.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,),
    )
    monkeypatch.setattr(driver, "load", lambda: refusals)
    with pytest.raises(warpheap.OutOfMemoryError, match=r"cuMemAlloc\(4096") as caught:
        driver.call("cuMemAlloc", 4096)
    assert isinstance(caught.value, MemoryError)
    monkeypatch.setattr(driver, "_process", -1)
    with pytest.raises(warpheap.CudaError, match="cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS, .*spawn it"):
        driver.call("cuCtxSynchronize")


def test_kernels_of_an_nvrtc_that_is_too_new_are_not_compiled(monkeypatch):
    monkeypatch.setattr(compiler, "nvrtc_version", lambda: (13, 5))
    monkeypatch.setattr(driver, "version", lambda: (12, 8))
    with pytest.raises(warpheap.VersionMismatchError, match=r"13\.5.*12\.8"):
        setup_kernels._load_kernels.__wrapped__(0, 0, "slab_bitmap")


@pytest.mark.gpu
def test_a_heap_with_an_nvrtc_that_is_too_new_is_refused(monkeypatch):
    known = driver.version()
    monkeypatch.setattr(compiler, "nvrtc_version", lambda: (known[0] + 1, 0))
    setup_kernels._load_kernels.cache_clear()
    with pytest.raises(warpheap.VersionMismatchError, match=f"{known[0] + 1}.0.*{known[0]}.{known[1]}"):
        warpheap.Heap(MIB)


@pytest.mark.gpu
def test_threads_make_heaps_at_the_same_time():
    made, start = [], threading.Barrier(8)

    def make(allocator):
        start.wait()
        with warpheap.Heap(16 * MIB, allocator) as mine:
            made.append((mine.handle, mine.available_slots(64), mine.statistics().live_blocks))

    threads = [threading.Thread(target=make, args=(name,)) for name in ["slab_bitmap", "scatter"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8 and all(handle and slots and not live for handle, slots, live in made)


@pytest.mark.gpu
def test_threads_ask_one_heap():
    answers = []
    with warpheap.Heap(16 * MIB) as mine:
        expected = [(mine.available_slots(size), mine.check()) for size in (64, 128, 256, 512)] * 4

        def ask(size):
            answers.append((mine.available_slots(size), mine.check()))

        threads = [threading.Thread(target=ask, args=(64 << i % 4,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == sorted(expected)


@pytest.mark.gpu
def test_a_forked_child_is_told_to_be_spawned():
    code = """
import os, warpheap
heap = warpheap.Heap(1 << 20)
if os.fork() == 0:
    for use in (lambda: warpheap.Heap(1 << 20), heap.reset, heap.check):
        try:
            use()
        except warpheap.CudaError as problem:
            print("spawn it, do not fork" in str(problem), flush=True)
    heap.close()
    os._exit(0)
assert os.wait()[1] == 0
print(heap.available_slots(64) > 0)
"""
    assert answer_of(code).split() == ["True"] * 4


RESET = """
import gc, warpheap
from warpheap import driver
heap = warpheap.Heap(1 << 24, limit={limit})
driver.call("cuDevicePrimaryCtxReset", 0)
"""


@pytest.mark.gpu
@pytest.mark.parametrize("limit", [None, 1 << 26])
@pytest.mark.parametrize("end", ["heap.close()", "del heap; gc.collect()", ""])
def test_a_heap_whose_context_is_gone_is_not_freed(end, limit):
    assert answer_of(f"{RESET.format(limit=limit)}{end}\nprint('done')") == "done"


@pytest.mark.gpu
def test_memory_of_a_later_context_is_not_freed():
    code = f"""{RESET.format(limit=None)}
from cuda.bindings import driver as cuda
device = driver.call("cuDeviceGet", 0)
context = driver.call("cuDevicePrimaryCtxRetain", device)
driver.call("cuCtxPushCurrent", context)
later = [int(driver.call("cuMemAlloc", size)) for size in [4096, 1 << 24, 1 << 25] * 8]
same = set(later) & {{free.args[1] for free in heap._owned}}
heap.close()
for address in later:
    driver.call("cuMemFree", address)
print("freed once", bool(same))
"""
    assert answer_of(code).startswith("freed once")


@pytest.mark.gpu
def test_close_waits_for_the_kernels_of_the_heap():
    cupy = pytest.importorskip("cupy")
    slow = slow_kernel()
    for memory in (None, cupy.zeros(16 * MIB, cupy.uint8)):
        mine = warpheap.Heap(4 * MIB, memory=memory)
        stream = cupy.cuda.Stream(non_blocking=True)
        slow((1,), (1,), (), stream=stream)
        assert not stream.done
        mine.close()
        assert stream.done
