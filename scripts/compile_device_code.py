#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the device code of the sources that nvcc compiles in a build, and nothing else of them.

compile_device_code.py BUILD [--except FOLDER] reads BUILD/compile_commands.json. The host's side of such a source takes most of
nvcc's time, and the host build compiles it; so only what a GPU runs is left to see. Sources that the build names as a family
are compiled together, for most of the time goes into headers. Sources below FOLDER are left out.
"""

import json
import pathlib
import re
import sys
import tempfile

import compilers
from lint import members_of

OUTPUT = re.compile(r" -c (\S+) -o \S+")


def device_commands(database, families, left_out, folder):
    """{source or family: the command that compiles its device code alone}, each source once."""
    commands = {}
    for entry in database:
        if " -x cu " in entry["command"] and not (left_out and pathlib.Path(entry["file"]).is_relative_to(left_out)):
            commands.setdefault(entry["file"], entry["command"])
    for family in families:
        members = members_of(family)
        # A file that an earlier configuration left may name sources that are gone.
        if all(member in commands for member in members):
            command = [commands.pop(member) for member in members][0]
            commands[family] = command.replace(f" -c {members[0]} ", f" -c {family} ")
    for number, (file, command) in enumerate(commands.items()):
        commands[file] = OUTPUT.sub(rf" -fatbin \1 -o {folder}/{number}.fatbin", command).split()
    # The longest first, so that no core ends up alone with one: sources of the tool hold every allocator.
    return dict(sorted(commands.items(), key=lambda item: ("/tools/" in item[0], len(members_of(item[0]))), reverse=True))


def compile_device_code(database, families=(), left_out=None):
    with tempfile.TemporaryDirectory() as folder:
        results = compilers.compile_all(device_commands(database, families, left_out, folder))
    failed = {file: said for file, (good, said, _) in results.items() if not good}
    for file, said in failed.items():
        print(f"{file}: FAILED\n{said}")
    total = sum(len(members_of(file)) for file in results)
    print(f"device code of {total - sum(len(members_of(file)) for file in failed)} of {total} sources compiles")
    return bool(results) and not failed


def self_test(nvcc):
    """A call of a function that the device has not must fail, alone and in a family; one that it has must not."""
    judged = []
    with tempfile.TemporaryDirectory() as folder:
        database = []
        for name, where in {"device": "__device__", "other_device": "__device__", "host": ""}.items():
            source = pathlib.Path(folder) / f"{name}.cu"
            source.write_text(f"{where} int {name}(int x) {{ return x + 1; }}\n__global__ void call_{name}(int* x) {{ *x = {name}(*x); }}\n")
            database.append({"file": str(source), "command": f"{' '.join(nvcc)} -x cu -c {source} -o {folder}/out.o"})
        for members in [database[:1], database[2:], database[:2], database[1:]]:
            family = pathlib.Path(folder) / "Unity" / "unity_family_cu.cu"
            family.parent.mkdir(exist_ok=True)
            family.write_text("".join(f'#include "{member["file"]}"\n' for member in members))
            judged.append(compile_device_code(members, [str(family)] if len(members) > 1 else []))
    return 0 if judged == [True, False, True, False] else 1


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
    families = sorted(map(str, options.build.resolve().rglob("Unity/unity_*_cu.cu")))
    return 0 if compile_device_code(database, families, options.left_out and options.left_out.resolve()) else 1


if __name__ == "__main__":
    sys.exit(main())
