#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and links programs whose device malloc is ours, and looks at the machine code.

In each unit its header (tests/compile/override_kernels.cu alone), and by the linker, with -rdc=true, for each architecture: that
unit without the header and with the lowest register bound, override_main.cu with the header and without kernels, and
override_bounds.cu, whose kernels have all kinds of bounds. In the linked program

  no call of CUDA's own allocator is left
  override.N2: no function that malloc, free and __cuda_syscall_aligned_malloc call, directly or not, uses more than
  32 registers
  each unit with the header has a variable of its own for its heap

For one architecture also with override_growing.hpp, whose malloc asks the host for memory.
"""

import contextlib
import io
import pathlib
import re
import shutil
import sys
import tempfile

import compilers
import cubins

QUICKLY = "--Ofast-compile=max"
SOURCES = compilers.ROOT / "tests" / "compile"
CALLED_BY_OTHERS = {"malloc", "free", "__cuda_syscall_aligned_malloc"}
MOST_REGISTERS = 32
HEADER, GROWING_HEADER = "override.hpp", "override_growing.hpp"
UNITS_WITH_HEADER = 2
WITH_HOST_CODE = "90"  # nvlink merges equal constants of objects with host code alone, which take twice the time


def cudas_own(cubin):
    """What is said of functions of CUDA's own allocator that device code still wants from outside."""
    wanted = [name for name in cubin.undefined() if re.fullmatch(r"malloc|free|__cuda_syscall_.*", name)]
    return [f"calls CUDA's own: {wanted}"] if wanted else []


def above_limit(cubin):
    """What is said of functions that clobber what callers of malloc keep."""
    reached = cubin.reached_from(CALLED_BY_OTHERS)
    wide = [f"{cubin.name(f)} uses {cubin.registers[f]} registers" for f in reached if cubin.registers[f] > MOST_REGISTERS]
    missing = CALLED_BY_OTHERS - {cubin.name(f) for f in reached}
    return sorted(wide) + ([f"lacks {sorted(missing)}"] if missing else [])


def shared_variables(cubin):
    """What is said of units whose heaps are bound in one place, or beyond the end of their section."""
    found = sorted(
        (s["section"], s["address"], s["size"]) for s in cubin.symbols if re.search(r"\d+device_heapE", s["name"])
    )
    if len(found) != UNITS_WITH_HEADER:
        return [f"has {len(found)} variables device_heap for {UNITS_WITH_HEADER} units"]
    apart = all(a[0] != b[0] or a[1] + a[2] <= b[1] for a, b in zip(found, found[1:]))
    inside = all(address + size <= cubin.section_size(section) for section, address, size in found)
    return [] if apart and inside else [f"places variables device_heap over each other: {found}"]


def commands(nvcc, sources, folder, arch, whole, header):
    """{what: compiler} of one architecture's units, and its device link."""
    kernels, program, bounds = sources
    grows = ["-DOVERRIDE_GROWS"] if header == GROWING_HEADER else []
    header = str(compilers.ROOT / "include" / "warpheap" / "heap" / header)
    target = [*nvcc, QUICKLY, "-Werror=all-warnings", f"-arch=sm_{arch}", *grows]
    kind = ["-c", "o"] if arch == WITH_HOST_CODE else ["-cubin", "cubin"]
    linked = [str(folder / f"{unit}-{arch}.{kind[1]}") for unit in ("kernels", "program", "bounds")]
    relocatable = [*target, "-rdc=true", kind[0], "-o"]
    units = {
        (arch, "kernels, -rdc=true"): [*relocatable, linked[0], f"-maxrregcount={MOST_REGISTERS}", kernels],
        (arch, "program, -rdc=true"): [*relocatable, linked[1], program],
        (arch, "bounds, -rdc=true"): [*relocatable, linked[2], bounds],
    }
    if whole:
        units[arch, "with the header"] = [*target, "-include", header, "-cubin", "-o", str(folder / f"{arch}.cubin"), kernels]
    link = {(arch, "linked"): [*target, "-dlink", "-cubin", "-o", str(folder / f"{arch}-linked.cubin"), *linked]}
    return units, link


WITHOUT_LINKING = ["75", "120"]  # the oldest and the newest: there each unit with its header too


def compile_override(nvcc, sources, architectures=compilers.ARCHITECTURES, header=HEADER):
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        units, links = {}, {}
        for arch in architectures:
            whole = arch in WITHOUT_LINKING or len(architectures) == 1
            more_units, more_links = commands(nvcc, sources, folder, arch, whole, header)
            units |= more_units
            links |= more_links
        results = compilers.compile_all(units)
        if all(compiled for compiled, _, _ in results.values()):
            results |= compilers.compile_all(links)
        good = True
        for (arch, what), (compiled, said, _) in results.items():
            if not compiled:
                print(f"sm_{arch:4} {what}: FAILED\n{said}")
                good = False
        for arch in architectures if good else []:
            wrong = []
            if (arch, "with the header") in units:
                wrong += cudas_own(cubins.Cubin(folder / f"{arch}.cubin"))
            linked = cubins.Cubin(folder / f"{arch}-linked.cubin")
            wrong += cudas_own(linked) + above_limit(linked) + shared_variables(linked)
            good = good and not wrong
            seconds = sum(took for (of, _), (_, _, took) in results.items() if of == arch)
            count = len(linked.reached_from(CALLED_BY_OTHERS))
            verdict = "; ".join(wrong) or f"all of {count} functions behind malloc and free are ours and fit {MOST_REGISTERS} registers"
            print(f"sm_{arch:4} {header}: {verdict} ({seconds:.1f} s)")
        return good


def with_faults(folder):
    """The project's headers, where functions have no bound of registers and the bound heap is a constant."""
    include = folder / "include"
    shutil.copytree(compilers.ROOT / "include", include)
    for name, was, becomes in [
        ("platform/types.hpp", "__attribute__((local_maxnreg(32)))", ""),
        ("heap/device_heap.hpp", "static __device__ bound_heap", "static __constant__ bound_heap"),
    ]:
        path = include / "warpheap" / name
        text = path.read_text()
        if was not in text:
            raise ValueError(f"{name} has no {was}: inject another fault")
        path.write_text(text.replace(was, becomes))
    return include


def self_test(nvcc, sources):
    """Headers with faults, and a function of CUDA's that no unit replaces. Sound ones are the check itself."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        own = folder / "own.cu"
        own.write_text(
            "#undef __nv_aligned_device_malloc\n"
            "__global__ void kernel(void** out) { *out = __nv_aligned_device_malloc(64, 64); }\nvoid launch_kernels(unsigned*) {}\n"
        )
        none = folder / "none.cu"
        none.write_text("void launch_kernels(unsigned*) {}\n")
        unbounded = folder / "unbounded.cu"
        unbounded.write_text("#include <warpheap/heap/override.hpp>\n__global__ void kernel() { free(malloc(1)); }\n")
        faulty = [f"-I{with_faults(folder)}" if flag.startswith("-I") else flag for flag in nvcc]
        program, bounds = sources[1:]
        planted = [
            ("80", nvcc, [str(own), program, bounds], "calls CUDA's own: ['__cuda_syscall_aligned_malloc']"),
            ("80", faulty, [str(none), program, str(unbounded)], "malloc uses "),
            (WITH_HOST_CODE, faulty, [str(none), program, str(unbounded)], "variables device_heap over each other"),
        ]
        wrong = 0
        for arch, compiler, units, fault in planted:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                judged = compile_override(compiler, units, [arch])
            if judged or fault not in said.getvalue():
                print(f"judged wrongly: {units}, not {fault}\n{said.getvalue()}")
                wrong += 1
    print(f"judged {len(planted) - wrong} of {len(planted)} planted programs rightly")
    return 1 if wrong else 0


def main():
    options = compilers.arguments(__doc__).parse_args()
    nvcc = compilers.nvcc_or_skip("device malloc of our own")
    sources = [str(SOURCES / f"override_{part}.cu") for part in ("kernels", "main", "bounds")]
    if options.self_test:
        return self_test(nvcc, sources)
    good = compile_override(nvcc, sources)
    return 0 if compile_override(nvcc, sources, [WITH_HOST_CODE], GROWING_HEADER) and good else 1


if __name__ == "__main__":
    sys.exit(main())
