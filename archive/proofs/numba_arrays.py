#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays that numba-cuda makes in kernels (numpy.empty) come from a heap of ours. The kernel is not edited: its
decorator links the archive, and a callback binds each module before its first launch.

With a GPU the kernel runs, and its arrays need far more than the 8 MB that CUDA's device heap has. Without one, the
kernel is compiled and linked, and serves.py looks at the result. Needs numba-cuda of PyPI, and the archive:

  pip install 'numba-cuda[cu13]'
  make archive && python3 archive/proofs/numba_arrays.py

WARPHEAP_ARCHIVE names another folder of the archive. `import warpheap.numba` of our Python package does the same
with no file of the archive: docs/guide/numba.md.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from archive_heap import ARCHIVE, Heap

HERE = pathlib.Path(__file__).resolve().parent
os.environ["NUMBA_CUDA_ENABLE_NRT"] = "1"  # Numba's own runtime, which makes arrays in kernels
THREADS, LENGTH = 1 << 16, 256


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(0)


try:
    import numpy
    from numba import cuda, types
except ImportError as problem:
    skip(f"numba-cuda cannot be imported ({problem})")


def sums(out):
    i = cuda.grid(1)
    if i < out.size:
        numbers = numpy.empty(LENGTH, numpy.int64)
        for k in range(numbers.size):
            numbers[k] = i + k
        cuda.syncthreads()  # now all threads of a thread block hold an array
        total = 0
        for k in range(numbers.size):
            total += numbers[k]
        out[i] = total


def device_code(**callbacks):
    """What a kernel is linked with."""
    path = ARCHIVE / "lib" / "libwarpheap_device.a"
    if not path.exists():
        skip(f"no {path}: build it by `make archive`, or name its folder in WARPHEAP_ARCHIVE")
    return cuda.Archive(path.read_bytes(), name=path.name, **callbacks)


def run():
    heap = Heap("1GiB")
    out = cuda.to_device(numpy.zeros(THREADS, numpy.int64))
    kernel = cuda.jit(link=[device_code(setup_callback=lambda code: heap.bind_library(int(code.handle)))])(sums)
    kernel[THREADS // 256, 256](out)
    wrong = numpy.count_nonzero(out.copy_to_host() != numpy.arange(THREADS) * LENGTH + LENGTH * (LENGTH - 1) // 2)
    seen = heap.statistics()
    heap.close()
    print(f"{wrong} of {THREADS} sums are wrong; the heap counted {seen.calls} calls, {seen.frees} frees, {seen.live_blocks} live")
    right = wrong == 0 and seen.calls >= THREADS and seen.frees == seen.calls and seen.live_blocks == 0
    print("PASSED" if right else "FAILED")
    return 0 if right else 1


def link(lto, files):
    """The kernel's cubin for sm_90, by Numba's own compiler and linker. What they ask of the GPU is answered here."""
    from numba.cuda import api, dispatcher
    from numba.cuda.cudadrv import driver
    from numba.cuda.memory_management.nrt import NRT_LIBRARY

    class Device:
        compute_capability = (9, 0)
        supports_float16 = supports_bfloat16 = True

    api.get_current_device = dispatcher.get_current_device = lambda: Device
    output = "ltoir" if lto else "ptx"
    code, _ = cuda.compile(sums, types.void(types.int64[::1]), cc=(9, 0), device=False, abi="numba", output=output)
    linker = driver._Linker(cc=(9, 0, ""), lto=lto, max_registers=None)
    if lto:
        linker.add_ltoir(code)
    else:
        linker.add_ptx(code.encode())
    for file in (NRT_LIBRARY, *files):
        linker.add_file_guess_ext(file)
    return bytes(linker.complete().code)


def check_linked():
    with tempfile.TemporaryDirectory() as folder:
        for name, files, expected in (("with", [device_code()], 0), ("without", [], 1)):
            path = pathlib.Path(folder, f"numba_{name}_the_archive.cubin")
            path.write_bytes(link(True, files))
            done = subprocess.run([sys.executable, HERE / "serves.py", path, "--kernels", "sums"], capture_output=True, text=True)
            if done.returncode != expected:
                print(f"{path.name}: judged {done.returncode}, not {expected}\n{done.stdout}{done.stderr}")
                return 1
    print("malloc and free of the kernel, linked for sm_90, are the archive's; no GPU: it was not run")
    return 0


if __name__ == "__main__":
    sys.exit(run() if cuda.is_available() else check_linked())
