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

import pathlib
import re
import tempfile

import compilers
import cubins

QUICKLY = "--Ofast-compile=max"
SOURCES = compilers.ROOT / "tests" / "compile"
OF_PROGRAM = [str(SOURCES / f"override_{part}.cu") for part in ("kernels", "main", "bounds")]
CALLED_BY_OTHERS = {"malloc", "free", "__cuda_syscall_aligned_malloc"}
MOST_REGISTERS = 32
HEADER, GROWING_HEADER = "override.hpp", "override_growing.hpp"
UNITS_WITH_HEADER = 2
WITH_HOST_CODE = "90"  # nvlink merges equal constants of objects with host code alone, which take twice the time


def cudas_own(cubin):
    """What is said of functions of CUDA's own allocator that device code still wants from outside."""
    wanted = [name for name in cubin.undefined() if re.fullmatch(r"malloc|free|__cuda_syscall_.*", name)]
    return [f"calls CUDA's own: {wanted}"] if wanted else []


def above_limit(cubin, names=CALLED_BY_OTHERS):
    """What is said of functions that clobber what callers of these names keep."""
    reached = cubin.reached_from(names)
    wide = [f"{cubin.name(f)} uses {cubin.registers[f]} registers" for f in reached if cubin.registers[f] > MOST_REGISTERS]
    missing = names - {cubin.name(f) for f in reached}
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


def faults_of(nvcc, sources, architectures=compilers.ARCHITECTURES, header=HEADER):
    """What does not compile, or what is wrong with the machine code."""
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
        faults = [f"sm_{arch:4} {what}: FAILED\n{said}" for (arch, what), (compiled, said, _) in results.items() if not compiled]
        for arch in architectures if not faults else []:
            linked = cubins.Cubin(folder / f"{arch}-linked.cubin")
            wrong = cudas_own(linked) + above_limit(linked) + shared_variables(linked)
            if (arch, "with the header") in units:
                wrong += cudas_own(cubins.Cubin(folder / f"{arch}.cubin"))
            faults += [f"sm_{arch:4} {header}: {each}" for each in wrong]
        return faults


def with_faults():
    """The project's headers, where functions have no bound of registers and the bound heap is a constant."""
    texts = {name: (compilers.ROOT / name).read_text() for name in compilers.tracked("include/*")}
    for name, was, becomes in [
        ("include/warpheap/platform/types.hpp", "__attribute__((local_maxnreg(32)))", ""),
        ("include/warpheap/heap/device_heap.hpp", "static __device__ bound_heap", "static __constant__ bound_heap"),
    ]:
        if was not in texts[name]:
            raise ValueError(f"{name} has no {was}: inject another fault")
        texts[name] = texts[name].replace(was, becomes)
    return texts


UNITS = {
    "own.cu": "#undef __nv_aligned_device_malloc\n"
    "__global__ void kernel(void** out) { *out = __nv_aligned_device_malloc(64, 64); }\nvoid launch_kernels(unsigned*) {}\n",
    "none.cu": "void launch_kernels(unsigned*) {}\n",
    "unbounded.cu": "#include <warpheap/heap/override.hpp>\n__global__ void kernel() { free(malloc(1)); }\n",
}


def negative_test():
    """Headers with faults, and a function of CUDA's that no unit replaces. Sound ones are the check itself."""
    nvcc = compilers.nvcc_or_skip("device malloc of our own")
    with compilers.folder_of({**UNITS, **with_faults()}) as folder:
        own, none, unbounded = (str(folder / name) for name in UNITS)
        faulty = [f"-I{folder}/include" if flag.startswith("-I") else flag for flag in nvcc]
        wrong = []
        for arch, compiler, units, fault in [
            ("80", nvcc, [own, *OF_PROGRAM[1:]], "calls CUDA's own: ['__cuda_syscall_aligned_malloc']"),
            ("80", faulty, [none, OF_PROGRAM[1], unbounded], "malloc uses "),
            (WITH_HOST_CODE, faulty, [none, OF_PROGRAM[1], unbounded], "variables device_heap over each other"),
        ]:
            said = "\n".join(faults_of(compiler, units, [arch]))
            wrong += [] if fault in said else [f"judged wrongly: {units}, not {fault}\n{said}"]
    return wrong


def check():
    nvcc = compilers.nvcc_or_skip("device malloc of our own")
    faults = faults_of(nvcc, OF_PROGRAM) + faults_of(nvcc, OF_PROGRAM, [WITH_HOST_CODE], GROWING_HEADER)
    return faults, f"all functions behind malloc and free are ours and fit {MOST_REGISTERS} registers"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
