# SPDX-License-Identifier: Apache-2.0
"""What the package raises."""


class WarpheapError(Exception):
    """Base of every error of the package."""


class UnknownAllocatorError(WarpheapError, ValueError):
    """No allocator has that name. The message lists those that exist."""


class NoCompilerError(WarpheapError, RuntimeError):
    """NVRTC cannot be loaded. The message says what to install."""


class CompilerTooOldError(WarpheapError, RuntimeError):
    """NVRTC is older than the headers need. The message has both versions."""


class CompileError(WarpheapError, RuntimeError):
    """NVRTC refused the source. The message is its log."""


class NoArchiveError(WarpheapError, FileNotFoundError):
    """This installation has no device archive. The message says how to get one."""


class NoHostCompilerError(WarpheapError, RuntimeError):
    """There is no C++20 compiler. The message says what was tried, and has the compiler's errors."""


class VersionMismatchError(WarpheapError, RuntimeError):
    """NVRTC is of a newer major version than the driver. The message has both versions."""


class DamagedHeapError(WarpheapError, RuntimeError):
    """A kernel has overwritten the heap's metadata, so that it cannot be read."""


class NoDeviceError(WarpheapError, RuntimeError):
    """There is no driver, no GPU, or none with that number."""


class CudaError(WarpheapError, RuntimeError):
    """The driver refused a call. The message has the call's name and the error's."""


class OutOfMemoryError(WarpheapError, MemoryError):
    """The device lacks the memory for a heap. The message says how much was asked for."""


class HeapSizeError(WarpheapError, ValueError):
    """A size that no heap can have. The message has the size and the least, or the most."""


class GrowthError(WarpheapError, ValueError):
    """The heap's pool cannot grow. The message says why: its allocator, its memory, its device, or no limit."""


class MemoryArgumentError(WarpheapError, ValueError):
    """The memory for a heap lies elsewhere, is not contiguous, or cannot be written."""


class ClosedHeapError(WarpheapError, RuntimeError):
    """The heap has been closed."""
