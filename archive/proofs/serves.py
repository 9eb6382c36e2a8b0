#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at linked device code, cubins, and fails unless its malloc and free are the archive's:

  no function of CUDA's own allocator is left to be found by the driver
  the variable by which the host binds the code (warpheap_device_heap) is there once
  each kernel that is named calls malloc, free or what they call (where a compiler has inlined them)

  serves.py CUBIN [--kernels TEXT]    TEXT is in the kernels' names; at least one has it
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import cubins

VARIABLE = "warpheap_device_heap"


def faults_of(cubin, text):
    left = [name for name in cubin.undefined() if re.fullmatch(r"malloc|free|__cuda_syscall_.*", name)]
    faults = [f"calls CUDA's own: {', '.join(left)}"] if left else []
    variables = [s for s in cubin.symbols if s["name"] == VARIABLE and s["section"]]
    if len(variables) != 1:
        faults.append(f"has {len(variables)} variables {VARIABLE}: the host cannot bind it")
    kernels = [k for k in cubin.kernels if text in cubin.name(k)]
    if not kernels:
        faults.append(f"has no kernel with {text!r} in its name: {', '.join(map(cubin.name, cubin.kernels)) or 'none at all'}")
    if set(cubin.registers) == cubin.kernels:  # ptxas has inlined all functions
        return faults
    return faults + [f"kernel {cubin.name(k)} calls nothing of Warpheap's" for k in kernels if not calls_ours(cubin, k)]


def calls_ours(cubin, kernel):
    names = {cubin.name(f) for f in cubin.reached_from({cubin.name(kernel)})} - {cubin.name(kernel)}
    return any(re.search(r"^(malloc|free|__cuda_syscall_aligned_malloc)$|warpheap", name) for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubin", nargs="+")
    parser.add_argument("--kernels", default="", metavar="TEXT")
    options = parser.parse_args()
    found = False
    for path in options.cubin:
        try:
            faults = faults_of(cubins.Cubin(path), options.kernels)
        except (OSError, ValueError) as problem:
            faults = [str(problem)]
        for fault in faults:
            print(f"{path}: {fault}")
        found = found or bool(faults)
    if found:
        sys.exit(1)
    print(f"malloc and free of {', '.join(pathlib.Path(p).name for p in options.cubin)} are the archive's")


if __name__ == "__main__":
    main()
