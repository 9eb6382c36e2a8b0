#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the headers as one file (scripts/amalgamate.py) are what the headers are.

  g++    an example prints the same with either, and a program of every part compiles
  nvcc   the example compiles
  NVRTC  kernels of three allocators become the same PTX with either; NVRTC is fetched from PyPI
"""

import ctypes
import pathlib
import tempfile

import amalgamate
import check_oldest_cuda
import compilers

NVRTC = "nvidia-cuda-nvrtc==13.*"
EXAMPLES = compilers.ROOT / "examples"
RUN, COMPILED = EXAMPLES / "02_choose_policies.cpp", [EXAMPLES / "08_checked_kernels.cpp", EXAMPLES / "09_growing_heap.cpp"]
TREE = compilers.ROOT / "include"
ALLOCATORS = sorted(f"allocator/{path.name}" for path in (TREE / "warpheap" / "allocator").iterdir())
HEADERS = ["all.hpp", "warpheap.hpp", *ALLOCATORS, *amalgamate.EXTRAS]
KERNELS = "".join(f"#include <warpheap/{name}>\n" for name in HEADERS) + """
template <class Heap>
__device__ void use(Heap heap, void** results) {
  void* memory = heap.malloc(16 + threadIdx.x);
  if (threadIdx.x & 1) heap.free(memory);
  results[threadIdx.x] = heap.realloc(memory, 4096);
}
__global__ void use_default(warpheap::heap_ref heap, void** results) { use(heap, results); }
__global__ void use_scatter(warpheap::scatter_allocator heap, void** results) { use(heap, results); }
__global__ void use_rw(warpheap::rw_malloc_allocator heap, void** results) { use(heap, results); }
"""


def folder_of(text, home):
    """An include folder in which every header that programs name is the one file."""
    (home / "warpheap.hpp").write_text(text)
    for name in [*HEADERS, *amalgamate.HOST_EXTRAS]:
        header = home / "include" / "warpheap" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(f'#include "{home}/warpheap.hpp"\n')
    return home / "include"


def printed(include, home):
    """(succeeded, what the example prints or the compiler says)."""
    program = home / "example"
    command = ["g++", "-std=c++20", "-O1", f"-I{include}", str(RUN), "-o", str(program), "-lboost_context", "-pthread"]
    good, said, _ = compilers.compile(command)
    return compilers.compile([str(program)])[:2] if good else (False, said)


def load_nvrtc(directory):
    """NVRTC from PyPI; without it, ends the check."""
    compilers.fetch_or_skip([NVRTC], directory)
    for part in sorted(pathlib.Path(directory).glob("nvidia/*/lib/libnvrtc*.so*")):  # builtins first
        if ".alt." not in part.name:
            loaded = ctypes.CDLL(str(part))
    return loaded


def ptx(nvrtc, include):
    """(succeeded, PTX or NVRTC's log)."""
    options = ["--gpu-architecture=compute_90", "--std=c++20", f"--include-path={include}"]
    return check_oldest_cuda.compile_with(nvrtc, KERNELS, options, "nvrtcGetPTX")


def faults(text, nvrtc, nvcc=None):
    """What of the file differs from the headers."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        include = folder_of(text, home)
        commands = {source.name: ["g++", "-std=c++20", "-fsyntax-only", f"-I{include}", str(source)] for source in COMPILED}
        if nvcc:
            flags = ["-arch=sm_90", "--Ofast-compile=max", "-x", "cu", "-c", "-o", str(home / "out.o")]
            commands["nvcc"] = [nvcc[0], "-std=c++20", f"-I{include}", *flags, str(RUN)]
        results = compilers.compile_all(commands)
        found += [f"{name} does not compile:\n{said[:4000]}" for name, (good, said, _) in results.items() if not good]
        by_file, by_tree = printed(include, home), printed(TREE, home)
        if not by_file[0] or by_file != by_tree:
            found.append(f"{RUN.name} prints\n{by_file[1][:4000]}\nin place of\n{by_tree[1]}")
        by_file, by_tree = ptx(nvrtc, include), ptx(nvrtc, TREE)
        if not by_file[0] or by_file != by_tree:
            found.append("NVRTC makes other PTX of it" if by_file[0] else f"NVRTC refuses it:\n{by_file[1][:4000]}")
    return found


class Forgetful(amalgamate.Amalgamation):
    """A header once, whatever the conditions of that copy are."""

    def is_placed(self, header):
        return header in self.placed


def negative_test():
    good = amalgamate.single_header()
    planted = {
        "a copy left out": amalgamate.single_header(make=Forgetful),
        "another size": good.replace("MAX_SLAB_LOG2 18", "MAX_SLAB_LOG2 17"),
    }
    with tempfile.TemporaryDirectory() as directory:
        nvrtc = load_nvrtc(directory)
        return [f"missed: {name}" for name, text in planted.items() if text == good or not faults(text, nvrtc)]


def check():
    with tempfile.TemporaryDirectory() as directory:
        found = faults(amalgamate.single_header(), load_nvrtc(directory), compilers.find_nvcc())
    return found, "the headers as one file are what the headers are"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
