#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles tests/compile/public_api.cu, which calls every device function, for each architecture that Warpheap supports.

With -rdc=true each function of ours that is called uses 32 registers at most, so that kernels of every bound can call it.

tests/compile/halloc_program.cu, a program for Halloc's own interface, is compiled and linked in both ways for sm_90.
"""

import contextlib
import io
import pathlib
import re
import sys
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


def compile_architectures(nvcc, source):
    with tempfile.TemporaryDirectory() as directory:
        outputs = {arch: pathlib.Path(directory) / f"{arch}.cubin" for arch in compilers.ARCHITECTURES}
        strict = [*nvcc, QUICKLY, "-Werror=all-warnings"]
        results = compilers.compile_all(
            {arch: [*strict, "-rdc=true", f"-arch=sm_{arch}", "-cubin", "-o", str(output), str(source)] for arch, output in outputs.items()}
            | {"whole": [*strict, "-arch=sm_90", "-cubin", "-o", "/dev/null", str(source)]}
        )
        for arch, (good, said, seconds) in results.items():
            wide = wide_functions(cubins.Cubin(outputs[arch])) if good and arch in outputs else []
            if wide:
                good, said = False, f"use more than {MOST_OF_A_FUNCTION} registers: {wide}"
                results[arch] = (good, said, seconds)
            name = f"sm_{arch:4}" if arch in outputs else "sm_90 without -rdc=true"
            print(f"{name} {'compiled' if good else 'FAILED'} in {seconds:.1f} s" + ("" if good else f"\n{said}"))
        return all(good for good, _, _ in results.values())


def link_program(nvcc, source):
    with tempfile.TemporaryDirectory() as directory:
        program = [*nvcc, QUICKLY, "-Werror=all-warnings", "-arch=sm_90", str(source), "-o"]
        results = compilers.compile_all(
            {"whole": [*program, f"{directory}/whole"], "rdc": [*program, f"{directory}/rdc", "-rdc=true"]}
        )
    for way, (good, said, seconds) in results.items():
        print(f"{source.name}, {way}: {'linked' if good else 'FAILED'} in {seconds:.1f} s" + ("" if good else f"\n{said}"))
    return all(good for good, _, _ in results.values())


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


def self_test(nvcc):
    planted = {REFUSED_EVERYWHERE: False, REFUSED_ON_75: False, WIDE_FUNCTION: False, ONE_KERNEL: True}
    wrong = 0
    for text, expected in planted.items():
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "planted.cu"
            source.write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                judged = compile_architectures(nvcc, source)
        if judged != expected:
            print(f"judged wrongly:\n{text}\n{said.getvalue()}")
            wrong += 1
    print(f"judged {len(planted) - wrong} of {len(planted)} planted kernels rightly")
    return 1 if wrong else 0


def main():
    options = compilers.arguments(__doc__).parse_args()
    nvcc = compilers.nvcc_or_skip("CUDA compilation")
    if options.self_test:
        return self_test(nvcc)
    sources = compilers.ROOT / "tests" / "compile"
    judged = [compile_architectures(nvcc, sources / "public_api.cu"), link_program(nvcc, sources / "halloc_program.cu")]
    return 0 if all(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
