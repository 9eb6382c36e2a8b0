"""Warpheap from Python: the headers of device-side malloc, compiled for kernels that other packages build."""

from importlib.metadata import PackageNotFoundError, version

from .allocators import NAMES as allocators
from .compiler import compile, compile_functions, get_include, headers_digest
from .errors import CompileError, CompilerTooOldError, NoCompilerError, UnknownAllocatorError, WarpheapError

try:
    __version__ = version("warpheap")
except PackageNotFoundError:
    __version__ = "unknown"

__all__ = [
    "CompileError",
    "CompilerTooOldError",
    "NoCompilerError",
    "UnknownAllocatorError",
    "WarpheapError",
    "allocators",
    "compile",
    "compile_functions",
    "get_include",
    "headers_digest",
]
