#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang-format would change no source, and what it cannot state: ctags can read each source, no conditional operator is
nested in another, no source includes another, and each names its licence in its first line.

Recipes in packaging/ are left out, since registries take them under terms of their own.
"""

import os
import re

import compilers

LICENCE = "SPDX-License-Identifier: Apache-2.0"
CXX = (".hpp", ".cuh", ".cpp", ".cu")
MARKS = {CXX: "//", (".h", ".c"): "/*", ".html": "{#", ".css": "/*"}  # how a comment begins; .html are templates
RULES = {  # a fault's pattern, and what to say of it
    r"\bnamespace\s[\w:\s]*::\s*inline\b": "ctags finds nothing behind a::inline b; write a { inline namespace b {",
    r'^#include "[^"]*\.cpp"': "a source that includes another",
    r"^namespace warpheap \{\n(?:.*\n)*?namespace detail \{": "a detail beside the backend's: which is meant depends on what comes first",
}
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
# Braces of values first, then brackets around those of statements.
INNERMOST = re.compile(r"[(\[][^()\[\]{}]*[)\]]|(?<=\w)\{[^(){}\[\];]*\}"), re.compile(r"[(\[][^()\[\]]*[)\]]")
CONDITIONAL_IN_ANOTHER = re.compile(r"\?[^,;{}()\[\]]*[?@]")  # @: a pair of brackets with one


def misformatted(root, names):
    """What clang-format says, from as many processes as there are cores."""
    shares = [[str(root / name) for name in names[first :: os.cpu_count()]] for first in range(os.cpu_count())]
    command = ["clang-format", "--dry-run", "--Werror", "--style=file"]
    said = compilers.compile_all({first: [*command, *share] for first, share in enumerate(shares) if share})
    return [text.replace(f"{root}/", "") for good, text, _ in said.values() if not good]


def nested(root, names):
    """Where a conditional operator is in the second or third operand of another. Brackets are folded from within."""
    found = set()
    for name in names:
        text = NO_CODE.sub(lambda part: "\n" * part[0].count("\n"), (root / name).read_text())
        for innermost in INNERMOST:
            unfolded = None
            while text != unfolded:
                found |= {f"{name}:{len(text[: at.end()].splitlines())}" for at in CONDITIONAL_IN_ANOTHER.finditer(text)}
                unfolded = text
                text = innermost.sub(lambda part: "@" * bool(set("?@") & set(part[0])) + "\n" * part[0].count("\n"), text)
    return sorted(found)


def unlicensed(root, name):
    mark = next((mark for ends, mark in MARKS.items() if name.endswith(ends)), "#")
    return not re.match(rf"(#!.*\n)?{re.escape(mark)} {LICENCE}( \*/| #}})?\n", (root / name).read_text())


def faults(root, names, scripts):
    found = misformatted(root, names)
    found += [f"{place}: a conditional operator inside another; name one, or use an if" for place in nested(root, names)]
    for rule, said in RULES.items():
        found += [f"{name}: {said}" for name in names if re.search(rule, (root / name).read_text(), re.MULTILINE)]
    return found + [f"{name}: the first line is not '{LICENCE}'" for name in [*names, *scripts] if unlicensed(root, name)]


def check():
    kinds = compilers.tracked("*.py", "*.cmake", "*.cmake.in", "*CMakeLists.txt", "Makefile", ".ci/run", "scripts/*")
    scripts = [name for name in kinds if not name.startswith("packaging/") and not name.endswith((".json", *CXX))]
    names = compilers.sources()
    return faults(compilers.ROOT, names, scripts), f"{len(names)} sources are formatted, and have the line of the licence"


def negative_test():
    line, good = f"// {LICENCE}\n", "int f(int const* p) { return *p; }\n"
    sources = {
        "good.hpp": good,
        "inline.hpp": "namespace a { inline namespace b {\nint f();\n}}  // namespace a::b\n",
        "apart.cu": "int h(int a) { return (a ? 1 : 2) + f(a ? 3 : 4, a ? 5 : 6); }  // ? : ?\n",
        "spaced.cpp": good.replace("(int", "( int"),
        "pointer.cu": good.replace("* p", " *p"),
        "hidden.hpp": "namespace a::inline b {\nint c;\n}\n",
        "chain.hpp": "int f(int a) { return a < 0 ? 0 : a < 9 ? a : 9; }\n",
        "values.hpp": "int f(int a) { return g(a < 0 ? int{0} : a < 9 ? int{a} : 9); }\n",
        "operand.cpp": "// g?\nint g(int a) { return a ? f(2, a < 9 ? 1 : 0) : 0; }\n",
        "includes.cpp": '#include "spaced.cpp"\n',
        "second.hpp": "namespace warpheap {\n\nnamespace detail {\nint c;\n}\n\n}  // namespace warpheap\n",
    }
    files = {name: line + text for name, text in sources.items()}
    files |= {"bare.cpp": good, "late.cu": good + line, "good": f"#!/bin/sh\n# {LICENCE}\nls\n", "bare": "#!/bin/sh\nls\n", "other.py": line}
    expected = ["bare", "bare.cpp", "chain.hpp", "hidden.hpp", "includes.cpp", "late.cu", "operand.cpp", "other.py", "pointer.cu", "second.hpp", "spaced.cpp", "values.hpp"]
    with compilers.folder_of({".clang-format": (compilers.ROOT / ".clang-format").read_text(), **files}) as root:
        said = faults(root, [name for name in files if name.endswith(CXX)], ["good", "bare", "other.py"])
    caught = {name for name in files for text in said if re.search(rf"^{re.escape(name)}:", text, re.MULTILINE)}
    return [] if sorted(caught) == expected else [f"caught {sorted(caught)} of {expected}", *said]


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
