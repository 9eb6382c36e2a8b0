# SPDX-License-Identifier: Apache-2.0
"""Who leads where: for each chart a table of ratios to the best, with the measured values beside them."""

from header import table_of
from markup import element
from text import FORMATS, ratio_text

MOST_COLUMNS = 10
# What stands beside allocators and is none: it frees nothing, or is what others are measured against.
BASELINES = ("direct", "direct_warp", "packed", "one_piece", "queue")


def refused(point, panel):
    """Whether calls got nullptr that were to get a block."""
    return bool(point.row is not None and point.row.failures) and not panel.fills


def candidates(column, panel):
    """Of (label, point), those that may lead: allocators, and where some served every call, those alone."""
    real = [each for each in column if each[0] not in BASELINES] or column
    return [each for each in real if not refused(each[1], panel)] or real


def best_of(column, panel):
    """The leading (label, point); None where no direction is the better one."""
    if not panel.better or not column:
        return None
    choose = min if panel.better == "lower" else max
    return choose(candidates(column, panel), key=lambda each: each[1].y)


def is_even(point, best, panel):
    """Whether a point is as good as the best: the spreads of their repetitions overlap, and it refuses no more."""
    if refused(point, panel) and not refused(best, panel):
        return False
    if None in (point.low, best.low) or len(point.row.times) < 2 or len(best.row.times) < 2:
        return point.y == best.y
    return point.low <= best.high and best.low <= point.high


def ratio_to(point, best, better):
    """How many times as much as the best, where less is better, or the best as much as it; at least 1 for those behind."""
    if not best.y or not point.y:
        return None
    return point.y / best.y if better == "lower" else best.y / point.y


def _columns(panel):
    xs = panel.xs() if None not in [point.x for each in panel.series for point in each.points] else [None]
    if len(xs) <= MOST_COLUMNS:
        return xs
    return [xs[round(index * (len(xs) - 1) / (MOST_COLUMNS - 1))] for index in range(MOST_COLUMNS)]


def _cell(panel, name, point, best):
    if point is None:
        return element("td", "–", class_="none")
    value = FORMATS[panel.y_kind](point.y) + ("†" if refused(point, panel) else "")
    kind = "best" if name not in BASELINES and is_even(point, best, panel) else ""
    ratio = ratio_to(point, best, panel.better)
    if ratio is None or panel.y_kind in ("share", "ratio"):
        return element("td", value, class_=kind)
    return element("td", ratio_text(ratio), " ", element("small", value), class_=kind)


def has_table(panel):
    return bool(panel.better) and len(panel.series) > 1


def table(panel):
    """The table of one chart, rows in the order of their mean rank."""
    columns = _columns(panel)
    cells, ranks = {}, {each.label: [] for each in panel.series}
    for x in columns:
        points = {each.label: point for each in panel.series for point in each.points if point.x == x}
        best = best_of(list(points.items()), panel)[1]
        order = sorted(points, key=lambda name: points[name].y, reverse=panel.better == "higher")
        for name in ranks:
            ranks[name].append(order.index(name) if name in points else len(ranks))
            cells[name, x] = _cell(panel, name, points.get(name), best)
    write = FORMATS[panel.x_kind]
    names = [panel.x_label if columns != [None] else "", *("" if x is None else write(x) for x in columns)]
    lines = [
        [element("th", name), *(cells[name, x] for x in columns)]
        for name in sorted(ranks, key=lambda name: sum(ranks[name]))
    ]
    return table_of(names, lines, "leaders", f"{panel.title}: {panel.y_label}")
