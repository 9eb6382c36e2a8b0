#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a linked kernel by CUDA's driver, from a heap of ours, and checks what it has computed and what the heap has
counted. For cubins whose compiler is on another machine, or has no host program.

  run_cubin.py CUBIN KERNEL    sum_lists (of lists.cu), store_block (of julia.ll), sums (of numba_arrays.py) or
                               differentiate (of enzyme.cu)
"""

import argparse
import ctypes
import pathlib
import sys

from archive_heap import Heap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import cubins

ATTACH_GLOBAL = 1
THREADS, LENGTH = 1 << 16, 64
NUMBA_LENGTH = 256  # of the arrays in numba_arrays.py
X = 0.5  # where enzyme.cu is differentiated; exact in binary, as all results are


class Driver:
    def __init__(self):
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            print("SKIP: no CUDA driver")
            sys.exit(0)
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        if status := getattr(self._cuda, name)(*arguments):
            raise RuntimeError(f"{name}: CUDA error {status}")

    def load(self, image):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def array(self, count):
        """64-bit numbers, all zero, that kernels and the host reach; and their address."""
        address = ctypes.c_ulonglong()
        self.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(8 * count), ATTACH_GLOBAL)
        numbers = (ctypes.c_longlong * count).from_address(address.value)
        numbers[:] = [0] * count
        return numbers, address

    def launch(self, module, kernel, blocks, threads, arguments):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")


def sum_lists(driver, launch):
    (sum, at_sum), (refused, at_refused) = driver.array(1), driver.array(1)
    launch(THREADS // 256, 256, [at_sum, at_refused, ctypes.c_uint(LENGTH)])
    expected = LENGTH * THREADS * (THREADS - 1) // 2 + THREADS * LENGTH * (LENGTH - 1) // 2
    return sum[0] == expected and refused[0] == 0, THREADS * LENGTH, 0


def store_block(driver, launch):
    blocks, address = driver.array(32)
    launch(1, 32, [address])
    found = sorted(blocks)
    return found[0] > 0 and all(b - a >= 64 for a, b in zip(found, found[1:])), 32, 32


def sums(driver, launch):
    out, address = driver.array(THREADS)
    # An array of numba-cuda: owner, parent, elements, bytes of one, data, shape, stride.
    words = [ctypes.c_longlong(word) for word in (0, 0, THREADS, 8)]
    launch(THREADS // 256, 256, [*words, address, ctypes.c_longlong(THREADS), ctypes.c_longlong(8)])
    sum_of = lambda i: i * NUMBA_LENGTH + NUMBA_LENGTH * (NUMBA_LENGTH - 1) // 2
    return all(out[i] == sum_of(i) for i in range(THREADS)), THREADS, 0


def differentiate(driver, launch):
    derivatives, address = driver.array(32)
    launch(1, 32, [address, ctypes.c_double(X)])
    found = (ctypes.c_double * 32).from_buffer(derivatives)
    return all(found[i] == 2 * X * sum(k * k for k in range(10 + i)) for i in range(32)), 64, 0


KERNELS = {kernel.__name__: kernel for kernel in (sum_lists, store_block, sums, differentiate)}


def run(path, kernel):
    """Whether the kernel and the heap did what they should."""
    cubin = cubins.Cubin(path)
    names = [cubin.name(k) for k in cubin.kernels if kernel in cubin.name(k)]
    if len(names) != 1:
        raise ValueError(f"{path} has {len(names)} kernels with {kernel} in their names, and must have one")
    driver = Driver()
    module, heap = driver.load(path.read_bytes()), Heap("2GiB")
    heap.bind_module(module.value)
    right, calls, live = KERNELS[kernel](driver, lambda *launch: driver.launch(module, names[0], *launch))
    seen = heap.statistics()
    heap.close()
    print(f"{path.name}: the heap counted {seen.calls} calls, {seen.frees} frees, {seen.live_blocks} live")
    return right and seen.calls >= calls and seen.live_blocks == live and seen.calls - seen.frees == live


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubin", type=pathlib.Path)
    parser.add_argument("kernel", choices=KERNELS)
    options = parser.parse_args()
    try:
        right = run(options.cubin, options.kernel)
    except (OSError, ValueError, RuntimeError) as problem:
        sys.exit(f"run_cubin.py: {problem}")
    print("PASSED" if right else "FAILED")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
