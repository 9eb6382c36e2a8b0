# SPDX-License-Identifier: Apache-2.0
"""What sets heaps up on the device: the kernels of heap/kernel_setup.hpp and heap/kernel_growth.hpp, and their record."""

import ctypes
import functools
import threading
from typing import Any

from . import compiler, driver
from .allocators import HEADERS, grows, type_of

_SETUP = ("plan", "place", "initialize", "count")
_GROWTH = ("extend", "note_added", "find_used_end", "decommit", "shrink")


class Fill(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("value", ctypes.c_uint64)]


class Record(ctypes.Structure):
    """warpheap::heap_record, whose first five members are warpheap::cuda_backend::setup."""

    _fields_ = [
        ("multiprocessors", ctypes.c_uint64),
        ("runs_functors", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("fills", ctypes.c_uint64),
        ("fill_of", Fill * 16),
        ("whole_bytes", ctypes.c_uint64),
        ("least_bytes", ctypes.c_uint64),
        ("pool_bytes", ctypes.c_uint64),
        ("metadata_bytes", ctypes.c_uint64),
        ("handle", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("committed", ctypes.c_uint64),
        ("shared", ctypes.c_uint64),
        ("answer", ctypes.c_uint64),
    ]


def setup_source(allocator: str) -> str:
    """The kernels that set a heap of this allocator up, and those that tell it of growth."""
    source = f"{HEADERS}#include <warpheap/heap/kernel_growth.hpp>\nWARPHEAP_SETUP_KERNELS({type_of(allocator)})\n"
    return source + (f"WARPHEAP_GROWTH_KERNELS({type_of(allocator)})\n" if grows(allocator) else "")


_loading = threading.Lock()


def kernels(device: int, context: int, allocator: str) -> dict[str, Any]:
    """The kernels by name, loaded into the context."""
    with _loading:  # two threads would load the module twice
        return _load_kernels(device, context, allocator)


@functools.cache
def _load_kernels(device: int, context: int, allocator: str) -> dict[str, Any]:
    driver.check_compiler(compiler.nvrtc_version(), driver.version())
    code = compiler.compile(setup_source(allocator), driver.architecture(device), "cubin", ["-rdc=false"])
    with driver.current(device):
        module = driver.call("cuModuleLoadData", code)
        names = _SETUP + (_GROWTH if grows(allocator) else ())
        return {name: driver.call("cuModuleGetFunction", module, b"warpheap_" + name.encode()) for name in names}
