# SPDX-License-Identifier: Apache-2.0
"""A heap whose owner is a Python object.

The headers place and initialise it in kernels that NVRTC compiles. So its layout is the one that C++
has, and nothing of it is written again here. heap/kernel_setup.hpp says what the kernels do, and
heap/c_inspection.hpp how the host looks into a heap.
"""

import contextlib
import ctypes
import functools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import driver, inspection
from .errors import ClosedHeapError, CudaError, DamagedHeapError, GrowthError, HeapSizeError, WarpheapError
from .growth import GrowingPool, Growth
from .heap_arguments import MINIMUM_BYTES, HeapArguments, block_size, simulates, whole_number
from .kernel_methods import KernelMethods
from .memory import LentMemory, checked, lent
from .setup_kernels import Record, kernels
from .virtual_memory import granularity

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIVE_BLOCK = [("address", "u8"), ("size", "u8")]  #: the type of a live block
_BLOCKS = 64  # of a kernel that tells a heap of growth


def _release(device: int, context: int, owned: list[Callable[[], object]]) -> None:
    """Gives back what was acquired, the last first. What it could not give back stays in `owned`."""
    if not _exists(device, context):
        owned.clear()  # the memory went with its context
    while owned:
        with driver.current(device):
            owned[-1]()
            owned.pop()


def _exists(device: int, context: int) -> bool:
    try:
        with driver.current(device):
            return driver.context_number() == context
    except CudaError:
        return False


def _release_unclosed(device: int, context: int, owned: list[Callable[[], object]]) -> None:
    """Of a heap that nobody closed, where no caller could be told by an exception."""
    try:
        _release(device, context, owned)
    except WarpheapError as problem:
        warnings.warn(f"a heap that was not closed keeps memory of device {device}: {problem}", RuntimeWarning, stacklevel=1)


class Heap(KernelMethods):
    """A heap in device memory, from which kernels allocate.

    nbytes     size of the pool that blocks come from; metadata comes on top. With `memory`: how many
               of its bytes to use, all if None; metadata is then inside
    allocator  one of warpheap.allocators
    device     number of the GPU; the calling thread's current one if None
    stream     where set-up runs; the constructor waits for it
    memory     an object with __cuda_array_interface__, __dlpack__, or `size` in bytes and `ptr` or
               `handle`; or a DLPack capsule
    limit      most bytes that the pool may have; `nbytes` are then only what it has at first. None: the
               pool has one size
    chunk      how much grow(), poll() and trim() map or unmap at a time; a 32nd of the limit if None

    In a process with NUMBA_ENABLE_CUDASIM=1 it is a heap in the host's memory, for kernels in Numba's simulator; a class of
    your own that derives from it needs a GPU.

    The heap must outlive every kernel that uses it: close it, or let go of it, when none is running.
    It belongs to the device's primary context, as Numba's, CuPy's and PyTorch's memory does.

    Any thread may call any method: calls on one heap take turns, and one that comes after close() raises
    ClosedHeapError. So a signal handler, which runs amid a call, must not use the heap.
    """

    _pool_bytes: int
    _metadata_bytes: int
    _handle: int

    def __new__(cls, *_: object, **__: object) -> "Heap":
        if cls is Heap and simulates():
            from .simulated_heap import SimulatedHeap

            cls = SimulatedHeap
        return object.__new__(cls)

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
        nbytes, allocator, device, number, sizes = HeapArguments.checked(nbytes, allocator, device, stream, memory, limit, chunk)
        given = None if memory is None else lent(memory, number)
        self._allocator, self._memory = allocator, given
        self._device = driver.device_number(device)
        if given is not None:
            given = checked(given, nbytes, self._device)
        self._growth: GrowingPool | None = None
        self._owned: list[Callable[[], object]] = []  # what gives each thing back
        self._closed = False
        self._apart = 0  # a stream that waits for no other, if there is one
        self._lock = threading.Lock()  # of whoever uses or closes the heap
        with driver.current(self._device):
            self._context = driver.context_number()
        self._finalizer = weakref.finalize(self, _release_unclosed, self._device, self._context, self._owned)
        self._finalizer.atexit = False  # the driver frees all when the process ends
        try:
            self._functions = kernels(self._device, self._context, allocator)
            with self._on_device():
                if given is not None and given.stream:
                    driver.call("cuStreamSynchronize", given.stream)
                self._place(nbytes, given, sizes, number)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def _place(self, nbytes: int | None, given: LentMemory | None, sizes: Growth | None, stream: int) -> None:
        record = Record(multiprocessors=driver.attribute(self._device, "MULTIPROCESSOR_COUNT"))
        self._record = self._acquire(ctypes.sizeof(record))
        self._write(record, stream)
        pool = MINIMUM_BYTES if given is not None or nbytes is None else nbytes
        if sizes is not None:
            sizes = sizes.in_granules(granularity(self._device))
            pool = sizes.limit
        self._launch("plan", 1, stream, (self._record, pool), (None, ctypes.c_uint64))
        record = self._read(stream)
        self._refuse(record, pool)
        if sizes is not None:
            memory, size = self._reserve(sizes, record, stream), record.whole_bytes
        elif given is None:
            memory, size = self._acquire(record.whole_bytes), record.whole_bytes
        else:
            memory, size, pool = given.address, given.nbytes, 0
            if size < record.least_bytes:
                raise HeapSizeError(f"heap in {size} bytes of memory: the least is {record.least_bytes}")
        self._launch("place", 1, stream, (self._record, memory, size, pool), (None, None, ctypes.c_uint64, ctypes.c_uint64))
        record = self._read(stream)
        self._refuse(record, size)
        self._pool_bytes, self._metadata_bytes, self._handle = record.pool_bytes, record.metadata_bytes, record.handle
        self._fills = [(fill.begin, fill.value, fill.bytes) for fill in record.fill_of[: record.fills]]
        record.runs_functors = 1
        self._write(record, stream)
        self._initialize(stream)
        driver.call("cuStreamSynchronize", stream)

    def _reserve(self, sizes: Growth, record: Record, stream: int) -> int:
        """The addresses of a pool that grows, of which the record is then told."""
        self._growth = growth = GrowingPool(self._device, sizes, record.whole_bytes)
        self._owned.append(growth.release)
        record.committed, record.shared = growth.committed, growth.words_on_device()
        self._write(record, stream)
        return growth.begin

    def _refuse(self, record: Record, nbytes: int) -> None:
        if record.refused:
            raise HeapSizeError(f"{self._allocator} cannot manage {nbytes} bytes on device {self._device}")

    def _initialize(self, stream: int) -> None:
        for begin, value, size in self._fills:
            if size:
                driver.call("cuMemsetD8Async", begin, value, size, stream)
        self._launch("initialize", 256, stream, (self._record,), (None,))

    def _acquire(self, nbytes: int) -> int:
        address = int(driver.call("cuMemAlloc", nbytes))
        self._owned.append(functools.partial(driver.call, "cuMemFree", address))
        return address

    def _write(self, record: Record, stream: int) -> None:
        driver.call("cuMemcpyHtoDAsync", self._record, ctypes.addressof(record), ctypes.sizeof(record), stream)
        driver.call("cuStreamSynchronize", stream)

    def _read(self, stream: int) -> Record:
        record = Record()
        driver.call("cuMemcpyDtoHAsync", ctypes.addressof(record), self._record, ctypes.sizeof(record), stream)
        driver.call("cuStreamSynchronize", stream)
        return record

    def _launch(
        self, name: str, threads: int, stream: int, values: tuple[int, ...], types: tuple[Any, ...], blocks: int = 1
    ) -> None:
        types = tuple(kind or ctypes.c_void_p for kind in types)
        driver.call("cuLaunchKernel", self._functions[name], blocks, 1, 1, threads, 1, 1, 0, stream, (values, types), 0)

    def _tell(self, stream: int, name: str, *values: int) -> None:
        """Launches a kernel of heap/kernel_growth.hpp."""
        types = (None, *(ctypes.c_uint64 for _ in values))
        self._launch(name, 256, stream, (self._record, *values), types, _BLOCKS)

    def _ask(self, stream: int, name: str, *values: int) -> int:
        """Launches such a kernel, waits for it, and returns what it answers."""
        answer = Record.answer
        driver.call("cuMemsetD8Async", self._record + answer.offset, 0, answer.size, stream)
        self._tell(stream, name, *values)
        return int(self._read(stream).answer)

    def _on_device(self) -> contextlib.AbstractContextManager[None]:
        """As long as it lasts, the device's primary context is the thread's."""
        return driver.current(self._device)

    @contextlib.contextmanager
    def _held_open(self) -> Iterator[None]:
        """Until it ends, no other thread closes the heap."""
        with self._lock:
            self._check_open()
            yield

    @contextlib.contextmanager
    def _pool_that_grows(self) -> Iterator[GrowingPool]:
        with self._held_open():
            if self._growth is None:
                raise GrowthError("the heap was made without a limit, so its pool has one size")
            with self._on_device():
                yield self._growth

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedHeapError("the heap has been closed")

    @property
    def handle(self) -> int:
        """What the C functions take, and kernels as an argument of 64 bits."""
        self._check_open()
        return self._handle

    @property
    def nbytes(self) -> int:
        """Bytes of the pool that blocks come from; of one that grows, its limit."""
        return self._pool_bytes

    @property
    def metadata_nbytes(self) -> int:
        """Bytes of everything beside the pool."""
        return self._metadata_bytes

    @property
    def device(self) -> int:
        """Number of the GPU."""
        return self._device

    @property
    def allocator(self) -> str:
        """The allocator's name, by which device code is compiled. With a limit it is one of its own."""
        return self._allocator

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def reset(self, stream: object = None) -> None:
        """Frees every block at once, in order on the stream; does not wait."""
        number = driver.stream_number(stream)
        with self._held_open(), self._on_device():
            self._initialize(number)

    def grow(self, nbytes: int, stream: object = None) -> int:
        """Maps at least `nbytes` bytes more of the pool, or all below its limit, and makes blocks of them in order on the stream.

        Does not wait; kernels that use the heap may be running. Returns how many bytes were mapped: whole
        chunks. If the device lacks the memory, raises OutOfMemoryError and changes nothing.
        """
        nbytes, number = whole_number(nbytes, "nbytes"), driver.stream_number(stream)
        if nbytes < 0:
            raise HeapSizeError(f"growth by {nbytes} bytes: the least is 0")
        with self._pool_that_grows() as growth:
            return growth.grow(nbytes, functools.partial(self._tell, number))

    def poll(self, stream: object = None) -> int:
        """Grows by what calls were refused since the last poll(), as far as there is memory, in order on the stream.

        A thread that tries again and again counts once, with its kernel's largest refused request.

        Does not wait, and looks at one word if nothing was refused. Returns how many bytes were mapped.
        """
        number = driver.stream_number(stream)
        with self._pool_that_grows() as growth:
            return growth.poll(functools.partial(self._tell, number))

    def trim(self) -> int:
        """Gives back the chunks at the end of the pool in which no block is live, but none that the pool had at first.

        Waits for the default stream. No kernel may use the heap. Returns how many bytes were given back.
        """
        with self._pool_that_grows() as growth:
            return growth.trim(functools.partial(self._tell, 0), functools.partial(self._ask, 0))

    @property
    def committed_bytes(self) -> int:
        """Bytes of the pool that have memory."""
        with self._pool_that_grows() as growth:
            return growth.committed

    @property
    def requested_bytes(self) -> int:
        """Bytes that refused calls have requested since the heap was made; also while kernels run."""
        with self._pool_that_grows() as growth:
            return growth.requested()

    def available_slots(self, nbytes: int, stream: object = None) -> int:
        """How many blocks of `nbytes` bytes could be allocated now, in order on the stream. Exact while no kernel uses the heap."""
        nbytes, number = block_size(nbytes), driver.stream_number(stream)
        with self._held_open(), self._on_device():
            self._launch("count", 32, number, (self._record, nbytes), (None, ctypes.c_uint64))
            return int(self._read(number).available)

    def statistics(self, stream: object = None) -> inspection.HeapStatistics:
        """Counts of the heap, in order on the stream. Exact while no kernel uses the heap."""
        return inspection.statistics_of(self._inspect("statistics", driver.stream_number(stream)))

    def statistics_now(self) -> inspection.HeapStatistics:
        """Counts of the heap while kernels use it. Waits for none of them, but for other calls of the host on this heap.

        The metadata is copied while it changes, so a call in progress may be counted, or half of it, or not.
        """
        with self._held_open(), self._on_device():
            if not self._apart:
                self._apart = int(driver.call("cuStreamCreate", driver.load().CUstream_flags.CU_STREAM_NON_BLOCKING))
                self._owned.append(functools.partial(driver.call, "cuStreamDestroy", self._apart))
        return inspection.statistics_of(self._inspect("statistics", self._apart))

    def check(self, stream: object = None) -> list[str]:
        """A line for each violated invariant, in order on the stream; none if all is well. No kernel may use the heap."""
        try:
            return self._inspect("check", driver.stream_number(stream)).decode().splitlines()
        except DamagedHeapError as problem:
            return [str(problem)]

    def live(self, stream: object = None) -> "NDArray[Any]":
        """The live blocks, in order on the stream, as a NumPy array with the fields "address" and "size", in bytes.

        Addresses rise. Exact while no kernel uses the heap.
        """
        import numpy

        return numpy.frombuffer(self._inspect("live", driver.stream_number(stream)), numpy.dtype(LIVE_BLOCK))

    def _inspect(self, what: str, stream: int) -> bytes:
        self._check_open()

        def read(to: int, begin: int, nbytes: int, pitch: int, rows: int) -> None:
            with self._held_open(), self._on_device():
                driver.copy_rows(to, begin, nbytes, pitch, rows, stream)

        return inspection.inspect(self._allocator, what, self._handle, self._pool_bytes, self._metadata_bytes, read)

    def close(self) -> None:
        """Waits for the device and for calls of other threads, and gives the memory back. No kernel may use the heap afterwards.

        Where the driver refuses to take something back, raises CudaError, and the next close() goes on with
        what is left. Once all is given back, close() does nothing.
        """
        with self._lock:
            self._closed = True
            _release(self._device, self._context, self._owned)
            self._finalizer.detach()
            self._memory = None

    def __enter__(self) -> "Heap":
        self._check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Closes the heap. An error of the block is not replaced by one of close(), which is then a warning."""
        try:
            self.close()
        except WarpheapError as problem:
            if kind is None:
                raise
            warnings.warn(f"close() failed: {problem}", RuntimeWarning, stacklevel=2)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a heap cannot be pickled or cached: its memory is this process's. Pass it to the kernel as an argument")

    def __repr__(self) -> str:
        size = f"{self._growth.committed} of {self._pool_bytes}" if self._growth else f"{self._pool_bytes}"
        state = "closed" if self.closed else f"{size} bytes on device {self._device}"
        return f"<warpheap.Heap {self._allocator}, {state}>"
