# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of a heap, as far as that needs no device."""

import operator
import os
from typing import NamedTuple

from . import driver
from .allocators import growing, grows, type_of
from .errors import GrowthError, HeapSizeError
from .growth import MOST_BYTES, Growth

MINIMUM_BYTES = 1 << 20


def simulates() -> bool:
    """Whether Numba's kernels run in its simulator in this process, where heaps are the host's."""
    try:
        return int(os.environ.get("NUMBA_ENABLE_CUDASIM", "")) != 0
    except ValueError:  # as Numba takes it
        return False


def whole_number(value: object, what: str) -> int:
    """The value, if it is one; a TypeError otherwise."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # the exception says if it is none
    except TypeError:
        raise TypeError(f"{what} is {value!r}, and must be a whole number") from None


def block_size(nbytes: object) -> int:
    """Of blocks to be counted."""
    size = whole_number(nbytes, "nbytes")
    if not 0 <= size < 1 << 64:
        raise HeapSizeError(f"blocks of {size} bytes: the size must be in 0 to 2**64 - 1")
    return size


class HeapArguments(NamedTuple):
    """The arguments of Heap(), checked."""

    nbytes: int | None
    allocator: str  #: by the name that it has with a limit, if there is one
    device: int | None
    stream: int
    sizes: Growth | None  #: those of a pool that grows, if it does

    @classmethod
    def checked(
        cls, nbytes: object, allocator: str, device: object, stream: object, memory: object, limit: object, chunk: object
    ) -> "HeapArguments":
        """An error if one is wrong, or they contradict each other."""
        type_of(allocator)
        if nbytes is None and memory is None:
            raise TypeError("nbytes is None, which is possible only with memory")
        size = None if nbytes is None else whole_number(nbytes, "nbytes")
        sizes = None
        if limit is not None:
            allocator = growing(allocator)
            if size is None or memory is not None:
                raise GrowthError("memory of yours has one size: leave out `limit`, or `memory`")
            sizes = Growth(size, whole_number(limit, "limit"), 0 if chunk is None else whole_number(chunk, "chunk"))
            sizes.check()
        elif chunk is not None:
            raise GrowthError(f"a chunk of {chunk} bytes is for a heap with a limit")
        elif grows(allocator):
            raise GrowthError(f"{allocator} is the allocator of heaps with a limit")
        elif size is not None and not MINIMUM_BYTES <= size < MOST_BYTES:
            raise HeapSizeError(f"heap of {size} bytes: the least is {MINIMUM_BYTES}, the most {MOST_BYTES - 1}")
        number = None if device is None else whole_number(device, "device")
        return cls(size, allocator, number, driver.stream_number(stream), sizes)
