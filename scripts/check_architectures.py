#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles tests/compile/public_api.cu, which calls every device function, for each architecture that Warpheap supports.

With -rdc=true each function of ours that is called uses 32 registers at most, so that kernels of every bound can call it.

tests/compile/halloc_program.cu, a program for Halloc's own interface, is compiled and linked in both ways for sm_90.
"""

import re
import tempfile

import compilers
import cubins

# Whether code compiles, and whom it calls, does not hang on how well it is optimised, which takes four fifths of the time.
QUICKLY = "--Ofast-compile=max"
# What no launch bound leaves a kernel less than.
MOST_OF_A_FUNCTION = 32


def wide_functions(cubin):
    """Functions of ours, no kernels, that use more registers than each kernel has."""
    of_ours = [f for f in cubin.registers if f not in cubin.kernels and re.match("_ZNK?8warpheap", cubin.name(f))]
    return [cubin.name(f) for f in of_ours if cubin.registers[f] > MOST_OF_A_FUNCTION]


def faults_of(nvcc, source):
    """What does not compile for an architecture, or has a wide function there."""
    strict = [*nvcc, QUICKLY, "-Werror=all-warnings"]
    with tempfile.TemporaryDirectory() as directory:
        commands = {
            arch: [*strict, "-rdc=true", f"-arch=sm_{arch}", "-cubin", "-o", f"{directory}/{arch}", str(source)] for arch in compilers.ARCHITECTURES
        }
        commands["90 without -rdc=true"] = [*strict, "-arch=sm_90", "-cubin", "-o", "/dev/null", str(source)]
        results = compilers.compile_all(commands)
        faults = [f"sm_{arch}: FAILED\n{said}" for arch, (good, said, _) in results.items() if not good]
        wide = {arch: wide_functions(cubins.Cubin(f"{directory}/{arch}")) for arch in compilers.ARCHITECTURES if results[arch][0]}
    return faults + [f"sm_{arch}: use more than {MOST_OF_A_FUNCTION} registers: {names}" for arch, names in wide.items() if names]


def faults_of_linking(nvcc, source):
    with tempfile.TemporaryDirectory() as directory:
        program = [*nvcc, QUICKLY, "-Werror=all-warnings", "-arch=sm_90", str(source), "-o"]
        results = compilers.compile_all({"whole": [*program, f"{directory}/whole"], "rdc": [*program, f"{directory}/rdc", "-rdc=true"]})
    return [f"{source.name}, {way}: FAILED\n{said}" for way, (good, said, _) in results.items() if not good]


REFUSED_EVERYWHERE = "__global__ void kernel(int* out) { *out = undeclared; }\n"
# The matrix instruction needs sm_80.
REFUSED_ON_75 = """
#include <mma.h>
__global__ void kernel(double* out) {
  using namespace nvcuda::wmma;
  fragment<accumulator, 8, 8, 4, double> sum;
  fill_fragment(sum, 0.0);
  store_matrix_sync(out, sum, 8, mem_row_major);
}
"""
ARGUMENTS = [f"a{i}" for i in range(40)]  # which come in registers
WIDE_FUNCTION = f"""
namespace warpheap {{
__device__ __noinline__ float wide({", ".join("float " + a for a in ARGUMENTS)}) {{ return {" * ".join(ARGUMENTS)}; }}
}}  // namespace warpheap
__global__ void kernel(float* out) {{ *out = warpheap::wide({", ".join(["*out"] * len(ARGUMENTS))}); }}
"""
ONE_KERNEL = "__global__ void kernel(int* out) { *out = 1; }\n"


def negative_test():
    nvcc = compilers.nvcc_or_skip("CUDA compilation")
    wrong = []
    for text, good in {REFUSED_EVERYWHERE: False, REFUSED_ON_75: False, WIDE_FUNCTION: False, ONE_KERNEL: True}.items():
        with compilers.folder_of({"planted.cu": text}) as folder:
            said = faults_of(nvcc, folder / "planted.cu")
        wrong += [] if good != bool(said) else [f"judged wrongly:\n{text}", *said]
    return wrong


def check():
    nvcc, sources = compilers.nvcc_or_skip("CUDA compilation"), compilers.ROOT / "tests" / "compile"
    faults = faults_of(nvcc, sources / "public_api.cu") + faults_of_linking(nvcc, sources / "halloc_program.cu")
    return faults, f"compiles for sm_{', sm_'.join(compilers.ARCHITECTURES)}"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
