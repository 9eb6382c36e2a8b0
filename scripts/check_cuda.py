#!/usr/bin/env python3
"""Compiles the public interface for every architecture that Warpheap supports, and looks at the code that comes out.

  architectures   tests/compile/public_api.cu, which calls every device function, for each architecture
  registers       tests/compile/malloc_only.cu, a kernel that only calls heap.malloc, fits into 48 registers: nothing is
                  spilled and no function has a stack frame
  override        tests/compile/override_*.cu, kernels that know nothing of Warpheap and a program with a heap for them: no
                  call of CUDA's own allocator is left, with and without -rdc=true, for each architecture
"""

import contextlib
import io
import pathlib
import re
import sys
import tempfile

import compilers

# Whether code compiles, and whom it calls, does not hang on how well it is optimised, which takes four fifths of the time.
QUICKLY = "--Ofast-compile=max"
# What malloc may cost a kernel: five thread blocks of 256 to a multiprocessor.
MOST_REGISTERS = 48
SOURCES = compilers.ROOT / "tests" / "compile"


def compile_architectures(nvcc, source):
    commands = {
        arch: [*nvcc, QUICKLY, f"-arch=sm_{arch}", "-Werror=all-warnings", "-cubin", "-o", "/dev/null", str(source)]
        for arch in compilers.ARCHITECTURES
    }
    results = compilers.compile_all(commands)
    for arch, (good, said, seconds) in results.items():
        print(f"sm_{arch:4} {'compiled' if good else 'FAILED'} in {seconds:.1f} s" + ("" if good else f"\n{said}"))
    return all(good for good, _, _ in results.values())


def read_ptxas(text):
    """(registers of each kernel, bytes of stack frame and of spills of each function) from what `ptxas -v` prints."""
    registers = [int(found) for found in re.findall(r"Used (\d+) registers", text)]
    local = [int(found) for found in re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", text)]
    return registers, local


def measure_registers(nvcc, source):
    """Prints what a kernel takes on sm_90, free and bounded to MOST_REGISTERS. Returns whether the bound costs nothing."""
    for bound in [[], [f"-maxrregcount={MOST_REGISTERS}"]]:
        good, said, _ = compilers.compile(
            [*nvcc, "-arch=sm_90", "-DNDEBUG", "-Xptxas", "-v", *bound, "-cubin", "-o", "/dev/null", str(source)]
        )
        registers, local = read_ptxas(said)
        if not good or not registers:
            print(f"could not compile {source.name}, or found no kernel there:\n{said}")
            return False
        what = f"bounded to {MOST_REGISTERS}" if bound else "no bound"
        print(f"{what}: {max(registers)} registers, {sum(local)} bytes of stack frames and spills")
    return max(registers) <= MOST_REGISTERS and sum(local) == 0


def cudas_own(cubin):
    """The functions of CUDA's own allocator that device code still wants from outside, or None if it cannot be read."""
    good, said, _ = compilers.compile(["readelf", "--symbols", "--wide", str(cubin)])
    symbols = [line.split() for line in said.splitlines() if re.match(r"\s*\d+:", line)]
    if not good or not symbols:
        return None
    # ... section, name; an undefined one has UND for its section
    return sorted({s[-1] for s in symbols if s[-2] == "UND" and re.fullmatch(r"malloc|free|__cuda_syscall_.*", s[-1])})


OLDEST_USED_NEWEST = ["75", "90", "120"]  # `architectures` compiles the same functions for all of them


def compile_override(nvcc, kernels, program, architectures=OLDEST_USED_NEWEST):
    """Replaces device malloc both ways: in each unit by its header, and by the linker for a whole program. Returns whether
    nothing of CUDA's own is left."""
    header = str(compilers.ROOT / "include" / "warpheap" / "heap" / "override.hpp")
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        strict = [*nvcc, QUICKLY, "-Werror=all-warnings"]
        units, links = {}, {}
        for arch in architectures:
            target = [*strict, f"-arch=sm_{arch}"]
            linked = [str(folder / f"kernels-{arch}.o"), str(folder / f"program-{arch}.o")]
            units[arch, "with the header"] = [*target, "-include", header, "-cubin", "-o", str(folder / f"{arch}.cubin"), kernels]
            units[arch, "kernels, -rdc=true"] = [*target, "-rdc=true", "-c", "-o", linked[0], kernels]
            units[arch, "program, -rdc=true"] = [*target, "-rdc=true", "-c", "-o", linked[1], program]
            links[arch, "linked"] = [*target, "-dlink", "-cubin", "-o", str(folder / f"{arch}-linked.cubin"), *linked]
        results = compilers.compile_all(units)
        results |= compilers.compile_all(links)
        good = True
        for (arch, what), (compiled, said, seconds) in results.items():
            if not compiled:
                print(f"sm_{arch:4} {what}: FAILED\n{said}")
                good = False
        for arch in architectures if good else []:
            left = {"with the header": cudas_own(folder / f"{arch}.cubin"), "linked": cudas_own(folder / f"{arch}-linked.cubin")}
            seconds = sum(took for (of, _), (_, _, took) in results.items() if of == arch)
            wrong = {what: names for what, names in left.items() if names != []}
            good = good and not wrong
            verdict = f"calls CUDA's own: {wrong}" if wrong else "calls nothing of CUDA's own allocator"
            print(f"sm_{arch:4} {verdict} ({seconds:.1f} s)")
        return good


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
ONE_KERNEL = "__global__ void kernel(int* out) { *out = 1; }\n"
MANY_REGISTERS = """
__global__ void kernel(float* out) {
  float x[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) x[i] = out[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) out[95 - i] = x[i];
}
"""
STACK_FRAME = """
__global__ void kernel(int* out, int n) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[i] = i;
  for (int i = 0; i < n; ++i) local[out[i] & 63] += i;
  out[0] = local[out[n] & 63];
}
"""


def self_test_override(nvcc):
    """A function of CUDA's that no unit replaces, and a program without the header. Sound ones are the check itself."""
    kernels, program = (SOURCES / f"override_{part}.cu" for part in ("kernels", "main"))
    own = "__global__ void kernel(void** out) { *out = __nv_aligned_device_malloc(64, 64); }\nvoid launch_kernels(unsigned*) {}\n"
    without = "void launch_kernels(unsigned*);\nint main() { launch_kernels(nullptr); }\n"
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / "own.cu").write_text(own)
        (pathlib.Path(directory) / "without.cu").write_text(without)
        planted = [
            (pathlib.Path(directory) / "own.cu", program, "'with the header': ['__cuda_syscall_aligned_malloc']"),
            (kernels, pathlib.Path(directory) / "without.cu", "'linked': ['__cuda_syscall_aligned_malloc', 'free', 'malloc']"),
        ]
        for source, main, fault in planted:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                judged = compile_override(nvcc, str(source), str(main), ["90"])
            if judged != (fault is None) or (fault and fault not in said.getvalue()):
                print(f"judged wrongly: {source.name} with {main.name}\n{said.getvalue()}")
                wrong += 1
    print(f"judged {len(planted) - wrong} of {len(planted)} planted programs rightly")
    return 1 if wrong else 0


def self_test(nvcc, what):
    if what == "override":
        return self_test_override(nvcc)
    judge = compile_architectures if what == "architectures" else measure_registers
    planted = {
        "architectures": {REFUSED_EVERYWHERE: False, REFUSED_ON_75: False, ONE_KERNEL: True},
        "registers": {MANY_REGISTERS: False, STACK_FRAME: False, "int no_kernel;\n": False, ONE_KERNEL: True},
    }[what]
    wrong = 0
    for text, expected in planted.items():
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "planted.cu"
            source.write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                judged = judge(nvcc, source)
        if judged != expected:
            print(f"judged wrongly:\n{text}\n{said.getvalue()}")
            wrong += 1
    print(f"judged {len(planted) - wrong} of {len(planted)} planted kernels rightly")
    return 1 if wrong else 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("what", choices=["architectures", "registers", "override"])
    options = parser.parse_args()
    nvcc = compilers.nvcc_or_skip(f"CUDA compilation ({options.what})")
    if options.self_test:
        return self_test(nvcc, options.what)
    if options.what == "architectures":
        return 0 if compile_architectures(nvcc, SOURCES / "public_api.cu") else 1
    if options.what == "override":
        kernels, program = (str(SOURCES / f"override_{part}.cu") for part in ("kernels", "main"))
        return 0 if compile_override(nvcc, kernels, program) else 1
    return 0 if measure_registers(nvcc, SOURCES / "malloc_only.cu") else 1


if __name__ == "__main__":
    sys.exit(main())
