"""A heap whose owner is a Python object.

The headers place and initialise it in kernels that NVRTC compiles. So its layout is the one that C++
has, and nothing of it is written again here. heap/kernel_setup.hpp says what the kernels do, and
heap/c_inspection.hpp how the host looks into a heap.
"""

import ctypes
import functools
import operator
import threading
import weakref

from . import compiler, driver, inspection
from .allocators import type_of
from .errors import ClosedHeapError, CudaError, DamagedHeapError, HeapSizeError
from .memory import checked, lent

MINIMUM_BYTES = 1 << 20
_MOST_BYTES = 1 << 43  # the allocators count pages and slabs in 32 bits
_SOURCE = """#include <warpheap/warpheap.hpp>
#include <warpheap/heap/kernel_setup.hpp>
WARPHEAP_SETUP_KERNELS({})
"""


class _Fill(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("value", ctypes.c_uint64)]


class _Record(ctypes.Structure):
    """warpheap::heap_record, whose first five members are warpheap::cuda::setup."""

    _fields_ = [
        ("multiprocessors", ctypes.c_uint64),
        ("runs_functors", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("fills", ctypes.c_uint64),
        ("fill_of", _Fill * 16),
        ("whole_bytes", ctypes.c_uint64),
        ("least_bytes", ctypes.c_uint64),
        ("pool_bytes", ctypes.c_uint64),
        ("metadata_bytes", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("slots", ctypes.c_uint64),
    ]


def setup_source(allocator: str) -> str:
    """The kernels that set a heap of this allocator up."""
    return _SOURCE.format(type_of(allocator))


_loading = threading.Lock()


def _kernels(device: int, context: int, allocator: str):
    with _loading:  # two threads would load the module twice
        return _load_kernels(device, context, allocator)


@functools.cache
def _load_kernels(device: int, context: int, allocator: str):
    driver.check_compiler(compiler.nvrtc_version(), driver.version())
    code = compiler.compile(setup_source(allocator), driver.architecture(device), "cubin", ["-rdc=false"])
    with driver.current(device):
        module = driver.call("cuModuleLoadData", code)
        names = ("plan", "place", "initialize", "count")
        return {name: driver.call("cuModuleGetFunction", module, b"warpheap_" + name.encode()) for name in names}


def _release(device: int, context: int, addresses: list[int]) -> None:
    try:
        with driver.current(device):
            while addresses and driver.context_number() == context:  # else the memory went with its context
                driver.call("cuMemFree", addresses.pop())
    except CudaError:
        pass  # the context is gone, or an error of a kernel has ended it


def _whole_number(value, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}, and must be a whole number") from None


class Heap:
    """A heap in device memory, from which kernels allocate.

    nbytes     size of the pool that blocks come from; metadata comes on top. With `memory`: how many
               of its bytes to use, all if None; metadata is then inside
    allocator  one of warpheap.allocators
    device     number of the GPU; the calling thread's current one if None
    stream     where set-up runs; the constructor waits for it
    memory     an object with __cuda_array_interface__, __dlpack__, or `size` in bytes and `ptr` or
               `handle`; or a DLPack capsule

    The heap must outlive every kernel that uses it: close it, or let go of it, when none is running.
    It belongs to the device's primary context, as Numba's, CuPy's and PyTorch's memory does.
    """

    def __init__(self, nbytes: int | None, allocator: str = "slab_bitmap", device: int | None = None, stream=None, memory=None):
        self._finalizer = None
        type_of(allocator)
        if nbytes is not None:
            nbytes = _whole_number(nbytes, "nbytes")
        elif memory is None:
            raise TypeError("nbytes is None, which is possible only with memory")
        if nbytes is not None and not MINIMUM_BYTES <= nbytes < _MOST_BYTES:
            raise HeapSizeError(f"heap of {nbytes} bytes: the least is {MINIMUM_BYTES}, the most {_MOST_BYTES - 1}")
        if device is not None:
            device = _whole_number(device, "device")
        stream = driver.stream_number(stream)
        given = None if memory is None else lent(memory, stream)
        self._allocator, self._memory = allocator, given
        self._device = driver.device_number(device)
        if given is not None:
            given = checked(given, nbytes, self._device)
        self._owned: list[int] = []
        self._lock = threading.Lock()
        with driver.current(self._device):
            context = driver.context_number()
        self._finalizer = weakref.finalize(self, _release, self._device, context, self._owned)
        self._finalizer.atexit = False  # the driver frees all when the process ends
        try:
            self._functions = _kernels(self._device, context, allocator)
            with driver.current(self._device):
                if given is not None and given.stream:
                    driver.call("cuStreamSynchronize", given.stream)
                self._place(nbytes, given, stream)
        except BaseException:
            self.close()
            raise

    def _place(self, nbytes, given, stream) -> None:
        record = _Record(multiprocessors=driver.attribute(self._device, "MULTIPROCESSOR_COUNT"))
        self._record = self._acquire(ctypes.sizeof(record))
        self._write(record, stream)
        pool = nbytes if given is None else MINIMUM_BYTES
        self._launch("plan", 1, stream, (self._record, pool), (None, ctypes.c_uint64))
        record = self._read(stream)
        self._refuse(record, pool)
        if given is None:
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

    def _refuse(self, record, nbytes: int) -> None:
        if record.refused:
            raise HeapSizeError(f"{self._allocator} cannot manage {nbytes} bytes on device {self._device}")

    def _initialize(self, stream) -> None:
        for begin, value, size in self._fills:
            if size:
                driver.call("cuMemsetD8Async", begin, value, size, stream)
        self._launch("initialize", 256, stream, (self._record,), (None,))

    def _acquire(self, nbytes: int) -> int:
        address = int(driver.call("cuMemAlloc", nbytes))
        self._owned.append(address)
        return address

    def _write(self, record, stream) -> None:
        driver.call("cuMemcpyHtoDAsync", self._record, ctypes.addressof(record), ctypes.sizeof(record), stream)
        driver.call("cuStreamSynchronize", stream)

    def _read(self, stream) -> _Record:
        record = _Record()
        driver.call("cuMemcpyDtoHAsync", ctypes.addressof(record), self._record, ctypes.sizeof(record), stream)
        driver.call("cuStreamSynchronize", stream)
        return record

    def _launch(self, name: str, threads: int, stream, values, types) -> None:
        types = tuple(kind or ctypes.c_void_p for kind in types)
        driver.call("cuLaunchKernel", self._functions[name], 1, 1, 1, threads, 1, 1, 0, stream, (values, types), 0)

    def _open(self) -> None:
        if self.closed:
            raise ClosedHeapError("the heap has been closed")

    @property
    def handle(self) -> int:
        """What the C functions take, and kernels as an argument of 64 bits."""
        self._open()
        return self._handle

    @property
    def nbytes(self) -> int:
        """Bytes of the pool that blocks come from."""
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
        """The allocator's name."""
        return self._allocator

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._finalizer is None or not self._finalizer.alive

    def reset(self, stream=None) -> None:
        """Frees every block at once, in order on the stream; does not wait."""
        self._open()
        with driver.current(self._device):
            self._initialize(driver.stream_number(stream))

    def available_slots(self, nbytes: int, stream=None) -> int:
        """How many blocks of `nbytes` bytes could be allocated now, in order on the stream. Exact while no kernel uses the heap."""
        self._open()
        nbytes = _whole_number(nbytes, "nbytes")
        if not 0 <= nbytes < 1 << 64:
            raise HeapSizeError(f"blocks of {nbytes} bytes: the size must be in 0 to 2**64 - 1")
        stream = driver.stream_number(stream)
        with self._lock, driver.current(self._device):
            self._launch("count", 32, stream, (self._record, nbytes), (None, ctypes.c_uint64))
            return self._read(stream).slots

    def statistics(self, stream=None) -> inspection.HeapStatistics:
        """Counts of the heap, in order on the stream. Exact while no kernel uses the heap."""
        return inspection.statistics_of(self._inspect("statistics", stream))

    def check(self, stream=None) -> list[str]:
        """A line for each violated invariant, in order on the stream; none if all is well. No kernel may use the heap."""
        try:
            return self._inspect("check", stream).decode().splitlines()
        except DamagedHeapError as problem:
            return [str(problem)]

    def live(self, stream=None):
        """The live blocks, in order on the stream, as a NumPy array with the fields "address" and "size", in bytes.

        Addresses rise. Exact while no kernel uses the heap.
        """
        import numpy

        return numpy.frombuffer(self._inspect("live", stream), [("address", numpy.uint64), ("size", numpy.uint64)])

    def _inspect(self, what: str, stream) -> bytes:
        self._open()
        stream = driver.stream_number(stream)

        def read(to: int, begin: int, nbytes: int, pitch: int, rows: int) -> None:
            with driver.current(self._device):
                driver.copy_rows(to, begin, nbytes, pitch, rows, stream)

        return inspection.inspect(self._allocator, what, self._handle, self._pool_bytes, self._metadata_bytes, read)

    def close(self) -> None:
        """Waits for the device, and gives the memory back. Again: does nothing. No kernel may use the heap afterwards."""
        if self._finalizer is not None:
            self._finalizer()
        self._memory = None

    def __enter__(self) -> "Heap":
        self._open()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._pool_bytes} bytes on device {self._device}"
        return f"<warpheap.Heap {self._allocator}, {state}>"
