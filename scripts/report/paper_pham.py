# SPDX-License-Identifier: Apache-2.0
"""The figures of Pham et al. 2022."""

import stated
from line_chart import Series
from papers import Figure, Rows, lines_by, panel, points, ratio, subject, theory
from styles import MARKS_OF_OTHERS
from text import bytes_text, share_text

PAPER = "Pham et al. 2022, Dynamic memory management in massively parallel systems"
# The design of Ouroboros, in four forms.
QUEUES = {name: name for name in ("queue_pages", "queue_chunks", "queue_pages_virtual", "queue_chunks_virtual")}
WALKS = {"rw": "RW", "rw_bitmap": "RW-BM", "corw": "CoRW", "queue": "queue", **QUEUES}


def _atomic(rows):
    names = {"each_lane": "each lane", "each_warp": "each warp", "own_word": "a word each"}
    series = lines_by(rows.of("atomic").over_most_shapes(), subject, "threads", "cycles_p50", names)
    return Figure(
        PAPER,
        "1",
        "Latency of one atomic addition",
        "The paper: it grows linearly with the threads that add to one word.",
        [panel("cycles of one addition, median", series, "cycles", "cycles", "lower", "concurrent threads")],
    )


def _share(row):
    return row.parameters["free_pages"] / row.parameters["pages"]


def _walks(rows):
    """Rows of the walks with the most pages, by share of free pages, the largest first."""
    chosen = rows.of("random_walk", operations=("get_page",), needs=("pages", "free_pages", "threads"))
    chosen.rows = [row for row in chosen.rows if row.parameters["pages"] > 0 and row.parameters["free_pages"] > 0]
    if not chosen.rows:
        return {}
    most = max(row.parameters["pages"] for row in chosen.rows)
    by_share = {}
    for row in chosen.rows:
        if row.parameters["pages"] == most:
            by_share.setdefault(round(_share(row), 4), []).append(row)
    return {share: Rows(by_share[share]) for share in sorted(by_share, reverse=True)}


def _steps(by_share, name, predicted, words):
    panels = []
    for share, rows in by_share.items():
        series = lines_by(rows, subject, "threads", name, WALKS)
        series += [theory(each, predicted) for each in list(series)]
        panels.append(
            panel(
                f"{words}, {share_text(share)} of the pages free",
                series,
                "count",
                f"{words}; dashed: theory",
                "lower",
                "threads",
            )
        )
    return panels


def _against_queues(title, panels, walk, numbers):
    """How many times a walk's time the fastest queue takes: a line for each of the panels, which are by name."""
    series, like = [], None
    for number, (name, each) in enumerate(panels.items()):
        lines = {line.name: line.points for line in each.series} if each else {}
        found = sorted((point for queue in QUEUES for point in lines.get(queue, [])), key=lambda point: -point.y)
        fastest = {point.x: point for point in found}
        gains = ratio([fastest[x] for x in sorted(fastest)], lines.get(walk, []))
        series.append(Series(name, gains, style=(number, MARKS_OF_OTHERS[number], 0)))
        like = each or like
    return like and panel(
        f"{title}: the fastest queue's time over that of {walk}",
        series,
        "ratio",
        "times as long",
        "",
        like.x_label,
        like.x_kind,
        stated=numbers,
    )


def _figure_7(by_share):
    times = {
        f"{share_text(share)} free": panel(
            f"time, {share_text(share)} of the pages free",
            lines_by(rows, subject, "threads", "median_us", WALKS),
            "time",
            "time of the kernel",
            "lower",
            "threads",
        )
        for share, rows in by_share.items()
    }
    panels = [*times.values(), _against_queues("a page", times, "corw", stated.PAGES)]
    panels += _steps(by_share, "tas", "predicted_tas", "TAS, mean steps of a thread")
    panels += _steps(by_share, "was", "predicted_was", "WAS, most steps in a warp")
    return Figure(
        PAPER,
        "4 and 7",
        "Getting a page: time, and steps beside theory",
        "The paper: CoRW is ahead of Ouroboros by more than an order of magnitude; measured steps match theory. The queue "
        "here is a list of the free pages behind one counter.",
        panels,
    )


def _ratios(by_share, steps):
    """A line for each share of free pages: RW's steps over RW-BM's."""
    made = []
    for number, (share, rows) in enumerate(by_share.items()):
        walks = (
            points([row for row in rows.rows if row.subject == name], "threads", steps) for name in ("rw", "rw_bitmap")
        )
        made.append(Series(f"{share_text(share)} free", ratio(*walks), style=(number, MARKS_OF_OTHERS[number], 0)))
    return made


def _figure_8(by_share):
    panels = []
    for name in ("tas", "was"):
        series = _ratios(by_share, name)
        predicted = _ratios(by_share, f"predicted_{name}")
        for each in predicted:
            each.label, each.style = "", (each.style[0], "", 2)
        panels.append(
            panel(
                f"{name.upper()} of RW over {name.upper()} of RW-BM",
                series + predicted,
                "ratio",
                "times as many steps; dashed: theory",
                "",
                "threads",
                stated=stated.BITMAP,
            )
        )
    return Figure(
        PAPER,
        "8",
        "What a bitmap saves",
        "The paper: the fewer pages are free, the nearer the ratio comes to 32, the bits of a word.",
        panels,
    )


RUNS = {"rw_malloc": "RW_malloc", "slab_bitmap": "slab_bitmap", **QUEUES}


def _by_threads(rows):
    chosen = rows.of(
        ("scaling", "burst"), operations=("malloc", "free"), subjects=tuple(RUNS), needs=("bytes",), pool_bytes=8 << 30
    )
    sizes = sorted(
        {row.parameters["bytes"] for row in chosen.rows if row.subject == "rw_malloc" and row.scenario == "scaling"}
    )
    panels, gains = [], []
    for operation, numbers in (("malloc", stated.MALLOC_BY_THREADS), ("free", stated.FREE_BY_THREADS)):
        by_size = {}
        for size in sizes:
            some = chosen.of(("scaling", "burst"), operations=(operation,), bytes=size)
            some.rows.sort(key=lambda row: row.scenario == "scaling")
            by_size[bytes_text(size)] = panel(
                f"{operation}, {bytes_text(size)}",
                lines_by(some, subject, "threads", "median_us", RUNS),
                "time",
                "time of the kernel",
                "lower",
                "threads",
            )
        panels += by_size.values()
        gains.append(_against_queues(operation, by_size, "rw_malloc", numbers))
    return Figure(
        PAPER,
        "9",
        "RW_malloc by threads",
        "The paper: faster than Ouroboros by up to three orders of magnitude; at 2²⁰ blocks of 8 KiB, all of the pool, "
        "it is at its worst.",
        gains + panels,
    )


def _by_sizes(rows):
    chosen = rows.of("burst", subjects=tuple(RUNS), threads=1 << 20, pool_bytes=8 << 30)
    panels = [
        panel(
            f"{operation}, 2²⁰ threads",
            lines_by(chosen.of("burst", operations=(operation,)), subject, "bytes", "median_us", RUNS),
            "time",
            "time of the kernel",
            "lower",
            "size of a block",
            "bytes",
        )
        for operation in ("malloc", "free")
    ]
    has_walk = any(row.subject == "rw_malloc" for row in chosen.rows)
    return Figure(PAPER, "10", "RW_malloc by size", "The paper: insensitive to the size.", panels if has_walk else [])


def _mixed(rows):
    chosen = rows.of("mixed", operations=("malloc",), subjects=tuple(RUNS), least_bytes=4)
    panels = {
        f"{threads:,} threads": panel(
            f"malloc, {threads:,} threads",
            lines_by(chosen.of("mixed", threads=threads), subject, "most_bytes", "median_us", RUNS),
            "time",
            "time of the kernel",
            "lower",
            "largest size, from 4 B",
            "bytes",
        )
        for threads in chosen.values("threads")
    }
    return Figure(
        PAPER,
        "11",
        "Mixed sizes",
        "The paper: two orders of magnitude faster than Ouroboros in the best cases.",
        [*panels.values(), _against_queues("malloc", panels, "rw_malloc", stated.MIXED)],
    )


def _utilisation(rows):
    names = {
        "rw_malloc": "units of 16 B",
        "rw_malloc_64": "units of 64 B",
        "rw_malloc_256": "units of 256 B",
        "slab_bitmap": "slab_bitmap",
        "scatter": "scatter",
        "halloc": "halloc",
        "throughput_wide": "throughput_wide",
        **QUEUES,
    }
    chosen = rows.of("utilisation", subjects=tuple(names))
    pools = chosen.of("utilisation", subjects=("rw_malloc",), needs=("bytes",)).values("pool_bytes")
    return Figure(
        PAPER,
        "12",
        "How full the memory gets",
        "The paper: always close to 100%, in units.",
        [
            panel(
                f"bytes asked for until the first failure, of a pool of {bytes_text(pool)}",
                lines_by(
                    chosen.of("utilisation", needs=("bytes",), pool_bytes=pool), subject, "bytes", "utilisation", names
                ),
                "share",
                "utilisation",
                "higher",
                "size of a block",
                "bytes",
                stated=stated.UTILISATION,
            )
            for pool in pools
        ],
    )


def _join(rows):
    names = {
        "direct": "direct output",
        "direct_warp": "direct, by warp",
        "rw_256": "RW",
        "rw_bitmap_256": "RW-BM",
        "corw_256": "CoRW",
        "slab_bitmap": "slab_bitmap",
        **QUEUES,
    }
    panels = []
    for operation, words in (("join", "the whole join"), ("probe", "the probe, which allocates")):
        for lanes in (32, 1):
            chosen = rows.of("join", operations=(operation,), lanes_a_chain=lanes)
            title = f"{words}; a chain of pages a {'warp' if lanes == 32 else 'lane'}"
            panels.append(
                panel(
                    title,
                    lines_by(chosen, subject, "build_tuples", "median_us", names),
                    "time",
                    "time",
                    "lower",
                    "tuples of a table",
                )
            )
    return Figure(
        PAPER,
        "13",
        "A hash join",
        "The paper: direct output slightly ahead of RW, RW-BM and CoRW ahead of direct output at every size.",
        panels,
    )


def figures(rows):
    made = [_atomic(rows)]
    by_share = _walks(rows)
    if by_share:
        made += [_figure_7(by_share), _figure_8(by_share)]
    made += [_by_threads(rows), _by_sizes(rows), _mixed(rows), _join(rows)]
    if any(row.subject == "rw_malloc" for row in rows.rows):
        made.insert(-1, _utilisation(rows))
    return [each for each in made if each.panels]
