# SPDX-License-Identifier: Apache-2.0
"""Bars by category: groups of a few bars each, with a grey top for what failed; and histograms."""

import textwrap

import scales
from line_chart import BETTER, LETTER, WIDTH
from styles import DASHES, style_of
from svg import Picture
from text import tick_text

PLOT_HEIGHT = 220


class Bars:
    """`groups` are category names; `series` are (name, [(value, top) or None for each group]), where top is the grey end."""

    def __init__(self, title, groups, series, y_kind, y_label, better="", x_label="", logarithmic=True):
        self.title, self.groups, self.series = title, groups, series
        self.y_kind, self.y_label, self.better, self.x_label = y_kind, y_label, better, x_label
        self.logarithmic = logarithmic
        self.uprights = ("", [])  # what vertical lines are, and where: in groups from the first one's middle
        self.places = []  # where in a paper they are from


def _scale(chart, bottom, top):
    values = [end for _, bars in chart.series for bar in bars if bar for end in bar if end > 0]
    if chart.logarithmic:
        return scales.Scale(min(values) / 1.6, max(values) * 1.15, bottom, top, True)
    return scales.Scale(0, max(values) * 1.06, bottom, top, False)


def _draw_legend(picture, chart, y, others):
    x = 8
    for name, _ in chart.series:
        if x + 20 + LETTER * len(name) > WIDTH:
            x, y = 8, y + 15
        colour = style_of(name, others)[0]
        picture.rectangle(x, y - 9, 10, 10, f"f c{colour}")
        picture.text(x + 14, y, name, f"n c{colour}")
        x += 26 + LETTER * len(name)
    return y


def draw(chart, others):
    heading = textwrap.wrap(chart.title, 58) or [""]
    picture = Picture(WIDTH, 0, chart.title)
    for number, line in enumerate(heading):
        picture.text(8, 17 + 16 * number, line, "h")
    y = 20 + 16 * len(heading)
    picture.text(8, y, " · ".join(part for part in (chart.y_label, BETTER[chart.better]) if part), "s")
    y = _draw_legend(picture, chart, y + 17, others) if len(chart.series) > 1 else y
    words, uprights = chart.uprights
    if uprights:
        y += 17
        picture.line(8, y - 4, 22, y - 4, "l c5", DASHES[1])
        picture.text(28, y, words, "n c5")
    top = y + 14
    left, right, bottom = 60, WIDTH - 8, top + PLOT_HEIGHT
    scale = _scale(chart, bottom, top)
    for tick in scales.value_ticks(scale):
        picture.line(left, scale(tick), right, scale(tick), "g")
        picture.text(left - 6, scale(tick) + 4, tick_text(chart.y_kind, tick), "s", "end")
    room = (right - left) / len(chart.groups)
    every = max(1, round(max(len(group) for group in chart.groups) * LETTER / room + 0.6))
    width = room * 0.84 / len(chart.series)
    for number, group in enumerate(chart.groups):
        start = left + room * (number + 0.08)
        for place, (name, bars) in enumerate(chart.series):
            if not bars[number]:
                continue
            value, end = bars[number]
            x = start + place * width
            if end > value:
                picture.rectangle(x, scale(end), width * 0.92, scale(max(value, scale.low)) - scale(end), "e")
            if value > scale.low:
                picture.rectangle(
                    x, scale(value), width * 0.92, bottom - scale(value), f"f c{style_of(name, others)[0]}"
                )
        if number % every == 0:
            picture.text(left + room * (number + 0.5), bottom + 16, group, "s", "middle")
    for place in uprights:
        x = left + room * (place + 0.5)
        picture.line(x, top, x, bottom, "l c5", DASHES[1])
    picture.line(left, bottom, right, bottom, "a")
    picture.text((left + right) / 2, bottom + 33, chart.x_label, "s", "middle")
    picture.height = round(bottom + 42)
    return picture
