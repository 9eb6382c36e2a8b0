#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles heaps in memory of other libraries' memory resources.

  cccl   tests/compile/resource_cccl.cu, with the CCCL that the CUDA toolkit has
  rmm    tests/compile/resource_rmm.cu, with RMM and its own, newer CCCL, both fetched from PyPI
"""

import pathlib
import sys
import tempfile

import compilers

SOURCES = compilers.ROOT / "tests" / "compile"
PACKAGES = ["librmm-cu13", "rapids-logger"]


def include_folders(directory):
    """RMM's CCCL comes before the toolkit's."""
    found = ["librmm/include/rapids", "librmm/include", "rapids_logger/include"]
    return [f"-I{pathlib.Path(directory) / path}" for path in found]


def compile_source(nvcc, source, folders=()):
    with tempfile.TemporaryDirectory() as directory:
        output = str(pathlib.Path(directory) / "out.o")
        good, said, seconds = compilers.compile([*nvcc, *folders, "-arch=sm_90", "-c", "-o", output, str(source)])
    print(f"{source.name} {'compiled' if good else 'FAILED'} in {seconds:.1f} s" + ("" if good else f"\n{said}"))
    return good


def self_test(nvcc):
    """A resource that has neither spelling must be refused; one that has the newer must not."""
    template = (
        "#include <warpheap/warpheap.hpp>\nstruct resource {{ {} }};\n"
        "using pool = warpheap::reserve_pool::memory_resource<resource>;\npool* made(resource r) {{ return new pool{{r}}; }}\n"
    )
    sync = "void* allocate_sync(size_t, size_t); void deallocate_sync(void*, size_t, size_t);"
    judged = []
    planted = {"neither.cu": "void* get(size_t);", "newer.cu": sync}
    with compilers.folder_of({name: template.format(members) for name, members in planted.items()}) as folder:
        judged = [compile_source(nvcc, folder / name) for name in planted]
    return 0 if judged == [False, True] else 1


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("library", choices=["cccl", "rmm"])
    options = parser.parse_args()
    nvcc = compilers.nvcc_or_skip(f"a heap in memory of {options.library}")
    if options.self_test:
        return self_test(nvcc)
    if options.library == "cccl":
        return 0 if compile_source(nvcc, SOURCES / "resource_cccl.cu") else 1
    with tempfile.TemporaryDirectory() as directory:
        compilers.fetch_or_skip(PACKAGES, directory)
        return 0 if compile_source(nvcc, SOURCES / "resource_rmm.cu", include_folders(directory)) else 1


if __name__ == "__main__":
    sys.exit(main())
