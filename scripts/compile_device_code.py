#!/usr/bin/env python3
"""Compiles the device code of the sources that nvcc compiles in a build, and nothing else of them.

compile_device_code.py BUILD [--except FOLDER] reads BUILD/compile_commands.json. The host's side of such a source takes most of
nvcc's time, and the host build compiles it; so only what a GPU runs is left to see. Sources below FOLDER are left out.
"""

import json
import pathlib
import re
import sys
import tempfile

import compilers

OUTPUT = re.compile(r" -c (\S+) -o \S+")


def device_commands(database, folder, left_out):
    """{source: the command that compiles its device code alone}, each source once."""
    chosen = {}
    for entry in database:
        wanted = " -x cu " in entry["command"] and not (left_out and pathlib.Path(entry["file"]).is_relative_to(left_out))
        if wanted and entry["file"] not in chosen:
            output = pathlib.Path(folder) / f"{len(chosen)}.fatbin"
            chosen[entry["file"]] = OUTPUT.sub(rf" -fatbin \1 -o {output}", entry["command"]).split()
    return chosen


def compile_device_code(database, left_out=None):
    with tempfile.TemporaryDirectory() as folder:
        results = compilers.compile_all(device_commands(database, folder, left_out))
    failed = {source: said for source, (good, said, _) in results.items() if not good}
    for source, said in failed.items():
        print(f"{source}: FAILED\n{said}")
    print(f"device code of {len(results) - len(failed)} of {len(results)} sources compiles")
    return bool(results) and not failed


def self_test(nvcc):
    """A call of a function that the device has not must fail; one that it has must not."""
    judged = []
    with tempfile.TemporaryDirectory() as folder:
        for name, where in {"host.cu": "", "device.cu": "__device__"}.items():
            source = pathlib.Path(folder) / name
            source.write_text(f"{where} int next(int x) {{ return x + 1; }}\n__global__ void f(int* x) {{ *x = next(*x); }}\n")
            command = f"{' '.join(nvcc)} -x cu -c {source} -o {folder}/out.o"
            judged.append(compile_device_code([{"file": str(source), "command": command}]))
    return 0 if judged == [False, True] else 1


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--except", type=pathlib.Path, metavar="FOLDER", dest="left_out")
    options = parser.parse_args()
    if options.self_test:
        return self_test(compilers.nvcc_or_skip("device code"))
    if not options.build:
        parser.error("name the build")
    database = json.loads((options.build / "compile_commands.json").read_text())
    return 0 if compile_device_code(database, options.left_out and options.left_out.resolve()) else 1


if __name__ == "__main__":
    sys.exit(main())
