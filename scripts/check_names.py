#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every name and path in backticks on a page is one that the tree has.

A name is an identifier, perhaps with a class or namespace before it, arguments behind it, or both: `bench::request`, `reset()`,
`slab_bitmap<>`. It has to be a word of some source, script or build file, or of a file's name. A path begins with a folder of the
root or of include/warpheap; it has to exist there, with * for any name. Listings are not read; what another project has is
listed here.
"""

import re

import compilers

SPAN = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w:]*(?:<[^`]*>)?(?:\([^`]*\))?(?:\.[A-Za-z_]\w*(?:\([^`]*\))?)*")
PATH = re.compile(r"[\w.*-]+/[\w./*-]*")
WORD = re.compile(r"[A-Za-z_]\w*")
# Pages with names that are another project's.
FOREIGN_PAGES = {"docs/guide/policies/from_mallocmc.md"}
# Names of CUDA, of the operating system, of C++, of other projects and of old results that our sources do not use, and
# parts of names.
FOREIGN = set(
    "alloca atomicAnd cudaErrorLaunchOutOfResources cudaLimitStackSize declare_device dlopen terminate CXXFLAGS ca "
    "getAvailableSlots newdelete ray wator skiplist bfs wait_with_company snake_case TemplateParameter member_ try_ lane_mask "
    "longest_ fixed_vector bulk_insert chaining_table".split()
)
# What a page may end a name with: the suffixes of kernels in the table of registers.
SUFFIX = re.compile(r"_\d+(?:_\d+)?")


def names_of(span):
    """The identifiers of a span that is a name; none of any other span."""
    if not NAME.fullmatch(span):
        return []
    return WORD.findall(re.sub(r"\(.*?\)|<.*>", "", span))


def is_missing(path, files):
    """Whether a path begins with a folder of the tree and leads nowhere."""
    pattern = re.compile(re.escape(path.strip("/")).replace(r"\*", "[^/]*") + "(?:/.*)?")
    below = [*files, *(name.removeprefix("include/warpheap/") for name in files if name.startswith("include/warpheap/"))]
    begins = any(name.startswith(path.split("/")[0] + "/") for name in below)
    return begins and not any(pattern.fullmatch(name) for name in below)


def faults(pages, words, files):
    """The faults of pages, given as {name: text}, beside a tree of these words and files."""
    found = []
    for page, text in pages.items():
        listing = False
        for number, line in enumerate(text.splitlines(), 1):
            listing ^= line.startswith("```")
            if listing or page in FOREIGN_PAGES:
                continue
            for span in SPAN.findall(line):
                unknown = [word for word in names_of(span) if word not in words | FOREIGN and not SUFFIX.fullmatch(word)]
                if PATH.fullmatch(span) and is_missing(span, files):
                    unknown.append(span)
                found += [f"{page}:{number}: {name} is nowhere in the tree" for name in unknown]
    return found


def check():
    names = compilers.tracked()
    pages = {name: (compilers.ROOT / name).read_text() for name in names if name.endswith(".md") and name != "CHANGELOG.md"}
    sources = [name for name in names if not name.endswith(".md") and not name.startswith("bench/results/") and name != "scripts/check_names.py"]
    texts = "\n".join([*sources, *((compilers.ROOT / name).read_text(errors="replace") for name in sources)])
    return faults(pages, set(WORD.findall(texts)), names), f"{len(pages)} pages name what there is"


def negative_test():
    words, names = {"reset", "heap", "slab_bitmap"}, ["include/warpheap/sync/srcu.hpp", "tests/sync/srcu_test.cpp"]
    good = "`reset()` of `heap::reset`, `slab_bitmap<>`, `sync/srcu.hpp`, `tests/sync/*_test.cpp`, `a + b`, `--json FILE`.\n```\n`gone`\n```\n"
    planted = ["`gone()`", "`heap::gone`", "`gone<4>(x)`", "`sync/gone.hpp`", "`tests/gone/*_test.cpp`"]
    missed = [text for text in planted if len(faults({"a.md": good + text}, words, names)) != 1]
    return missed + faults({"a.md": good}, words, names)


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
