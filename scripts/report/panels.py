# SPDX-License-Identifier: Apache-2.0
"""Turns the rows of a scenario into panels: which rows share a chart, and which make a line of it.

A chart compares what measured the same load. So parameters that differ make charts of their own, but for the one that is drawn
over, and for those that follow from it.
"""

from line_chart import Panel, Point, Series
from results import is_number, newest
from splits import splits_of
from text import bytes_text, parameter_text

FLOOR = "null"
WHERE = ("backend", "GPU", "CPU", "driver", "CUDA")  # what Source.where has
SIZES = ("bytes", "least_bytes", "most_bytes")


def arguments(row, x=None):
    """The parameters of a row. A range of one size is that size; another one is text, if its ends are not drawn over."""
    made = dict(row.parameters)
    least, most = made.get("least_bytes"), made.get("most_bytes")
    if not is_number(least) or not is_number(most) or x in ("least_bytes", "most_bytes"):
        return made
    del made["least_bytes"], made["most_bytes"]
    if least == most and "bytes" not in made:
        return {"bytes": least, **made}
    return {"sizes" if x == "bytes" else "bytes": f"{bytes_text(least)} to {bytes_text(most)}", **made}


def machine_name(source):
    """A short name of what the kernels ran on."""
    if source.backend == "host":
        return "host backend"
    return source.machine.get("device") or source.backend or "unknown machine"


def machine_names(sources):
    """A name for each machine, driver and backend, by `Source.where`, GPUs first; longer ones where short ones are alike."""
    measured = sorted((source for source in sources if source.rows), key=lambda source: source.backend == "host")
    short = {source.where: machine_name(source) for source in measured}
    made = {}
    for where, name in short.items():
        alike = [other for other in short if short[other] == name]
        differing = [place for place in range(1, len(where)) if len({other[place] for other in alike}) > 1]
        made[where] = ", ".join([name, *(f"{WHERE[place]} {where[place] or 'unknown'}" for place in differing)])
    return made


def _floor_label(scenario, operation):
    return "floor of free" if operation == "free" and scenario == "burst" else "null"


def _floors(floors, operation, shared):
    """Values of the rows of `null` for this operation whose parameters agree with `shared`."""
    found = []
    for row, value, given in floors:
        told = {name: each for name, each in given.items() if name not in SIZES}
        same = row.operation == operation or (operation == "first_malloc" and row.operation == "malloc")
        if same and all(shared.get(name, each) == each for name, each in told.items()):
            found.append((_floor_label(row.scenario, operation), value))
    return found[-1:]


def _point(row, value, x, view):
    low, high = row.spread() or (None, None)
    if view.y != "median_us":
        if view.y == "operations_per_second" and low and row.median:
            low, high = value * row.median / high, value * row.median / low
        else:
            low = high = None
    return Point(x, value, low, high, row)


def _line_name(row, scenario):
    """What a line is called."""
    if isinstance(scenario.series, str):
        return row.subject if scenario.series == "subject" else row.operation
    values = [row.parameters.get(name) for name in scenario.series]
    return " × ".join(map(str, values)) if any(values) else "none"


def _series(members, scenario, view, x):
    """Lines of one chart. Each of `members` is (row, value, arguments)."""
    lines = {}
    for row, value, given in members:
        name = _line_name(row, scenario)
        lines.setdefault(name, {})[given.get(x)] = _point(row, value, given.get(x), view)
    made = [
        Series(name, [points[at] for at in sorted(points, key=lambda at: (at is None, at))])
        for name, points in lines.items()
    ]
    return sorted(made, key=lambda each: each.name != "slab_bitmap")


def _title(group, splits, values):
    words = [group.replace("_", " ")] if group else []
    words += [parameter_text(split.name, value) for split, value in zip(splits, values) if value is not None]
    return ", ".join(words)


def _shared(given):
    """The arguments that all have in common."""
    return {name: value for name, value in given[0].items() if all(each.get(name) == value for each in given)}


def _panels_of_group(group, members, scenario, view, floors):
    """Charts of one operation, or of one subject where operations are the lines."""
    panels = []
    for has_x in (True, False):
        some = [each for each in members if is_number(each[2].get(scenario.x)) == has_x]
        if not some:
            continue
        x = scenario.x if has_x else None
        splits = splits_of(some, x)
        charts = {}
        for each in some:
            charts.setdefault(tuple(split(each) for split in splits), []).append(each)
        for values, chosen in charts.items():
            panel = Panel(
                _title(group, splits, values), _series(chosen, scenario, view, x), view.kind, view.label, view.better,
                scenario.x_label, scenario.x_kind, scenario.x_log, fills=scenario.fills,
            )  # fmt: skip
            panel.group, panel.shared = group, _shared([given for _, _, given in chosen])
            panel.floors = _floors(floors, group, panel.shared) if scenario.series == "subject" else []
            panels.append(panel)
    return panels


def _prepare(rows, scenario, view, machines):
    """(row, value, arguments) of the rows that have the number, and of the floors."""
    members, floors = [], []
    without = scenario.ignored | (set() if isinstance(scenario.series, str) else set(scenario.series))
    for row in newest(rows):
        value = row.value(view.y)
        wanted = row.operation not in view.without and (view.operations is None or row.operation in view.operations)
        if value is None or not wanted:
            continue
        given = {name: each for name, each in arguments(row, scenario.x).items() if name not in without}
        if len(machines) > 1:
            given = {"machine": machines[row.source.where], **given}
        (floors if row.subject == FLOOR else members).append((row, value, given))
    return members, floors


def panels_of(rows, scenario, view, machines):
    """The charts of one number of a scenario, those with the most to compare first. `machines` are the names of all that are on
    the page: where there are several, no chart mixes them."""
    members, floors = _prepare(rows, scenario, view, machines)
    groups = {}
    for each in members:
        groups.setdefault(each[0].operation if scenario.series != "operation" else each[0].subject, []).append(each)
    panels = []
    for group, some in groups.items():
        panels.extend(_panels_of_group(group, some, scenario, view, floors))
    return sorted(panels, key=lambda panel: -len(panel.series))


def is_lines(panel):
    """Whether there are several values to draw over."""
    xs = {point.x for each in panel.series for point in each.points}
    return len(xs) > 1 and None not in xs
