#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang-format would change no source, that ctags can read each, that no conditional operator is nested in another,
and that each source names its licence in its first line.

--write adds the lines that are missing. Recipes in packaging/ are left out, since registries take them under terms of their own.
"""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import compilers

LICENCE = "SPDX-License-Identifier: Apache-2.0"
MARKS = {".html": ("{#", " #}"), ".css": ("/*", " */")}  # of comments; .html are templates
CXX = (".hpp", ".cuh", ".cpp", ".cu")
NESTED_INLINE = re.compile(r"\bnamespace\s[\w:\s]*::\s*inline\b")
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
INNERMOST = re.compile(r"[(\[][^()\[\]]*[)\]]")
CONDITIONAL_IN_ANOTHER = re.compile(r"\?[^,;{}()\[\]]*[?@]")  # @: a pair of brackets with one


def commented():
    """Every source of the project, of whatever language."""
    found = compilers.tracked("*.py", "*.cmake", "*.cmake.in", "*CMakeLists.txt", "Makefile", ".ci/run", "scripts/*")
    scripts = [name for name in found if not name.startswith("packaging/") and pathlib.Path(name).suffix != ".json"]
    return sorted({*compilers.sources(), *scripts})


def split_at_licence(name, text):
    """What comes before the line of the licence, that line, and the text behind it, which may begin with the line."""
    before, rest = text.partition("\n")[::2] if text.startswith("#!") else ("", text)
    begin, end = MARKS.get(pathlib.Path(name).suffix, ("//" if name.endswith(CXX) else "#", ""))
    return before and before + "\n", f"{begin} {LICENCE}{end}\n", rest


def unlicensed(root, names):
    found = {name: split_at_licence(name, (root / name).read_text()) for name in names}
    return {name: "".join(parts) for name, parts in found.items() if not parts[2].startswith(parts[1])}


def misformatted(root, names):
    """What clang-format would change in files of a folder: a diff of each that it would change. A copy is formatted, by as
    few processes as there are cores, for most of one's time is its start."""
    root, cores = pathlib.Path(root), os.cpu_count()
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for name in [".clang-format", *names]:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, copy / name)
        shares = [names[first::cores] for first in range(cores) if names[first::cores]]
        running = [subprocess.Popen(["clang-format", "-i", "--style=file", *share], cwd=copy) for share in shares]
        if any([process.wait() for process in running]):
            sys.exit("clang-format failed")
        diffs = {name: difference(name, (root / name).read_text(), (copy / name).read_text()) for name in names}
    return {name: said for name, said in diffs.items() if said}


def difference(name, before, after):
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, "formatted", lineterm="", n=1)
    return "\n".join(lines)


def hidden(root, names):
    """Files with a `namespace a::inline b`, in which ctags and many editors find nothing."""
    return [name for name in names if NESTED_INLINE.search((root / name).read_text())]


def nested(root, names):
    """Where a conditional operator is in the second or third operand of another. Brackets are folded from within."""
    found = set()
    for name in names:
        text = NO_CODE.sub(lambda part: "\n" * part[0].count("\n"), (root / name).read_text())
        unfolded = None
        while text != unfolded:
            found |= {f"{name}:{len(text[: at.end()].splitlines())}" for at in CONDITIONAL_IN_ANOTHER.finditer(text)}
            unfolded = text
            text = INNERMOST.sub(lambda part: "@" * bool(set("?@") & set(part[0])) + "\n" * part[0].count("\n"), text)
    return sorted(found)


def self_test():
    good = "int f(int const* p) { return *p; }\n"
    inline = "namespace a { inline namespace b {\n" + good + "}}  // namespace a::b\n"
    planted = {"good.hpp": good, "inline.hpp": inline, "spaced.cpp": good.replace("(int", "( int"),
               "pointer.cu": good.replace("* p", " *p"), "hidden.hpp": "namespace a::inline b {\nint c;\n}\n",
               "chain.hpp": "int f(int a) { return a < 0 ? 0 : a < 9 ? a : 9; }\n",
               "operand.cpp": "// g?\nint g(int a) { return a ? f(2, a < 9 ? 1 : 0) : 0; }\n",
               "apart.cu": "int h(int a) { return (a ? 1 : 2) + f(a ? 3 : 4, a ? 5 : 6); }  // ? : ?\n"}  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(compilers.ROOT / ".clang-format", directory)
        for name, text in planted.items():
            (pathlib.Path(directory) / name).write_text(text)
        root = pathlib.Path(directory)
        caught = [*misformatted(root, list(planted)), *hidden(root, planted), *nested(root, planted)]
    if caught != ["spaced.cpp", "pointer.cu", "hidden.hpp", "chain.hpp:1", "operand.cpp:2"]:
        print(f"of eight planted files, five with faults, these were caught: {caught}")
        return 1
    print("caught all five planted files")
    return self_test_of_licences()


def self_test_of_licences():
    """Files that lack the line, or have it elsewhere, get it; others, and those that got it, are left as they are."""
    line, script = f"// {LICENCE}\n", f"#!/bin/sh\n# {LICENCE}\nls\n"
    planted = {"good.hpp": line + "int a;\n", "good": script, "bare.cpp": "int b;\n", "late.cu": "int c;\n" + line,
               "bare": "#!/bin/sh\nls\n", "other.py": f"// {LICENCE}\n"}  # fmt: skip
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in planted.items():
            (root / name).write_text(text)
        made = unlicensed(root, planted)
        write(root, made)
        left = unlicensed(root, planted)
    if list(made) != ["bare.cpp", "late.cu", "bare", "other.py"] or left or made["bare"] != script:
        print(f"of six planted files, four without the licence's line, these were given it: {made}; these lack it: {left}")
        return 1
    print("caught the four files without the line of the licence")
    return 0


def write(root, texts):
    for name, text in texts.items():
        (root / name).write_text(text)


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--write", action="store_true", help="add the line of the licence where it is missing")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    bare = unlicensed(compilers.ROOT, commented())
    if options.write:
        write(compilers.ROOT, bare)
        print(f"{len(bare)} files were given the line of the licence")
        return 0
    files = compilers.sources()
    faults, unread = misformatted(compilers.ROOT, files), hidden(compilers.ROOT, files)
    in_another = nested(compilers.ROOT, files)
    print("\n".join(faults.values()))
    print("\n".join(f"{name}: ctags finds nothing behind a::inline b; write a {{ inline namespace b {{" for name in unread))
    print("\n".join(f"{place}: a conditional operator inside another; name one, or use an if" for place in in_another))
    print("\n".join(f"{name}: the first line is not the licence's" for name in bare))
    told = f"{len(files) - len(faults)} of {len(files)} files are formatted, and {len(bare)} lack the line of the licence"
    print(told + ("; make format does the rest" if faults or bare else ""))
    return 1 if faults or unread or in_another or bare else 0


if __name__ == "__main__":
    sys.exit(main())
