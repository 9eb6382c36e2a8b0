#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures malloc in Numba kernels against C++ kernels on the same heap, the first use, and the making of heaps.

Kernels are timed by events, while a kernel before them keeps the device busy: what a launch costs the host is no part of
it, and is measured apart. Needs a GPU, numba-cuda, and nvcc, or what nvcc makes of malloc.cu and make_heap.cu elsewhere:

    nvcc -O3 -std=c++20 -I include -arch=sm_90 -cubin -o malloc.cubin bench/python/malloc.cu
    nvcc -O3 -std=c++20 -I include -arch=sm_90 -o make_heap bench/python/make_heap.cu
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
PACKAGES = ("numpy", "numba", "numba-cuda", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-nvjitlink")
BLOCK, BYTES = 256, 64
BUSY_CYCLES = 2_000_000  # a millisecond, in which Numba launches twice


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1 << 20)
    parser.add_argument("--pool", type=int, default=8 << 30, help="bytes of the heap (%(default)s)")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--cubin", help="malloc.cu as compiled for this GPU")
    parser.add_argument("--make-heap", help="the program made of make_heap.cu")
    parser.add_argument("--commit", default=None, help="the commit measured; git is asked if there is none")
    parser.add_argument("--json", default="h200-python.json", help="file to write (%(default)s)")
    parser.add_argument("--first-use", action="store_true", help="only print the seconds of a first use, as JSON")
    parser.add_argument("--cache", action="store_true", help="in a first use, the kernel has cache=True")
    options = parser.parse_args()
    if options.first_use:
        print(json.dumps(first_use(options.pool, options.cache)))
        return
    with tempfile.TemporaryDirectory() as folder:
        cubin = options.cubin or built(folder, "malloc.cu", "-cubin")
        maker = options.make_heap or built(folder, "make_heap.cu")
        results = [*kernels(options, cubin), *heaps(options.pool, maker), *first_uses(options.pool, folder)]
    record = {"schema": 1, "machine": machine(options.commit), "backend": "cuda", "seed": 0, "results": results}
    pathlib.Path(options.json).write_text(json.dumps(record, indent=2) + "\n")
    for row in results:
        print({key: value for key, value in row.items() if key != "times_us"})


def built(folder, source, *flags):
    from warpheap import driver

    made = pathlib.Path(folder) / source.replace(".cu", ".cubin" if flags else "")
    nvcc = os.environ.get("CUDACXX", "nvcc")
    arch = f"-arch={driver.architecture()}"
    subprocess.run([nvcc, "-O3", "-std=c++20", f"-I{INCLUDE}", arch, *flags, "-o", made, HERE / source], check=True)
    return made


def machine(commit):
    from warpheap import __main__ as tool
    from warpheap import compiler, driver

    device = driver.call("cuDeviceGet", 0)
    cuda = driver.call("cuDriverGetVersion")
    if commit is None:
        commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    versions = {"python": platform.python_version(), "nvrtc": ".".join(map(str, compiler.nvrtc_version()))}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    cpu = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "device": driver.call("cuDeviceGetName", 256, device).split(b"\0")[0].decode(),
        "driver": tool._driver_version(),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "commit": commit,
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": versions,
    }


def row(scenario, operation, kind, times_us, **more):
    median = statistics.median(times_us)
    return {
        "scenario": scenario,
        "allocator": "slab_bitmap",
        "backend": "cuda",
        "operation": operation,
        "kind": kind,
        **more,
        "times_us": times_us,
        "median_us": median,
    }


def numba_kernels(cache=False):
    from numba import cuda

    import warpheap.numba

    def take(heap, got):
        i = cuda.grid(1)
        if i < got.size:
            got[i] = heap.malloc(BYTES)

    def give(heap, got):
        i = cuda.grid(1)
        if i < got.size:
            heap.free(got[i])

    more = {"extensions": [warpheap.numba], "lto": True, "cache": cache}
    return cuda.jit(**more)(take), cuda.jit(**more)(give), cuda.jit(**more, launch_bounds=(BLOCK, 8))(take)


def kernels(options, cubin):
    import ctypes

    import numpy
    from numba import cuda

    import warpheap
    from warpheap import driver

    heap = warpheap.Heap(options.pool)
    got = cuda.to_device(numpy.zeros(options.threads, numpy.int64))
    blocks = -(-options.threads // BLOCK)
    with driver.current(0):
        module = driver.call("cuModuleLoadData", pathlib.Path(cubin).read_bytes())

    def of_cpp(name):
        function = driver.call("cuModuleGetFunction", module, name.encode())
        values = ((heap.handle, got.__cuda_array_interface__["data"][0], options.threads), (ctypes.c_uint64,) * 3)
        registers = driver.call("cuFuncGetAttribute", driver.load().CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
        return lambda: driver.call("cuLaunchKernel", function, blocks, 1, 1, BLOCK, 1, 1, 0, 0, values, 0), registers

    def of_numba(kernel):
        launcher = kernel[blocks, BLOCK]
        launcher(heap, got)
        return lambda: launcher(heap, got), next(iter(kernel.get_regs_per_thread().values()))

    occupy = driver.call("cuModuleGetFunction", module, b"occupy")
    events = [driver.call("cuEventCreate", 0) for _ in range(2)]

    def timed(launch):
        """Microseconds on the device, and those that the launch took the host."""
        driver.call("cuLaunchKernel", occupy, 1, 1, 1, 1, 1, 1, 0, 0, ((BUSY_CYCLES,), (ctypes.c_uint64,)), 0)
        driver.call("cuEventRecord", events[0], 0)
        began = time.perf_counter()
        launch()
        host = time.perf_counter() - began
        driver.call("cuEventRecord", events[1], 0)
        driver.call("cuCtxSynchronize")
        return driver.call("cuEventElapsedTime", *events) * 1e3, host * 1e6

    with driver.current(0):
        take, give, bounded = (of_numba(kernel) for kernel in numba_kernels())
        ways = {
            "numba": (take, give),
            "c++": (of_cpp("cpp_malloc"), of_cpp("cpp_free")),
            "numba, bounded": (bounded, give),
            "c++, bounded": (of_cpp("cpp_malloc_bounded"), of_cpp("cpp_free")),
        }
        heap.reset()
        times = {kind: ([], [], []) for kind in ways}
        for round in range(-2, options.repeats):
            for kind, ((malloc, _), (free, _)) in ways.items():
                malloc_us, host_us = timed(malloc)
                addresses = numpy.sort(got.copy_to_host())
                if addresses[0] == 0 or (numpy.diff(addresses) < BYTES).any():
                    sys.exit(f"malloc.py: the kernel in {kind} got no block, or blocks that overlap")
                free_us, _ = timed(free)
                if round >= 0:
                    for list_of, value in zip(times[kind], (malloc_us, free_us, host_us)):
                        list_of.append(value)
        parameters = {"threads": options.threads, "bytes": BYTES, "pool_bytes": options.pool}
        for kind, (malloc_us, free_us, host_us) in times.items():
            (_, malloc_registers), (_, free_registers) = ways[kind]
            yield row("python_burst", "malloc", kind, malloc_us, registers=malloc_registers, parameters=parameters)
            yield row("python_burst", "free", kind, free_us, registers=free_registers, parameters=parameters)
            yield row("python_burst", "launch", kind, host_us, parameters=parameters)
    heap.close()


def heaps(pool, maker):
    import warpheap

    def once():
        began = time.perf_counter()
        heap = warpheap.Heap(pool)
        took = time.perf_counter() - began
        heap.close()
        return took * 1e6

    once()
    yield row("python_heap", "construct", "python", [once() for _ in range(7)], parameters={"pool_bytes": pool})
    said = subprocess.run([maker, str(pool)], capture_output=True, text=True, check=True).stdout
    yield row("python_heap", "construct", "c++", [1e3 * value for value in json.loads(said)], parameters={"pool_bytes": pool})


def first_uses(pool, folder):
    """Thrice, a process with empty caches, one with what it left there, and one that finds the kernel in Numba's cache too."""
    phases = {}
    for repeat in range(3):
        caches = {name: f"{folder}/{repeat}/{name}" for name in ("WARPHEAP_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH")}
        for kind, *more in (("empty cache",), ("from the cache",), (None, "--cache"), ("from Numba's cache", "--cache")):
            command = [sys.executable, HERE / "malloc.py", "--first-use", "--pool", str(pool), *more]
            done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"malloc.py: a first use failed:\n{done.stderr}")
            for phase, seconds in json.loads(done.stdout).items() if kind else ():
                phases.setdefault((phase, kind), []).append(1e6 * seconds)
    for (phase, kind), times_us in phases.items():
        yield row("python_first_use", phase, kind, times_us, parameters={"pool_bytes": pool})


def first_use(pool, cache):
    began = time.perf_counter()
    seconds = {}

    def phase(name):
        nonlocal began
        now = time.perf_counter()
        seconds[name], began = now - began, now

    import numpy
    from numba import cuda

    phase("import numba")
    import warpheap
    import warpheap.numba

    phase("import warpheap")
    got = cuda.to_device(numpy.zeros(BLOCK, numpy.int64))
    phase("context")
    heap = warpheap.Heap(pool)
    phase("heap")
    take, _, _ = numba_kernels(cache)
    take[1, BLOCK](heap, got)
    cuda.synchronize()
    phase("kernel")
    if not got.copy_to_host().all():
        sys.exit("malloc.py: a first use got no block")
    return {**seconds, "heap and kernel": seconds["heap"] + seconds["kernel"]}


if __name__ == "__main__":
    main()
