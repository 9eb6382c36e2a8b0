#!/usr/bin/env python3
"""Compiles each header of the library alone, so that each includes what it uses.

With g++ the host backend is chosen, with --nvcc the device code of the CUDA backend. A backend's own headers are left to
their compiler. Each header is included twice, because the second time must do nothing.
"""

import pathlib
import sys
import tempfile

import compilers


def headers(base, nvcc):
    other = "platform/host/" if nvcc else "platform/cuda/"
    patterns = ["*.hpp", "*.cuh"] if nvcc else ["*.hpp"]
    found = sorted(path.relative_to(base).as_posix() for pattern in patterns for path in base.rglob(pattern))
    return [name for name in found if not name.startswith(other)]


def check(base, nvcc):
    """Returns (headers compiled, {header: what the compiler said} of those that failed)."""
    names = headers(base, nvcc)
    with tempfile.TemporaryDirectory() as directory:
        commands = {}
        for number, name in enumerate(names):
            source = pathlib.Path(directory) / (f"{number}.cu" if nvcc else f"{number}.cpp")
            source.write_text(f'#include "{base}/{name}"\n' * 2)
            if nvcc:
                # -ptx stops after the device code; its front end has seen the host code too.
                commands[name] = [*nvcc, "-arch=sm_90", "-Werror=all-warnings", "-ptx", "-o", "/dev/null", str(source)]
            else:
                commands[name] = [*compilers.GXX, "-Werror", "-fsyntax-only", str(source)]
        results = compilers.compile_all(commands)
    return names, {name: said for name, (good, said, _) in results.items() if not good}


def self_test(nvcc):
    """A header that lacks an include, one without include guard, and a good one."""
    planted = {
        "lacks.hpp": "#pragma once\nstd::vector<int> f();\n",
        "twice.hpp": "struct twice {};\n",
        "good.hpp": "#pragma once\n#include <vector>\ninline int f(std::vector<int> const& v) { return v[0]; }\n",
    }
    with tempfile.TemporaryDirectory() as directory:
        base = pathlib.Path(directory)
        for name, text in planted.items():
            (base / name).write_text(text)
        _, failed = check(base, nvcc)
    if sorted(failed) != ["lacks.hpp", "twice.hpp"]:
        print(f"of three planted headers, two with faults, these failed: {sorted(failed)}")
        return 1
    print("caught both planted headers")
    return 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--nvcc", action="store_true", help="compile for the CUDA backend")
    options = parser.parse_args()
    nvcc = compilers.nvcc_or_skip("that each header compiles alone as CUDA") if options.nvcc else None
    if options.self_test:
        return self_test(nvcc)
    names, failed = check(compilers.ROOT / "include" / "warpheap", nvcc)
    for name, said in failed.items():
        print(f"{name} does not compile alone:\n{said}\n")
    print(f"{len(names) - len(failed)} of {len(names)} headers compile alone under {'nvcc' if nvcc else 'g++'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
