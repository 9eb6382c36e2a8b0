# SPDX-License-Identifier: Apache-2.0
"""Warpheap from Python: heaps in device memory, and malloc for kernels that other packages build."""

from importlib.metadata import PackageNotFoundError, version

from .allocators import NAMES as allocators
from .compiler import compile, compile_functions, get_include, headers_digest
from .errors import (
    ClosedHeapError,
    CompileError,
    CompilerTooOldError,
    CudaError,
    DamagedHeapError,
    GrowthError,
    HeapSizeError,
    MemoryArgumentError,
    NoArchiveError,
    NoCompilerError,
    NoDeviceError,
    NoHostCompilerError,
    OutOfMemoryError,
    UnknownAllocatorError,
    VersionMismatchError,
    WarpheapError,
)
from .heap import Heap
from .inspection import HeapStatistics
from .linking import archive_folder

try:
    __version__ = version("warpheap")
except PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "ClosedHeapError",
    "CompileError",
    "CompilerTooOldError",
    "CudaError",
    "DamagedHeapError",
    "GrowthError",
    "Heap",
    "HeapSizeError",
    "HeapStatistics",
    "MemoryArgumentError",
    "NoArchiveError",
    "NoCompilerError",
    "NoDeviceError",
    "NoHostCompilerError",
    "OutOfMemoryError",
    "UnknownAllocatorError",
    "VersionMismatchError",
    "WarpheapError",
    "allocators",
    "archive_folder",
    "compile",
    "compile_functions",
    "get_include",
    "headers_digest",
]
