# SPDX-License-Identifier: Apache-2.0
"""Heaps in kernels of numba-cuda and of numba_cuda_mlir. The same tests for both, by `package`."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import types as python_types

import numpy
import pytest

import warpheap
from conftest import devices
from heaps import heap_that_is_open


class Package:
    """One of the two packages: its cuda and types modules, and our module for it."""

    def __init__(self, name: str):
        self.cuda = pytest.importorskip(f"{name}.cuda", exc_type=ImportError)
        pytest.importorskip(f"{name}.cuda.extending" if name == "numba" else f"{name}.extending")
        self.types = self.cuda.types
        self.whn = pytest.importorskip("warpheap.numba" if name == "numba" else "warpheap.numba_cuda_mlir")
        self.name = name

    def ptx(self, kernel, *arguments) -> str:
        return self.cuda.compile(kernel, self.types.void(*arguments), cc=(8, 0), output="ptx")[0]

    def jit(self, kernel, **options):
        return self.cuda.jit(extensions=[self.whn], **options)(kernel)


@pytest.fixture(params=["numba", "numba_cuda_mlir"])
def package(request, monkeypatch):
    found = Package(request.param)
    if not devices():  # both ask the device for its architecture, even where they are told one
        device = python_types.SimpleNamespace(compute_capability=(8, 0))
        monkeypatch.setattr("warpheap.driver.architecture", lambda device=None: "sm_80")
        if found.name == "numba":
            monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: device)
        else:
            monkeypatch.setattr("numba_cuda_mlir.tools._cached_cc", (8, 0))
    return found


METHODS = ("malloc", "free", "calloc", "realloc", "aligned_alloc", "usable_size")


def use_of_every_method(package):
    array = package.whn.array

    def kernel(heap, out):
        memory = heap.calloc(4, 8)
        if memory == 0:
            return
        out[0] = array(memory, 4, numpy.int64)[3]
        array(memory, 4, numpy.int64)[3] = 5
        larger = heap.realloc(memory, 4096)
        out[1] = array(larger + 24, 1, numpy.int64)[0]
        out[2] = heap.usable_size(larger)
        aligned = heap.aligned_alloc(1024, 100)
        out[3] = aligned % 1024
        out[4] = heap.malloc(-1)
        out[5] = heap.malloc(1 << 62)
        out[6] = heap.malloc(out.size) != 0
        heap.free(larger)
        heap.free(aligned)
        heap.free(0)

    return kernel


def test_a_heap_is_an_argument(package):
    kernel = use_of_every_method(package)
    for allocator in ("slab_bitmap", "slab_bitmap_growing", "scatter"):
        ptx = package.ptx(kernel, package.whn.HeapType(allocator), package.types.int64[::1])
        for method in METHODS:
            assert f"warpheap_numba_{allocator}_{method}" in ptx


def writes_without_reading(package):
    array = package.whn.array

    def kernel(heap, out):
        memory = heap.malloc(64)
        if memory == 0:
            return
        array(memory, 8, numpy.int32)[out.size] = 77
        node = array(memory + 32, 2, numpy.int64)
        node[0] = out[0]
        if out[1] != 0:
            node[1] = out[1]
        out[2] = memory

    return kernel


# An optimisation of Numba's took the stores for dead, since the kernel does not read the views again.
def test_what_is_written_to_a_view_is_stored(package):
    ptx = package.ptx(writes_without_reading(package), package.whn.HeapType(), package.types.int64[::1])
    assert len(re.findall(r"^\s*(?:@%p\d+ )?st\.(?!param)", ptx, re.MULTILINE)) == 4, ptx


def test_a_view_has_elements_of_a_type(package):
    array = package.whn.array

    def kernel(heap, out):
        array(heap.malloc(64), 8, 3)[0] = 1

    def another(heap, out):
        heap.new(out, 8)[0] = 1

    for function, kernel in (("array", kernel), ("new", another)):
        with pytest.raises(Exception, match=rf"{function}\(\).* takes a type such as numpy.int64"):
            package.ptx(kernel, package.whn.HeapType(), package.types.int64[::1])


def writes_to_a_new_array_without_reading(package):
    def kernel(heap, out):
        node = heap.new(numpy.int64, 4)
        if node.size == 0:
            return
        node[out.size - 5] = 77
        node[0] = out[0]
        if out[1] != 0:
            node[2] = out[1]
        out[2] = 5

    return kernel


def test_what_is_written_to_a_new_array_is_stored(package):
    ptx = package.ptx(writes_to_a_new_array_without_reading(package), package.whn.HeapType(), package.types.int64[::1])
    assert len(re.findall(r"^\s*(?:@%p\d+ )?st\.(?!param)", ptx, re.MULTILINE)) == 4, ptx


RECORD = numpy.dtype([("key", numpy.int32), ("value", numpy.float64)], align=True)


def use_of_new_arrays(package):
    def kernel(heap, out):
        counts = heap.new(numpy.int32, 10)
        counts[9] = 4
        records = heap.new(RECORD, count=out.size)
        records[1]["value"] = 2.5
        waves = heap.new(dtype=numpy.complex128, count=2)
        waves[1] = 3
        out[0] = len(counts) + counts[9] + len(records) + len(waves)
        out[1] = int(records[1]["value"] * 2 + waves[1].real)
        out[2] = heap.new(numpy.float64, -1).size + heap.new(numpy.float64, 1 << 61).size + heap.new(numpy.int8, 0).size
        out[3] = heap.new(numpy.float64, (1 << 61) + 1).size  # 8 bytes, were the product not checked
        heap.free(counts)
        heap.free(records)
        heap.free(waves)
        heap.free(heap.new(numpy.int8, -1))

    return kernel


def test_arrays_are_new_in_blocks_of_their_own(package):
    kernel = use_of_new_arrays(package)
    ptx = package.ptx(kernel, package.whn.HeapType("halloc"), package.types.int64[::1])
    for method in ("new", "free"):
        assert f"warpheap_numba_halloc_{method}" in ptx


def test_a_count_is_an_integer(package):
    def kernel(heap, out):
        heap.new(numpy.float64, 1.5)

    with pytest.raises(Exception, match=r"new\(\) of a heap takes a count, an integer"):
        package.ptx(kernel, package.whn.HeapType(), package.types.int64[::1])


def test_narrow_counts_and_sizes_keep_their_sign(package):
    """-1 is too large for any heap, also as an int16: nothing of it is taken for an unsigned number."""
    def kernel(heap, counts, out):
        made = heap.new(numpy.int8, counts[0])
        out[0] = made.size + heap.malloc(counts[1]) + heap.calloc(counts[2], counts[3])

    ptx = package.ptx(kernel, package.whn.HeapType(), package.types.int16[::1], package.types.int64[::1])
    assert re.search(r"ld\.[a-z.]*s16|cvt\.s64\.s16", ptx) and not re.search(r"cvt\.u(32|64)\.u16", ptx), ptx
    assert "cvt.s64.s16" in ptx or not re.search(r"ld\.[a-z.]*u16", ptx), ptx


def test_heaps_of_two_allocators_are_arguments_of_one_kernel(package):
    def kernel(heap, other, out):
        out[0] = heap.malloc(8)
        out[1] = other.malloc(8)

    heap_type = package.whn.HeapType
    ptx = package.ptx(kernel, heap_type("halloc"), heap_type("scatter"), package.types.int64[::1])
    assert "warpheap_numba_halloc_malloc" in ptx and "warpheap_numba_scatter_malloc" in ptx


def test_a_heap_is_a_variable_around_the_kernel(package):
    heap = heap_that_is_open("scatter")

    def kernel(out):
        memory = heap.malloc(8)
        heap.free(memory)

    ptx = package.ptx(kernel, package.types.int64[::1])
    assert "warpheap_numba_scatter_malloc" in ptx and str(heap.handle) in ptx
    heap.close()

    def another(out):
        heap.free(heap.malloc(16))

    with pytest.raises(Exception, match="closed"):
        package.ptx(another, package.types.int64[::1])


@pytest.mark.parametrize("given", ["1.5", "out", "'8'", "None", "True"])
def test_a_size_must_be_an_integer(package, given):
    scope = {}
    exec(f"def kernel(heap, out):\n    heap.malloc({given})", scope)
    with pytest.raises(Exception, match=r"malloc\(\) of a heap takes a size, an integer"):
        package.ptx(scope["kernel"], package.whn.HeapType(), package.types.float64[::1])


def test_an_address_must_be_an_integer(package):
    array = package.whn.array

    def free(heap, out):
        heap.free(1.5)

    def view(heap, out):
        array(1.5, 8, numpy.float64)

    with pytest.raises(Exception, match=r"free\(\) of a heap takes an address, an integer"):
        package.ptx(free, package.whn.HeapType(), package.types.float64[::1])
    with pytest.raises(Exception, match=r"array\(\) takes an address, an integer"):
        package.ptx(view, package.whn.HeapType(), package.types.float64[::1])


def test_an_unknown_allocator_is_refused(package):
    with pytest.raises(warpheap.UnknownAllocatorError):
        package.whn.HeapType("nosuch")


def test_an_argument_is_an_open_heap_of_the_current_device(package, monkeypatch):
    heap_type, prepare = package.whn.HeapType(), package.whn.prepare_args
    current = [0]
    monkeypatch.setattr("warpheap.driver.call", lambda name: current[0])
    heap = heap_that_is_open()
    assert prepare(heap_type, heap)[1] == heap.handle
    assert prepare(package.types.int64, 5) == (package.types.int64, 5)
    current[0] = 3
    with pytest.raises(warpheap.MemoryArgumentError, match="device 0's.*device 3"):
        prepare(heap_type, heap)
    heap.close()
    with pytest.raises(warpheap.ClosedHeapError):
        prepare(heap_type, heap)


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", warpheap.allocators)
def test_threads_allocate_in_a_kernel(package, allocator):
    cuda, array = package.cuda, package.whn.array

    def kernel(heap, out):
        i = cuda.grid(1)
        memory = heap.malloc(64)
        if memory != 0:
            numbers = array(memory, 8, numpy.float64)
            numbers[7] = i
            out[i] = numbers[7]
            heap.free(memory)

    out = cuda.to_device(numpy.full(1 << 14, -1.0))
    with warpheap.Heap(256 << 20, allocator) as heap:
        package.jit(kernel)[64, 256](heap, out)
        assert (out.copy_to_host() == numpy.arange(1 << 14)).all()
        assert heap.available_slots(64) >= 1 << 14


@pytest.mark.gpu
def test_every_method_works_in_a_kernel(package):
    out = package.cuda.to_device(numpy.full(7, 99, numpy.int64))
    with warpheap.Heap(64 << 20) as heap:
        package.jit(use_of_every_method(package))[1, 1](heap, out)
        zero, kept, size, remainder, negative, huge, found = out.copy_to_host()
    assert (zero, kept, remainder, negative, huge, found) == (0, 5, 0, 0, 0, 1) and size >= 4096


@pytest.mark.gpu
def test_new_arrays_hold_their_contents_and_are_freed(package):
    out = package.cuda.to_device(numpy.full(7, 99, numpy.int64))
    with warpheap.Heap(64 << 20) as heap:
        package.jit(use_of_new_arrays(package))[1, 1](heap, out)
        assert out.copy_to_host()[:4].tolist() == [10 + 4 + 7 + 2, 8, 0, 0]
        counts = heap.statistics()
        assert (counts.live_blocks, counts.double_frees, counts.foreign_frees) == (0, 0, 0)


@pytest.mark.gpu
def test_another_kernel_reads_what_was_written_to_a_view(package):
    array = package.whn.array

    def read(out):
        out[3] = array(out[2], 8, numpy.int32)[out.size]
        node = array(out[2] + 32, 2, numpy.int64)
        out[4] = node[0]
        out[5] = node[1]

    out = package.cuda.to_device(numpy.array([5, 6, 0, 0, 0, 0], numpy.int64))
    with warpheap.Heap(16 << 20) as heap:
        package.jit(writes_without_reading(package))[1, 1](heap, out)
        package.jit(read)[1, 1](out)
        assert out.copy_to_host()[3:].tolist() == [77, 5, 6]


@pytest.mark.gpu
def test_heaps_around_the_kernel_and_among_its_arguments_serve_it(package):
    outer = warpheap.Heap(16 << 20)

    def kernel(heap, other, out):
        first = heap.malloc(64)
        second = other.malloc(64)
        third = outer.malloc(64)
        out[0] = first != 0 and second != 0 and third != 0 and first != second

    with outer, warpheap.Heap(16 << 20) as heap, warpheap.Heap(16 << 20) as other:
        fresh = outer.available_slots(64), heap.available_slots(64), other.available_slots(64)
        out = package.cuda.to_device(numpy.zeros(1, numpy.int64))
        package.jit(kernel)[1, 1](heap, other, out)
        assert out.copy_to_host()[0] == 1
        assert fresh == tuple(each.available_slots(64) + 1 for each in (outer, heap, other))


@pytest.mark.gpu
def test_a_launch_with_a_closed_heap_is_an_error(package):
    def kernel(heap, out):
        out[0] = heap.malloc(64)

    compiled, out = package.jit(kernel), package.cuda.to_device(numpy.zeros(1, numpy.int64))
    heap = warpheap.Heap(16 << 20)
    compiled[1, 1](heap, out)
    assert out.copy_to_host()[0]
    heap.close()
    with pytest.raises(warpheap.ClosedHeapError):
        compiled[1, 1](heap, out)


def run(*arguments, **environment):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)


TESTS = pathlib.Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"


# Numba's cache is beside the program, which is a copy for that.
def test_a_kernel_is_found_in_the_cache_until_our_code_changes(package, tmp_path):
    program = shutil.copy(TESTS / "cached_kernel.py", tmp_path)
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    for change, found in (("", "0 hits, 1 misses"), ("", "1 hits, 0 misses"), ("//", "0 hits, 1 misses")):
        done = run(program, package.name, change, PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
        assert done.returncode == 0, done.stderr
        first, around, inside = done.stdout.splitlines()
        assert first == found
        assert around.startswith("a kernel with a heap around it cannot be cached") and inside.startswith("a heap cannot be pickled")


def test_a_kernel_with_another_malloc_is_not_cached(package):
    files = package.whn.replace_malloc(heap_that_is_open())
    with pytest.raises(Exception, match=r"replace_malloc\(\) cannot be cached|linking files"):
        if package.name == "numba":
            from numba.cuda.codegen import CUDACodeLibrary

            library = CUDACodeLibrary(None, "library")
            library._linking_files.update(files)
            library._reduce_states()
        else:
            from numba_cuda_mlir.caching import MLIRCacheImpl

            result = python_types.SimpleNamespace(metadata={"targetoptions": {"link": files}})
            object.__new__(MLIRCacheImpl).check_cachable(result)

ARRAYS_IN_A_KERNEL = """
import sys
import numpy
import warpheap
import warpheap.numba as whn
from numba import cuda

def kernel(out, n):
    i = cuda.grid(1)
    numbers = numpy.empty(n, numpy.float64)
    for j in range(n):
        numbers[j] = i + j
    cuda.syncthreads()
    total = 0.0
    for j in range(n):
        total += numbers[j]
    out[i] = total

heap = warpheap.Heap(1 << 30)
fresh = heap.available_slots(4096)
link = whn.replace_malloc(heap) if sys.argv[1] == "ours" else []
out = cuda.to_device(numpy.zeros(1 << 16))
cuda.jit(kernel, link=link)[256, 256](out, 512)
cuda.synchronize()
assert (out.copy_to_host() == numpy.arange(1 << 16) * 512.0 + 511 * 256).all()
assert heap.available_slots(4096) == fresh
"""


def test_malloc_is_replaced_by_that_of_an_open_heap(package):
    with pytest.raises(TypeError, match="'heap'"):
        package.whn.replace_malloc("heap")
    heap = heap_that_is_open("scatter")
    functions, handle = package.whn.replace_malloc(heap)
    assert len(functions.data) > 10000 and str(heap.handle).encode() in handle.data
    heap.close()
    with pytest.raises(warpheap.ClosedHeapError):
        package.whn.replace_malloc(heap)


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [True, False])
def test_malloc_of_linked_code_is_replaced(package, lto):
    if package.name != "numba" and not lto:
        pytest.skip("numba_cuda_mlir is told so in another way")
    cuda, source = package.cuda, 'extern "C" __device__ long long taken(int n) { return (long long)malloc(n); }'
    kept = 1 << 15  # blocks of 1 KiB: more than CUDA's own 8 MiB hold
    with warpheap.Heap(256 << 20) as heap:
        link = [cuda.CUSource(source, name="taken.cu"), *package.whn.replace_malloc(heap)]
        taken = cuda.declare_device("taken", package.types.int64(package.types.int32), abi="c", link=link)

        def kernel(out):
            out[cuda.grid(1)] = taken(1024)

        out = cuda.to_device(numpy.zeros(kept, numpy.int64))
        fresh = heap.available_slots(1024)
        package.jit(kernel, **({} if lto else {"lto": False}))[kept // 256, 256](out)
        assert (numpy.diff(numpy.sort(out.copy_to_host())) >= 1024).all()
        assert heap.available_slots(1024) <= fresh - kept


@pytest.mark.gpu
def test_arrays_of_kernels_are_served_past_cudas_own_heap():
    pytest.importorskip("warpheap.numba")
    served = run("-c", ARRAYS_IN_A_KERNEL, "ours", NUMBA_CUDA_ENABLE_NRT="1")
    assert served.returncode == 0, served.stderr
    assert run("-c", ARRAYS_IN_A_KERNEL, "CUDA's", NUMBA_CUDA_ENABLE_NRT="1").returncode != 0


@pytest.mark.gpu
def test_the_example_of_strings_needs_a_heap_of_ours():
    pytest.importorskip("warpheap.numba")
    served = run(EXAMPLES / "numba_strings.py", "--rows", 1 << 18)
    assert served.stdout == f"{1 << 18} of {1 << 18} rows have a result, 0 of them a wrong one\n", served.stderr
    unserved = run(EXAMPLES / "numba_strings.py", "--rows", 1 << 18, "--cuda-heap")
    assert unserved.returncode == 0 and int(unserved.stdout.split()[0]) < 1 << 17, unserved.stdout + unserved.stderr


@pytest.mark.gpu
def test_the_example_of_lists_runs():
    pytest.importorskip("warpheap.numba")
    ran = run(EXAMPLES / "numba_lists.py")
    assert ran.returncode == 0 and "65536 threads" in ran.stdout, ran.stderr
