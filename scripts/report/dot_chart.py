# SPDX-License-Identifier: Apache-2.0
"""Where there is nothing to draw a line over: a row for each name, a mark at its median, a bar over its spread; best first."""

import textwrap

import scales
from line_chart import BETTER, LETTER, WIDTH
from styles import style_of
from svg import Picture
from text import FORMATS, tick_text

ROW = 19


def _sorted_series(panel):
    return sorted(panel.series, key=lambda each: each.points[0].y, reverse=panel.better == "higher")


def _scale_of(panel, left, right):
    values = [
        value
        for each in panel.series
        for value in (each.points[0].y, each.points[0].low, each.points[0].high)
        if value is not None
    ]
    return scales.value_scale(values + [value for _, value in panel.floors], left, right, panel.y_kind)


def _draw_row(picture, panel, each, y, x, right, others):
    colour, mark, _ = each.style or style_of(each.name, others)
    point = each.points[0]
    picture.text(x.start - 12, y + 4, each.label, f"n c{colour}", "end")
    picture.line(x.start, y, x.end, y, "g")
    if point.low is not None and (point.low > 0 or not x.logarithmic):
        picture.line(x(point.low), y, x(point.high), y, f"l b c{colour}")
    if point.y > 0 or not x.logarithmic:
        picture.marks([(x(point.y), y)], mark or "circle", colour)
    picture.text(right, y + 4, FORMATS[panel.y_kind](point.y), "s", "end")


def draw(panel, others):
    rows = _sorted_series(panel)
    heading = textwrap.wrap(panel.title, 58) or [""]
    top = 20 + 16 * len(heading) + 10
    left = min(190, max(len(each.label) for each in rows) * LETTER + 22)
    widest = max(len(FORMATS[panel.y_kind](each.points[0].y)) for each in rows) * LETTER
    x = _scale_of(panel, left, WIDTH - widest - 22)
    bottom = top + ROW * len(rows)
    picture = Picture(WIDTH, bottom + 34 + (14 if panel.floors else 0), panel.title)
    for number, line in enumerate(heading):
        picture.text(8, 17 + 16 * number, line, "h")
    better = BETTER[panel.better].replace("↓ lower", "← lower").replace("↑ higher", "→ higher")
    picture.text(8, top - 10, " · ".join(part for part in (panel.y_label, better) if part), "s")
    for tick in scales.value_ticks(x, 4):
        picture.line(x(tick), top, x(tick), bottom, "g")
        picture.text(x(tick), bottom + 16, tick_text(panel.y_kind, tick), "s", "middle")
    for label, value in panel.floors:
        if value > 0:
            picture.line(x(value), top, x(value), bottom + 20, "l c9", "3 3")
            picture.text(x(value), bottom + 31, label, "n c9", "middle")
    for number, each in enumerate(rows):
        _draw_row(picture, panel, each, top + ROW * number + ROW / 2, x, WIDTH - 8, others)
    return picture
