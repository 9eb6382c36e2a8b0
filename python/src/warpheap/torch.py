# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's load_inline needs to compile the headers with nvcc."""

from typing import Any

from .compiler import get_include, headers_digest
from .missing import needed


def arguments(**more: Any) -> dict[str, Any]:
    """`more`, with what torch.utils.cpp_extension's load_inline and load need for the headers.

    To `extra_include_paths` comes the headers' folder; to `extra_cuda_cflags` come C++20, unless there is
    a -std= of yours, and the headers' hash, so that a change of them is a new build.
    """
    flags = list(more.get("extra_cuda_cflags") or [])
    if not any(flag.lstrip("-").startswith("std=") for flag in flags):
        flags.append("-std=c++20")
    flags.append(f"-DWARPHEAP_HEADERS_{headers_digest()[:16]}")
    folders = [*(more.get("extra_include_paths") or []), get_include()]
    return {**more, "extra_cuda_cflags": flags, "extra_include_paths": folders}


def load_inline(name: str, cpp_sources: Any, cuda_sources: Any, **more: Any) -> Any:
    """torch.utils.cpp_extension.load_inline, with cuda_sources that may include <warpheap/warpheap.hpp>.

    It needs PyTorch, nvcc 12.0 or newer and a C++20 compiler. Kernels take `heap.handle`, an integer, which
    is a `uint64_t` of the C++ function. cpp_sources cannot include the headers: they would be the host backend.
    """
    with needed(__name__, "PyTorch", "warpheap[torch]", "torch"):
        from torch.utils import cpp_extension

    return cpp_extension.load_inline(name, cpp_sources, cuda_sources, **arguments(**more))
