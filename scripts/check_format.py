#!/usr/bin/env python3
"""Checks that clang-format would change no source."""

import concurrent.futures
import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compilers


def misformatted(root, name):
    """What clang-format would change in one file, as a diff; empty if nothing.

    Its own --dry-run -Werror also complains about edits that change nothing, such as those of version 14 to the comment
    that ends an inline namespace.
    """
    before = (pathlib.Path(root) / name).read_text()
    after = subprocess.run(
        ["clang-format", "--style=file", name], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, "formatted", lineterm="", n=1))


def self_test():
    good = "int f(int const* p) { return *p; }\n"
    planted = {"good.hpp": good, "spaced.cpp": good.replace("(int", "( int"), "pointer.cu": good.replace("* p", " *p")}
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(compilers.ROOT / ".clang-format", directory)
        for name, text in planted.items():
            (pathlib.Path(directory) / name).write_text(text)
        caught = [name for name in planted if misformatted(directory, name)]
    if caught != ["spaced.cpp", "pointer.cu"]:
        print(f"of three planted files, two with faults, these were caught: {caught}")
        return 1
    print("caught both planted files")
    return 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test()
    files = compilers.sources()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        faults = [said for said in workers.map(lambda name: misformatted(compilers.ROOT, name), files) if said]
    print("\n".join(faults))
    print(f"{len(files) - len(faults)} of {len(files)} files are formatted" + ("; make format does the rest" if faults else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
