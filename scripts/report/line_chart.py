# SPDX-License-Identifier: Apache-2.0
"""Lines over a parameter, each with its name at its end: medians, marks, and the spread of repetitions."""

import textwrap

import scales
from styles import DASHES, style_of
from svg import Picture, short
from text import FORMATS, tick_text

WIDTH, PLOT_HEIGHT = 440, 236
LETTER = 6.6  # pixels of a small letter
MOST_MARKED = 40  # points of a line that has marks
BETTER = {"lower": "↓ lower is better", "higher": "↑ higher is better", "": ""}


class Point:
    def __init__(self, x, y, low=None, high=None, row=None):
        self.x, self.y, self.low, self.high, self.row = x, y, low, high, row


class Series:
    """A line; of a style whose dash is None, marks alone."""

    def __init__(self, name, points, label=None, style=None):
        self.name, self.points, self.style = name, points, style
        self.label = name if label is None else label


class Panel:
    """What one chart shows."""

    def __init__(
        self, title, series, y_kind, y_label, better="", x_label="", x_kind="count", x_log=True, fills=False
    ):  # fmt: skip
        self.title, self.series = title, series
        self.y_kind, self.y_label, self.better = y_kind, y_label, better
        self.x_label, self.x_kind, self.x_log = x_label, x_kind, x_log
        self.fills = fills  # calls are refused by design
        self.floors = []  # (label, value) of horizontal lines
        self.places = []  # where in a paper numbers of the chart are from
        self.group, self.shared = "", {}  # the operation, and the parameters that all points have in common

    def xs(self):
        return sorted({point.x for each in self.series for point in each.points})

    def rows(self):
        return [point.row for each in self.series for point in each.points if point.row is not None]


class _Frame:
    """The plot's place within the picture, and its scales."""

    def __init__(self, panel, top):
        names = [each.label for each in panel.series] + [label for label, _ in panel.floors]
        self.left, self.top = 60, top
        self.right = WIDTH - min(165, max(len(name) for name in names) * LETTER + 22)
        # Lines that end close to one another need room for their names.
        self.bottom = top + max(PLOT_HEIGHT, 13 * len(names) + 6)
        ys = [
            value
            for each in panel.series
            for point in each.points
            for value in (point.y, point.low, point.high)
            if value is not None
        ]
        ys += [value for _, value in panel.floors]
        self.y = scales.value_scale(ys, self.bottom, self.top, panel.y_kind)
        xs = panel.xs()
        self.x = scales.argument_scale(xs, self.left + 10, self.right - 10, panel.x_log and xs[0] > 0)


def _draw_axes(picture, panel, frame):
    for tick in scales.value_ticks(frame.y):
        y = frame.y(tick)
        picture.line(frame.left, y, frame.right, y, "g")
        picture.text(frame.left - 6, y + 4, tick_text(panel.y_kind, tick), "s", "end")
    name = FORMATS[panel.x_kind]
    values = panel.xs()
    room = max(len(name(value)) for value in values) * LETTER + 8 if len(values) <= 24 else 46
    for tick in scales.argument_ticks(frame.x, values, room):
        x = frame.x(tick)
        picture.line(x, frame.bottom, x, frame.bottom + 4, "a")
        picture.text(x, frame.bottom + 17, name(tick), "s", "middle")
    picture.line(frame.left, frame.bottom, frame.right, frame.bottom, "a")
    picture.text((frame.left + frame.right) / 2, frame.bottom + 33, panel.x_label, "s", "middle")


def _draw_spread(picture, frame, points, colour):
    ends = []
    for point in points:
        if point.low is None or (frame.y.logarithmic and point.low <= 0):
            continue
        top, bottom = frame.y(point.high), frame.y(point.low)
        if bottom - top > 7:  # else the mark hides it
            x = frame.x(point.x)
            ends.append(f"M{short(x - 2.5)} {short(top)}h5m-2.5 0V{short(bottom)}m-2.5 0h5")
    if ends:
        picture.path("".join(ends), f"w c{colour}")


def _visible(frame, points):
    return [point for point in points if not frame.y.logarithmic or point.y > 0]


def _draw_lines(picture, panel, frame, others):
    """Returns the ends of the lines: (y, x of the last point, label, colour)."""
    ends = []
    for label, value in panel.floors:
        if frame.y.logarithmic and value <= 0:
            continue
        picture.line(frame.left, frame.y(value), frame.right, frame.y(value), "l c9", "3 3")
        ends.append((frame.y(value), frame.right, label, 9))
    for each in reversed(panel.series):  # the first lies on top
        colour, mark, dash = each.style or style_of(each.name, others)
        points = _visible(frame, each.points)
        if not points:
            continue
        places = [(frame.x(point.x), frame.y(point.y)) for point in points]
        bold = " b" if each.name == "slab_bitmap" else ""
        if dash is not None:
            picture.polyline(places, f"l{bold} c{colour}", DASHES[dash])
        _draw_spread(picture, frame, points, colour)
        if len(points) <= MOST_MARKED:
            picture.marks(places, mark, colour)
        ends.append((places[-1][1], places[-1][0], each.label, colour))
    return ends


def _draw_names(picture, frame, ends):
    ends.sort()
    ends = [end for end in ends if end[2]]
    places = scales.spread_out([end[0] for end in ends], 13, frame.top + 4, frame.bottom)
    for place, (y, x, label, colour) in zip(places, ends):
        picture.polyline(
            [(x + 5, y), (frame.right + 2, y if x > frame.right - 20 else place), (frame.right + 9, place)],
            f"k c{colour}",
        )
        picture.text(frame.right + 12, place + 4, label, f"n c{colour}")


def draw(panel, others):
    """The picture of a panel. `others` has the styles given so far to names that no style is fixed for."""
    heading = textwrap.wrap(panel.title, 58) or [""]
    top = 20 + 16 * len(heading) + 12
    frame = _Frame(panel, top)
    picture = Picture(WIDTH, round(frame.bottom + 42), panel.title)
    for number, line in enumerate(heading):
        picture.text(8, 17 + 16 * number, line, "h")
    picture.text(8, top - 12, " · ".join(part for part in (panel.y_label, BETTER[panel.better]) if part), "s")
    _draw_axes(picture, panel, frame)
    _draw_names(picture, frame, _draw_lines(picture, panel, frame, others))
    return picture
