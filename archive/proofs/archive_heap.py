# SPDX-License-Identifier: Apache-2.0
"""A heap of the archive's C interface (warpheap.h), for Python."""

import ctypes
import os
import pathlib

ARCHIVE = pathlib.Path(os.environ.get("WARPHEAP_ARCHIVE", pathlib.Path(__file__).resolve().parents[2] / "build" / "archive"))
INTERFACE = 1


class Settings(ctypes.Structure):
    _fields_ = [("size", ctypes.c_char_p), ("grow", ctypes.c_char_p)] + [
        (name, ctypes.c_int) for name in ("report", "forgiving", "counts")
    ]


class Statistics(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            *("struct_bytes", "pool_bytes", "committed_bytes", "metadata_bytes", "live_blocks", "live_bytes"),
            *("highest_live_bytes", "refusals", "largest_refused_bytes", "calls", "frees", "refused_calls"),
        )
    ]


class Heap:
    """Counts calls. In the CUDA context that is current, or in the device's own one."""

    def __init__(self, size):
        self._library = ctypes.CDLL(str(ARCHIVE / "lib" / "libwarpheap_host.so"))
        self._library.warpheap_last_error.restype = ctypes.c_char_p
        self._heap = ctypes.c_void_p()
        settings = Settings(size=size.encode(), counts=1)
        self._call("create_for", INTERFACE, ctypes.byref(self._heap), ctypes.byref(settings))

    def bind_module(self, module):
        """A CUmodule, as a number."""
        self._call("bind_module", self._heap, ctypes.c_void_p(module))

    def bind_library(self, library):
        """A CUlibrary, as a number."""
        self._call("bind_library", self._heap, ctypes.c_void_p(library))

    def statistics(self):
        seen = Statistics(struct_bytes=ctypes.sizeof(Statistics))
        self._call("read_statistics", self._heap, ctypes.byref(seen))
        return seen

    def close(self):
        self._call("destroy", self._heap)

    def _call(self, name, *arguments):
        if getattr(self._library, f"warpheap_{name}")(*arguments):
            raise RuntimeError(f"warpheap_{name}: {self._library.warpheap_last_error().decode()}")
