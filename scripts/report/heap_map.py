# SPDX-License-Identifier: Apache-2.0
"""Maps of a heap over time: each state is a strip, its memory from left to right; the hue is the size of the blocks that have
the most bytes in a cell, and the deeper it is, the fuller the cell."""

from results import is_number
from styles import OCTAVES
from svg import Picture, short
from text import bytes_text, in_order, share_text

WIDTH, LEFT, STRIP, GAP = 600, 92, 20, 4
COLUMNS = 128
DEPTHS = (0.22, 0.42, 0.62, 0.82, 1)
FIRST_OCTAVE = 4  # 16 B


def hue_of(octave):
    return min(max(octave.bit_length() - 1 - FIRST_OCTAVE, 0), len(OCTAVES) - 1)


def _depth_of(permille):
    return min(permille * len(DEPTHS) // 1000, len(DEPTHS) - 1)


def columns_of(octaves, permilles):
    """(octave, permille) of each column of the strip: of the fullest of its cells, and the mean of their fill."""
    many = max(1, -(-len(octaves) // COLUMNS))
    made = []
    for first in range(0, len(octaves), many):
        cells = list(zip(permilles[first : first + many], octaves[first : first + many]))
        made.append((max(cells)[1], sum(fill for fill, _ in cells) // len(cells)))
    return made


def _draw_strip(picture, y, columns):
    """Runs of equal columns, one path for each hue and depth."""
    width = (WIDTH - LEFT - 56) / len(columns)
    picture.rectangle(LEFT, y, WIDTH - LEFT - 56, STRIP, "z")
    paths = {}
    start = 0
    looks = [(hue_of(octave), _depth_of(fill)) if octave else None for octave, fill in columns]
    for end in range(1, len(looks) + 1):
        if end < len(looks) and looks[end] == looks[start]:
            continue
        if looks[start]:
            run = (end - start) * width
            piece = f"M{short(LEFT + start * width)} {short(y)}h{short(run)}v{STRIP}h{short(-run)}z"
            paths.setdefault(looks[start], []).append(piece)
        start = end
    for (hue, depth), pieces in sorted(paths.items()):
        picture.path("".join(pieces), f"q{hue}", opacity=DEPTHS[depth])


def _draw_legend(picture, y, hues):
    picture.text(8, y + 11, "size mostly in a cell", "s")
    x = 132
    for hue in sorted(hues):
        low = 1 << (hue + FIRST_OCTAVE)
        label = bytes_text(low) + ("+" if hue == len(OCTAVES) - 1 else "")
        picture.rectangle(x, y, 12, 12, f"q{hue}")
        picture.text(x + 15, y + 11, label, "s")
        x += 19 + 6.6 * len(label) + 8
    picture.text(8, y + 29, "how full it is", "s")
    for number, depth in enumerate(DEPTHS):
        x = 132 + number * 60
        picture.rectangle(x, y + 18, 12, 12, "q1", depth)
        picture.text(x + 15, y + 29, f"to {20 * (number + 1)}%", "s")
    picture.rectangle(132 + 5 * 60 + 8, y + 18, 12, 12, "z")
    picture.text(132 + 5 * 60 + 23, y + 29, "no block", "s")


def draw(title, rows):
    """`rows` are those of one run, in the order of their steps."""
    rows = sorted(rows, key=lambda row: in_order(row.parameters.get("step", 0)))
    top = 46
    picture = Picture(WIDTH, top + len(rows) * (STRIP + GAP) + 54, title)
    picture.text(8, 17, title, "h")
    picture.text(LEFT, top - 8, "the heap's memory, from its first byte to its last →", "s")
    picture.text(WIDTH - 8, top - 8, "in use", "s", "end")
    hues = set()
    for number, row in enumerate(rows):
        y = top + number * (STRIP + GAP)
        columns = columns_of(row.lists["cell_octave"], row.lists["cell_permille"])
        hues |= {hue_of(octave) for octave, _ in columns if octave}
        picture.text(LEFT - 8, y + 14, f"step {row.parameters.get('step', number)}", "s", "end")
        _draw_strip(picture, y, columns)
        fill = sum(fill for _, fill in columns) / len(columns) / 1000
        picture.text(WIDTH - 8, y + 14, share_text(round(fill, 3)), "s", "end")
    _draw_legend(picture, top + len(rows) * (STRIP + GAP) + 8, hues)
    return picture


def is_map(row):
    octaves, permilles = row.lists.get("cell_octave"), row.lists.get("cell_permille")
    good = isinstance(octaves, list) and isinstance(permilles, list) and octaves and len(octaves) == len(permilles)
    return bool(good) and all(isinstance(value, int) and value >= 0 for value in octaves + permilles)


def maps_of(rows):
    """(title, rows) of every run that was mapped: an allocator's load on a machine."""
    runs = {}
    for row in rows:
        if is_map(row):
            told = tuple(
                sorted(
                    (name, value)
                    for name, value in row.parameters.items()
                    if name not in ("step", "cell_bytes", "pool_bytes", "slots")
                )
            )
            runs.setdefault((row.subject, row.operation, row.source.backend, told), []).append(row)
    made = []
    for (subject, operation, _, told), members in runs.items():
        level = dict(told).get("level_permille")
        words = f"{subject}, {operation} sizes" + (
            f", asked for {share_text(level / 1000)} of the pool" if is_number(level) else ""
        )
        made.append((words, members))
    return made
