#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tree weighs, as a table: lines by folder, branches, headers that editors cannot see, chains of includes, compile time.

measure_tree.py [REVISION...]  a column for each revision, and one for the working tree
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import time

import check_format
import compilers

SOURCES = (".hpp", ".cuh", ".cpp", ".cu", ".h")
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
COGNITIVE = """Checks: '-*,readability-function-cognitive-complexity'
HeaderFilterRegex: '.*'
CheckOptions:
  - { key: readability-function-cognitive-complexity.Threshold, value: 10 }
  - { key: readability-function-cognitive-complexity.IgnoreMacros, value: true }
  - { key: readability-function-cognitive-complexity.DescribeBasicIncrements, value: false }
"""
ONE_MALLOC = """#include <warpheap/warpheap.hpp>
__global__ void kernel(warpheap::heap_ref heap, void** blocks) { blocks[threadIdx.x] = heap.malloc(24); }
"""


def tracked(root, *folders):
    names = subprocess.run(["git", "ls-files", "--", *folders], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    return [root / name for name in names if name and not name.startswith("bench/results/")]


def text_of(paths, endings):
    return "".join(path.read_text() for path in paths if path.suffix in endings)


def lines(root, *folders):
    return text_of(tracked(root, *folders), (*SOURCES, ".py", ".txt", ".cmake", ".sh", ".json", "")).count("\n")


def includes(root):
    """{header: the headers of the library that it includes}."""
    base = root / "include"
    return {
        path.resolve(): [(path.parent / name).resolve() for name in QUOTED.findall(path.read_text())]
        for path in base.rglob("*.hpp")
    }


def reached(edges, header):
    found, left = set(), [header]
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += edges.get(at, ())
    return found


def longest_chain(edges):
    known = {}

    def chain(header):
        if header not in known:
            known[header] = 1 + max(map(chain, edges.get(header, ())), default=0)
        return known[header]

    return max(map(chain, edges))


def of_the_default_alone(root, edges):
    """Lines of the default allocator's headers, and of those that no other allocator includes."""
    folder = (root / "include/warpheap/policy/creation").resolve()
    mine = reached(edges, folder / "slab_bitmap.hpp")
    others = set()
    for header in folder.glob("*.hpp"):
        if folder / "slab_bitmap.hpp" not in reached(edges, header):
            others |= reached(edges, header)
    return sum(path.read_text().count("\n") for path in mine - others)


def branching(root):
    """Cognitive complexity of the library's functions above 10."""
    with tempfile.TemporaryDirectory() as directory:
        unit, rules = pathlib.Path(directory) / "all.cpp", pathlib.Path(directory) / "rules"
        everything = "all" if (root / "include/warpheap/all.hpp").exists() else "warpheap"
        unit.write_text(f'#include "warpheap/{everything}.hpp"\n')
        rules.write_text(COGNITIVE)
        done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={rules}", str(unit), "--", "-std=c++20", f"-I{root}/include"],
                              capture_output=True, text=True)  # fmt: skip
    return [int(found) for found in re.findall(r"cognitive complexity of (\d+)", done.stdout)]


def blind(edges):
    """Headers with code in which ctags finds nothing."""
    seen = subprocess.run(["ctags", "-f", "-", "--languages=C++", "--langmap=C++:+.hpp", *map(str, edges)], capture_output=True, text=True)
    found = {line.split("\t")[1] for line in seen.stdout.splitlines() if not line.startswith("!")}
    return sum(str(header) not in found and "namespace" in header.read_text() for header in edges)


def seconds_of_nvcc(root, source):
    """The least of three compilations to PTX; None without nvcc."""
    nvcc = compilers.find_nvcc()
    if not nvcc:
        return None
    with tempfile.TemporaryDirectory() as directory:
        unit = pathlib.Path(directory) / "unit.cu"
        unit.write_text(source)
        command = [nvcc[0], "-std=c++20", f"-I{root}/include", "-arch=sm_90", "-ptx", "-o", f"{directory}/unit.ptx", str(unit)]
        taken = []
        for _ in range(3):
            began = time.monotonic()
            subprocess.run(command, check=True)
            taken.append(time.monotonic() - began)
    return min(taken)


def measure(root):
    """{row: figure} of a checkout."""
    edges = includes(root)
    code = tracked(root, "include", "archive", "tests", "tools", "bench", "examples")
    code_lines = text_of(code, SOURCES).splitlines()
    conditional = sum(re.search(r"\?[^?]*:", check_format.NO_CODE.sub("", line)) is not None for line in code_lines)
    library = branching(root)
    names = [path.relative_to(root).as_posix() for path in code if path.suffix in SOURCES]
    return {
        "lines: include": lines(root, "include"),
        "tests": lines(root, "tests"),
        "tools and bench": lines(root, "tools", "bench"),
        "scripts": lines(root, "scripts"),
        "docs, words": len(text_of([path for path in tracked(root) if path.suffix == ".md"], (".md",)).split()),
        "the default allocator with what only it uses, lines": of_the_default_alone(root, edges),
        "lines with `?:`, of 1,000": round(1000 * conditional / len(code_lines), 1),
        "nested `?:`": len(check_format.nested(root, names)),
        "functions of the library of cognitive complexity over 25": sum(found > 25 for found in library),
        "over 15": sum(found > 15 for found in library),
        "headers in which ctags finds nothing": blind(edges),
        "longest chain of includes": longest_chain(edges),
        "nvcc, a unit with one malloc, s": seconds_of_nvcc(root, ONE_MALLOC),
        "an empty one": seconds_of_nvcc(root, "__global__ void kernel() {}\n"),
    }


def main():
    columns = {}
    with tempfile.TemporaryDirectory() as directory:
        for revision in sys.argv[1:]:
            at = pathlib.Path(directory) / revision.replace("/", "_")
            subprocess.run(["git", "-C", str(compilers.ROOT), "worktree", "add", "--quiet", "--detach", str(at), revision], check=True)
            try:
                columns[revision] = measure(at)
            finally:
                subprocess.run(["git", "-C", str(compilers.ROOT), "worktree", "remove", "--force", str(at)], check=True)
        columns["now"] = measure(compilers.ROOT)
    print("| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for row in columns["now"]:
        figures = ["–" if found[row] is None else f"{found[row]:,}" if isinstance(found[row], int) else f"{found[row]:.1f}" for found in columns.values()]
        print(f"| {row} | " + " | ".join(figures) + " |")


if __name__ == "__main__":
    main()
