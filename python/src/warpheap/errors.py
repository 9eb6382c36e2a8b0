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
