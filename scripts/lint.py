#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every source of the project that a build compiles, several at once.

lint.py [--jobs N] BUILD reads BUILD/compile_commands.json. clang has neither GCC's precompiled headers nor all its flags,
so those are taken out of the commands first. Sources that the build compiles together are looked at together, for most of the
time goes into headers. Names brought in and never used are the exception: those clang-tidy reports only in the file that it is
given, so sources that bring names in are looked at once more, for that alone. lint.py --self-test injects faults in a family.
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
FAMILY = re.compile(r"/Unity/unity_\w+_(cxx\.cxx|cu\.cu)$")
BRINGS_IN = re.compile(r"^\s*(using [\w:]+::\w+;|namespace \w+ = )", re.MULTILINE)
ONLY_UNUSED = ["--checks=-*,misc-unused-*-decls"]


def commands_for_clang(build):
    """The compile commands of the project's own sources, each once, alone or in a family, as clang can read them."""
    database = json.loads((build / "compile_commands.json").read_text())
    chosen = {}
    for entry in database:
        source = pathlib.Path(entry["file"])
        inside = source.is_relative_to(compilers.ROOT) and not source.is_relative_to(build)
        if (inside and source.suffix == ".cpp") or FAMILY.search(entry["file"]):
            chosen[entry["file"]] = {**entry, "command": GCC_ONLY.sub("", entry["command"])}
    return chosen


def members_of(file):
    """The sources that a command compiles."""
    text = pathlib.Path(file).read_text() if FAMILY.search(file) else ""
    return re.findall(r'^#include "(.*)"', text, re.MULTILINE) or [file]


def lint(folder, source, checks):
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", folder, *checks, source],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.returncode, done.stdout.strip()


def lint_all(commands, jobs):
    """{source: all that clang-tidy said} of those that are not clean. What is said of a family is about the members that it
    names, or the first if it names none."""
    tasks = [(file, []) for file in commands]
    entries = dict(commands)
    for file, entry in commands.items():
        for member in members_of(file):
            if member != file and BRINGS_IN.search(pathlib.Path(member).read_text()):
                entries[member] = {**entry, "file": member, "command": entry["command"].replace(file, member)}
                tasks.append((member, ONLY_UNUSED))
    # The largest first, so that no core ends up alone with one.
    tasks.sort(key=lambda task: (not task[1], len(members_of(task[0]))), reverse=True)
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(entries.values())))
        with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
            for (file, _), (status, text) in zip(tasks, workers.map(lambda task: lint(folder, *task), tasks)):
                if status:
                    members = members_of(file)
                    for member in [each for each in members if f"{each}:" in text] or members[:1]:
                        said.setdefault(member, []).append(text)
    return said


PLANTED = {  # check: a fault in a source
    "bugprone-use-after-move": "size_t f(std::string s) { std::string t = std::move(s); return s.size() + t.size(); }",
    "bugprone-sizeof-expression": "size_t f(char const* p) { return sizeof(p + 1) + sizeof(sizeof(int)); }",
    "misc-redundant-expression": "bool f(int x) { return x == 1 || x == 1; }",
    "misc-unused-alias-decls": "namespace unused = std;",
    "misc-unused-using-decls": "using std::vector;",
    "modernize-use-override": "struct a { virtual ~a() = default; virtual void f(); }; struct b : a { virtual void f(); };",
    "performance-for-range-copy": "size_t f(std::vector<std::string> const& v) { size_t n = 0; "
    "for (auto s : v) n += s.size(); return n; }",
    "readability-duplicate-include": "#include <string>",
    "readability-identifier-naming": "int CamelCase() { return 1; }",
    "readability-redundant-control-flow": "void f(int* p) { *p = 1; return; }",
}


def self_test():
    """A family of sources with one injected fault each, between two sound ones. Each must be reported, in its file."""
    missed = []
    # Under a folder that the filter of headers lets through.
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory) / "tests"
        unity = folder / "Unity" / "unity_family_cxx.cxx"
        unity.parent.mkdir(parents=True)
        (folder.parent / ".clang-tidy").write_text((compilers.ROOT / ".clang-tidy").read_text())
        sources = {"sound": "int f() { return 1; }"} | PLANTED | {"sound_too": "int g() { return 2; }"}
        includes = []
        for number, (name, text) in enumerate(sources.items()):
            source = folder / f"{number}.cpp"
            head = "#include <string>\n#include <utility>\n#include <vector>\n"
            body = text if text.startswith("#") else f"namespace family_{number} {{\n{text}\n}}"
            source.write_text(f"{head}{body}\n")
            includes.append(f'// NOLINTNEXTLINE(bugprone-suspicious-include)\n#include "{source}"\n')
        unity.write_text("".join(includes))
        entry = {"directory": directory, "file": str(unity), "command": f"c++ -std=c++20 -c {unity}"}
        said = "\n".join(text for texts in lint_all({str(unity): entry}, os.cpu_count()).values() for text in texts)
        for number, name in enumerate(sources):
            if name in PLANTED and not re.search(rf"/{number}\.cpp:.*\[{name}[],]", said):
                missed.append(name)
            elif name not in PLANTED and f"/{number}.cpp:" in said:
                missed.append(f"{name}, which is sound")
        if "unity_family" in said:
            missed.append("the family, which is sound")
    if missed:
        print(f"judged wrongly: {', '.join(missed)}\n{said}")
        return 1
    print(f"caught {len(PLANTED)} injected faults")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--self-test", action="store_true", help="inject faults, and fail unless each is caught")
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not options.build:
        parser.error("needs a build")
    commands = commands_for_clang(options.build.resolve())
    if not commands:
        print(f"{options.build} compiles no source of this project", file=sys.stderr)
        return 2
    said = lint_all(commands, options.jobs)
    for text in dict.fromkeys(text for texts in said.values() for text in texts):
        print(text)
    total = sum(len(members_of(file)) for file in commands)
    print(f"clang-tidy: {total - len(said)} of {total} sources are clean")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
