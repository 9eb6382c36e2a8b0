# SPDX-License-Identifier: Apache-2.0
"""What the papers' figures are made of here: rows by scenario and parameters, and lines over a parameter."""

from line_chart import Panel, Point, Series
from panels import arguments
from results import is_number, newest
from styles import style_of
from text import in_order

SHAPES = ("least_thread_block", "most_thread_block", "shapes")  # of a mean over sizes of thread blocks


class Figure:
    """A figure of a paper: its number, what the paper shows there, and our charts in its form. `panels` are of Panel or Bars."""

    def __init__(self, paper, number, title, text, panels):
        self.paper, self.number, self.title, self.text = paper, number, title, text
        self.panels = [panel for panel in panels if panel is not None]


class Rows:
    """The rows of one machine."""

    def __init__(self, rows):
        self.rows = rows

    def of(self, scenario, operations=None, subjects=None, needs=(), **parameters):
        """Those of a scenario that have numbers for the parameters that it `needs`; a parameter may be a value or several."""
        found = []
        for row in self.rows:
            if row.scenario not in ((scenario,) if isinstance(scenario, str) else scenario):
                continue
            if operations and row.operation not in operations or subjects and row.subject not in subjects:
                continue
            if not all(is_number(row.parameters.get(name)) for name in needs):
                continue
            if all(_agrees(row.parameters.get(name), wanted) for name, wanted in parameters.items()):
                found.append(row)
        return Rows(newest(found))

    def over_most_shapes(self):
        """Of rows that differ in their thread blocks alone, the mean over the most sizes of them."""
        chosen = {}
        for row in sorted(self.rows, key=lambda row: in_order(row.parameters.get("shapes", 1))):
            told = tuple((name, value) for name, value in sorted(row.parameters.items()) if name not in SHAPES)
            chosen[row.scenario, row.subject, row.operation, told] = row
        return Rows(list(chosen.values()))

    def values(self, name):
        return sorted({row.parameters[name] for row in self.rows if is_number(row.parameters.get(name))})


def _agrees(value, wanted):
    return value in wanted if isinstance(wanted, (tuple, list, set)) else value == wanted


def points(rows, x, y):
    """Points over parameter x, of `y(row)` or of the number called y; with the spread where that is the time."""
    made = {}
    for row in rows:
        value, at = y(row) if callable(y) else row.value(y), arguments(row, x).get(x)
        if value is None or not is_number(at):
            continue
        low, high = row.spread() or (None, None) if y == "median_us" else (None, None)
        made[at] = Point(at, value, low, high, row)
    return [made[at] for at in sorted(made)]


def lines_by(rows, name, x, y, labels=None):
    """A line for each value of `name(row)`. `labels` choose and order names: name to label."""
    groups = {}
    for row in rows.rows:
        groups.setdefault(name(row), []).append(row)
    order = [each for each in labels if each in groups] if labels else list(groups)
    made = []
    for each in order:
        found = points(groups[each], x, y)
        if found:
            made.append(Series(str(each), found, label=labels[each] if labels else str(each)))
    return made


def theory(line, y):
    """What is predicted for a measured line, dashed, without marks and without a name."""
    found = [Point(point.x, value, row=point.row) for point in line.points if (value := point.row.value(y)) is not None]
    colour = style_of(line.name, {})[0] if line.style is None else line.style[0]
    return Series(line.name, found, label="", style=(colour, "", 2)) if found else None


def ratio(over, under):
    """Points of one line over those of another, at the arguments that both have."""
    below = {point.x: point.y for point in under}
    return [Point(point.x, point.y / below[point.x], row=point.row) for point in over if below.get(point.x)]


def panel(title, series, y_kind, y_label, better, x_label, x_kind="count", x_log=True, stated=None):
    """None where there is no line of ours. `stated` are the paper's numbers."""
    series = [each for each in series if each is not None and each.points]
    if not series:
        return None
    made = Panel(title, series, y_kind, y_label, better, x_label, x_kind, x_log)
    if stated:
        stated.add_to(made)
    return made


def subject(row):
    return row.subject


def operation(row):
    return row.operation
