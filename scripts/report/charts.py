# SPDX-License-Identifier: Apache-2.0
"""Draws charts with matplotlib, and puts its SVG into the page: colours become variables of the style sheet, and each point gets
an element that shows its value under the mouse and on keyboard focus."""

import io
import logging
import math
import re
import textwrap
import types
import warnings

logging.disable(logging.WARNING)  # matplotlib tells of caches and fonts, which are nothing to a reader
import matplotlib  # noqa: E402
from jinja2 import Environment  # noqa: E402
from markupsafe import Markup  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator  # noqa: E402
from panels import BASELINE, DEFAULT, FAMILIES, family_of, title_of  # noqa: E402
from text import FORMATS, printable, tick_text  # noqa: E402

matplotlib.rcdefaults()
matplotlib.rcParams.update(
    {"font.family": "DejaVu Sans", "font.size": 11.5, "svg.fonttype": "none", "text.parse_math": False, "figure.dpi": 72}
)
WIDTH, PLOT, LETTER, LEFT = 440, 230, 6.6, 58  # pixels; of a chart, its axes' height, a small letter, the axes' left end
MOST_LINES, MOST_ROWS, MOST_MARKED = 6, 12, 40
REFUSED, REFUSES = " †", "† hollow: refused calls"
INK, SOFT, RULE, PAPER = "#1a1a1a", "#555555", "#dcdcdc", "#ffffff"
# Okabe's and Ito's colours, darkened so that thin lines show on white: each family's, on a light and on a dark page.
COLOURS = dict(zip(FAMILIES, (
    ("#0a5fa8", "#5fb0f0"), ("#c8500a", "#f0904a"), ("#00785a", "#35c79a"), ("#a8327a", "#e58cc0"), ("#8a6a00", "#e0c040"),
    ("#2b2b2b", "#f0f0f0"), ("#2a80b6", "#9ad8ff"), ("#6b3fa0", "#b79af0"), ("#7a4a20", "#d0a070"), ("#6a6a6a", "#a8a8a8"),
)))  # fmt: skip
BLUE, RED = COLOURS[DEFAULT][0], COLOURS["scatter"][0]
GREY = COLOURS["ring_buffer"][0]
THEMES = {"ink": (INK, "#ececec"), "soft": (SOFT, "#b4b4b4"), "rule": (RULE, "#3a3f46"), "paper": (PAPER, "#15181c")}
THEMES.update((f"c{number}", pair) for number, pair in enumerate(COLOURS.values()))
MARKS, DASHES = "os^Dv*", ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
BETTER = {"lower": "↓ lower is better", "higher": "↑ higher is better", "": ""}
_POINTS = Environment(autoescape=True).from_string(
    '<g class="p">{% for p in points %}<circle tabindex="0" cx="{{ p[0] }}" cy="{{ p[1] }}" r="8"/><text x="{{ p[0] }}" '
    'y="{{ (p[1] - 12)|round(1) }}"{% if p[2] %} text-anchor="{{ p[2] }}"{% endif %}>{{ p[3] }}</text>{% endfor %}</g></svg>'
)
# What matplotlib writes and the page has otherwise or not at all. Within tags: sizes, the font, defaults, identities of what is not a
# mark, digits beyond a tenth of a pixel, and spaces. Between them: comments, what is empty, and the style of each mark of a line, which
# their group can have.
_IN_TAGS = (
    (r" (?:width|height)=\"[\d.]+pt\"|font: 11.5px 'DejaVu Sans'; |stroke-line(?:cap: square|join: miter);? ?| xmlns:xlink=\"[^\"]*\"", ""),
    (r"stroke-dashoffset: 0; |(?:; )?text-anchor: start| transform=\"rotate\(-0[^\"]*\"| id=\"(?!m[0-9a-f]{10}\")[^\"]*\"", ""),
    (r"(?<=\d)\.(\d)\d+", r".\1"),
    (r"\s+", " "),
    (r"(?<=[MLCz]) | (?=[MLCz\"]|/>)|(?<=[:;,]) |;(?= ?\")| style=\"\"|(?<=<use )xlink:", ""),
)
_BETWEEN = (
    (r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", ""),
    (r">\s+<", "><"),
    (r"<g></g>|<g/>|<defs></defs>|<defs/>", ""),
    (r"<g>(<use [^>]*?)( style=\"[^\"]*\")/>", r"<g\2>\1/>"),
    (r"(<use [^>]*?) style=\"[^\"]*\"/>", r"\1/>"),
)


def _rewritten(text, rules):
    for pattern, by in rules:
        text = re.sub(pattern, by, text, flags=re.S)
    return text


class Picture:
    """A figure, and the points on it whose values can be read: (x, y in pixels, what it is)."""

    def __init__(self, title, note, height, left=LEFT, right=WIDTH - 10, width=WIDTH):
        self.title, self.width, self.points = printable(title), width, []
        heading = textwrap.wrap(self.title, width // 8) or [""]
        top = 16 * len(heading) + 30
        self.height = top + height + 44
        self.figure = Figure((width / 72, self.height / 72))
        self.axes = self.figure.add_axes([left / width, 44 / self.height, (right - left) / width, height / self.height])
        self.axes.patch.set_visible(False)
        self.axes.spines[["top", "left", "right"]].set_visible(False)
        self.axes.spines["bottom"].set_color(SOFT)
        self.axes.tick_params(colors=SOFT, length=0, which="both")
        self.axes.set_axisbelow(True)
        for number, line in enumerate(heading):
            self.text(8, 18 + 16 * number, line, INK, weight="bold")
        self.text(8, top - 12, note, SOFT)

    def text(self, x, y, words, colour, **more):
        """Words at a place in pixels from the top left."""
        self.figure.text(x / self.width, 1 - y / self.height, printable(words), color=colour, **more)

    def place(self, x, y):
        """The pixels of a place of the axes."""
        right, up = self.axes.transData.transform((x, y))
        return round(float(right), 1), round(self.height - float(up), 1)

    def point(self, x, y, words):
        x, y = self.place(x, y)
        anchor = "start" if x < self.width / 3 else ""
        if x > self.width / 1.6:
            anchor = "end"
        self.points.append((x, y, anchor, printable(words)))

    def saved(self, form, salt=""):
        to = io.BytesIO()
        with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": salt}):
            warnings.simplefilter("ignore")  # of letters that the font has not
            dated = {"Date": None} if form == "svg" else {}
            self.figure.patch.set_visible(form == "png")
            self.figure.savefig(to, format=form, dpi=72 if form == "svg" else 144, metadata=dated)
        return to.getvalue()

    def inline(self, name):
        """The SVG as it stands in a page; `name` makes its identities unique."""
        svg = self.saved("svg", name).decode()
        svg = svg[svg.index("<svg") :]
        for key, (light, _) in THEMES.items():
            svg = svg.replace(light, f"var(--{key})")
        svg = _rewritten(re.sub("<[^!>][^>]*>", lambda tag: _rewritten(tag[0], _IN_TAGS), svg), _BETWEEN).strip()
        label = Markup('role="group" aria-label="{}" ').format(self.title)
        return Markup(svg.removesuffix("</svg>").replace("<svg ", f"<svg {label}", 1) + _POINTS.render(points=self.points))


def _styles(names):
    """{name: (colour, mark, dash)}: a family's members share a colour and differ in mark and dash; unknown names take what is left."""
    made, members = {}, {}
    left = [family for family in FAMILIES if family not in map(family_of, names)]
    for name in names:
        family = family_of(name) if family_of(name) in COLOURS else (left.pop(0) if left else FAMILIES[-1])
        number = members[family] = members.get(family, -1) + 1
        made[name] = COLOURS[family][0], MARKS[(FAMILIES.index(family) + number) % len(MARKS)], DASHES[number % len(DASHES)]
    if BASELINE in made:
        made[BASELINE] = GREY, ".", DASHES[2]
    return made


def value_axis(axis, kind, values):
    """Logarithmic, but for shares, which begin at 0. Returns the values that can be drawn."""
    positive = [value for value in values if value > 0]
    if kind == "share" or not positive:
        low, high, log = 0, max([1e-9, *values]) * 1.04, False
        axis.set_major_locator(MaxNLocator(5))
    else:
        low, high, log = math.log10(min(positive)), math.log10(max(positive)), True
        room = 0.2 if high - low < 0.2 else (high - low) * 0.04
        decades = high - low + 2 * room
        low, high = 10 ** (low - room), 10 ** (high + room)
        axis._set_axes_scale("log")
        steps = (1, 2, 5) if decades < 2.2 else (1,)
        axis.set_major_locator(MaxNLocator(5) if decades < 0.7 else LogLocator(10, steps, numticks=7))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(kind, value)))
    (axis.axes.set_ylim if axis.axis_name == "y" else axis.axes.set_xlim)(low, high)
    return lambda value: value is not None and (value > 0 or not log)


def _argument_axis(picture, panel, xs):
    axes = picture.axes
    if panel.x_log and xs[0] > 0:
        axes.set_xscale("log", base=2)
    low, high = axes.transScale.transform([(xs[0], 1), (xs[-1], 1)])[:, 0]
    room = (high - low) * 0.03
    axes.set_xlim(*axes.transScale.inverted().transform([(low - room, 1), (high + room, 1)])[:, 0])
    words = FORMATS[panel.x_kind]
    ticks = [xs[-1]]
    for x in xs[-2::-1]:  # those of the measured values whose names have room
        wide = LETTER * (len(words(x)) + len(words(ticks[-1]))) / 2 + 6
        if picture.place(ticks[-1], 1)[0] - picture.place(x, 1)[0] > wide:
            ticks.append(x)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words(min(xs, key=lambda x: abs(x - value)))))
    axes.set_xlabel(printable(panel.x_label), color=SOFT)


def spread_out(wanted, room, low, high):
    """Positions near those wanted (ascending), `room` apart, within [low, high] as far as they fit."""
    placed = []
    for position in wanted:
        placed.append(max(position, placed[-1] + room) if placed else max(position, low))
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], placed[index + 1] - room if index + 1 < len(placed) else high)
    return placed


def _told(panel, name, point):
    refusal = f", {panel.refusal(point)}" if panel.refused(point) else ""
    value, x = FORMATS[panel.y_kind], f", {FORMATS[panel.x_kind](point.x)}" if point.x is not None else ""
    ends = (value(point.low), value(point.high)) if point.low is not None and point.low < point.high else ()
    unit = ends and " " + ends[1].partition(" ")[2]
    spread = f" ({ends[0].removesuffix(unit)} to {ends[1]})" if ends else ""
    return f"{name}{x}: {value(point.y)}{spread}{refusal}"


def _label(panel, each, titles):
    """A line's name, marked where it has calls refused."""
    return titles.get(each.name, title_of(each.name)) + REFUSED * any(map(panel.refused, each.points))


def _mark(axes, panel, xs, ys, points, colour, mark, **more):
    """The marks of a line; hollow where calls were refused."""
    for hollow in (False, True):
        places = [place for place, point in zip(zip(xs, ys), points) if panel.refused(point) == hollow]
        axes.plot(*(zip(*places) if places else ((), ())), color=colour, marker=mark, markerfacecolor=PAPER if hollow else colour,
                  linestyle="", clip_on=False, **more)  # fmt: skip


def _lines(panel, chosen, note, titles):
    labels = [_label(panel, each, titles) for each in chosen] + [titles.get(BASELINE, label) for label, _ in panel.baselines]
    right = WIDTH - min(165, max(map(len, labels)) * LETTER + 20)
    picture = Picture(panel.title, note, PLOT, right=right)
    axes, xs = picture.axes, sorted({point.x for each in chosen for point in each.points})
    values = [value for each in chosen for point in each.points for value in (point.y, point.low, point.high) if value is not None]
    drawable = value_axis(axes.yaxis, panel.y_kind, values + [value for _, value in panel.baselines])
    _argument_axis(picture, panel, xs)
    axes.grid(axis="y", color=RULE, linewidth=1, clip_on=False)
    ends, styles = [], _styles([each.name for each in chosen])
    for label, value in panel.baselines:
        if drawable(value):
            axes.axhline(value, color=GREY, linestyle=DASHES[2], clip_on=False)
            ends.append((picture.place(xs[-1], value)[1], titles.get(BASELINE, label), GREY))
    for each in reversed(chosen):  # the first lies on top
        colour, mark, dash = styles[each.name]
        points = [point for point in each.points if drawable(point.y)]
        if not points:
            continue
        xs_of, ys_of = [point.x for point in points], [point.y for point in points]
        axes.plot(xs_of, ys_of, color=colour, linestyle=dash, linewidth=2.6 if each.name == DEFAULT else 1.6, clip_on=False)
        if len(points) <= MOST_MARKED:
            _mark(axes, panel, xs_of, ys_of, points, colour, mark, markersize=5.5)
        bars = [point for point in points if drawable(point.low)]
        bars = [point for point in bars if picture.place(1, point.low)[1] - picture.place(1, point.high)[1] > 7]  # else the mark hides it
        ends_of = [end for point in bars for end in ((point.x, point.low), (point.x, point.high), (point.x, math.nan))]
        axes.plot(*(zip(*ends_of) if bars else ((), ())), color=colour, linewidth=1.2, clip_on=False)
        for point in points:
            picture.point(point.x, point.y, _told(panel, titles.get(each.name, title_of(each.name)), point))
        ends.append((picture.place(points[-1].x, points[-1].y)[1], _label(panel, each, titles), colour))
    ends.sort()
    top = picture.height - 44 - PLOT
    for y, (_, label, colour) in zip(spread_out([end[0] for end in ends], 14, top + 4, top + PLOT), ends):
        picture.text(right + 8, y + 4, label, colour)
    return picture


def _rows(panel, chosen, note, titles):
    """Where there is nothing to draw a line over: a row for each name, a mark at its value, a bar over its spread."""
    value = FORMATS[panel.y_kind]
    labels = [_label(panel, each, titles) for each in chosen]
    left = min(190, max(map(len, labels)) * LETTER + 16)
    picture = Picture(panel.title, note.replace("↓", "←").replace("↑", "→"), 20 * len(chosen), left, WIDTH - 76)
    axes, styles = picture.axes, _styles([each.name for each in chosen])
    points = [each.points[0] for each in chosen]
    values = [end for point in points for end in (point.y, point.low, point.high) if end is not None]
    drawable = value_axis(axes.xaxis, panel.y_kind, values + [baseline for _, baseline in panel.baselines])
    axes.set_ylim(len(chosen) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(axis="x", color=RULE, linewidth=1, clip_on=False)
    for label, baseline in panel.baselines:
        if drawable(baseline):
            axes.axvline(baseline, color=GREY, linestyle=DASHES[2], clip_on=False)
            picture.text(picture.place(baseline, 0)[0], picture.height - 8, label, GREY, ha="center")
    for number, (each, point) in enumerate(zip(chosen, points)):
        colour, mark, _ = styles[each.name]
        y = picture.height - 44 - 20 * (len(chosen) - number) + 14
        picture.text(left - 8, y, labels[number], colour, ha="right")
        picture.text(WIDTH - 8, y, value(point.y), SOFT, ha="right")
        if drawable(point.low) and point.low < point.high:
            axes.plot([point.low, point.high], [number] * 2, color=colour, linewidth=2.5, clip_on=False)
        if drawable(point.y):
            _mark(axes, panel, [point.y], [number], [point], colour, mark, markersize=6)
            picture.point(point.y, number, _told(panel, titles.get(each.name, title_of(each.name)), point))
    return picture


def draw(panel, most_lines=MOST_LINES, titles=types.MappingProxyType({})):
    """The picture of a panel; `titles` are names of allocators on this one."""
    most = most_lines - len(panel.baselines) if panel.is_lines() else MOST_ROWS
    chosen = panel.ranked()[:most]
    hidden = len(panel.series) - len(chosen)
    refuses = any(panel.refused(point) for each in chosen for point in each.points)
    note = " · ".join(part for part in (panel.y_label, BETTER[panel.better], REFUSES * refuses) if part)
    picture = (_lines if panel.is_lines() else _rows)(panel, chosen, note, titles)
    if hidden:
        picture.text(WIDTH - 8, picture.height - 14, f"{hidden} more in the table", SOFT, ha="right")
    return picture
