#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the headers as one file: `amalgamate.py FILE` (default build/warpheap.hpp).

The file has all.hpp and the headers of EXTRAS, for NVRTC, g++ and nvcc. Headers from outside stay includes. A header is
repeated only where its earlier copy may have been skipped by the preprocessor, so each copy has a guard.
"""

import argparse
import pathlib
import re

import compilers

INCLUDE = compilers.ROOT / "include" / "warpheap"
# What programs include by name; the second list is for host code.
EXTRAS = ["heap/growing_heap.hpp", "heap/gauge.hpp", "heap/heap_set.hpp", "adaptor/checked.hpp"]
HOST_EXTRAS = ["heap/growth_service.hpp", "platform/address_range.hpp", "platform/device_buffer.hpp"]

OWN = re.compile(r'\s*#\s*include\s+"([^"]+)"')
CONDITION = re.compile(r"\s*#\s*((?:if|elif|else|endif).*)")


class Amalgamation:
    def __init__(self):
        self.lines = []
        self.conditions = []  # that the next line depends on, from outside; they mean the same everywhere
        self.placed = {}  # header: conditions of its copies

    def follow(self, directive):
        if directive.startswith("endif"):
            self.conditions.pop()
        elif directive.startswith("if"):
            self.conditions.append(directive)
        else:  # another branch of the same condition
            self.conditions[-1] += "; " + directive

    def is_placed(self, header):
        """Whether every way to this line leads through a copy of the header."""
        copies = self.placed.get(header, [])
        return any(self.conditions[: len(copy)] == copy for copy in copies)

    def place(self, header):
        if self.is_placed(header):
            return
        self.placed.setdefault(header, []).append(list(self.conditions))
        name = header.relative_to(INCLUDE).as_posix()
        guard = "WARPHEAP_SINGLE_" + re.sub(r"\W", "_", name).upper()
        self.lines += [f"#ifndef {guard}  // {name}", f"#define {guard}"]
        self.add(header.read_text(), header.parent)
        self.lines.append("#endif")

    def add(self, text, folder):
        """The lines of a text, with what it includes in its place and without its comments of whole lines."""
        for line in text.splitlines():
            included, condition = OWN.match(line), CONDITION.match(line)
            if included:
                self.place((folder / included[1]).resolve())
            elif line.strip() and not line.lstrip().startswith("//") and line.strip() != "#pragma once":
                self.lines.append(line)
            if condition:
                self.follow(condition[1])


def single_header(make=Amalgamation):
    made = make()
    made.lines += [
        "// Warpheap as one header: dynamic memory for GPU threads. Made by scripts/amalgamate.py from the headers",
        "// of include/warpheap, which have the comments. SPDX-License-Identifier: Apache-2.0",
        "#pragma once",
    ]
    includes = [f'#include "{name}"' for name in ["all.hpp", *EXTRAS]]
    host_includes = [f'#include "{name}"' for name in HOST_EXTRAS]
    made.add("\n".join([*includes, "#if !defined(__CUDACC_RTC__)", *host_includes, "#endif"]), INCLUDE)
    return "\n".join(made.lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=compilers.ROOT / "build" / "warpheap.hpp")
    file = parser.parse_args().file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(single_header())
    print(f"{file}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
