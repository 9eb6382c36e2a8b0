# SPDX-License-Identifier: Apache-2.0
"""A heap in the host's memory, for kernels that Numba's simulator runs: NUMBA_ENABLE_CUDASIM=1.

It keeps the promises of a heap to its kernels, and takes the first hole that fits. This tests a kernel,
not an allocator: fragmentation and the cost of a call differ on a GPU.
"""

import contextlib
import ctypes
import operator
import threading
from typing import Any

import numpy
from numpy.typing import DTypeLike, NDArray

from .errors import HeapSizeError, MemoryArgumentError, NoDeviceError, OutOfMemoryError
from .growth import GrowingPool
from .heap import LIVE_BLOCK, Heap
from .heap_arguments import MINIMUM_BYTES, HeapArguments, block_size
from .inspection import HeapStatistics

ALIGNMENT = 16  # of every block, and what sizes are rounded up to
_WORDS = 1 << 64


def _unsigned(method: str, value: Any) -> int:
    """As device code takes an integer."""
    try:
        return operator.index(value) % _WORDS
    except TypeError:
        raise TypeError(f"{method}() of a heap takes integers, and was given {value!r}") from None


def _element(dtype: Any) -> numpy.dtype[Any]:
    """NumPy's type, also of a type of Numba's."""
    if hasattr(dtype, "mangling_args"):
        from numba.cuda.np import numpy_support

        dtype = numpy_support.as_dtype(dtype)
    made: numpy.dtype[Any] = numpy.dtype(dtype)
    return made


def view(memory: int, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of the simulator's kernels over memory of the host."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray, FakeWithinKernelCUDAArray

    element = _element(dtype)
    memory, count = operator.index(memory), operator.index(count)  # NumPy's integers, which ctypes does not take
    bytes_there: Any = (ctypes.c_char * (count * element.itemsize)).from_address(memory)
    array: NDArray[Any] = FakeWithinKernelCUDAArray(FakeCUDAArray(numpy.ndarray((count,), element, bytes_there)))
    return array


def _bytes_of(memory: Any, nbytes: int | None) -> NDArray[numpy.uint8]:
    """The first `nbytes` bytes of an array of the host or the simulator, or all."""
    array = getattr(memory, "_ary", memory)
    if not isinstance(array, numpy.ndarray) or not (array.flags.c_contiguous and array.flags.writeable) or array.dtype.hasobject:
        raise MemoryArgumentError(f"{type(memory).__name__} is no contiguous, writable array, as memory must be in the simulator")
    wanted = array.nbytes if nbytes is None else nbytes
    if not MINIMUM_BYTES <= wanted <= array.nbytes:
        raise HeapSizeError(f"heap in {wanted} bytes of memory that has {array.nbytes}: the least is {MINIMUM_BYTES}")
    return array.reshape(-1).view(numpy.uint8)[:nbytes]


class WholePool(GrowingPool):
    """A pool that has all of its limit from the first, so that it never changes."""

    def __init__(self, nbytes: int):
        self.committed, self.unmet = nbytes, 0

    def requested(self) -> int:
        return self.unmet

    def grow(self, nbytes: int, tell: object) -> int:
        return 0

    def poll(self, tell: object) -> int:
        return 0

    def trim(self, tell: object, ask: object) -> int:
        return 0


class SimulatedHeap(Heap):
    """What warpheap.Heap(...) makes in a process with NUMBA_ENABLE_CUDASIM=1. A pool with a limit has all of it at once."""

    def __init__(
        self,
        nbytes: int | None,
        allocator: str = "slab_bitmap",
        device: int | None = None,
        stream: object = None,
        memory: object = None,
        limit: int | None = None,
        chunk: int | None = None,
    ):
        given = HeapArguments.checked(nbytes, allocator, device, None, memory, limit, chunk)  # the simulator's streams have no number
        if given.device:
            raise NoDeviceError(f"no GPU has number {given.device}: the simulator has number 0 alone")
        self._allocator, self._device, self._closed = given.allocator, 0, False
        self._lock = threading.Lock()
        if memory is not None:
            self._bytes = _bytes_of(memory, given.nbytes)
        else:
            size = given.sizes.limit if given.sizes else given.nbytes or 0
            try:
                self._bytes = numpy.empty(size, numpy.uint8)
            except MemoryError as problem:
                raise OutOfMemoryError(f"a heap of {size} bytes: {problem}") from None
        begin, size = self._bytes.ctypes.data, self._bytes.nbytes
        self._begin = -(-begin // ALIGNMENT) * ALIGNMENT
        self._end = (begin + size) // ALIGNMENT * ALIGNMENT
        self._handle, self._pool_bytes, self._metadata_bytes = self._begin, self._end - self._begin, 0
        self._growth = WholePool(self._pool_bytes) if given.sizes else None
        self._clear()

    def _clear(self) -> None:
        self._live: dict[int, int] = {}  # address to bytes
        self._holes = [(self._begin, self._end)]  # rising; no two of them touch
        self._double_frees = self._foreign_frees = self._failures = 0

    # What kernels call.

    def _take(self, nbytes: int, alignment: int = ALIGNMENT) -> int:
        if nbytes == 0:
            return 0
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
        with self._held_open():
            for index, (begin, end) in enumerate(self._holes):
                address = -(-begin // alignment) * alignment
                if address + size <= end:
                    rest = ((begin, address), (address + size, end))
                    self._holes[index : index + 1] = [hole for hole in rest if hole[0] != hole[1]]
                    self._live[address] = size
                    return address
            self._failures += 1
            if isinstance(self._growth, WholePool):
                self._growth.unmet += min(size, self._pool_bytes)
        return 0

    def malloc(self, nbytes: int) -> int:
        return self._take(_unsigned("malloc", nbytes))

    def calloc(self, count: int, nbytes: int) -> int:
        size = _unsigned("calloc", count) * _unsigned("calloc", nbytes)
        memory = self._take(size)
        if memory:
            ctypes.memset(memory, 0, size)
        return memory

    def aligned_alloc(self, alignment: int, nbytes: int) -> int:
        alignment = _unsigned("aligned_alloc", alignment)
        if alignment.bit_count() != 1:
            return 0
        return self._take(_unsigned("aligned_alloc", nbytes), max(alignment, ALIGNMENT))

    def realloc(self, memory: int, nbytes: int) -> int:
        memory, nbytes = _unsigned("realloc", memory), _unsigned("realloc", nbytes)
        room = self.usable_size(memory)
        if room // 2 < nbytes <= room:
            return memory
        moved = self._take(nbytes)
        if moved and memory:
            ctypes.memmove(moved, memory, min(room, nbytes))
        if moved or nbytes == 0:
            self.free(memory)
            return moved
        return memory if nbytes <= room else 0

    def new(self, dtype: DTypeLike, count: int) -> NDArray[Any]:
        count = _unsigned("new", count)
        memory = self._take(count * _element(dtype).itemsize)
        return view(memory, count if memory else 0, dtype)

    def free(self, memory: int | NDArray[Any]) -> int:
        array: Any = memory if hasattr(memory, "ctypes") else None  # of NumPy or of the simulator
        address = _unsigned("free", memory if array is None else array.ctypes.data)
        with self._held_open():
            is_empty = array is not None and array.size == 0 and address not in self._live  # as new() returns it without memory
            if address and not is_empty:
                self._put_back(address)
        return 0

    def _put_back(self, address: int) -> None:
        size = self._live.pop(address, 0)
        if size:
            merged: list[tuple[int, int]] = []
            for begin, end in sorted([*self._holes, (address, address + size)]):
                merged.append((merged.pop()[0] if merged and merged[-1][1] == begin else begin, end))
            self._holes = merged
        elif address % ALIGNMENT == 0 and any(begin <= address < end for begin, end in self._holes):
            self._double_frees += 1
        else:
            self._foreign_frees += 1

    def usable_size(self, memory: int) -> int:
        with self._held_open():
            return self._live.get(_unsigned("usable_size", memory), 0)

    # What the host calls.

    def reset(self, stream: object = None) -> None:
        with self._held_open():
            self._clear()

    def _on_device(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def available_slots(self, nbytes: int, stream: object = None) -> int:
        size = -(-block_size(nbytes) // ALIGNMENT) * ALIGNMENT
        with self._held_open():
            return sum((end - begin) // size for begin, end in self._holes) if size else 0

    def statistics(self, stream: object = None) -> HeapStatistics:
        with self._held_open():
            live = len(self._live), sum(self._live.values())
            wrong = self._double_frees, self._foreign_frees, self._failures
            return HeapStatistics(self._pool_bytes, 0, *live, 0, 0, 0, 0, *wrong)

    statistics_now = statistics

    def check(self, stream: object = None) -> list[str]:
        """None: kernels cannot reach the metadata."""
        self._check_open()
        return []

    def live(self, stream: object = None) -> NDArray[Any]:
        with self._held_open():
            return numpy.array(sorted(self._live.items()), LIVE_BLOCK)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._bytes = numpy.empty(0, numpy.uint8)
