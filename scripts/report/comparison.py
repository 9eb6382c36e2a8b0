# SPDX-License-Identifier: Apache-2.0
"""Two sets of results, before and after: the ratio of times row by row, and which of them the repetitions cannot tell apart."""

import scales
from header import folded, table_of
from markup import element, joined
from results import newest
from svg import Picture
from text import parameter_text, ratio_text, tick_text, time_text

WIDTH, ROW, LEFT = 600, 22, 150
VERDICTS = ("faster", "slower", "unchanged", "not told: one repetition")


class Pair:
    def __init__(self, before, after):
        self.before, self.after = before, after
        self.ratio = after.median / before.median
        self.verdict = self._verdict()

    def _verdict(self):
        """A change is one if the spreads of before and after do not overlap."""
        if min(len(self.before.times), len(self.after.times)) < 2:
            return VERDICTS[3]
        before, after = self.before.spread(), self.after.spread()
        if after[0] <= before[1] and before[0] <= after[1]:
            return "unchanged"
        return "faster" if self.ratio < 1 else "slower"

    @property
    def label(self):
        words = [parameter_text(name, value) for name, value in self.after.parameters.items()]
        return f"{self.after.operation}, {', '.join(words)}" if words else self.after.operation


def pairs_of(before, after):
    """Rows that both sets have, and the numbers of those that one alone has; rows of one machine where there are some."""
    old, new = newest(before), newest(after)
    by_machine = {(row.key, row.source.where): row for row in old}
    by_key = {row.key: row for row in old}
    found = [(by_machine.get((row.key, row.source.where)) or by_key.get(row.key), row) for row in new]
    pairs = [Pair(was, row) for was, row in found if was is not None and row.median and was.median]
    keys = {row.key for row in new}
    return pairs, sum(row.key not in keys for row in old), sum(was is None for was, _ in found)


def _groups(pairs):
    groups = {}
    for pair in pairs:
        groups.setdefault((pair.after.scenario, pair.after.subject), []).append(pair)
    return groups


def draw(pairs):
    """A row of marks for each scenario and allocator; what changed is filled, and coloured by its direction."""
    groups = _groups(pairs)
    top = 52
    bottom = top + ROW * len(groups)
    picture = Picture(WIDTH, bottom + 44, "Time after over time before")
    picture.text(8, 17, "Time after over time before, a mark for each row", "h")
    picture.text(8, 35, "← faster than before · slower →", "s")
    left = min(260, max(LEFT, *(len(f"{scenario} {subject}") * 6.4 + 20 for scenario, subject in groups)))
    x = scales.value_scale([1 / 1.3, 1.3, *(pair.ratio for pair in pairs)], left + 8, WIDTH - 20, "ratio")
    for tick in scales.value_ticks(x, 6):
        picture.line(x(tick), top - 6, x(tick), bottom, "g")
        picture.text(x(tick), bottom + 16, tick_text("ratio", tick), "s", "middle")
    picture.line(x(1), top - 8, x(1), bottom + 2, "a")
    for number, ((scenario, subject), members) in enumerate(groups.items()):
        y = top + ROW * number + ROW / 2
        picture.text(left - 6, y + 4, f"{scenario} {subject}", "", "end")
        for verdict, mark, colour in (
            ("unchanged", "ring", 9),
            (VERDICTS[3], "cross", 9),
            ("faster", "down", 0),
            ("slower", "up", 1),
        ):
            picture.marks([(x(pair.ratio), y) for pair in members if pair.verdict == verdict], mark, colour)
    at = 8
    for words, mark, colour in (
        ("faster", "down", 0),
        ("slower", "up", 1),
        ("unchanged: within the spread of repetitions", "ring", 9),
        ("one repetition", "cross", 9),
    ):
        picture.marks([(at + 5, bottom + 31)], mark, colour)
        picture.text(at + 13, bottom + 35, words, "s")
        at += 22 + 6.2 * len(words)
    return picture


def _row(pair):
    kind = {"faster": "best", "slower": "warn"}.get(pair.verdict)
    return (
        *(element("th", words) for words in (pair.after.scenario, pair.after.subject, pair.label)),
        element("td", time_text(pair.before.median)),
        element("td", time_text(pair.after.median)),
        element("td", element("b", ratio_text(pair.ratio)), class_=kind),
        element("th", pair.verdict),
    )


def _table(pairs):
    names = ("scenario", "measured", "row", "before", "after", "ratio", "")
    return table_of(names, [_row(pair) for pair in pairs], "compared")


def section(pairs, only_before, only_after):
    counts = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    how = (
        " A ratio of 1.00 is no change, 0.50 half the time. "
        "A row counts as changed if the spreads of its times before and after do not overlap."
    )
    parts = [element("p", element("b", f"{len(pairs)} rows are in both sets: {told or 'none'}."), how)]
    if only_before or only_after:
        words = f"{only_before} rows are only in the set before, and {only_after} only in the one after."
        parts.append(element("p", words))
    changed = sorted(
        (pair for pair in pairs if pair.verdict in VERDICTS[:2]), key=lambda pair: -max(pair.ratio, 1 / pair.ratio)
    )
    rest = [pair for pair in pairs if pair.verdict not in VERDICTS[:2]]
    if changed:
        parts.append(_table(changed))
    if rest:
        parts.append(folded(f"{len(rest)} rows that are unchanged, or of one repetition", _table(rest)))
    return joined(parts)
