#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles for a GPU with clang: kernels on a heap_ref compile, and override.hpp is refused in one sentence.

Any clang that can compile an empty CUDA program with the toolkit that nvcc belongs to will do: CLANGXX, or the newest on
PATH. CUDA 13 needs clang 22.
"""

import os
import pathlib
import shutil
import sys
import tempfile

import compilers

SOURCES = compilers.ROOT / "tests" / "compile"
OVERRIDE = compilers.ROOT / "include" / "warpheap" / "heap" / "override.hpp"
REFUSAL = "override.hpp is for nvcc: clang defines new and delete of device code itself"
NEWEST, OLDEST = 30, 14


def command_of(clang, toolkit):
    """clang is older than most of the toolkits that it works with, and warns of that. It does not know the folder in which
    CUDA 13 has the headers of CCCL."""
    options = ["-std=c++20", f"--cuda-path={toolkit}", "-Wno-unknown-cuda-version", f"-I{compilers.ROOT}/include"]
    options += ["-isystem", f"{toolkit}/include/cccl"]
    return [clang, "-x", "cuda", *options]


def compile_text(command, text):
    """Returns (succeeded, what the compiler said)."""
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "source.cu"
        source.write_text(text)
        return compilers.compile([*command, "--cuda-gpu-arch=sm_75", "-fsyntax-only", str(source)])[:2]


def find_clang(toolkit):
    """The command line of a clang that works with the toolkit, or None."""
    names = [os.environ.get("CLANGXX")] + [f"clang++-{version}" for version in range(NEWEST, OLDEST - 1, -1)] + ["clang++"]
    for clang in filter(None, map(shutil.which, filter(None, names))):
        if compile_text(command_of(clang, toolkit), "__global__ void kernel() {}\n")[0]:
            return command_of(clang, toolkit)
    return None


def faults_of(command, interface, kernel):
    """The whole interface is read, and one kernel made code of, for the host and two GPUs."""
    one_kernel = ["-O1", "-c", "-o", "/dev/null", str(kernel)]
    results = compilers.compile_all(
        {
            f"{interface.name} sm_90": [*command, "--cuda-gpu-arch=sm_90", "-fsyntax-only", str(interface)],
            f"{kernel.name} sm_75": [*command, "--cuda-gpu-arch=sm_75", *one_kernel],
            f"{kernel.name} sm_90": [*command, "--cuda-gpu-arch=sm_90", *one_kernel],
        }
    )
    return [f"{name}: FAILED\n{said[:4000]}" for name, (good, said, _) in results.items() if not good]


def faults_of_refusal(command, header):
    good, said = compile_text(command, f'#include "{header}"\n__global__ void kernel(int** out) {{ *out = new int; }}\n')
    errors = [line for line in said.splitlines() if "error: " in line and "compilation_stops_here" not in line]
    right = not good and len(errors) == 1 and REFUSAL in errors[0]
    return [] if right else [f"{header.name}: not refused in one sentence\n{said[:4000]}"]


def clang_or_skip():
    toolkit = pathlib.Path(compilers.nvcc_or_skip("clang as a CUDA compiler")[0]).resolve().parent.parent
    command = find_clang(toolkit)
    if not command:
        print(f"SKIP: no clang that compiles CUDA with {toolkit}, so clang as a CUDA compiler was not checked")
        sys.exit(compilers.SKIPPED)
    return command


def negative_test():
    """A kernel that does not compile, and a header that clang takes, must be reported."""
    command = clang_or_skip()
    with compilers.folder_of({"wrong.cu": "__global__ void kernel(int* out) { *out = undeclared; }\n", "empty.hpp": ""}) as folder:
        judged = faults_of(command, folder / "wrong.cu", folder / "wrong.cu"), faults_of_refusal(command, folder / "empty.hpp")
    return [] if all(judged) else [f"of two faults these were reported: {judged}"]


def check():
    command = clang_or_skip()
    faults = faults_of(command, SOURCES / "public_api.cu", SOURCES / "malloc_only.cu") + faults_of_refusal(command, OVERRIDE)
    return faults, "clang compiles kernels, and refuses override.hpp in one sentence"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
