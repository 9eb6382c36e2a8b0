# SPDX-License-Identifier: Apache-2.0
"""Maps of a heap over time: each state is a strip, its memory from left to right; the hue is the size of the blocks that have
the most bytes in a cell, and the deeper it is, the fuller the cell."""

import charts
from results import is_number
from text import bytes_text, in_order, share_text

COLUMNS, STRIP, WIDTH, LEFT = 128, 24, 600, 84
DEPTHS = (0.22, 0.42, 0.62, 0.82, 1)
# A colour for each octave from 16 B on, the last for all above.
OCTAVES = ("#332288", "#0077bb", "#33a8d8", "#009988", "#b8a000", "#e07b28", "#cc3311", "#aa3377", "#6b4a2a")


def hue_of(octave):
    return min(max(octave.bit_length() - 5, 0), len(OCTAVES) - 1)


def columns_of(octaves, permilles):
    """(octave, permille) of each column of the strip: of the fullest of its cells, and the mean of their fill."""
    many = max(1, -(-len(octaves) // COLUMNS))
    made = []
    for first in range(0, len(octaves), many):
        cells = list(zip(permilles[first : first + many], octaves[first : first + many]))
        made.append((max(cells)[1], sum(fill for fill, _ in cells) // len(cells)))
    return made


def runs_of(columns):
    """{(hue, depth): [(first column, columns)]} of equal columns side by side that have blocks."""
    looks = [(hue_of(octave), min(fill * len(DEPTHS) // 1000, len(DEPTHS) - 1)) if octave else None for octave, fill in columns]
    made, start = {}, 0
    for end in range(1, len(looks) + 1):
        if end == len(looks) or looks[end] != looks[start]:
            made.setdefault(looks[start], []).append((start, end - start))
            start = end
    made.pop(None, None)
    return made


def draw(title, rows):
    """`rows` are those of one run."""
    rows = sorted(rows, key=lambda row: in_order(row.parameters.get("step", 0)))
    note = "the heap's memory, from its first byte to its last →, the deeper the fuller; and how much is in use"
    picture = charts.Picture(title, note, STRIP * len(rows), LEFT, WIDTH - 60, WIDTH)
    axes, hues = picture.axes, set()
    axes.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xticks=[], yticks=[])
    for number, row in enumerate(rows):
        columns = columns_of(row.lists["cell_octave"], row.lists["cell_permille"])
        for (hue, depth), runs in sorted(runs_of(columns).items()):
            hues.add(hue)
            places = [(start / len(columns), many / len(columns)) for start, many in runs]
            axes.broken_barh(places, (number - 0.42, 0.84), color=OCTAVES[hue], alpha=DEPTHS[depth], linewidth=0, clip_on=False)
        y = picture.place(0, number)[1] + 4
        picture.text(LEFT - 8, y, f"step {row.parameters.get('step', number)}", charts.SOFT, ha="right")
        fill = share_text(round(sum(fill for _, fill in columns) / len(columns) / 1000, 3))
        picture.text(WIDTH - 8, y, fill, charts.SOFT, ha="right")
        picture.point(0.5, number, f"step {row.parameters.get('step', number)}: {fill} in use")
    picture.text(8, picture.height - 14, "size mostly in a cell", charts.SOFT)
    for number, hue in enumerate(sorted(hues)):
        label = f"■ {bytes_text(16 << hue)}{'+' * (hue == len(OCTAVES) - 1)}"
        picture.text(140 + 51 * number, picture.height - 14, label, OCTAVES[hue])
    return picture


def is_map(row):
    octaves, permilles = row.lists.get("cell_octave"), row.lists.get("cell_permille")
    good = isinstance(octaves, list) and isinstance(permilles, list) and octaves and len(octaves) == len(permilles)
    return bool(good) and all(isinstance(value, int) and 0 <= value <= 1 << 63 for value in octaves + permilles)


def maps_of(rows):
    """(title, rows) of every run that was mapped: an allocator's load on a machine."""
    runs = {}
    for row in filter(is_map, rows):
        follows = ("step", "cell_bytes", "pool_bytes", "slots")
        told = tuple(sorted((name, value) for name, value in row.parameters.items() if name not in follows))
        runs.setdefault((row.subject, row.operation, row.source.where, told), []).append(row)
    for (subject, operation, _, told), members in runs.items():
        level = dict(told).get("level_permille")
        share = f", asked for {share_text(level / 1000)} of the pool" if is_number(level) else ""
        yield f"{subject}, {operation} sizes{share}", members
