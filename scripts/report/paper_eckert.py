# SPDX-License-Identifier: Apache-2.0
"""The figures of Eckert 2014, chapter 5."""

import math

import stated
from bar_chart import Bars
from line_chart import Panel, Point, Series
from papers import Figure, lines_by, panel, subject
from text import bytes_text

PAPER = "Eckert 2014, Enhancements of the memory allocator ScatterAlloc (mallocMC)"
MOST_STEPS = 400  # points of a line
MOST_PERCENTS = 1000  # bars of a histogram


def _cycles(rows, operation, number, verb):
    chosen = rows.of("workers", operations=(operation, f"direct_{operation}"), needs=("workers",))
    panels = []
    for size in chosen.values("bytes"):
        some = chosen.of("workers", bytes=size)
        few = {row.parameters["workers"] for row in some.rows if row.operation.startswith("direct")}
        if few:
            some.rows = [row for row in some.rows if row.parameters["workers"] in few]
        series = lines_by(some, lambda row: (row.subject, row.operation), "workers", "cycles")
        for each in series:
            point = each.points[0].row
            each.name = point.subject
            each.label = point.subject + (", direct" if point.operation.startswith("direct") else "")
            if point.operation.startswith("direct"):
                each.style = (9, "plus", 1)
        panels.append(panel(bytes_text(size), series, "cycles", f"cycles of {verb}", "lower", "concurrent workers"))
    return Figure(
        PAPER,
        number,
        f"Cycles of {verb} by concurrent workers",
        "The thesis: CUDA's allocator takes orders of magnitude more than all others, and mallocMC as long as the "
        "original ScatterAlloc (called directly here).",
        panels,
    )


def _every_worker(rows):
    panels = []
    for operation in ("malloc", "free"):
        for size in rows.of("workers", operations=(operation,)).values("bytes"):
            chosen = rows.of("workers", operations=(operation,), bytes=size)
            series = [each for each in lines_by(chosen, subject, "workers", "cycles") if len(each.points) > 64]
            panels.append(
                panel(
                    f"{operation}, {bytes_text(size)}, every count up to 64 and some after it",
                    series,
                    "cycles",
                    "cycles of a call",
                    "lower",
                    "workers",
                )
            )
    return Figure(PAPER, "B.1", "Every number of workers", "The thesis: no number of workers stands out.", panels)


def _step_rows(rows):
    """Rows of whole steps, by what was simulated."""
    groups = {}
    for row in rows.of("pic", operations=("step",)).rows:
        if row.times:
            groups.setdefault(tuple(sorted(row.parameters.items())), []).append(row)
    return groups


def _simulated(row):
    told = row.parameters
    cells = f"{told.get('cells_x')} × {told.get('cells_y')} cells"
    return f"{cells}, {told.get('species')} species, {told.get('particles_per_cell')} particles a cell"


def _steps(rows):
    panels = []
    for members in _step_rows(rows).values():
        series = []
        for row in members:
            every = max(1, len(row.times) // MOST_STEPS)
            series.append(
                Series(row.subject, [Point(index + 1, row.times[index]) for index in range(0, len(row.times), every)])
            )
        panels.append(
            Panel(
                f"{_simulated(members[0])}, {len(members[0].times)} steps",
                series,
                "time",
                "time of a step",
                "lower",
                "step",
                "count",
                False,
            )
        )
    panels.sort(key=lambda each: -len(each.series))
    return Figure(
        PAPER,
        "5.3 and 5.4",
        "Time of every step of a simulation",
        "The thesis: CUDA's allocator slows the simulation by orders of magnitude; mallocMC and HeapBuffer (ring_buffer "
        "here) are close.",
        panels,
    )


def _histogram(rows):
    panels = []
    for members in _step_rows(rows).values():
        base = next((row for row in members if row.subject == "ring_buffer"), None)
        for row in members:
            if (
                base is None
                or row is base
                or len(row.times) != len(base.times)
                or len(row.times) < 100
                or 0 in base.times
            ):
                continue
            percents = [round(100 * mine / other) for mine, other in zip(row.times, base.times)]
            ordered = sorted(percents)
            low, high = ordered[len(ordered) // 200], ordered[-1 - len(ordered) // 200]
            if high - low > MOST_PERCENTS:
                continue
            told = [percent for _, percent in stated.STEPS.lines]
            groups = list(range(math.floor(min(low, *told)), math.ceil(max(high, *told)) + 1))
            bars = [(percents.count(group), percents.count(group)) for group in groups]
            outside = len(percents) - sum(value for value, _ in bars)
            note = f"; {outside} of them lie outside" if outside else ""
            chart = Bars(
                f"{row.subject}, {_simulated(row)}, {len(row.times)} steps{note}",
                [f"{group}%" for group in groups],
                [(row.subject, bars)],
                "count",
                "steps",
                "",
                "time of a step over that with ring_buffer",
                logarithmic=False,
            )
            words = ", ".join(f"{what} {percent:g}%" for what, percent in stated.STEPS.lines)
            chart.uprights = f"{stated.STEPS.machine}: {words}", [percent - groups[0] for percent in told]
            chart.places = stated.STEPS.places
            panels.append(chart)
    return Figure(
        PAPER,
        "5.5",
        "A step with mallocMC over the same step with HeapBuffer",
        "The thesis: 1.045 in the mean, two peaks, at 103% and 107%.",
        panels,
    )


def _capacity(rows):
    chosen = rows.of("pic", operations=("capacity",))
    chosen.rows = [row for row in chosen.rows if row.value("particles")]
    pools = chosen.values("pool_bytes")
    if not pools:
        return Figure(PAPER, "5.6", "", "", [])
    some = chosen.of("pic", pool_bytes=max(pools))
    series = lines_by(some, subject, "species", "share_of_pool")
    return Figure(
        PAPER,
        "5.6",
        "Particles that one of n species can have",
        "The thesis: all with one heap for all species, 1/n with a buffer for each.",
        [
            panel(
                f"share of a pool of {bytes_text(max(pools))}",
                series,
                "share",
                "of all particles",
                "higher",
                "species",
                x_log=False,
                stated=stated.SPECIES,
            )
        ],
    )


def figures(rows):
    made = []
    if any("direct_malloc" == row.operation for row in rows.of("workers").rows):
        made += [_cycles(rows, "malloc", "5.1", "malloc"), _cycles(rows, "free", "5.2", "free")]
    made += [_every_worker(rows), _steps(rows), _histogram(rows), _capacity(rows)]
    return [each for each in made if each.panels]
