#!/usr/bin/env python3
"""Checks that clang-format would change no source."""

import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compilers


def misformatted(root, names):
    """What clang-format would change in files of a folder: a diff of each that it would change. A copy is formatted, by as
    few processes as there are cores, for most of one's time is its start.

    Its own --dry-run -Werror also complains about edits that change nothing, such as those of version 14 to the comment
    that ends an inline namespace.
    """
    root, cores = pathlib.Path(root), os.cpu_count()
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for name in [".clang-format", *names]:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)
        shares = [names[first::cores] for first in range(cores) if names[first::cores]]
        running = [subprocess.Popen(["clang-format", "-i", "--style=file", *share], cwd=copy) for share in shares]
        if any([process.wait() for process in running]):
            sys.exit("clang-format failed")
        diffs = {name: difference(name, (root / name).read_text(), (copy / name).read_text()) for name in names}
    return {name: said for name, said in diffs.items() if said}


def difference(name, before, after):
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, "formatted", lineterm="", n=1)
    return "\n".join(lines)


def self_test():
    good = "int f(int const* p) { return *p; }\n"
    planted = {"good.hpp": good, "spaced.cpp": good.replace("(int", "( int"), "pointer.cu": good.replace("* p", " *p")}
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(compilers.ROOT / ".clang-format", directory)
        for name, text in planted.items():
            (pathlib.Path(directory) / name).write_text(text)
        caught = list(misformatted(directory, list(planted)))
    if caught != ["spaced.cpp", "pointer.cu"]:
        print(f"of three planted files, two with faults, these were caught: {caught}")
        return 1
    print("caught both planted files")
    return 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test()
    files = compilers.sources()
    faults = misformatted(compilers.ROOT, files)
    print("\n".join(faults.values()))
    print(f"{len(files) - len(faults)} of {len(files)} files are formatted" + ("; make format does the rest" if faults else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
