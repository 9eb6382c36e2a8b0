# SPDX-License-Identifier: Apache-2.0
"""A picture as SVG text: shapes by class, whose colours the style sheet gives, and text that stays text."""

from markup import element, style
from styles import standalone_rules


def short(number):
    """A coordinate to a tenth of a pixel."""
    rounded = round(number, 1)
    return str(int(rounded) if rounded == int(rounded) else rounded)


# Marks around a point, of about 7 pixels. `o`: hollow, `x`: of strokes, `m`: filled; `r` and `p`: a stroke of nearly no length,
# whose round or square ends are the mark.
MARKS = {
    "circle": ("r", "h.01"),
    "ring": ("o", "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0"),
    "square": ("p", "h.01"),
    "box": ("o", "m-2.9-2.9h5.8v5.8h-5.8z"),
    "up": ("m", "m0-4.2l4 7h-8z"),
    "triangle": ("o", "m0-4l3.8 6.6h-7.6z"),
    "down": ("m", "m0 4.2l4-7h-8z"),
    "diamond": ("m", "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z"),
    "lozenge": ("o", "m0-4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z"),
    "plus": ("x", "m-4 0h8m-4-4v8"),
    "cross": ("x", "m-3-3l6 6m0-6l-6 6"),
    "star": ("x", "m-4 0h8m-6-3.5l4 7m0-7l-4 7"),
}


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def text(self, x, y, words, kind="", anchor=""):
        kind = " ".join(word for word in (kind, anchor) if word)
        self.parts.append(element("text", words, x=short(x), y=short(y), class_=kind))

    def path(self, data, kind, dash="", opacity=""):
        self.parts.append(element("path", class_=kind, stroke_dasharray=dash, fill_opacity=opacity, d=data))

    def line(self, x1, y1, x2, y2, kind, dash=""):
        self.path(f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}", kind, dash)

    def polyline(self, points, kind, dash=""):
        if len(points) > 1:
            self.path("M" + "L".join(f"{short(x)} {short(y)}" for x, y in points), kind, dash)

    def rectangle(self, x, y, width, height, kind, opacity=""):
        self.path(f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h{short(-width)}z", kind, opacity=opacity)

    def marks(self, points, mark, colour):
        """One path for all points of a series."""
        if not mark or not points:
            return
        kind, shape = MARKS[mark]
        self.path("".join(f"M{short(x)} {short(y)}{shape}" for x, y in points), f"{kind} c{colour}")

    def _drawn(self, *before, **attributes):
        """`before` is what the picture lies on."""
        box = f"0 0 {self.width} {self.height}"
        content = (*before, element("title", self.title), *self.parts)
        return element("svg", *content, viewBox=box, xmlns="http://www.w3.org/2000/svg", **attributes)

    def inline(self):
        """For a page, whose style sheet has the colours."""
        return self._drawn(role="img")

    def standalone(self):
        """As a file of its own, on white."""
        paper = element("rect", width=self.width, height=self.height, fill="#fff")
        return self._drawn(style(standalone_rules()), paper, width=self.width, height=self.height) + "\n"
