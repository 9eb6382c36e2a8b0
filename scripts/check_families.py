#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that sources which build/host compiles together mean what they mean alone.

Most that is defined twice in a family does not compile. But a type or constant of one source's unnamed namespace hides that of
the same name which another source has from a header, in silence. So no source of a family may define, at the start of a line, a
type, alias or constant that a header of this project defines and another member includes, unless it includes it too.
"""

import functools
import pathlib
import re

import compilers

ROOT = compilers.ROOT
PLACES = [ROOT, ROOT / "include", ROOT / "tests", ROOT / "tools" / "warpheap"]
DEFINED = re.compile(
    r"^(?:(?:struct|class|enum class|enum) (\w+)[^;\n]*\{|using (\w+) =|(?:inline |static )*constexpr [^=({\n]*?(\w+)(?:\[\])? ?[={])",
    re.MULTILINE,
)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def defined_in(path):
    return {name for found in DEFINED.findall(path.read_text()) for name in found if name}


@functools.cache
def headers_of(path):
    """The project's headers that a file includes, or that those include."""
    tried = [[(place / name).resolve() for place in (path.parent, *PLACES)] for name in INCLUDE.findall(path.read_text())]
    own = {next(header for header in places if header.exists()) for places in tried if any(header.exists() for header in places)}
    return own.union(*(headers_of(header) for header in own))


def faults(members):
    members = [pathlib.Path(member).resolve() for member in members]
    included = set().union(*map(headers_of, members))
    hidden = ((member, name, header) for member in members for header in included - headers_of(member) for name in defined_in(member) & defined_in(header))
    return sorted(f"{member}: {name} hides that of {header} in its family" for member, name, header in hidden)


def check():
    families = compilers.families(ROOT / "build" / "host").values()
    return [fault for members in families for fault in faults(members)], f"{len(families)} families, and no name that hides another"


def negative_test():
    planted = {
        "header.hpp": "class leaking {\n};\ninline constexpr int size = 1;\n",
        "has.cpp": '#include "header.hpp"\nint f(leaking);\n',
        "hides.cpp": "class leaking : other {\n};\n",
        "hides_constant.cpp": "constexpr int size = 2;\n",
        "sound.cpp": "class whole {\n};\n",
    }
    with compilers.folder_of(planted) as folder:
        sources = [folder / name for name in planted if name.endswith(".cpp")]
        said, none = faults(sources), [fault for source in sources for fault in faults([source])]
    return [] if [pathlib.Path(fault.split(":")[0]).stem for fault in said] == ["hides", "hides_constant"] and not none else [*said, *none]


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
