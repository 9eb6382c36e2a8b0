# SPDX-License-Identifier: Apache-2.0
"""Looks into heaps with the headers' own code, which the user's C++ compiler compiles once.

The library runs on the host and reads device memory through a function of ours: see
heap/c_inspection.hpp. It is kept beside NVRTC's results; the compiler's version is in its key. The
loader takes a path, so what is loaded is a copy that nobody can have changed since it was checked.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from . import cache
from .allocators import type_of
from .compiler import get_include, headers_digest
from .errors import DamagedHeapError, NoHostCompilerError

_SOURCE = """#include <warpheap/all.hpp>
#include <warpheap/heap/growing_heap.hpp>
//
#include <warpheap/heap/c_inspection.hpp>
WARPHEAP_C_INSPECTION(warpheap, {})
"""
_OPTIONS = ["-std=c++20", "-O2", "-shared", "-fPIC", "-DWARPHEAP_READER"]
_NAMES_FILES = re.compile("-[IiB]|--?(?:sysroot|specs)|@")  # options in CXX whose files may change
_NEEDS = "statistics(), check() and live() need a C++20 compiler, such as g++ 12; CXX may name one"


class HeapStatistics(NamedTuple):
    """Counts of a heap. Bytes count whole blocks."""

    pool_bytes: int  #: memory that blocks are made of
    metadata_bytes: int  #: everything beside it
    live_blocks: int  #: allocated and not freed
    live_bytes: int
    slabs: int  #: containers the pool is cut into
    free_slabs: int  #: belonging to no size class
    empty_slabs: int  #: belonging to one, without a live block
    run_slabs: int  #: part of a block larger than a slab
    double_frees: int  #: frees of a block that was not allocated: ignored
    foreign_frees: int  #: frees of pointers to no block of this heap: ignored
    failures: int  #: calls that found no memory and returned null


_READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint64] * 4)
_GIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)


class InspectedHeap(ctypes.Structure):
    """warpheap::inspected_heap."""

    _fields_ = [
        ("handle", ctypes.c_uint64),
        ("pool_bytes", ctypes.c_uint64),
        ("metadata_bytes", ctypes.c_uint64),
        ("read", _READ),
        ("give", _GIVE),
    ]


def inspect(allocator: str, what: str, handle: int, pool_bytes: int, metadata_bytes: int, read: Callable[[int, int, int, int, int], None]) -> bytes:
    """The answer to `what`, which is "statistics", "check" or "live".

    `read(to, begin, nbytes, pitch, rows)` copies rows of device memory to the host.
    """
    answer: list[bytes] = []
    problems: list[BaseException] = []

    def copy(*arguments: int) -> int:
        try:
            read(*arguments)
        except BaseException as problem:  # must not pass through C++
            problems.append(problem)
            return 1
        return 0

    def keep(address: int, nbytes: int) -> None:
        answer.append(ctypes.string_at(address, nbytes) if nbytes else b"")

    function = getattr(library(allocator), f"warpheap_{what}")
    result = function(ctypes.byref(InspectedHeap(handle, pool_bytes, metadata_bytes, _READ(copy), _GIVE(keep))))
    if problems:
        raise problems[0]
    if result == 2:
        raise DamagedHeapError(answer[0].decode())
    if result:
        raise MemoryError("the host lacks the memory for a copy of the heap's metadata")
    return answer[0]


def statistics_of(answer: bytes) -> HeapStatistics:
    """What "statistics" answered, as a tuple with names."""
    return HeapStatistics(*struct.unpack(f"<{len(HeapStatistics._fields)}Q", answer))


@functools.cache
def library(allocator: str) -> ctypes.CDLL:
    """The inspection functions of the allocator, called warpheap_statistics and so on."""
    source, compiler = _SOURCE.format(type_of(allocator)), _compiler()
    command = [*compiler, *_OPTIONS]
    key = "\0".join([headers_digest(), _version_of(compiler), *command, source])
    kept = f"{hashlib.sha256(key.encode()).hexdigest()}.so"
    reads_more = any(map(_NAMES_FILES.match, compiler))
    if not reads_more and (result := cache.read(kept)) is not None:
        with contextlib.suppress(OSError):  # made for another C library
            return _loaded(result)
    result = _built([*command, f"-I{get_include()}"], source)
    if not reads_more:
        cache.keep(kept, result)
    try:
        return _loaded(result)
    except OSError as problem:
        raise NoHostCompilerError(f"what {command[0]} made cannot be loaded: {problem}") from problem


def _built(command: list[str], source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "library.so")
        _run([*command, "-x", "c++", "-", "-o", str(file)], source)
        return file.read_bytes()


def _loaded(library: bytes) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "library.so")
        file.write_bytes(library)
        return ctypes.CDLL(str(file))


def _compiler() -> list[str]:
    """The first words of a command that compiles C++."""
    try:
        if named := shlex.split(os.environ.get("CXX", "")):
            return named
    except ValueError as problem:
        raise NoHostCompilerError(f"CXX is {os.environ['CXX']!r}: {problem}") from None
    for name in ("c++", "g++", "clang++"):
        if found := shutil.which(name):
            return [found]
    raise NoHostCompilerError(f"there is no c++, g++ or clang++: {_NEEDS}")


def _version_of(compiler: list[str]) -> str:
    return _run([*compiler, "--version"]) + _run([*compiler, "-dumpmachine"])


def _run(command: list[str], source: str = "") -> str:
    try:
        ended = subprocess.run(command, input=source, capture_output=True, text=True)
    except OSError as problem:
        raise NoHostCompilerError(f"{command[0]} cannot be run ({problem}): {_NEEDS}") from problem
    if ended.returncode:
        raise NoHostCompilerError(f"{shlex.join(command)} failed: {_NEEDS}\n{ended.stderr[-2000:]}")
    return ended.stdout
