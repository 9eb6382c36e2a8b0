#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the device code of the sources that nvcc compiles in build/cuda, and nothing else of them.

The host's side of such a source takes most of nvcc's time, and the host build compiles it; so only what a GPU runs is left to see.
Sources that build/host compiles together are compiled together, since most of the time goes into headers. The programs of
tests/override are left out: who calls this links them.
"""

import json
import re
import tempfile

import compilers

OUTPUT = re.compile(r" -c (\S+) -o \S+")
LEFT_OUT = "/tests/override/"
AT_ONCE = 8  # nvcc's time and memory for one


def faults(database, families):
    """What nvcc says of sources, given as the build's commands, that do not compile."""
    commands = {entry["file"]: entry["command"] for entry in database if " -x cu " in entry["command"] and LEFT_OUT not in entry["file"]}
    count = len(commands)
    with tempfile.TemporaryDirectory() as folder:
        batches = [members[first : first + AT_ONCE] for members in families for first in range(0, len(members), AT_ONCE)]
        for number, members in enumerate(batches):
            here = [member for member in members if member in commands]
            if len(here) > 1:
                family = f"{folder}/{number}.cu"
                with open(family, "w") as source:
                    source.writelines(f'#include "{member}"\n' for member in here)
                # In front: the longest are the first, so that no core ends up alone with one.
                commands = {family: [commands.pop(member) for member in here][0].replace(f" -c {here[0]} ", f" -c {family} "), **commands}
        results = compilers.compile_all(
            {file: OUTPUT.sub(rf" -fatbin \1 -o {folder}/{number}.fatbin", command).split() for number, (file, command) in enumerate(commands.items())}
        )
    return count, [f"{file}: FAILED\n{said}" for file, (good, said, _) in results.items() if not good]


def check():
    database = json.loads((compilers.ROOT / "build/cuda/compile_commands.json").read_text())
    count, said = faults(database, compilers.families(compilers.ROOT / "build/host").values())
    return said if count else ["build/cuda compiles nothing with nvcc"], f"device code of {count} sources compiles"


def negative_test():
    """A call of a function that the device has not must fail, alone and in a family; one that it has must not."""
    nvcc = compilers.nvcc_or_skip("device code")
    kernel = "{0} int {1}(int x) {{ return x + 1; }}\n__global__ void call_{1}(int* x) {{ *x = {1}(*x); }}\n"
    functions = {"device": "__device__", "other_device": "__device__", "host": ""}
    with compilers.folder_of({f"{name}.cu": kernel.format(where, name) for name, where in functions.items()}) as root:
        files = [str(root / f"{name}.cu") for name in functions]
        database = [{"file": file, "command": f"{' '.join(nvcc)} -x cu -c {file} -o out.o"} for file in files]
        judged = [not faults(members, [files])[1] for members in (database[:1], database[2:], database[:2], database[1:])]
    return [] if judged == [True, False, True, False] else [f"judged {judged}"]


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
