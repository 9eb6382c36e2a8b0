#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel over the public header with NVRTC, for the oldest and the newest architectures.

The program beside the tests (tests/compile/nvrtc.cpp) does it and prints the times. It is built where the CUDA toolkit is.
"""

import pathlib
import subprocess
import sys
import tempfile

import compilers


def run(program, include):
    """Runs the program on a folder of headers. Returns (exit status, what it said)."""
    done = subprocess.run(
        [program, str(include), *compilers.ARCHITECTURES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout.strip()


def self_test(program):
    """A public header that includes a standard one, which NVRTC does not have."""
    with tempfile.TemporaryDirectory() as directory:
        header = pathlib.Path(directory) / "warpheap" / "warpheap.hpp"
        header.parent.mkdir()
        header.write_text("#include <cstdint>\n#include <vector>\n")
        status, said = run(program, directory)
    if status == 0 or "cannot open source file" not in said:
        print(f"a header that includes <vector> passed, or failed for another reason:\n{said}")
        return 1
    print("caught the planted header")
    return 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("program", help="the compiled tests/compile/nvrtc.cpp")
    options = parser.parse_args()
    if not pathlib.Path(options.program).exists():
        print("SKIP: no CUDA toolkit when this was configured, so NVRTC was not tried")
        return compilers.SKIPPED
    if options.self_test:
        return self_test(options.program)
    status, said = run(options.program, compilers.ROOT / "include")
    print(said)
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
