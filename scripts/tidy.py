#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on every source that the host build compiles, by run-clang-tidy.

Sources that are compiled together are looked at together, for most of the time goes into headers. Names that are brought in and
never used clang-tidy reports only in the file that it is given: so sources that bring names in are looked at once more, alone, for
these. CMake writes the commands of both, without precompiled headers, which are GCC's.
"""

import json
import pathlib
import re
import subprocess

import compilers

BRINGS_IN = re.compile(r"^\s*(using [\w:]+::\w+;|namespace \w+ = )", re.MULTILINE)


def faults(build, *more):
    """What clang-tidy says of the sources in a compilation database; empty if it finds nothing."""
    done = subprocess.run(["run-clang-tidy", "-quiet", "-p", build, *more], capture_output=True, text=True)
    return [re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)] if done.returncode else []


def tidy(together, alone):
    entries = json.loads((alone / "compile_commands.json").read_text())
    bringing = [entry["file"] for entry in entries if BRINGS_IN.search(pathlib.Path(entry["file"]).read_text())]
    return faults(together) + faults(alone, "-checks=-*,misc-unused-*-decls", *(f"^{re.escape(name)}$" for name in bringing))


def configured(unity):
    """A build folder with a compilation database."""
    build = compilers.ROOT / "build" / f"tidy-unity-{unity.lower()}"
    options = ["-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", f"-DCMAKE_UNITY_BUILD={unity}"]
    subprocess.run(["cmake", "--preset", "host", "-B", build, *options], cwd=compilers.ROOT, check=True, stdout=subprocess.DEVNULL)
    return build


def check():
    return tidy(configured("ON"), configured("OFF")), "clang-tidy finds nothing"


PLANTED = {  # check: a fault in a source
    "bugprone-use-after-move": "size_t f(std::string s) { std::string t = std::move(s); return s.size() + t.size(); }",
    "bugprone-sizeof-expression": "size_t f(char const* p) { return sizeof(p + 1) + sizeof(sizeof(int)); }",
    "misc-redundant-expression": "bool f(int x) { return x == 1 || x == 1; }",
    "misc-unused-alias-decls": "namespace unused = std;",
    "misc-unused-using-decls": "using std::vector;",
    "modernize-use-override": "struct a { virtual ~a() = default; virtual void f(); }; struct b : a { virtual void f(); };",
    "performance-for-range-copy": "size_t f(std::vector<std::string> const& v) { size_t n = 0; "
    "for (auto s : v) n += s.size(); return n; }",
    "readability-duplicate-include": "}\n#include <string>\nnamespace {",
    "readability-identifier-naming": "int CamelCase() { return 1; }",
    "readability-redundant-control-flow": "void f(int* p) { *p = 1; return; }",
}


def negative_test():
    """Sources with one fault each, between two sound ones, compiled together and alone."""
    bodies = ["int f() { return 1; }", *PLANTED.values(), "int g() { return 2; }"]
    head = "#include <string>\n#include <utility>\n#include <vector>\n"
    names = [f"tests/{number}.cpp" for number in range(len(bodies))]  # a folder that the filter of headers lets through
    texts = {name: f"{head}namespace of_{number} {{\n{body}\n}}\n" for number, (name, body) in enumerate(zip(names, bodies))}
    texts["tests/unity.cxx"] = "".join(f'#include "{number}.cpp"\n' for number in range(len(bodies)))
    texts[".clang-tidy"] = (compilers.ROOT / ".clang-tidy").read_text()
    with compilers.folder_of(texts) as root:
        for build, files in {"together": ["tests/unity.cxx"], "alone": names}.items():
            (root / build).mkdir()
            database = [{"directory": str(root), "file": str(root / name), "command": f"c++ -std=c++20 -c {root / name}"} for name in files]
            (root / build / "compile_commands.json").write_text(json.dumps(database))
        said = "\n".join(tidy(root / "together", root / "alone"))
    wrong = [f"{name} is not reported" for number, name in enumerate(PLANTED, 1) if not re.search(rf"/{number}\.cpp:.*\[{name}[],]", said)]
    wrong += [f"{name} is sound" for name in (names[0], names[-1], "unity.cxx") if f"/{name}:" in said]
    return [*wrong, said] if wrong else []


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
