# SPDX-License-Identifier: Apache-2.0
"""Addresses of a device without memory, and the memory that is mapped there in parts.

This is platform/cuda/address_range.hpp in Python, by the functions of the driver that it calls.
"""

from typing import Any

from . import driver
from .errors import CudaError, GrowthError, OutOfMemoryError

ALIGNMENT = 1 << 21  #: of the first address


def _memory_of(device: int) -> Any:
    """Memory of the device, as cuMemCreate() takes it."""
    bindings = driver.load()
    memory = bindings.CUmemAllocationProp()
    memory.type = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    memory.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    memory.location.id = device
    return memory


def granularity(device: int) -> int:
    """What sizes of pools that grow are multiples of: what the device maps, and slabs of any size."""
    if not driver.attribute(device, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
        raise GrowthError(f"device {device} has no virtual memory management: its heaps cannot grow")
    least = driver.load().CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    mapped = int(driver.call("cuMemGetAllocationGranularity", _memory_of(device), least))
    return -(-ALIGNMENT // mapped) * mapped


class AddressRange:
    """Owns `nbytes` addresses from `begin` on, and the memory that was mapped there, until release()."""

    def __init__(self, device: int, nbytes: int):
        self._memory = _memory_of(device)
        self._parts: dict[int, int] = {}  # offset to bytes
        try:
            self.begin = int(driver.call("cuMemAddressReserve", nbytes, ALIGNMENT, 0, 0))
        except (CudaError, OutOfMemoryError) as problem:
            raise OutOfMemoryError(f"device {device} has not {nbytes} addresses ({problem})") from problem
        self.nbytes = nbytes

    def map(self, offset: int, nbytes: int, part_nbytes: int) -> None:
        """Maps memory of `nbytes` bytes at `offset`, in parts of `part_nbytes`. If it cannot, it maps nothing."""
        try:
            for begin in range(offset, offset + nbytes, part_nbytes):
                self._add(begin, min(part_nbytes, offset + nbytes - begin))
            self._open(offset, nbytes)
        except BaseException:
            self.unmap(offset, nbytes)
            raise

    def part_ends(self) -> list[int]:
        """0, and the offsets at which parts end."""
        return [0, *(offset + nbytes for offset, nbytes in self._parts.items())]

    def unmap(self, offset: int, nbytes: int) -> None:
        """Gives back the memory of the parts in these bytes, the last first. No kernel may use it."""
        for begin in sorted((begin for begin in self._parts if offset <= begin < offset + nbytes), reverse=True):
            driver.call("cuMemUnmap", self.begin + begin, self._parts[begin])
            del self._parts[begin]

    def _add(self, offset: int, nbytes: int) -> None:
        handle = driver.call("cuMemCreate", nbytes, self._memory, 0)
        try:
            driver.call("cuMemMap", self.begin + offset, nbytes, 0, handle, 0)
            self._parts[offset] = nbytes
        finally:
            driver.call("cuMemRelease", handle)  # the mapping keeps the memory

    def _open(self, offset: int, nbytes: int) -> None:
        bindings = driver.load()
        access = bindings.CUmemAccessDesc()
        access.location = self._memory.location
        access.flags = bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        driver.call("cuMemSetAccess", self.begin + offset, nbytes, [access], 1)

    def release(self) -> None:
        """Gives back all memory and the addresses, once the device is at rest. After an error, again what is left."""
        if self.nbytes:
            driver.call("cuCtxSynchronize")
            self.unmap(0, self.nbytes)
            driver.call("cuMemAddressFree", self.begin, self.nbytes)
            self.nbytes = 0
