"""A picture as SVG text: shapes by class, whose colours the style sheet gives, and text that stays text."""

from styles import standalone_rules
from text import escaped


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
}


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def text(self, x, y, words, kind="", anchor=""):
        kind = " ".join(word for word in (kind, anchor) if word)
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{short(x)}" y="{short(y)}"{kind}>{escaped(words)}</text>')

    def path(self, data, kind, dash="", title=""):
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        end = f"><title>{escaped(title)}</title></path>" if title else "/>"
        self.parts.append(f'<path class="{kind}"{dash} d="{data}"{end}')

    def line(self, x1, y1, x2, y2, kind, dash=""):
        self.path(f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}", kind, dash)

    def polyline(self, points, kind, dash=""):
        if len(points) > 1:
            self.path("M" + "L".join(f"{short(x)} {short(y)}" for x, y in points), kind, dash)

    def rectangle(self, x, y, width, height, kind, title=""):
        self.path(f"M{short(x)} {short(y)}h{short(width)}v{short(height)}h{short(-width)}z", kind, title=title)

    def marks(self, points, mark, colour):
        """One path for all points of a series."""
        if not mark or not points:
            return
        kind, shape = MARKS[mark]
        self.path("".join(f"M{short(x)} {short(y)}{shape}" for x, y in points), f"{kind} c{colour}")

    def _body(self):
        return f"<title>{escaped(self.title)}</title>" + "".join(self.parts)

    def inline(self):
        """For a page, whose style sheet has the colours."""
        box = f"0 0 {self.width} {self.height}"
        return f'<svg viewBox="{box}" role="img" xmlns="http://www.w3.org/2000/svg">{self._body()}</svg>'

    def standalone(self):
        """As a file of its own, on white."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}"><style>{standalone_rules()}</style>'
            f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>{self._body()}</svg>\n'
        )
