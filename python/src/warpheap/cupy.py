# SPDX-License-Identifier: Apache-2.0
"""What CuPy's RawKernel and RawModule need to compile the headers."""

from .compiler import get_include, headers_digest


def options() -> tuple[str, ...]:
    """For `options=`: C++20, the headers' folder, and their hash, because CuPy's cache does not see headers."""
    return ("--std=c++20", f"-I{get_include()}", f"-DWARPHEAP_HEADERS_{headers_digest()[:16]}")
