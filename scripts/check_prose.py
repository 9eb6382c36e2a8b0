#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how comments and pages speak, as CONTRIBUTING says: what can be told without reading.

Sources: comments at most 100 columns wide; no docstring begins "The same"; a subject has a name, and is no "who"; a
number is "this many", and not "so many". Pages: the last two. "Who" follows a word for people ("a programmer who"), and
threads, lanes and calls take "that".
"""

import pathlib
import re
import sys

import compilers

COLUMNS = 100
PEOPLE = "people|users?|programmers?|researchers?|engineers?|authors?|readers?|developers?|anyone|anybody|someone|somebody|everyone|everybody|those|nobody"
WHO = re.compile(r"\b[Ww]ho(?:ever)?\b")
FORGIVEN = re.compile(rf"\b(?:{PEOPLE}),? who\b", re.IGNORECASE)
SO_MANY = re.compile(r"\b[Ss]o many\b(?! that\b)")
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
            for fault in faults_of_words(STRING.sub("", comment)):
                yield number, fault
        before = comment if comment is not None and line.lstrip().startswith("//") else None


def faults_of_page(text):
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            for fault in faults_of_words(re.sub(r'`[^`]*`|"[^"]*"', "", line)):
                yield number, fault


def check(root, names):
    """The faults of files of a folder, a line each."""
    faults = []
    for name in names:
        read = faults_of_page if name.endswith(".md") else faults_of_source
        faults += [f"{name}:{number}: {fault}" for number, fault in read((pathlib.Path(root) / name).read_text())]
    return faults


def self_test():
    good = """/// Takes a block. A programmer who frees it twice is told, and a thread gets this many.
int f();  ///< so many that none is left, says "who"
// https://example.org/{}
""".format("long/" * 30)
    planted = {
        "who": "// The lock is open to who comes first.\n",
        "begins_who": "/// Who frees a block clears its bit.\n",
        "same": "int f();\n/// The same for lanes.\nint g();\n",
        "same_behind": "int f();  ///< The same for lanes.\n",
        "many": "/// Takes so many units.\n",
        "wide": "// " + "wide " * 20 + "\n",
        "wide_behind": "int f(int, int, int);  // " + "wide " * 16 + "\n",
    }
    missed = [name for name, text in planted.items() if len(list(faults_of_source(text))) != 1]
    if not list(faults_of_page("The page is whose it is who frees it.\n")) or list(faults_of_page("Users who read `who`.\n")):
        missed.append("page")
    wrong = list(faults_of_source(good))
    if missed or wrong:
        print(f"planted and not caught: {missed}; reported and good: {wrong}")
        return 1
    print(f"caught all {len(planted) + 1} injected faults")
    return 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("files", nargs="*", help="these alone (default all sources and pages)")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    names = options.files or [*compilers.sources(), *compilers.tracked("*.md")]
    faults = check(compilers.ROOT, names)
    print("\n".join(faults) or f"{len(names)} files speak plainly")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
