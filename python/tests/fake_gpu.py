# SPDX-License-Identifier: Apache-2.0
"""A GPU whose memory is only counted, for heaps with a limit where there is no device.

It answers the calls of the driver that such a heap makes, and does of each kernel what the host sees of it.
What would end a kernel on a real device is an assertion here.
"""

import contextlib
import ctypes

from warpheap import driver, heap
from warpheap.errors import CudaError, OutOfMemoryError
from warpheap.setup_kernels import Record

GRANULE = 2 << 20
_BEGIN = 1 << 40


class FakeGpu:
    def __init__(self, bindings, nbytes: int):
        self.bindings = bindings  # with the driver's structures, which need no driver
        self.left = nbytes  # of its memory
        self.manages_memory = 1
        self.refused = ""  # a call that fails
        self.calls: list[str] = []
        self.ranges: dict[int, int] = {}
        self.created: dict[int, int] = {}  # that are not released
        self.parts: dict[int, list] = {}  # address to bytes, whether kernels have access, and what was mapped
        self.buffers: dict[int, object] = {}
        self.known = 0  # blocks are made of the pool's first bytes, up to here
        self.used_end = self.stays = 0  # what kernels will answer
        self.words = 0
        self.streams: set[int] = set()  # beside the default one, and waiting for no other

    def install(self, monkeypatch) -> "FakeGpu":
        monkeypatch.setattr(driver, "load", lambda: self.bindings)
        monkeypatch.setattr(driver, "call", self.call)
        monkeypatch.setattr(driver, "attribute", lambda device, name: self.manages_memory)
        monkeypatch.setattr(driver, "device_number", lambda device: 0)
        monkeypatch.setattr(driver, "current", lambda device: contextlib.nullcontext())
        monkeypatch.setattr(driver, "context_number", lambda: 1)
        names = ("plan", "place", "initialize", "count", "extend", "note_added", "find_used_end", "decommit", "shrink")
        monkeypatch.setattr(heap, "kernels", lambda *_: {name: name for name in names})
        return self

    def call(self, name: str, *arguments):
        self.calls.append(name)
        if name == self.refused:
            raise CudaError(f"{name}: planted")
        return getattr(self, name)(*arguments)

    def is_empty(self) -> bool:
        return not (self.ranges or self.created or self.parts or self.buffers or self.streams)

    def cuMemGetAllocationGranularity(self, memory, which):
        assert memory.type == self.bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        assert memory.location.type == self.bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        return 64 << 10

    def cuMemAddressReserve(self, nbytes, alignment, address, flags):
        assert nbytes % GRANULE == 0 and alignment == GRANULE
        assert not self.ranges, "one heap at a time"
        self.ranges[_BEGIN] = nbytes
        return _BEGIN

    def cuMemAddressFree(self, address, nbytes):
        assert not self.parts and self.ranges.pop(address) == nbytes

    def cuMemCreate(self, nbytes, memory, flags):
        assert nbytes % GRANULE == 0 and memory.location.id == 0
        if nbytes > self.left:
            raise OutOfMemoryError(f"planted: {nbytes}")
        self.left -= nbytes
        self.created[len(self.calls)] = nbytes
        return len(self.calls)

    def cuMemMap(self, address, nbytes, offset, handle, flags):
        assert self.created[handle] == nbytes and _BEGIN <= address and address + nbytes <= _BEGIN + self.ranges[_BEGIN]
        assert not any(self._part_at(begin) for begin in range(address, address + nbytes, GRANULE))
        self.parts[address] = [nbytes, False, handle]

    def cuMemRelease(self, handle):
        nbytes = self.created.pop(handle)
        if not any(part[2] == handle for part in self.parts.values()):
            self.left += nbytes

    def cuMemSetAccess(self, address, nbytes, descriptions, count):
        (access,) = descriptions
        assert count == 1 and access.location.id == 0
        assert access.location.type == self.bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        assert access.flags == self.bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        opened = [part for begin, part in self.parts.items() if address <= begin < address + nbytes]
        assert sum(part[0] for part in opened) == nbytes
        for part in opened:
            part[1] = True

    def cuMemUnmap(self, address, nbytes):
        assert self.parts.pop(address)[0] == nbytes
        assert not _BEGIN <= address < _BEGIN + self.known, "the heap makes blocks of this memory"
        self.left += nbytes

    def _part_at(self, address):
        return next((part for begin, part in self.parts.items() if begin <= address < begin + part[0]), None)

    def _usable(self, begin, end) -> bool:
        return all((part := self._part_at(address)) and part[1] for address in range(begin, end, GRANULE))

    def _buffer(self, nbytes) -> int:
        buffer = ctypes.create_string_buffer(b"\xa5" * nbytes, nbytes)
        self.buffers[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def cuMemAlloc(self, nbytes):
        return self._buffer(nbytes)

    def cuMemHostAlloc(self, nbytes, flags):
        assert flags == 3
        self.words = self._buffer(nbytes)
        return self.words

    def cuMemHostGetDevicePointer(self, address, flags):
        return address

    def cuMemFree(self, address):
        del self.buffers[address]

    cuMemFreeHost = cuMemFree

    def request(self, nbytes: int, at_once: int = 1 << 63) -> None:
        """As a call does that is refused so many bytes, of a kernel that can lack `at_once` at one time."""
        words = (ctypes.c_uint64 * 2).from_address(self.words)
        words[0], words[1] = words[0] + nbytes, at_once

    def cuStreamCreate(self, flags):
        assert flags == self.bindings.CUstream_flags.CU_STREAM_NON_BLOCKING
        self.streams.add(len(self.calls))
        return len(self.calls)

    def cuStreamDestroy(self, stream):
        self.streams.remove(stream)

    def cuMemcpyHtoDAsync(self, to, begin, nbytes, stream):
        ctypes.memmove(to, begin, nbytes)

    cuMemcpyDtoHAsync = cuMemcpyHtoDAsync

    def cuMemsetD8Async(self, begin, value, nbytes, stream):
        ctypes.memset(begin, value, nbytes)

    def cuStreamSynchronize(self, stream):
        pass

    def cuCtxSynchronize(self):
        self.known = 0  # the heap has ended

    def cuLaunchKernel(self, kernel, *words):
        (address, *values), kinds = words[8]
        assert len(kinds) == 1 + len(values)
        self.calls[-1] = kernel
        getattr(self, kernel)(Record.from_address(address), *values)

    def plan(self, record, nbytes):
        record.whole_bytes, record.least_bytes = nbytes + nbytes // 100 + 999, 1 << 20

    def place(self, record, memory, nbytes, pool):
        assert memory == _BEGIN and self._usable(memory + pool, memory + nbytes), "metadata"
        assert self._usable(memory, memory + record.committed) and record.shared == self.words
        self.known = record.committed
        record.pool_bytes, record.metadata_bytes, record.handle, record.fills = pool, nbytes - pool, memory + pool + 4096, 0

    def initialize(self, record):
        assert record.runs_functors == 1

    def extend(self, record, begin, end):
        assert begin == self.known and self._usable(_BEGIN + begin, _BEGIN + end)
        self.known = end

    def note_added(self, record, begin, end):
        assert self.calls[-2] == "extend" and end == self.known

    def find_used_end(self, record, committed):
        assert record.answer == 0 and committed == self.known
        record.answer = self.used_end

    def decommit(self, record, begin, end):
        assert record.answer == 0 and self.used_end <= begin and end == self.known
        record.answer, self.known = self.stays, begin

    def shrink(self, record, committed):
        assert committed == self.known
