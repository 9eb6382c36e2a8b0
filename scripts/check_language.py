#!/usr/bin/env python3
"""What a compiler says whose language or CUDA is too old: one line with the remedy, whichever header comes first.

Every header is compiled alone as C++17 with g++, the public ones with nvcc too. A header may also simply compile.
"""

import pathlib
import re
import sys
import tempfile

import compilers

PUBLIC = ["warpheap.hpp", "heap/override.hpp", "heap/halloc_interface.hpp", "heap/c_interface.hpp", "platform/device_buffer.hpp"]
REMEDY = "#error Warpheap needs C++20: compile with -std=c++20"
STOP = "compilation_stops_here"


def fault_of(good, said):
    """What is wrong with a compiler's answer, or None."""
    errors = [line for line in said.splitlines() if re.search(r": (fatal |catastrophic )?error: ", line)]
    if good:
        return "warns" if said else None
    if not errors or REMEDY not in errors[0]:
        return "the first error is not the remedy"
    rest = [line for line in errors[1:] if STOP not in line]
    return f"{len(rest)} more errors after the remedy" if rest else None


def check(base, names, nvcc):
    """Returns (how many were tried, faults)."""
    commands = {}
    with tempfile.TemporaryDirectory() as directory:
        for number, name in enumerate(names):
            source = pathlib.Path(directory) / f"{number}.cpp"
            source.write_text(f'#include "{base / name}"\n')
            gxx = [word for word in compilers.GXX if word != "-std=c++20"]
            commands[f"g++ {name}"] = [*gxx, "-std=c++17", "-fsyntax-only", str(source)]
            if nvcc and name in PUBLIC:
                old = [word for word in nvcc if word != "-std=c++20"]
                commands[f"nvcc {name}"] = [*old, "-std=c++17", "-x", "cu", "-ptx", "-o", "/dev/null", str(source)]
        results = compilers.compile_all(commands)
    faults = {name: fault_of(good, said) for name, (good, said, _) in results.items()}
    return len(commands), [f"{name}: {fault}:\n{results[name][1][:2000]}" for name, fault in faults.items() if fault]


def self_test(nvcc):
    """Headers that say nothing or go on after the remedy must be reported; one that stops and one that needs none must not."""
    planted = {
        "silent.hpp": "template <class T> concept any = true;\n",
        "goes_on.hpp": f"{REMEDY}\ntemplate <class T> concept any = true;\n",
        "stops.hpp": f'{REMEDY}\n#include "{STOP}"\ntemplate <class T> concept any = true;\n',
        "older.hpp": "inline constexpr int one = 1;\n",
    }
    with tempfile.TemporaryDirectory() as directory:
        for name, text in planted.items():
            (pathlib.Path(directory) / name).write_text(text)
        _, faults = check(pathlib.Path(directory), list(planted), nvcc)
    return compilers.judge_self_test(faults, ["goes_on.hpp", "silent.hpp"])


def main():
    options = compilers.arguments(__doc__).parse_args()
    nvcc = compilers.find_nvcc()
    if options.self_test:
        return self_test(nvcc)
    if not nvcc:
        print("no nvcc: what it says was not checked")
    base = compilers.ROOT / "include" / "warpheap"
    names = sorted(path.relative_to(base).as_posix() for path in base.rglob("*.hpp"))
    tried, faults = check(base, names, nvcc)
    print("\n".join(faults) or f"{tried} compilations as C++17 end with the remedy, or with none needed")
    return 1 if faults or tried < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
