#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the pages say of the papers.

docs/design/papers.md lists the papers item by item. Of each row the name is in the header, the test's file and its `Suite.Name`
exist, the figure and its heading exist, and the state is a known word, with a reason where it needs one: what goes from the tree
is noticed. Prints how many rows have each state. On the pages of the papers' figures the numbers that derived_numbers.py
computes from bench/results are in the text.
"""

import collections
import json
import pathlib
import re
import sys
import tempfile

import compilers
import derived_numbers

PAGE = pathlib.Path("docs/design/papers.md")
COLUMNS = ["item", "where", "name", "header", "test", "figure", "state"]
STATES = ["have", "differs", "not reproduced", "not measured", "missing", "refused"]
NONE = "–"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#([^)]+))?\)")
TEST = re.compile(r"`(\w+)\.(\w+)`")


def item_rows(text):
    """(line number, cells) of each row of the tables of items."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if inside and line.startswith("| "):
            yield number, cells
        inside = cells == COLUMNS or (inside and line.startswith("|"))


def headings(text):
    """The anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def has_name(source, name):
    return re.search(rf"\b{re.escape(name)}\b", source) is not None


def has_test(source, suite, name):
    return re.search(rf"TEST(?:_F|_P)?\(\s*{suite}\s*,\s*{name}\s*\)", source) is not None


def linked_text(root, cell, wanted):
    """The text of the one file to which a cell leads; the heading, if the link names one, is checked. Raises LookupError."""
    link = LINK.match(cell)
    if not link:
        raise LookupError(f"{wanted}: '{cell}' is no link and no {NONE}")
    path = root / PAGE.parent / link[1]
    if not path.is_file():
        raise LookupError(f"{wanted}: no {link[1]}")
    text = path.read_text()
    if link[2] and link[2] not in headings(text):
        raise LookupError(f"{wanted}: {link[1]} has no heading #{link[2]}")
    return text


def check_name(root, name, header):
    if (name == NONE) != (header == NONE):
        raise LookupError(f"a name has a header, and a header a name: '{name}', '{header}'")
    if name != NONE and not has_name(linked_text(root, header, "header"), name.strip("`")):
        raise LookupError(f"{name} is not in {header}")


def check_test(root, cell):
    if cell == NONE:
        return
    text, named = linked_text(root, cell, "test"), TEST.search(cell)
    if named and not has_test(text, *named.groups()):
        raise LookupError(f"no test {named[0]} in {cell}")


def check_figure(root, cell):
    if cell != NONE:
        linked_text(root, cell, "figure")


def check_state(cell):
    word, _, reason = cell.partition(": ")
    if word not in STATES or (word == "have") == bool(reason):
        raise LookupError(f"state '{cell}': one of {', '.join(STATES)}, and all but the first with a reason")


def row_faults(root, cells):
    if len(cells) != len(COLUMNS):
        yield f"{len(cells)} cells for {len(COLUMNS)} columns"
        return
    _, _, name, header, test, figure, state = cells
    checks = [(check_name, root, name, header), (check_test, root, test), (check_figure, root, figure), (check_state, state)]
    for check, *values in checks:
        try:
            check(*values)
        except LookupError as fault:
            yield fault.args[0]


def state_of(cells):
    return cells[-1].split(":")[0]


def table_faults(root):
    rows = list(item_rows((root / PAGE).read_text()))
    faults = [f"{PAGE}:{number}: {fault}" for number, cells in rows for fault in row_faults(root, cells)]
    return faults or ([] if rows else [f"{PAGE} has no row"])


def counts(root):
    found = collections.Counter(state_of(cells) for _, cells in item_rows((root / PAGE).read_text()))
    return f"{sum(found.values())} items: " + ", ".join(f"{found[state]} {state}" for state in STATES)


PLANTED = {
    "a good row": "| a | 1 | `take` | [x.hpp](x.hpp) | [x.cpp](x.cpp) `Suite.Name` | [there](x.md#a-heading-of-5) | have |",
    "a good one that lacks all": "| a | 1 | – | – | – | – | missing: not built |",
    "a name that is gone": "| a | 1 | `took` | [x.hpp](x.hpp) | – | – | have |",
    "a header that is gone": "| a | 1 | `take` | [y.hpp](y.hpp) | – | – | have |",
    "a name without a header": "| a | 1 | `take` | – | – | – | have |",
    "a test that is gone": "| a | 1 | – | – | [x.cpp](x.cpp) `Suite.Other` | – | have |",
    "a test's file that is gone": "| a | 1 | – | – | [y.cpp](y.cpp) | – | have |",
    "a heading that is gone": "| a | 1 | – | – | – | [there](x.md#a-heading) | have |",
    "results that are gone": "| a | 1 | – | – | – | [y](y.json) | have |",
    "an unknown state": "| a | 1 | – | – | – | – | perhaps |",
    "a state without a reason": "| a | 1 | – | – | – | – | differs |",
    "a missing cell": "| a | 1 | – | – | – | have |",
}


def judged_numbers(root):
    """Faults found by a page's text and a result: as they are, and with either changed."""
    (root / "bench" / "results").mkdir(parents=True)
    pages = {"page.md": [lambda results: [("is {:.1f} times as fast", results.figure("x", "median_us") / 2)]]}

    def number_of_faults(text, median):
        (root / "page.md").write_text(text)
        (root / "bench" / "results" / "h200-x.json").write_text(json.dumps({"results": [{"median_us": median}]}))
        return len(list(derived_numbers.faults(root, pages)))

    return {
        "a good number": number_of_faults("It is 2.5\ntimes as fast.", 5),
        "a number that the text changes": number_of_faults("It is 2.6 times as fast.", 5),
        "a number that the results change": number_of_faults("It is 2.5 times as fast.", 6),
        "a sentence that is gone": number_of_faults("It is as fast.", 5),
    }


def self_test():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        folder = root / PAGE.parent
        folder.mkdir(parents=True)
        (folder / "x.hpp").write_text("void take();\nvoid took_it();\n")
        (folder / "x.cpp").write_text("TEST(Suite, Name) {}\n")
        (folder / "x.md").write_text("# A heading, of 5\n")
        caught = {}
        for what, row in PLANTED.items():
            (root / PAGE).write_text("| state | means |\n|---|---|\n| " + " | ".join(COLUMNS) + " |\n" + "|---" * 7 + f"|\n{row}\n")
            caught[what] = len(table_faults(root))
        caught |= judged_numbers(root)
    wrong = [what for what, faults in caught.items() if faults != (0 if what.startswith("a good") else 1)]
    print(f"wrongly judged: {wrong}" if wrong else f"caught {sum(caught.values())} injected faults")
    return 1 if wrong else 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test()
    faults = [*table_faults(compilers.ROOT), *derived_numbers.faults(compilers.ROOT)]
    print("\n".join(faults) or f"{counts(compilers.ROOT)}; {derived_numbers.count(compilers.ROOT)} derived numbers as in bench/results")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
