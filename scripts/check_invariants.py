#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every invariant that is cited, like T3, is defined exactly once where the citation says.

A definition is a line of a comment or a page that begins with the label: "//   T3  while p's record is unlocked, ...", or
"- **T3** ...", "- T3 ...", "| T3 | ..." on a page. Its place is the folder of the policy, or the file elsewhere and in a
folder "shared", where parts of several policies lie. A citation inside that place, on the page or in a test of that name is
bare; others say the place first: "slab_set S1", "srcu U1 to U3".
A page may define what its headers define, in other words. In backticks nothing is a citation.
"""

import collections
import pathlib
import re
import sys

import compilers

LABEL = r"[A-Z]\d{1,2}"
DEFINITION = re.compile(rf"^\s*//+ {{1,4}}({LABEL})  +\S|^- (?:\*\*)?({LABEL})(?:\*\*)? \S|^\| \*{{0,2}}({LABEL})\*{{0,2}} \|")
# "srcu U1 to U3", "slab_set S1, S2", "[srcu](srcu.md) U1": the place holds for all labels that follow at once.
CITATION = re.compile(rf"(?:\b(\w+)(?:\]\([^)]*\))?(?:'s)? )?\b({LABEL}(?:(?: to |, | and |-){LABEL})*)\b(?!\w|\.\d)")
QUOTED = re.compile(r'`[^`]*`|"[^"]*"')
CACHES = {"L1", "L2"}


def place_of(name, places=()):
    """Where a file's labels belong: the folder of a policy or of a part that policies share, a file's name, or what a test's
    name begins with."""
    policy = re.match(r"(?:include/warpheap|tests)/policy/\w+/(?!shared/\w+\.)(?:shared/)?(\w+?)(?:/|\.hpp$|_test\.cpp$)", name)
    stem = pathlib.PurePath(name).name.split(".")[0]
    if policy:
        return policy[1]
    begins = [place for place in places if stem == place or stem.startswith(place + "_")]
    return max(begins, key=len, default=stem)


def comment_or_line(name, line):
    """What of a line may cite: a page's line, a source's comment."""
    if not name.endswith(".md"):
        line = line[line.find("//") :] if "//" in line else ""
    return QUOTED.sub("", line)


def check(texts):
    """The faults of files, given as {name: text}, a line each."""
    defined = collections.defaultdict(lambda: collections.defaultdict(list))
    for name, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if found := DEFINITION.match(line):
                label = next(filter(None, found.groups()))
                defined[place_of(name)][label].append((name, number))
    faults = []
    for place, labels in defined.items():
        for label, where in labels.items():
            of_sources = [f"{name}:{number}" for name, number in where if not name.endswith(".md")]
            if len(of_sources) > 1:
                faults.append(f"{of_sources[1]}: {label} of {place} is defined at {of_sources[0]} already")
    known = {label for labels in defined.values() for label in labels}
    for name, text in texts.items():
        own = place_of(name, defined)
        for number, line in enumerate(text.splitlines(), 1):
            for said, labels in CITATION.findall(comment_or_line(name, line)):
                place = said if said in defined else own
                for label in re.findall(LABEL, labels):
                    if label in known and label not in defined[place] and label not in CACHES:
                        faults.append(f"{name}:{number}: {label} is not defined in {place}")
    return faults


def self_test():
    texts = {
        "include/warpheap/policy/creation/a/table.hpp": "//   T1  words are even.\n",
        "include/warpheap/policy/creation/a/take.hpp": "// By T1 there is one; q S1 and S2 say where, and an L2 is a cache.\n",
        "include/warpheap/policy/creation/shared/w.hpp": "//   W1  words are locked.\n// W1 again.\n",
        "include/warpheap/policy/creation/a/free.hpp": "// By w W1.\n",
        "include/warpheap/sync/q.hpp": "//   S1  no lane waits.\n//   S2  none sleeps.\n",
        "docs/design/a.md": "- **T1** Words are even. `S9` is code. See q S1 to S2.\n",
        "tests/policy/creation/a/twins_test.cpp": "// T1 left out.\n",
    }
    planted = {
        "elsewhere": ("include/warpheap/sync/r.hpp", "// By S1.\n"),
        "second of a list": ("include/warpheap/sync/r.hpp", "// By q S1, T1.\n"),
        "nowhere in the folder": ("include/warpheap/policy/creation/a/free.hpp", "// As S2 says.\n"),
        "of a shared part": ("include/warpheap/policy/creation/shared/v.hpp", "// As W1 says.\n"),
        "defined twice": ("include/warpheap/policy/creation/a/free.hpp", "//   T1  words are odd.\n"),
        "page": ("docs/design/q.md", "By T1.\n"),
    }
    missed = [kind for kind, (name, text) in planted.items() if len(check({**texts, name: text})) != 1]
    if missed or check(texts):
        print(f"planted and not caught: {missed}; reported and good: {check(texts)}")
        return 1
    print(f"caught all {len(planted)} planted faults")
    return 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test()
    patterns = ["include/*.hpp", "docs/design/*.md", "tests/*.hpp", "tests/*.cpp", "bench/*.hpp"]
    texts = {name: (compilers.ROOT / name).read_text() for name in compilers.tracked(*patterns)}
    faults = check(texts)
    print("\n".join(faults) or f"{len(texts)} files cite what is defined once")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
