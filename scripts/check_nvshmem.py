#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and links programs over NVSHMEM, from PyPI: its tests, the example, the tool's program, and each header of nvshmem/ alone.

Nothing runs here: that takes a GPU.
"""

import pathlib
import tempfile

import compilers

PACKAGE = "nvidia-nvshmem-cu13"
FOLDER = compilers.ROOT / "include" / "warpheap" / "nvshmem"
PROGRAMS = [
    (compilers.ROOT / "tests" / "nvshmem" / "symmetric_heap_test.cu", ["-lgtest", "-lpthread"]),
    (compilers.ROOT / "examples" / "nvshmem" / "pass_the_list.cu", []),
]
# Compiled and not linked, since that takes the tool's host code too.
PARTS = [compilers.ROOT / "tools" / "warpheap" / "pes" / "main.cu"]
RELOCATABLE = "-rdc=true"


def command(nvcc, package, *more):
    # Two warnings are about code of NVSHMEM's headers that only these programs make a compiler look at.
    return [*nvcc, f"-I{compilers.ROOT}/tests", f"-I{compilers.ROOT}/tools/warpheap", "-isystem", str(package / "include"), "-diag-suppress=3012,3013", "-arch=sm_90", *more]


def link_of(package, libraries):
    """The wheel has no link of the name that a linker looks for."""
    library = package / "lib" / "libnvshmem_host.so"
    if not library.exists():
        library.symlink_to("libnvshmem_host.so.3")
    return [str(package / "lib" / "libnvshmem_device.a"), f"-L{package}/lib", "-lnvshmem_host", "-lcuda", *libraries]


def faults_of(nvcc, package, headers, programs, parts, directory):
    commands = {}
    for header in headers:
        source = pathlib.Path(directory) / f"{header.stem}.cu"
        source.write_text(f'#include "{header}"\n#include "{header}"\n')
        commands[f"nvcc {header.stem}"] = command(nvcc, package, RELOCATABLE, "-c", "-o", f"{source}.o", str(source))
    for source in parts:
        output = str(pathlib.Path(directory) / f"{source.stem}.o")
        commands[f"nvcc {source.stem}"] = command(
            nvcc, package, RELOCATABLE, f"-I{compilers.ROOT}", "-c", "-o", output, str(source))
    for source, libraries in programs:
        output = str(pathlib.Path(directory) / source.stem)
        commands[f"nvcc {source.stem}"] = command(
            nvcc, package, RELOCATABLE, "-o", output, str(source), *link_of(package, libraries))
    results = compilers.compile_all(commands)
    return [f"{name}: {said}" for name, (good, said, _) in results.items() if not good]


def stops_in_time(nvcc, package, directory):
    """What is wrong with the messages to those who forget what NVSHMEM needs."""
    source = pathlib.Path(directory) / "forgotten.cu"
    source.write_text(f'#include "{FOLDER}/symmetric_heap.hpp"\n__global__ void kernel() {{}}\n')
    tries = {
        "compile with -rdc=true": command(nvcc, package, "-c", "-o", f"{source}.o", str(source)),
        "NVSHMEM needs nvcc": [*compilers.GXX, "-x", "c++", "-fsyntax-only", str(source)],
    }
    results = compilers.compile_all(tries)
    return [f"no word of '{words}':\n{said}" for words, (good, said, _) in results.items() if good or words not in said]


def with_package(judge):
    """What `judge` says, given nvcc, NVSHMEM's folder and one to work in."""
    nvcc = compilers.nvcc_or_skip("a heap in symmetric memory")
    with tempfile.TemporaryDirectory() as directory:
        compilers.fetch_or_skip([PACKAGE], directory)
        return judge(nvcc, pathlib.Path(directory) / "nvidia" / "nvshmem", directory)


def planted_faults(nvcc, package, directory):
    """A header and a part of a program that lack an include, and a program that lacks a function, must be reported."""
    texts = {
        "part.cu": "int pes() { return nvshmem_n_pes(); }\n",
        "lacks.hpp": "#pragma once\ninline int pes() { return nvshmem_n_pes(); }\n",
        "right.hpp": "#pragma once\n#include <nvshmem.h>\ninline int pes() { return nvshmem_n_pes(); }\n",
        "undefined.cu": "#include <nvshmem.h>\nint nowhere();\nint main() { return nowhere() + nvshmem_n_pes(); }\n",
    }
    with compilers.folder_of(texts) as folder:
        part, lacks, right, undefined = (folder / name for name in texts)
        faults = faults_of(nvcc, package, [lacks, right], [(undefined, [])], [part], directory)
    return compilers.wrongly_judged(faults, ["lacks", "part", "undefined"])


def all_faults(nvcc, package, directory):
    return faults_of(nvcc, package, sorted(FOLDER.glob("*.hpp")), PROGRAMS, PARTS, directory) + stops_in_time(nvcc, package, directory)


def check():
    return with_package(all_faults), "sources over NVSHMEM compile and link"


def negative_test():
    return with_package(planted_faults)


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
