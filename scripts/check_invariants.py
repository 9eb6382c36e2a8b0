#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every invariant has one label in the whole tree, like buddy.T3, with one definition and a test.

A definition is a line of a source's comment that begins with the label: "//   buddy.T3  while p's record is unlocked, ...". All
else that has the label cites it, and a bare T3 in a comment or on a page is a fault; in backticks and quotes it is none.
docs/design/verification.md has two tables that are read here: "| `buddy` | [path](path) |", where labels of a word are
defined, and "| buddy.T3, buddy.T4 | reason |", the labels that no test cites. That table may only shrink.
"""

import collections
import re

import compilers

PAGE = "docs/design/verification.md"
LABEL = r"[a-z_]+\.[A-Z]\d{1,2}"
CITATION = re.compile(rf"(?<![\w/.]){LABEL}\b(?!\.\w)")
DEFINITION = re.compile(rf"^\s*//+ {{1,4}}({LABEL})  \S")
BARE = re.compile(r"(?<![\w.-])[A-Z]\d{1,2}\b(?!\.\d|-\d)")
QUOTED = re.compile(r'`[^`]*`|"[^"]*"')
PLACES = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
UNTESTED = re.compile(rf"^\| ({LABEL}(?:, {LABEL})*) \| ", re.MULTILINE)
CACHES = {"L1", "L2"}


def lines_of(texts):
    return ((f"{name}:{number}", line) for name in texts for number, line in enumerate(texts[name].splitlines(), 1))


def faults_of(texts):
    """The faults of files, given as {name: text}, a line each."""
    places = {word: re.findall(r"\]\([./]*(.*?)\)", paths) for word, paths in PLACES.findall(texts[PAGE])}
    untested = set(re.findall(LABEL, " ".join(UNTESTED.findall(texts[PAGE]))))
    tested = {label for name in texts if name.startswith("tests/") for label in CITATION.findall(texts[name])}
    defined = collections.defaultdict(list)
    for where, line in lines_of(texts):
        if found := DEFINITION.match(line):
            defined[found[1]].append(where)
    faults = []
    for label, where in defined.items():
        if len(where) > 1:
            faults.append(f"{where[1]}: {label} is defined at {where[0]} already")
        if not where[0].startswith(tuple(places.get(label.split(".")[0], []))):
            faults.append(f"{where[0]}: {label} belongs elsewhere, or its first word is not in {PAGE}")
        if (label in tested) == (label in untested):
            faults.append(f"{where[0]}: {label} is {'cited' if label in tested else 'not cited'} by a test: see {PAGE}")
    bare = {label.split(".")[1] for label in defined} - CACHES
    for where, line in lines_of(texts):
        faults += [f"{where}: {label} is not defined" for label in CITATION.findall(line) if label not in defined]
        comment = line if ".md:" in where else line[line.find("//") :] if "//" in line else ""
        faults += [f"{where}: whose {label}?" for label in BARE.findall(QUOTED.sub("", comment)) if label in bare]
    return faults


def negative_test():
    texts = {
        PAGE: "| `a` | [a](../../include/a/) |\n| `q` | [q](../../include/q.hpp) |\n| q.S1, q.S2 | of speed |\n",
        "include/a/table.hpp": "//   a.T1  words are even.\n",
        "include/a/take.hpp": "// By a.T1 there is one; q.S1 says where, and an L2 is a cache.\n",
        "include/q.hpp": "//   q.S1  no lane waits.\n//   q.S2  none sleeps.\n",
        "docs/design/a.md": "- **a.T1** Words are even. `S1` is code.\n",
        "tests/a/mutants_test.cpp": '// a.T1 left out.\nexpect("T1");\n',
    }
    planted = {
        "bare": ("include/a/take.hpp", "// By T1.\n"),
        "bare on a page": ("docs/design/a.md", "By a.T1 and S1.\n"),
        "unknown": ("include/a/take.hpp", "// By a.T2.\n"),
        "defined twice": ("include/a/take.hpp", "//   a.T1  words are odd.\n"),
        "defined elsewhere": (PAGE, texts[PAGE].replace("include/a/", "include/b/")),
        "without a test": ("tests/a/mutants_test.cpp", "// nothing\n"),
        "with a test by now": ("tests/q_test.cpp", "// q.S1\n"),
    }
    missed = [kind for kind, (name, text) in planted.items() if len(faults_of({**texts, name: text})) != 1]
    return missed + faults_of(texts)


def check():
    patterns = ["include/*.hpp", "archive/*.hpp", "docs/*.md", "*.md", "tests/*.hpp", "tests/*.cpp", "tools/*.hpp", "tools/*.cpp"]
    patterns += ["scripts/check_override.py", "scripts/mutation/*.json"]
    texts = {name: (compilers.ROOT / name).read_text() for name in compilers.tracked(*patterns)}
    return faults_of(texts), f"{len(texts)} files cite what is defined once, and tested"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
