import numpy
import pytest

import warpheap

cuda = pytest.importorskip("numba.cuda")
pytest.importorskip("numba.cuda.extending")
from numba.cuda import types  # noqa: E402

import warpheap.numba as whn  # noqa: E402

first = whn.functions("slab_bitmap", "sm_80")
second = whn.functions("scatter", "sm_80")


def kernel_of(here, there):
    """A kernel whose threads allocate from two heaps, of the allocators of these functions."""

    def kernel(heap, other, out):
        i = cuda.grid(1)
        memory, more = here.malloc(heap, 64), there.malloc(other, 32)
        if whn.address(memory) != 0 and whn.address(more) != 0:
            numbers = whn.array(memory, 8, numpy.float64)
            numbers[7] = i
            out[i] = whn.array(whn.pointer(whn.address(memory)), 8, numpy.float64)[7]
        here.free(heap, memory)
        there.free(other, more)

    return kernel


def test_a_kernel_compiles_to_calls_of_the_functions():
    signature = (types.uint64, types.uint64, types.float64[:])
    ptx, _ = cuda.compile(kernel_of(first, second), signature, cc=(8, 0), output="ptx")
    for name in ("slab_bitmap_malloc", "slab_bitmap_free", "scatter_malloc", "scatter_free"):
        assert f"warpheap_{name}" in ptx


def test_an_array_of_what_is_no_pointer_is_refused():
    def wrong(out):
        whn.array(1.5, 8, numpy.float64)

    with pytest.raises(Exception, match="No implementation"):
        cuda.compile(wrong, (types.float64[:],), cc=(8, 0), output="ptx")


def test_an_unknown_allocator_is_refused():
    with pytest.raises(warpheap.UnknownAllocatorError):
        whn.functions("nosuch", "sm_80")


@pytest.mark.gpu
@pytest.mark.parametrize("lto", [False, True])
def test_threads_allocate_in_a_kernel(lto):
    kernel = cuda.jit(kernel_of(whn.functions("slab_bitmap"), whn.functions("scatter")), lto=lto)
    out = cuda.to_device(numpy.full(1 << 16, -1.0))
    with warpheap.Heap(256 << 20) as heap, warpheap.Heap(256 << 20, "scatter") as other:
        fresh = heap.available_slots(64)
        kernel[256, 256](heap.handle, other.handle, out)
        assert (out.copy_to_host() == numpy.arange(1 << 16)).all()
        assert heap.available_slots(64) == fresh


@pytest.mark.gpu
def test_every_function_works_in_a_kernel():
    here = whn.functions()

    @cuda.jit
    def kernel(heap, out):
        zeroed = here.calloc(heap, 4, 8)
        out[0] = whn.array(zeroed, 4, numpy.uint64)[3]
        whn.array(zeroed, 4, numpy.uint64)[3] = 5
        larger = here.realloc(heap, zeroed, 4096)
        out[1] = whn.array(larger, 4, numpy.uint64)[3]
        out[2] = here.usable_size(heap, larger)
        aligned = here.aligned_alloc(heap, 1024, 100)
        out[3] = whn.address(aligned) % 1024
        out[4] = whn.address(here.malloc(heap, -1))
        here.free(heap, larger)
        here.free(heap, aligned)

    out = cuda.to_device(numpy.full(5, 99, numpy.uint64))
    with warpheap.Heap(64 << 20) as heap:
        kernel[1, 1](heap.handle, out)
        zero, kept, size, remainder, huge = out.copy_to_host()
    assert (zero, kept, remainder, huge) == (0, 5, 0, 0) and size >= 4096
