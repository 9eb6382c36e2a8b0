"""Warpheap from Python: heaps in device memory, and malloc for kernels that other packages build."""

from importlib.metadata import PackageNotFoundError, version

from .allocators import NAMES as allocators
from .compiler import compile, compile_functions, get_include, headers_digest
from .errors import (
    ClosedHeapError,
    CompileError,
    CompilerTooOldError,
    CudaError,
    HeapSizeError,
    MemoryArgumentError,
    NoCompilerError,
    NoDeviceError,
    OutOfMemoryError,
    UnknownAllocatorError,
    WarpheapError,
)
from .heap import Heap

try:
    __version__ = version("warpheap")
except PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "ClosedHeapError",
    "CompileError",
    "CompilerTooOldError",
    "CudaError",
    "Heap",
    "HeapSizeError",
    "MemoryArgumentError",
    "NoCompilerError",
    "NoDeviceError",
    "OutOfMemoryError",
    "UnknownAllocatorError",
    "WarpheapError",
    "allocators",
    "compile",
    "compile_functions",
    "get_include",
    "headers_digest",
]
