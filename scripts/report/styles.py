# SPDX-License-Identifier: Apache-2.0
"""How pictures and page look: a colour, a mark and a dash for each allocator, and the style sheets.

Nothing is told by colour alone: every line ends at its name, and has marks of its own shape. The colours are those of Okabe
and Ito, darkened so that thin lines show on white paper. Allocators of one family share a colour and differ in dash and mark.
"""

# Light and dark, by number.
COLOURS = (
    ("#0a5fa8", "#5fb0f0"),  # 0 blue
    ("#c8500a", "#f0904a"),  # 1 vermilion
    ("#00785a", "#35c79a"),  # 2 green
    ("#a8327a", "#e58cc0"),  # 3 purple red
    ("#8a6a00", "#e0c040"),  # 4 ochre
    ("#2b2b2b", "#f0f0f0"),  # 5 black
    ("#3a9ad0", "#9ad8ff"),  # 6 sky
    ("#6b3fa0", "#b79af0"),  # 7 violet
    ("#7a4a20", "#d0a070"),  # 8 brown
    ("#6a6a6a", "#a8a8a8"),  # 9 grey
)
DASHES = ("", "6 3", "2 2.5", "8 2 2 2")

# Colour, mark, dash.
KNOWN = {
    "slab_bitmap": (0, "circle", 0), "slab_bitmap_coalesced": (0, "ring", 1), "host_memory": (0, "square", 2),
    "overflow": (0, "diamond", 3),
    "scatter": (1, "square", 0), "scatter_coalesced": (1, "box", 1), "scatter_frames": (1, "diamond", 2),
    "halloc": (2, "up", 0), "halloc_split": (2, "triangle", 1),
    "throughput": (3, "diamond", 0), "throughput_wide": (3, "lozenge", 1), "throughput_8": (3, "plus", 2),
    "throughput_wide_2048": (3, "cross", 3),
    "ualloc": (4, "down", 0), "tbuddy": (8, "plus", 0),
    "toolkit": (5, "cross", 0),
    "rw": (6, "ring", 0), "rw_bitmap": (6, "box", 1), "corw": (6, "diamond", 2),
    "rw_256": (6, "ring", 0), "rw_bitmap_256": (6, "box", 1), "corw_256": (6, "diamond", 2),
    "rw_malloc": (7, "triangle", 0), "rw_malloc_64": (7, "up", 1), "rw_malloc_256": (7, "down", 2),
    "ring_buffer": (9, "lozenge", 0),
    "queue_pages": (5, "up", 0), "queue_chunks": (5, "box", 1), "queue_pages_virtual": (5, "down", 2),
    "queue_chunks_virtual": (5, "diamond", 3),
    "null": (9, "", 2), "packed": (9, "", 2), "direct": (9, "cross", 2), "direct_warp": (5, "cross", 1),
    "one_piece": (5, "plus", 1), "queue": (5, "cross", 1),
    "counting_semaphore": (1, "square", 0), "bulk_semaphore": (0, "circle", 0),
    "spin_mutex": (1, "square", 0), "collective_mutex": (0, "circle", 0),
    "each_lane": (1, "square", 0), "each_warp": (0, "circle", 0), "own_word": (2, "up", 0),
}  # fmt: skip
MARKS_OF_OTHERS = ("circle", "square", "up", "diamond", "down", "ring", "box", "triangle", "lozenge", "plus", "cross")

# Sizes of blocks in maps of a heap: a colour for each octave from 16 B on, the last for all above.
OCTAVES = ("#332288", "#0077bb", "#33a8d8", "#009988", "#b8a000", "#e07b28", "#cc3311", "#aa3377", "#6b4a2a")


def style_of(name, others):
    """(colour, mark, dash) of a series; names that are not known get theirs in the order in which they come, in `others`."""
    if name in KNOWN:
        return KNOWN[name]
    place = others.setdefault(name, len(others))
    return place % (len(COLOURS) - 1), MARKS_OF_OTHERS[place % len(MARKS_OF_OTHERS)], place // 3 % len(DASHES)


def colour_rules(theme):
    rules = [f".c{number}{{--c:{pair[theme]}}}" for number, pair in enumerate(COLOURS)]
    return "".join(rules)


# The variables of light and of dark.
LIGHT = {
    "ink": "#1a1a1a",
    "soft": "#555",
    "paper": "#fff",
    "rule": "#dcdcdc",
    "tint": "#f4f6f8",
    "best": "#dff0e4",
    "warn": "#fff3d6",
    "link": "#0a5fa8",
}
DARK = {
    "ink": "#ececec",
    "soft": "#b4b4b4",
    "paper": "#15181c",
    "rule": "#3a3f46",
    "tint": "#1f242a",
    "best": "#163d2b",
    "warn": "#453a16",
    "link": "#7cc0ff",
}

# Of pictures; var() is replaced where a picture stands alone, since not every program knows it.
PICTURE = """
svg text{font-family:system-ui,"DejaVu Sans",sans-serif;font-size:12px;fill:var(--ink)}
svg .s{fill:var(--soft);font-size:11.5px}svg .h{font-weight:600;font-size:13px}
svg .g{stroke:var(--rule);stroke-width:1;fill:none}svg .a{stroke:var(--soft);stroke-width:1;fill:none}
svg .l{stroke:var(--c);stroke-width:1.7;fill:none;stroke-linejoin:round}svg .l.b{stroke-width:2.8}
svg .w{stroke:var(--c);stroke-width:1.1;fill:none;opacity:.75}svg .k{stroke:var(--c);stroke-width:.8;fill:none;opacity:.55}
svg .m{fill:var(--c);stroke:var(--paper);stroke-width:.8}svg .o{fill:var(--paper);stroke:var(--c);stroke-width:1.5}
svg .r{stroke:var(--c);stroke-width:7;stroke-linecap:round;fill:none}svg .p{stroke:var(--c);stroke-width:6;stroke-linecap:square;fill:none}
svg .x{stroke:var(--c);stroke-width:1.8;fill:none}svg .n{fill:var(--c)}svg .f{fill:var(--c);opacity:.85}
svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg .e{fill:var(--rule)}svg .z{fill:var(--tint)}
"""


def octave_rules():
    return "".join(f".q{number}{{fill:{colour}}}" for number, colour in enumerate(OCTAVES))


def standalone_rules():
    """The rules of a picture that stands alone, on white, with no variable."""
    rules = PICTURE.replace("svg ", "")
    for name, value in LIGHT.items():
        rules = rules.replace(f"var(--{name})", value)
    kept = rules.splitlines()
    coloured = []
    for line in kept:
        for rule in line.split("}"):
            if "var(--c)" not in rule:
                coloured.append(rule + "}" if rule else "")
                continue
            selector, body = rule.split("{")
            coloured.extend(
                f"{selector}.c{number}{{{body.replace('var(--c)', pair[0])}}}" for number, pair in enumerate(COLOURS)
            )
    return "".join(coloured) + octave_rules()


def variables(theme):
    return "".join(f"--{name}:{value};" for name, value in theme.items())
