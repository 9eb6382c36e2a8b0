#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: every relative link leads somewhere, and every program on a page compiles.

A program is a C++ listing whose first line names its file, like '// count.cpp' or '// lists.cu'; the latter needs nvcc.
"""

import pathlib
import re
import sys
import tempfile

import compilers

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
PROGRAM = re.compile(r"```cpp\n// (\w+\.(?:cpp|cu))\n(.*?)```", re.DOTALL)


def dead_links(page):
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    return [f"{page}: no {target}" for target in targets if not (page.parent / target).exists()]


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


def self_test():
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory) / "page.md"
        page.write_text(
            "[gone](nowhere.md) [here](page.md) [far](https://example.org/x)\n"
            "```cpp\n// good.cpp\nint main() {}\n```\n```cpp\n// bad.cpp\nint main() { return x; }\n```\n"
        )
        links, programs = dead_links(page), broken_programs([page], None)
    if len(links) != 1 or "nowhere.md" not in links[0] or len(programs) != 1 or "bad.cpp" not in programs[0]:
        print(f"of one dead link and one broken program, these were caught: {links} {programs}")
        return 1
    print("caught the dead link and the broken program")
    return 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test()
    root = compilers.ROOT
    pages = [*root.glob("*.md"), *(path for name in ("docs", "include", "bench", "packaging") for path in (root / name).rglob("*.md"))]
    pages = [page for page in pages if root / "docs" / "site" not in page.parents]  # scripts/site.py has its own view of links
    nvcc = compilers.find_nvcc()
    faults = [fault for page in sorted(pages) for fault in dead_links(page)] + broken_programs(sorted(pages), nvcc)
    print("\n".join(faults) or f"{len(pages)} pages: links and programs are good")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
