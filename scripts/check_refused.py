#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles what must not compile: policies that do not go together, under g++ and, where it is, nvcc.

A line of each source in tests/compile/refused names what the compiler must say: the constraint that is not satisfied, and
the policies that it is about. Another error, or none, fails.
"""

import pathlib
import re
import sys
import tempfile

import compilers

SOURCES = compilers.ROOT / "tests" / "compile" / "refused"


def wanted_words(source):
    found = re.search("^// refused: (.*)$", source.read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"{source}: no line says what must be said")
    return [word.strip() for word in found[1].split(",")]


def judge(name, words, good, said):
    """What is wrong with a compiler's answer, or None."""
    if good:
        return f"{name}: compiled"
    missing = [word for word in words if word not in said]
    return f"{name}: refused without a word of {', '.join(missing)}:\n{said}" if missing else None


def faults_of(folder, nvcc):
    sources = sorted(folder.glob("*.cpp"))
    if not sources:
        return [f"{folder} has no source"]
    with tempfile.TemporaryDirectory() as directory:
        commands = {}
        for source in sources:
            commands[f"g++ {source.stem}"] = [*compilers.GXX, "-fsyntax-only", str(source)]
            if nvcc:
                output = str(pathlib.Path(directory) / f"{source.stem}.ptx")
                commands[f"nvcc {source.stem}"] = [*nvcc, "-x", "cu", "-arch=sm_90", "-ptx", "-o", output, str(source)]
        results = compilers.compile_all(commands)
    words = {source.stem: wanted_words(source) for source in sources}
    faults = [judge(name, words[name.split()[1]], good, said) for name, (good, said, _) in results.items()]
    return [fault for fault in faults if fault]


def negative_test():
    """Sources that compile, or are refused for another reason, must be reported; one that is refused rightly must not."""
    planted = {
        "compiles.cpp": "// refused: small, int\ntemplate <class T> concept small = true;\nbool b = small<int>;\n",
        "other_reason.cpp": "// refused: small, int\nint x = nowhere;\n",
        "rightly.cpp": "// refused: small, wide\ntemplate <class T> concept small = sizeof(T) == 1;\n"
        "struct wide { int x; };\ntemplate <small T> struct box {};\nbox<wide> b;\n",
    }
    with compilers.folder_of(planted) as folder:
        return compilers.wrongly_judged(faults_of(folder, compilers.find_nvcc()), ["compiles", "other_reason"])


def check():
    nvcc = compilers.find_nvcc()
    if not nvcc:
        print("no nvcc: what it says was not checked")
    return faults_of(SOURCES, nvcc), "all are refused, for the right reason"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
