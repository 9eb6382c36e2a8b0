# SPDX-License-Identifier: Apache-2.0
"""`python -m warpheap`: what was found, and whether every allocator compiles and, with a GPU, serves a kernel.

With --archive, the folder of the device archive alone.
"""

import argparse
import ctypes
import importlib.metadata
import pathlib
import platform
import re
import sys
import time
from collections.abc import Sequence

import warpheap

from . import driver
from .allocators import HEADERS, WITH_LIMIT, grows, type_of
from .cache import cache_folder
from .compiler import compile, compile_functions, nvrtc_version
from .heap_arguments import simulates
from .setup_kernels import setup_source

PACKAGES = ("cuda-bindings", "cuda-core", "numpy", "numba-cuda", "numba_cuda_mlir", "cupy-cuda12x", "cupy-cuda13x", "torch")
THREADS, POOL_BYTES = 1 << 12, 128 << 20

SOURCE = HEADERS + """#include <warpheap/heap/c_functions.hpp>
using heap_type = {};
extern "C" __global__ void take(unsigned long long heap, unsigned** got) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  got[i] = static_cast<unsigned*>(warpheap::ref_of<heap_type>(heap).malloc(64));
  if (got[i]) for (unsigned word = 0; word < 16; ++word) got[i][word] = i;
}}
extern "C" __global__ void give(unsigned long long heap, unsigned** got, unsigned* wrong) {{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  bool good = got[i] != nullptr;
  for (unsigned word = 0; good && word < 16; ++word) good = got[i][word] == i;
  if (!good) atomicAdd(wrong, 1u);
  warpheap::ref_of<heap_type>(heap).free(got[i]);
}}
"""


def main(words: Sequence[str] = ()) -> int:
    described = "Says what was found, and tries every allocator."
    parser = argparse.ArgumentParser("python -m warpheap", description=described, allow_abbrev=False)
    parser.add_argument("--archive", action="store_true", help="print the folder with include/ and lib/ of the device archive")
    return _print_archive() if parser.parse_args(words).archive else _try_all()


def _print_archive() -> int:
    try:
        print(warpheap.archive_folder())
    except warpheap.NoArchiveError as problem:
        print(f"warpheap: {problem}", file=sys.stderr)
        return 1
    return 0


def _try_all() -> int:
    print(f"warpheap {warpheap.__version__} on Python {platform.python_version()}, headers in {warpheap.get_include()}")
    print(f"packages: {', '.join(_installed())}")
    print(f"cache: {_cache()}")
    try:
        print("NVRTC", ".".join(map(str, nvrtc_version())))
    except warpheap.WarpheapError as problem:
        print(f"warpheap: {problem}", file=sys.stderr)
        return 1
    devices = _devices()
    names = [*warpheap.allocators, *WITH_LIMIT]
    failures = sum(not _tried(name, devices) for name in names)
    if failures:
        print(f"warpheap: {failures} of {len(names)} allocators failed", file=sys.stderr)
    return 1 if failures else 0


def _installed() -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def _cache() -> str:
    folder = cache_folder()
    if folder is None:
        return "none, since the user has no home"
    try:
        sizes = [path.stat().st_size for path in folder.iterdir()]
    except OSError:
        return f"{folder} (none yet)"
    return f"{folder} ({len(sizes)} results, {sum(sizes) / (1 << 20):.1f} MiB)"


def _driver_version() -> str:
    try:
        said = re.search(r"\d+\.\d+[.\d]*", pathlib.Path("/proc/driver/nvidia/version").read_text())
    except OSError:
        said = None
    return said[0] if said else "of an unknown version"


def _devices() -> list[int]:
    """Prints what GPUs there are. None is no failure: the functions can still be compiled for one."""
    if simulates():
        print("NUMBA_ENABLE_CUDASIM is set, so heaps are the host's; code is compiled for sm_90")
        return []
    try:
        driver.device_number(0)
        cuda = driver.call("cuDriverGetVersion")
        print(f"driver {_driver_version()}, for CUDA up to {cuda // 1000}.{cuda % 1000 // 10}")
        devices = list(range(driver.call("cuDeviceGetCount")))
        for device in devices:
            name = driver.call("cuDeviceGetName", 256, driver.call("cuDeviceGet", device)).split(b"\0")[0].decode()
            memory = driver.call("cuDeviceTotalMem", driver.call("cuDeviceGet", device))
            print(f"GPU {device}: {name}, {driver.architecture(device)}, {memory / (1 << 30):.1f} GiB")
        return devices
    except warpheap.WarpheapError as problem:
        print(f"no GPU, so code is compiled for sm_90 and no heap is made: {problem}")
        return []


def _tried(allocator: str, devices: list[int]) -> bool:
    began = time.perf_counter()
    try:
        for arch in sorted({driver.architecture(device) for device in devices}) or ["sm_90"]:
            compile_functions(arch, allocator)
            compile(setup_source(allocator), arch, "cubin", ["-rdc=false"])
        limit = POOL_BYTES if grows(allocator) else None
        for device in devices:
            with warpheap.Heap(POOL_BYTES, allocator, device, limit=limit) as heap:
                serve_a_kernel(heap)
    except warpheap.WarpheapError as problem:
        print(f"{allocator}: FAILED: {problem}")
        return False
    print(f"{allocator}: OK, {'serves a kernel' if devices else 'compiles'}, {time.perf_counter() - began:.2f} s")
    return True


def serve_a_kernel(heap: warpheap.Heap) -> None:
    """Raises WarpheapError unless each thread of a kernel gets a block from the heap, alone, which the next kernel frees."""
    code = compile(SOURCE.format(type_of(heap.allocator)), driver.architecture(heap.device), "cubin", ["-rdc=false"])
    wrong = ctypes.c_uint32(0)
    with driver.current(heap.device):
        module = driver.call("cuModuleLoadData", code)
        got = driver.call("cuMemAlloc", 8 * THREADS + ctypes.sizeof(wrong))
        try:
            count = int(got) + 8 * THREADS
            driver.call("cuMemsetD8", count, 0, ctypes.sizeof(wrong))
            for kernel, addresses in ((b"take", (int(got),)), (b"give", (int(got), count))):
                values = ((heap.handle, *addresses), (ctypes.c_uint64, *(ctypes.c_void_p for _ in addresses)))
                function = driver.call("cuModuleGetFunction", module, kernel)
                driver.call("cuLaunchKernel", function, THREADS // 256, 1, 1, 256, 1, 1, 0, 0, values, 0)
            driver.call("cuMemcpyDtoH", ctypes.addressof(wrong), count, ctypes.sizeof(wrong))
        finally:
            driver.call("cuMemFree", got)
            driver.call("cuModuleUnload", module)
    if wrong.value:
        raise warpheap.WarpheapError(f"{wrong.value} of {THREADS} threads got no block, or one that another thread wrote to")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
