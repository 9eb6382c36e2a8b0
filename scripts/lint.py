#!/usr/bin/env python3
"""Runs clang-tidy on every source of the project that a build compiles, several at once.

lint.py [--jobs N] BUILD reads BUILD/compile_commands.json. clang has neither GCC's precompiled headers nor all its flags,
so those are taken out of the commands first.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compilers

GCC_ONLY = re.compile(r"-include \S*cmake_pch\S*|-Winvalid-pch|-fpch-\S+")


def commands_for_clang(build):
    """The compile commands of the project's own sources, each once, as clang can read them."""
    database = json.loads((build / "compile_commands.json").read_text())
    chosen = {}
    for entry in database:
        source = pathlib.Path(entry["file"])
        inside = source.is_relative_to(compilers.ROOT) and not source.is_relative_to(build)
        if inside and source.suffix == ".cpp":
            chosen[entry["file"]] = {**entry, "command": GCC_ONLY.sub("", entry["command"])}
    return chosen


def lint(folder, source):
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", folder, source],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.returncode, done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    commands = commands_for_clang(options.build.resolve())
    if not commands:
        print(f"{options.build} compiles no source of this project", file=sys.stderr)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(commands.values())))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
            for status, said in workers.map(lambda source: lint(folder, source), commands):
                failed += status != 0
                if status:
                    print(said)
    print(f"clang-tidy: {len(commands) - failed} of {len(commands)} sources are clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
