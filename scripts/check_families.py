#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that sources which are compiled together mean what they mean alone.

Most that is defined twice in a family does not compile. But a type or constant of one source's unnamed namespace hides that of
the same name which another source has from a header, in silence. So no source of a family in BUILD may define, at the start of
a line, a type, alias or constant that a header of this project defines and another member includes, unless it includes it too.
"""

import pathlib
import re
import sys
import tempfile

import compilers
from lint import FAMILY, members_of

DEFINED = re.compile(
    r"^(?:(?:struct|class|enum class|enum) (\w+)[^;\n]*\{|using (\w+) =|(?:inline |static )*constexpr [^=({\n]*?(\w+)(?:\[\])? ?[={])",
    re.MULTILINE,
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def defined_in(path):
    return {name for found in DEFINED.findall(path.read_text()) for name in found if name}


def headers_of(path, places, known):
    """The project's headers that a file includes, or that those include."""
    if path not in known:
        known[path] = set()
        for name in INCLUDE.findall(path.read_text()):
            for place in [path.parent, *places]:
                header = (place / name).resolve()
                if header.exists():
                    known[path] |= {header} | headers_of(header, places, known)
                    break
    return known[path]


def check(families, places):
    faults, known = [], {}
    for members in families:
        included = {member: headers_of(member, places, known) for member in members}
        for member in members:
            mine = defined_in(member)
            for header in set().union(*included.values()) - included[member]:
                faults += [f"{member}: {name} hides that of {header} in its family" for name in mine & defined_in(header)]
    return sorted(faults)


def self_test():
    planted = {
        "header.hpp": "class leaking {\n};\ninline constexpr int size = 1;\n",
        "has.cpp": '#include "header.hpp"\nint f(leaking);\n',
        "hides.cpp": "class leaking : other {\n};\n",
        "hides_constant.cpp": "constexpr int size = 2;\n",
        "sound.cpp": "class whole {\n};\n",
    }
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory).resolve()
        for name, text in planted.items():
            (folder / name).write_text(text)
        family = [folder / name for name in planted if name.endswith(".cpp")]
        apart = [[source] for source in family]
        faults, none = check([family], []), check(apart, [])
    if [pathlib.Path(fault.split(":")[0]).name for fault in faults] != ["hides.cpp", "hides_constant.cpp"] or none:
        print(f"of two names that hide others these were reported: {faults} {none}")
        return 1
    print("caught both planted names")
    return 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    files = [path for path in options.build.rglob("unity_*.cxx") if FAMILY.search(str(path))]
    families = [[pathlib.Path(member).resolve() for member in members_of(str(file))] for file in files]
    root = compilers.ROOT
    faults = check(families, [root, root / "include", root / "tests", root / "tools" / "warpheap"])
    print("\n".join(faults))
    print(f"{len(families)} families of {sum(len(members) for members in families)} sources, {len(faults)} names that hide others")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
