#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: every relative link leads somewhere, every program on a page compiles, and excerpts are true.

A program is a C++ listing whose first line names its file, like '// count.cpp' or '// lists.cu'; the latter needs nvcc. The first
line of an excerpt names a file of the tree, like '// examples/06_pages.cpp', which has the other lines, one after the other.
"""

import pathlib
import re
import tempfile

import compilers

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
PROGRAM = re.compile(r"```cpp\n// (\w+\.(?:cpp|cu))\n(.*?)```", re.DOTALL)
EXCERPT = re.compile(r"```cpp\n// (\w+/\S+)\n(.*?)```", re.DOTALL)


def dead_links(page):
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    return [f"{page}: no {target}" for target in targets if not (page.parent / target).exists()]


def wrong_excerpts(page, root):
    quoted = [(root / name, text) for name, text in EXCERPT.findall(page.read_text())]
    wrong = [(source, text) for source, text in quoted if not source.is_file() or text not in source.read_text()]
    return [f"{page}: {source} has no such lines:\n{text}" for source, text in wrong]


def broken_programs(pages, nvcc):
    with tempfile.TemporaryDirectory() as directory:
        commands = {}
        for page in pages:
            for name, text in PROGRAM.findall(page.read_text()):
                source = pathlib.Path(directory) / str(len(commands)) / name
                source.parent.mkdir()
                source.write_text(text)
                if name.endswith(".cpp"):
                    commands[len(commands), page, name] = [*compilers.GXX, "-fsyntax-only", str(source)]
                elif nvcc:
                    commands[len(commands), page, name] = [*nvcc, "-arch=sm_90", "-ptx", "-o", "/dev/null", str(source)]
        results = compilers.compile_all(commands)
    for (_, page, name), (good, _, _) in results.items():
        print(f"{page.name}: {name} {'compiles' if good else 'does not compile'}")
    return [f"{page}: {name}\n{said}" for (_, page, name), (good, said, _) in results.items() if not good]


def negative_test():
    """One dead link, one broken program and two wrong excerpts, beside good ones."""
    page = (
        "[gone](nowhere.md) [here](page.md) [far](https://example.org/x)\n"
        "```cpp\n// good.cpp\nint main() {}\n```\n```cpp\n// bad.cpp\nint main() { return x; }\n```\n"
        "```cpp\n// scripts/check_docs.py\nimport re\nimport tempfile\n```\n"
        "```cpp\n// scripts/check_docs.py\nimport re\nimport os\n```\n"
        "```cpp\n// scripts/nowhere.cpp\nint x;\n```\n"
    )
    with compilers.folder_of({"page.md": page}) as folder:
        page = folder / "page.md"
        links, programs, excerpts = dead_links(page), broken_programs([page], None), wrong_excerpts(page, compilers.ROOT)
    found = [*links, *programs, *excerpts]
    planted = ["nowhere.md", "bad.cpp", "import os", "nowhere.cpp"]
    return [] if len(found) == len(planted) and all(name in fault for name, fault in zip(planted, found)) else found


def check():
    root = compilers.ROOT
    pages = [*root.glob("*.md"), *(path for name in ("docs", "include", "bench", "packaging") for path in (root / name).rglob("*.md"))]
    pages = sorted(page for page in pages if root / "docs" / "site" not in page.parents)  # scripts/site.py has its own view of links
    faults = [fault for page in pages for fault in dead_links(page) + wrong_excerpts(page, root)]
    return faults + broken_programs(pages, compilers.find_nvcc()), f"{len(pages)} pages: links, programs and excerpts are good"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
