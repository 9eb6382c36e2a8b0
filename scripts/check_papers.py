#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the pages say of the papers.

docs/design/*_items.md list the papers item by item. Of each row the name is in the file to which it leads, the test's file and its
`Suite.Name` exist, and the state is a known word, with a reason where it needs one, that leads to a figure and a heading that exist:
what goes from the tree is noticed. Prints how many rows have each state. On these pages, those of the papers' figures and the site's first the numbers
that derived_numbers.py computes from bench/results are in the text.
"""

import collections
import json
import pathlib
import re
import sys
import tempfile

import compilers
import derived_numbers

FOLDER = pathlib.Path("docs/design")
PAGES = [FOLDER / f"{paper}_items.md" for paper in ("eckert2014", "adinetz2014", "gelado2019", "pham2022")]
COLUMNS = ["item", "code, test", "state"]
STATES = ["have", "differs", "not reproduced", "not measured", "missing", "refused"]
NONE = "–"
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(?:#([^)]+))?\)")
CODE = re.compile(r"`(\w+)`")
TEST = re.compile(r"`(\w+)\.(\w+)`|\w+\.cpp")


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


def linked_text(root, text):
    """What a link says, and the text of the file to which it leads; its heading, if it names one, is checked. Raises LookupError."""
    link = LINK.fullmatch(text)
    if not link:
        raise LookupError(f"'{text}' is no link")
    said, target, heading = link.groups()
    path = root / FOLDER / target
    if not path.is_file():
        raise LookupError(f"no {target}")
    text = path.read_text()
    if heading and heading not in headings(text):
        raise LookupError(f"{target} has no heading #{heading}")
    return said, text


def check_code(root, link):
    said, text = linked_text(root, link)
    name, test = CODE.fullmatch(said), TEST.fullmatch(said)
    if not name and not test:
        raise LookupError(f"'{said}' is no name and no test")
    if name and not has_name(text, name[1]):
        raise LookupError(f"{link}: no {name[1]} there")
    if test and test[1] and not has_test(text, *test.groups()):
        raise LookupError(f"no test {link}")


def check_state(root, cell):
    said, _, reason = cell.partition(": ")
    word = linked_text(root, said)[0] if said.startswith("[") else said
    if word not in STATES or (word == "have") == bool(reason):
        raise LookupError(f"state '{cell}': one of {', '.join(STATES)}, and all but the first with a reason")


def row_faults(root, cells):
    if len(cells) != len(COLUMNS):
        yield f"{len(cells)} cells for {len(COLUMNS)} columns"
        return
    _, code, state = cells
    links = [] if code == NONE else code.split(", ")
    for check, value in [*((check_code, link) for link in links), (check_state, state)]:
        try:
            check(root, value)
        except LookupError as fault:
            yield fault.args[0]


def state_of(cells):
    return cells[-1].split(":")[0].split("]")[0].lstrip("[")


def rows_of(root, pages):
    return [(page, number, cells) for page in pages for number, cells in item_rows((root / page).read_text())]


def table_faults(root, pages=PAGES):
    rows = rows_of(root, pages)
    faults = [f"{page}:{number}: {fault}" for page, number, cells in rows for fault in row_faults(root, cells)]
    return faults + [f"{page} has no row" for page in pages if not any(page == each for each, _, _ in rows)]


def counts(root):
    found = collections.Counter(state_of(cells) for _, _, cells in rows_of(root, PAGES))
    return f"{sum(found.values())} items: " + ", ".join(f"{found[state]} {state}" for state in STATES)


PLANTED = {
    "a good row": "| a | [`take`](x.hpp), [`Suite.Name`](x.cpp) | [have](x.md#a-heading-of-5) |",
    "a good one that lacks all": "| a | – | missing: not built |",
    "a good one with a reason": "| a | [`take`](x.hpp), [x.cpp](x.cpp) | [differs](x.md): so |",
    "a name that is gone": "| a | [`took`](x.hpp) | have |",
    "a file that is gone": "| a | [`take`](y.hpp) | have |",
    "a name without a file": "| a | `take` | have |",
    "a test that is gone": "| a | [`Suite.Other`](x.cpp) | have |",
    "a test's file that is gone": "| a | [y.cpp](y.cpp) | have |",
    "no name and no test": "| a | [take](x.hpp) | have |",
    "a heading that is gone": "| a | – | [have](x.md#a-heading) |",
    "results that are gone": "| a | – | [have](y.json) |",
    "an unknown state": "| a | – | perhaps |",
    "an unknown state with results": "| a | – | [perhaps](x.md) |",
    "a state without a reason": "| a | – | [differs](x.md) |",
    "a state with a reason too many": "| a | – | have: so |",
    "a missing cell": "| a | have |",
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
        folder = root / FOLDER
        folder.mkdir(parents=True)
        (folder / "x.hpp").write_text("void take();\nvoid took_it();\n")
        (folder / "x.cpp").write_text("TEST(Suite, Name) {}\n")
        (folder / "x.md").write_text("# A heading, of 5\n")
        caught = {}
        for what, row in PLANTED.items():
            (folder / "page.md").write_text("| state | means |\n|---|---|\n| " + " | ".join(COLUMNS) + f" |\n|---|---|---|\n{row}\n")
            caught[what] = len(table_faults(root, [FOLDER / "page.md"]))
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
