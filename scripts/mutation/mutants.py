# SPDX-License-Identifier: Apache-2.0
"""Mutants: which there are, and a sample of them that a seed draws."""

import dataclasses
import fnmatch
import random
import re

from .operators import OPERATORS
from .source import Source

# Headers of concurrent code, below include/warpheap; and of these what looks at a quiet heap from the host, or is constants.
CONCURRENT = ["sync/*", "structure/*", "policy/*", "heap/override*", "heap/bound_heap.hpp"]
LEFT_OUT = ["*snapshot.hpp", "*/quiet_*.hpp", "*config.hpp", "*config_text.hpp", "*report.hpp"]
LEFT_OUT += ["policy/reserve_pool/*", "policy/defaults.hpp"]


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str  # below the folder of headers
    line: int
    column: int
    function: str
    operator: str
    before: str  # the lines that change, with single spaces
    after: str
    start: int
    end: int
    text: str

    def apply(self, original):
        """The mutated source; later lines keep their numbers, which assertions name."""
        lost = original.count("\n", self.start, self.end) - self.text.count("\n")
        return original[: self.start] + self.text + "\n" * lost + original[self.end :]

    def diff(self):
        return f"-{self.before}\n+{self.after}"


def headers(base, patterns):
    """The headers that patterns name, or those of concurrent code; and the patterns that name none."""
    every = sorted(path.relative_to(base).as_posix() for path in base.rglob("*.hpp"))
    if not patterns:
        chosen = [name for name in every if matches(name, CONCURRENT) and not matches(name, LEFT_OUT)]
        return chosen, []
    asked = [pattern.removeprefix(f"{base.parent.name}/{base.name}/") for pattern in patterns]
    named = [name for name in every if matches(name, asked)]
    return named, [pattern for pattern in asked if not matches_any(every, pattern)]


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def matches_any(names, pattern):
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def mutants_of(name, text, operators=OPERATORS):
    """Every mutant of one header, by operator and place."""
    source = Source(text)
    for operator in operators:
        for edit in OPERATORS[operator](source):
            line, column = source.place(edit.start)
            first = text.rfind("\n", 0, edit.start) + 1
            last = text.find("\n", edit.end)
            head, tail = text[first : edit.start], text[edit.end : last if last >= 0 else len(text)]
            before, after = squeeze(head + text[edit.start : edit.end] + tail), squeeze(head + edit.text + tail)
            function = source.function_at(edit.start)
            yield Mutant(name, line, column, function.name, operator, before, after, edit.start, edit.end, edit.text)


def squeeze(text):
    """Without comments, and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", text)).strip()


def draw_sample(mutants, size, seed):
    """`size` of the mutants, spread over files and operators: each pair of these gives one before any gives two.
    In the order drawn, so that a run that is ended early is a sample too."""
    drawn = random.Random(seed)
    cells = {}
    for mutant in mutants:
        cells.setdefault((mutant.file, mutant.operator), []).append(mutant)
    for cell in cells.values():
        drawn.shuffle(cell)
    sample = []
    while len(sample) < size and cells:
        order = sorted(cells)
        drawn.shuffle(order)
        sample += [cells[pair].pop() for pair in order]
        cells = {pair: left for pair, left in cells.items() if left}
    return sample[:size]
