#!/usr/bin/env python3
"""Checks that clang-format would change no source."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compilers


def misformatted(root, files):
    """What clang-format says against these files; empty if nothing."""
    command = ["clang-format", "--dry-run", "-Werror", "--style=file", *files]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip() if done.returncode else ""


def self_test():
    good = "int f(int const* p) { return *p; }\n"
    planted = {"good.hpp": good, "spaced.cpp": good.replace("(int", "( int"), "pointer.cu": good.replace("* p", " *p")}
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(compilers.ROOT / ".clang-format", directory)
        for name, text in planted.items():
            (pathlib.Path(directory) / name).write_text(text)
        caught = [name for name in planted if misformatted(directory, [name])]
    if caught != ["spaced.cpp", "pointer.cu"]:
        print(f"of three planted files, two with faults, these were caught: {caught}")
        return 1
    print("caught both planted files")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="plant faults, and fail unless each is caught")
    if parser.parse_args().self_test:
        return self_test()
    files = compilers.sources()
    said = misformatted(compilers.ROOT, files)
    print(said or f"{len(files)} files are formatted")
    if said:
        print("make format mends it")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
