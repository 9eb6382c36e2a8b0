#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks comments and pages for the rules of CONTRIBUTING that need no reader.

Sources: comments at most 100 columns wide; no docstring begins "The same"; a subject has a name, and is no "who"; a
number is "this many", not "so many"; a thread, lane or place is named: no "nobody", "any of us", or "as there" at the end of
a clause. Pages: "who" and "so many". "Who" follows a word for people ("a programmer who"); threads, lanes and calls take "that".
"""

import re

import compilers

COLUMNS = 100
PEOPLE = "people|users?|programmers?|researchers?|engineers?|authors?|readers?|developers?|anyone|anybody|someone|somebody|everyone|everybody|those|nobody"
WHO = re.compile(r"\b[Ww]ho(?:ever)?\b")
FORGIVEN = re.compile(rf"\b(?:{PEOPLE}),? who\b", re.IGNORECASE)
SO_MANY = re.compile(r"\b[Ss]o many\b(?! that\b)")
NAMELESS = re.compile(r"\b(?:(?:[Nn]o|[Ss]ome|[Aa]ny)body|any of us)\b|\bas there(?=[.,;:]|$)")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'')
UNBREAKABLE = re.compile(r"https?://|NOLINT|clang-format|\|---|^\s*//\s*\S+$")


def comment_of(line):
    """A line's comment with its slashes, or None."""
    at = STRING.sub(lambda text: "x" * len(text[0]), line).find("//")
    return line[at:] if at >= 0 else None


def faults_of_words(text):
    if WHO.search(FORGIVEN.sub("", text)):
        yield '"who" is no name for a subject'
    if SO_MANY.search(text):
        yield '"so many" in place of "this many"'


def faults_of_source(text):
    """(line, fault) of each."""
    before = None
    for number, line in enumerate(text.splitlines(), 1):
        comment = comment_of(line)
        if comment is not None:
            if len(line) > COLUMNS and not UNBREAKABLE.search(line):
                yield number, f"a comment {len(line)} columns wide"
            begins = comment.startswith("///") and (before is None or comment.startswith("///<"))
            if begins and re.match(r"///<? ?The same\b", comment):
                yield number, 'a docstring that begins "The same"'
            words = STRING.sub("", comment)
            for fault in faults_of_words(words):
                yield number, fault
            for phrase in NAMELESS.findall(words):
                yield number, f'"{phrase}" names no thread, lane or place'
        before = comment if comment is not None and line.lstrip().startswith("//") else None


def faults_of_page(text):
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            for fault in faults_of_words(re.sub(r'`[^`]*`|"[^"]*"', "", line)):
                yield number, fault


def check():
    names = [*compilers.sources(), *compilers.tracked("*.md")]
    readers = {name: faults_of_page if name.endswith(".md") else faults_of_source for name in names}
    found = [f"{name}:{number}: {fault}" for name, read in readers.items() for number, fault in read((compilers.ROOT / name).read_text())]
    return found, f"{len(names)} files speak plainly"


def negative_test():
    good = "/// Takes a block. A programmer who frees it twice is told, and a thread gets this many.\nint f();  ///< so many that none is left, says \"who\"\n"
    good += f"// https://example.org/{'long/' * 30}\n"
    planted = [
        "// The lock is open to who comes first.",
        "/// Who frees a block clears its bit.",
        "int f();\n/// The same for lanes.\nint g();",
        "int f();  ///< The same for lanes.",
        "/// Takes so many units.",
        "// A lock that nobody holds.",
        "/// Sees what any of us frees.",
        "// A growing pool: as there.",
        "// " + "wide " * 20,
        "int f(int, int, int);  // " + "wide " * 16,
    ]
    missed = [text for text in planted if len(list(faults_of_source(text))) != 1]
    missed += [] if list(faults_of_page("The page is whose it is who frees it.\n")) else ["a page"]
    return missed + [str(fault) for fault in [*faults_of_source(good), *faults_of_page("Users who read `who`.\n")]]


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
