# SPDX-License-Identifier: Apache-2.0
"""Turns the rows of a scenario into panels: which rows share a chart, and which make a line of it.

A chart compares what measured the same load. So parameters that differ make charts of their own, but for the one that is drawn
over, and for those that follow from it.
"""

import math

from results import is_number, newest
from text import bytes_text, in_order, parameter_text, share_text

BASELINE = "null"
WHERE = ("backend", "GPU", "CPU", "driver", "CUDA")  # what Source.where has
LAST = ("pool_bytes",)  # split by last: it often follows from sizes and threads
# What stands beside allocators and is none: it frees nothing, or is what others are measured against.
BASELINES = (BASELINE, "direct", "direct_warp", "packed", "one_piece", "queue")
# Families of allocators, by the prefix of their names.
FAMILIES = ["slab_bitmap", "scatter", "halloc", "throughput", "ualloc", "toolkit", "rw", "queue", "tbuddy", "ring_buffer"]
DEFAULT = "slab_bitmap"
FIRST = (DEFAULT, "toolkit", BASELINE)  # lines that a chart has where it cannot have all: the default, CUDA's own, no allocator
TITLES = {"toolkit": "CUDA's malloc", BASELINE: "null kernel"}  # what pages call them
WIDE = 1.5  # a spread whose ends differ by more decides nothing


def title_of(name):
    return TITLES.get(name, name)


def family_of(name):
    return next((family for family in FAMILIES if name.removeprefix("co").startswith(family)), name)


class Point:
    def __init__(self, x, y, low=None, high=None, row=None):
        self.x, self.y, self.low, self.high, self.row = x, y, low, high, row

    def width(self):
        """How many times its lower end the upper end of the spread is."""
        return self.high / self.low if self.low else math.inf if self.high else 1


class Series:
    def __init__(self, name, points):
        self.name, self.points = name, points


class Panel:
    """What one chart and its table show."""

    def __init__(self, title, series, scenario, view):
        self.title, self.series, self.fills = title, series, scenario.fills
        self.y_kind, self.y_label, self.better = view.kind, view.label, view.better
        self.x_label, self.x_kind, self.x_log = scenario.x_label, scenario.x_kind, scenario.x_log
        self.baselines = []  # (label, value) of rows without an allocator
        self.group, self.shared = "", {}  # the operation, and the parameters that all points have in common

    def xs(self):
        return sorted({point.x for each in self.series for point in each.points}, key=lambda x: (x is None, x))

    def is_lines(self):
        """Whether there are several values to draw over."""
        return len(self.xs()) > 1 and None not in self.xs()

    def rows(self):
        return [point.row for each in self.series for point in each.points]

    def column(self, x):
        """(name, point) of every line at x, the best first."""
        found = [(each.name, point) for each in self.series for point in each.points if point.x == x]
        return sorted(found, key=lambda pair: pair[1].y, reverse=self.better == "higher")

    def ranked(self):
        """The lines by their mean rank: those that always come first, then the best of each known family, then others. Rows by value."""
        if not self.is_lines():
            return sorted(self.series, key=lambda each: each.points[0].y, reverse=self.better == "higher")
        ranks = {each.name: 0 for each in self.series}
        for x in self.xs():
            order = [name for name, _ in self.column(x)]
            for name in ranks:
                ranks[name] += order.index(name) if name in order else len(ranks)
        by_rank = sorted(ranks, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), ranks[name]))
        best = {family_of(name): name for name in reversed(by_rank)}
        by_rank.sort(key=lambda name: best[family_of(name)] != name or family_of(name) not in FAMILIES and name not in FIRST)
        return sorted(self.series, key=lambda each: by_rank.index(each.name))

    def refused(self, point):
        """Whether calls got nullptr that were to get a block."""
        return bool(point.row.failures) and not self.fills

    def refusal(self, point):
        """'refuses 5% of the calls', or nothing."""
        if not self.refused(point):
            return ""
        share, rate, median = (point.row.value(name) for name in ("failed_share", "operations_per_second", "median_us"))
        if share is None and rate and median:
            share = point.row.failures / (rate * median / 1e6 + point.row.failures)
        return f"refuses {share_text(share) + ' of the calls' if share is not None else f'{point.row.failures:,} calls'}"

    def best_of(self, column):
        """Of (name, point) the leader: an allocator, and where some served every call, one of those."""
        real = [each for each in column if each[0] not in BASELINES] or column
        real = [each for each in real if not self.refused(each[1])] or real
        return (max if self.better == "higher" else min)(real, key=lambda each: each[1].y)

    def verdict(self, point, best):
        """'even' if a point is as good as the best: the spreads of their repetitions overlap, and it has no calls refused where the
        best has none. 'undecided' if they overlap where one is WIDE. Else 'behind'."""
        if self.refused(point) and not self.refused(best):
            return "behind"
        if None in (point.low, best.low) or len(point.row.times) < 2 or len(best.row.times) < 2:
            return "even" if point.y == best.y else "behind"
        if point.low > best.high or best.low > point.high:
            return "behind"
        return "undecided" if point is not best and max(point.width(), best.width()) > WIDE else "even"

    def ratio_to(self, point, best):
        """How many times as much as the best, where less is better, or the best as much as it."""
        if not best.y or not point.y:
            return None
        return point.y / best.y if self.better == "lower" else best.y / point.y


def arguments(row, x):
    """The parameters of a row. A range of one size is that size; another one is text, if its ends are not drawn over."""
    made = dict(row.parameters)
    least, most = made.get("least_bytes"), made.get("most_bytes")
    if not is_number(least) or not is_number(most) or x in ("least_bytes", "most_bytes"):
        return made
    del made["least_bytes"], made["most_bytes"]
    if least == most and "bytes" not in made:
        return {"bytes": least, **made}
    return {"sizes" if x == "bytes" else "bytes": f"{bytes_text(least)} to {bytes_text(most)}", **made}


def machine_names(sources):
    """A name for each machine, driver and backend, by `Source.where`, GPUs first; longer ones where short ones are alike."""
    measured = sorted((source for source in sources if source.rows), key=lambda source: source.backend == "host")
    short = {
        each.where: "host backend" if each.backend == "host" else each.machine.get("device") or each.backend or "unknown machine"
        for each in measured
    }
    made = {}
    for where, name in short.items():
        alike = [other for other in short if short[other] == name]
        differing = [place for place in range(1, len(where)) if len({other[place] for other in alike}) > 1]
        made[where] = ", ".join([name, *(f"{WHERE[place]} {where[place] or 'unknown'}" for place in differing)])
    return made


def _baselines(baselines, operation, shared):
    """The rows of `null` for this operation whose parameters agree with `shared`."""
    for member in baselines:
        told = {name: each for name, each in member[2].items() if name not in ("bytes", "least_bytes", "most_bytes")}
        same = member[0].operation == operation or (operation == "first_malloc" and member[0].operation == "malloc")
        if same and all(shared.get(name, each) == each for name, each in told.items()):
            yield member


def _point(row, value, x, view):
    low, high = row.spread() or (None, None)
    if view.y == "operations_per_second" and low and row.median:
        low, high = value * row.median / high, value * row.median / low
    elif view.y != "median_us":
        low = high = None
    return Point(x, value, low, high, row)


def _line_name(row, scenario):
    if isinstance(scenario.series, str):
        return row.subject if scenario.series == "subject" else row.operation
    values = [row.parameters.get(name) for name in scenario.series]
    return " × ".join(map(str, values)) if any(values) else "none"


def _series(members, scenario, view, x):
    lines = {}
    for row, value, given in members:
        lines.setdefault(_line_name(row, scenario), {})[given.get(x)] = _point(row, value, given.get(x), view)
    made = [Series(name, [points[at] for at in sorted(points, key=lambda at: (at is None, at))]) for name, points in lines.items()]
    return sorted(made, key=lambda each: each.name != DEFAULT)


def _span(name, values):
    """'1,024 to 2^20 threads'."""
    if not values:
        return ""
    first, last = parameter_text(name, values[0]), parameter_text(name, values[-1])
    unit = last.partition(" ")[2]
    return last if len(values) == 1 else f"{first.removesuffix(' ' + unit) if unit else first} to {last}"


class _Split:
    """A parameter that makes charts of its own: what its value is for a member, as the chart's title says it."""

    def __init__(self, name, labels):
        self.name, self.labels = name, labels

    def __call__(self, member):
        return self.labels[member[0].source.number] if self.labels else member[2].get(self.name)


def _conflicts(members, name, x, splits, by_source):
    """Whether the parameter has several values where x and the charts so far are the same."""
    decided = {}
    for member in members:
        place = (*(split(member) for split in splits), member[0].source.number if by_source else 0)
        decided.setdefault((member[2].get(x), place), set()).add(member[2].get(name))
    return any(len(values) > 1 for values in decided.values())


def _sweeps(members, name, x):
    """Files whose rows may share a chart, as the parameter follows from x in the same way: file number to a label. None if the
    parameter does not change with x within a file."""
    maps = {}
    for row, _, given in members:
        maps.setdefault(row.source.number, {})[given.get(x)] = given.get(name)
    if all(len(set(values.values())) == 1 for values in maps.values()):
        return None
    sweeps = []
    for number, values in maps.items():
        like = next((known for known, _ in sweeps if all(known.get(at, value) == value for at, value in values.items())), None)
        if like is None:
            sweeps.append((like := {}, []))
        like.update(values)
        next(numbers for known, numbers in sweeps if known is like).append(number)
    labels = {}
    for known, numbers in sweeps:
        told = _span(name, sorted((value for value in set(known.values()) if value is not None), key=in_order))
        labels.update(dict.fromkeys(numbers, told))
    return labels


def _splits(members, x):
    """The parameters that make charts of their own: those that x and the ones before them do not decide."""
    splits = []
    names = sorted(dict.fromkeys(name for _, _, given in members for name in given), key=lambda name: name in LAST)
    for name in names:
        varies = len({given.get(name) for _, _, given in members}) > 1
        if varies and name != x and (name == "machine" or _conflicts(members, name, x, splits, False)):
            splits.append(_Split(name, None if _conflicts(members, name, x, splits, True) else _sweeps(members, name, x)))
    return splits


def _panels_of_group(group, members, scenario, view, baselines):
    """Charts of one operation, or of one subject where operations are the lines."""
    for has_x in (True, False):
        some = [each for each in members if is_number(each[2].get(scenario.x)) == has_x]
        x = scenario.x if has_x else None
        splits, charts = _splits(some, x), {}
        for each in some:
            charts.setdefault(tuple(split(each) for split in splits), []).append(each)
        for values, chosen in charts.items():
            told = [parameter_text(split.name, value) for split, value in zip(splits, values) if value is not None]
            title = ", ".join([group.replace("_", " ")] * bool(group) + told)
            panel = Panel(title, _series(chosen, scenario, view, x), scenario, view)
            first = chosen[0][2]
            shared = {name: value for name, value in first.items() if name != x and all(given.get(name) == value for _, _, given in chosen)}
            panel.group, panel.shared = group, shared
            if scenario.series == "subject":
                beside = list(_baselines(baselines, group, shared))
                label = "baseline of free" if (chosen[0][0].scenario, group) == ("burst", "free") else TITLES[BASELINE]
                panel.baselines = [(label, value) for _, value, given in beside if not given.get(x)][-1:]
                panel.series += _series([member for member in beside if member[2].get(x)], scenario, view, x)
            yield panel


def panels_of(rows, scenario, view, machines):
    """The charts of one number of a scenario, those with the most to compare first. `machines` are the names of all that are on
    the page: where there are several, no chart mixes them."""
    groups, baselines = {}, []
    without = scenario.ignored | (set() if isinstance(scenario.series, str) else set(scenario.series))
    for row in newest(rows):
        value = row.value(view.y)
        if value is None or row.operation in view.without or (view.operations and row.operation not in view.operations):
            continue
        given = {name: each for name, each in arguments(row, scenario.x).items() if name not in without}
        if len(machines) > 1:
            given = {"machine": machines[row.source.where], **given}
        group = row.operation if scenario.series != "operation" else row.subject
        (baselines if row.subject == BASELINE else groups.setdefault(group, [])).append((row, value, given))
    made = [panel for group, some in groups.items() for panel in _panels_of_group(group, some, scenario, view, baselines)]
    return sorted(made, key=lambda panel: -len(panel.series))
