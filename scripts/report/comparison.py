# SPDX-License-Identifier: Apache-2.0
"""Two sets of results, before and after: the ratio of times row by row, and which of them the repetitions cannot tell apart."""

import charts
from results import newest
from panels import WIDE
from tables import UNDECIDED, Table
from text import FORMATS, parameter_text, ratio_text

# Mark, and colour: only what changed is coloured.
VERDICTS = {
    "faster": ("v", charts.BLUE),
    "slower": ("^", charts.RED),
    "unchanged": ("o", charts.GREY),
    UNDECIDED: ("x", charts.GREY),
    "not told: one repetition": ("x", charts.GREY),
}


class Pair:
    def __init__(self, before, after):
        self.before, self.after = before, after
        self.ratio = after.median / before.median
        self.verdict = self._verdict()
        words = [parameter_text(name, value) for name, value in after.parameters.items()]
        self.label = f"{after.operation}, {', '.join(words)}" if words else after.operation

    def _verdict(self):
        """A change is one if the spreads of before and after do not overlap."""
        if min(len(self.before.times), len(self.after.times)) < 2:
            return "not told: one repetition"
        before, after = self.before.spread(), self.after.spread()
        if after[0] <= before[1] and before[0] <= after[1]:
            return UNDECIDED if any(high > WIDE * low for low, high in (before, after)) else "unchanged"
        return "faster" if self.ratio < 1 else "slower"


def pairs_of(before, after):
    """Rows that both sets have, and the numbers of those that one alone has; rows of one machine where there are some."""
    old, new = newest(before), newest(after)
    by_machine = {(row.key, row.source.where): row for row in old}
    by_key = {row.key: row for row in old}
    found = [(by_machine.get((row.key, row.source.where)) or by_key.get(row.key), row) for row in new]
    pairs = [Pair(was, row) for was, row in found if was is not None and row.median and was.median]
    keys = {row.key for row in new}
    return pairs, sum(row.key not in keys for row in old), sum(was is None for was, _ in found)


def draw(pairs):
    """A row of marks for each scenario and allocator."""
    names = list(dict.fromkeys(f"{pair.after.scenario} {pair.after.subject}" for pair in pairs))
    left = min(260, max(map(len, names)) * charts.LETTER + 16)
    title = "Time after over time before, a mark for each row"
    picture = charts.Picture(title, "← faster than before ▼ · slower ▲ →", 22 * len(names), left, 600, 620)
    drawable = charts.value_axis(picture.axes.xaxis, "ratio", [1 / 1.3, 1.3, *(pair.ratio for pair in pairs)])
    picture.axes.set_ylim(len(names) - 0.5, -0.5)
    picture.axes.set_yticks([])
    picture.axes.axvline(1, color=charts.SOFT, linewidth=1, clip_on=False)
    for number, name in enumerate(names):
        picture.text(left - 8, picture.place(1, number)[1] + 4, name, charts.INK, ha="right")
    for pair in sorted((pair for pair in pairs if drawable(pair.ratio)), key=lambda pair: list(VERDICTS).index(pair.verdict), reverse=True):
        mark, colour = VERDICTS[pair.verdict]
        number = names.index(f"{pair.after.scenario} {pair.after.subject}")
        picture.axes.plot([pair.ratio], [number], mark, color=colour, markersize=6, clip_on=False)
        picture.point(pair.ratio, number, f"{pair.label}: {ratio_text(pair.ratio)}, {pair.verdict}")
    return picture


def _table(pairs):
    time = FORMATS["time"]
    rows = [
        (pair.after.scenario, pair.after.subject, pair.label, ("", time(pair.before.median), ""), ("", time(pair.after.median), ""),
         ({"faster": "best", "slower": "warn"}.get(pair.verdict, ""), ratio_text(pair.ratio), ""), pair.verdict)
        for pair in pairs
    ]  # fmt: skip
    return Table("", ("scenario", "measured", "row", "before", "after", "ratio", ""), rows)


def told(pairs):
    """How many rows are of each verdict, and the tables of those that changed and of the others."""
    counts = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in VERDICTS}
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none"
    changed = [pair for pair in pairs if pair.verdict in ("faster", "slower")]
    changed.sort(key=lambda pair: -max(pair.ratio, 1 / pair.ratio))
    return words, _table(changed), _table([pair for pair in pairs if pair not in changed])
