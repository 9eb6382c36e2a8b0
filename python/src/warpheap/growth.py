# SPDX-License-Identifier: Apache-2.0
"""A pool that grows: its addresses are reserved at once, and its memory comes in chunks.

This is policy/reserve_pool/growing.hpp and heap/pool_growth.hpp in Python. Memory is mapped before a kernel
tells the heap of it, and unmapped after a kernel has taken it out of the heap: heap/kernel_growth.hpp.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from . import driver
from .errors import HeapSizeError, OutOfMemoryError
from .virtual_memory import AddressRange, granularity

MOST_BYTES = 1 << 43  # the allocators count pages and slabs in 32 bits
SHARED_WORDS, UNMET, AT_ONCE = 32, 0, 1  # warpheap::growth_word
CHUNKS_OF_A_PART = 4  # much of the time goes by parts, and what is mapped as one goes back as one


class Growth(NamedTuple):
    """How large a pool is at first, how large it may become, and in which steps."""

    initial: int
    limit: int
    chunk: int  #: 0: a 32nd of the limit

    def check(self) -> None:
        """Raises HeapSizeError where no device would do."""
        if not 0 < self.limit < MOST_BYTES:
            raise HeapSizeError(f"limit of {self.limit} bytes: it must be above 0, and at most {MOST_BYTES - 1}")
        if not 0 <= self.initial <= self.limit:
            raise HeapSizeError(f"heap of {self.initial} bytes: it must be at least 0, and at most its limit of {self.limit}")
        if self.chunk < 0:
            raise HeapSizeError(f"chunk of {self.chunk} bytes: it must be at least 0")

    def in_granules(self, granule: int) -> "Growth":
        """With a chunk, and whole granules at first. Raises HeapSizeError if a size is no multiple of `granule`."""
        for what, size in (("limit", self.limit), ("chunk", self.chunk)):
            if size % granule:
                raise HeapSizeError(f"{what} of {size} bytes: it must be a multiple of {granule}")
        chunk = min(self.chunk, self.limit) or _rounded_up(-(-self.limit // 32), granule)
        return Growth(_rounded_up(self.initial, granule), self.limit, chunk)


def _words() -> int:
    """The address of words that calls and the host share, all zero."""
    flags = driver.load().CU_MEMHOSTALLOC_DEVICEMAP | driver.load().CU_MEMHOSTALLOC_PORTABLE
    words = int(driver.call("cuMemHostAlloc", 8 * SHARED_WORDS, flags))
    ctypes.memset(words, 0, 8 * SHARED_WORDS)
    return words


def _rounded_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


class GrowingPool:
    """Owns the addresses and memory of a heap, and the words in which calls post their requests, until release().

    `tell(kernel, *values)` launches a kernel on the heap, and `ask(kernel, *values)` returns its answer too.
    """

    def __init__(self, device: int, sizes: Growth, nbytes: int):
        """Reserves `nbytes` addresses, and maps memory for the initial size and for all behind the pool.

        `sizes` is what in_granules() returned.
        """
        self._device, self._initial, self._limit, self._chunk = device, sizes.initial, sizes.limit, sizes.chunk
        self._words = 0  # their address; 0 before there are any
        self._answered = 0  # the requests up to this sum
        self.committed = 0  #: bytes of the pool that have memory: its first ones
        self._range = AddressRange(device, _rounded_up(nbytes, granularity(device)))
        try:
            behind = self._range.nbytes - self._limit
            self._map(self._limit, behind, behind, f"a limit of {self._limit} bytes")
            self._map_to(self._initial, self._initial)
            self._told = self.committed  # the heap knows of the first bytes up to here
            self._words = _words()
        except BaseException:
            self.release()
            raise

    @property
    def begin(self) -> int:
        """The first address."""
        return self._range.begin

    def words_on_device(self) -> int:
        """The address of the words for kernels. Calls read no answer there, because none of them waits for one."""
        return int(driver.call("cuMemHostGetDevicePointer", self._words, 0))

    def requested(self) -> int:
        """Bytes that refused calls have requested, a sum that only rises."""
        return self._word(UNMET)

    def grow(self, nbytes: int, tell: Callable[..., None]) -> int:
        """Maps and tells of `nbytes` bytes more, or of all below the limit. Returns how many."""
        before = self.committed
        self.commit(nbytes)
        self._tell(tell)
        return self.committed - before

    def poll(self, tell: Callable[..., None]) -> int:
        """Maps and tells of what calls have requested since the last time, as far as there is memory, but of no more than
        they lacked at one time (growth_state G4). Returns how many bytes."""
        before, requested = self.committed, self.requested()
        wanted = min(requested - self._answered, max(self._word(AT_ONCE), 1))
        while wanted:
            try:
                self.commit(wanted)
                break
            except OutOfMemoryError:
                wanted //= 2
        self._answered = requested
        self._tell(tell)
        return self.committed - before

    def trim(self, tell: Callable[..., None], ask: Callable[..., int]) -> int:
        """Takes the parts at the end that nobody uses out of the heap, and unmaps them. Returns how many bytes."""
        self._tell(tell)  # what the heap does not know of would count as used
        before = self.committed
        needed = max(ask("find_used_end", before), self._initial)
        kept = min(end for end in self._range.part_ends() if end >= needed)
        if kept == before:
            return 0
        stay = ask("decommit", kept, before)
        self._told = kept
        if stay:  # a kernel was running, and has taken some
            self._tell(tell)
            return 0
        ask("shrink", kept)  # and so waits for it
        try:
            self._range.unmap(kept, before - kept)
        finally:
            self.committed = max(end for end in self._range.part_ends() if end <= self._limit)
        return before - kept

    def commit(self, nbytes: int) -> None:
        """Maps `nbytes` bytes more, rounded up to chunks, or all up to the limit. If it cannot, it maps nothing."""
        left = self._limit - self.committed
        self._map_to(self.committed + min(_rounded_up(min(nbytes, left), self._chunk), left), nbytes)

    def release(self) -> None:
        """Gives back all that the pool owns, once the device is at rest. After an error, again what is left."""
        self._range.release()
        if self._words:
            driver.call("cuMemFreeHost", self._words)

    def _tell(self, tell: Callable[..., None]) -> None:
        if self._told != self.committed:
            for kernel in ("extend", "note_added"):
                tell(kernel, self._told, self.committed)
            self._told = self.committed

    def _map(self, offset: int, nbytes: int, part_nbytes: int, purpose: str) -> None:
        try:
            self._range.map(offset, nbytes, part_nbytes)
        except OutOfMemoryError as problem:
            raise OutOfMemoryError(f"{purpose}: device {self._device} lacks the memory for {nbytes} bytes") from problem

    def _map_to(self, end: int, nbytes: int) -> None:
        before = self.committed
        if end != before:
            part_nbytes = CHUNKS_OF_A_PART * self._chunk
            self._map(before, end - before, part_nbytes, f"{nbytes} bytes more of a pool that has {before}")
            self.committed = end

    def _word(self, which: int) -> int:
        return ctypes.c_uint64.from_address(self._words + 8 * which).value
