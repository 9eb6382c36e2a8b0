#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a compiler says that is asked for too little: one line with the remedy, whichever header comes first.

Every header is compiled alone as C++17, and without exceptions, with g++, the public ones with nvcc too. A header may also simply
compile.
"""

import pathlib
import re
import tempfile

import compilers

PUBLIC = ["warpheap.hpp", "all.hpp", "heap/override.hpp", "heap/halloc_interface.hpp", "heap/c_interface.hpp", "platform/device_buffer.hpp"]
# Flags by what g++ and nvcc name them, and the remedy that follows.
TOO_LITTLE = [
    (["-std=c++17"], ["-std=c++17"], "#error Warpheap needs C++20: compile with -std=c++20"),
    (["-std=c++20", "-fno-exceptions"], ["-std=c++20", "-Xcompiler=-fno-exceptions"], "#error Warpheap needs C++ exceptions on the host"),
]
STOP = "compilation_stops_here"


def fault_of(good, said, remedy):
    """What is wrong with a compiler's answer, or None."""
    errors = [line for line in said.splitlines() if re.search(r": (fatal |catastrophic )?error: ", line)]
    if good:
        return "warns" if said else None
    if not errors or remedy not in errors[0]:
        return "the first error is not the remedy"
    rest = [line for line in errors[1:] if STOP not in line]
    return f"{len(rest)} more errors after the remedy" if rest else None


def faults_of(base, names, nvcc):
    commands, remedies = {}, {}

    with tempfile.TemporaryDirectory() as directory:
        for number, name in enumerate(names):
            source = pathlib.Path(directory) / f"{number}.cpp"
            source.write_text(f'#include "{base / name}"\n')
            for flags, flags_of_nvcc, remedy in TOO_LITTLE:
                label = f"{name} with {flags[-1]}"
                gxx = [word for word in compilers.GXX if word != "-std=c++20"]
                commands[f"g++ {label}"] = [*gxx, *flags, "-fsyntax-only", str(source)]
                if nvcc and name in PUBLIC:
                    how = [word for word in nvcc if word != "-std=c++20"] + flags_of_nvcc
                    commands[f"nvcc {label}"] = [*how, "-x", "cu", "-ptx", "-o", "/dev/null", str(source)]
                remedies.update({f"g++ {label}": remedy, f"nvcc {label}": remedy})
        results = compilers.compile_all(commands)
    faults = {label: fault_of(good, said, remedies[label]) for label, (good, said, _) in results.items()}
    return [f"{label}: {fault}:\n{results[label][1][:2000]}" for label, fault in faults.items() if fault]


def negative_test():
    """Headers that say nothing or go on after the remedy must be reported; one that stops and one that needs none must not."""
    asks = "template <class T> concept any = true;\ninline void f() { throw 1; }\n"
    old, bare = (remedy for _, _, remedy in TOO_LITTLE)
    remedies = f"#if __cplusplus < 202002L\n{old}\n#else\n{bare}\n#endif\n"
    planted = {
        "silent.hpp": asks,
        "goes_on.hpp": remedies + asks,
        "stops.hpp": f'{remedies}#include "{STOP}"\n{asks}',
        "older.hpp": "inline constexpr int one = 1;\n",
    }
    with compilers.folder_of(planted) as folder:
        return compilers.wrongly_judged(faults_of(folder, list(planted), compilers.find_nvcc()), ["goes_on.hpp", "silent.hpp"])


def check():
    nvcc = compilers.find_nvcc()
    if not nvcc:
        print("no nvcc: what it says was not checked")
    base = compilers.ROOT / "include" / "warpheap"
    names = sorted(path.relative_to(base).as_posix() for path in base.rglob("*.hpp"))
    return faults_of(base, names, nvcc), f"{len(names)} headers end with the remedy, or with none needed"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
