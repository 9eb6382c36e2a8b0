# SPDX-License-Identifier: Apache-2.0
"""The figures of Adinetz and Pleiter 2014, as their slides have them."""

import itertools

import stated
from line_chart import Series
from papers import Figure, lines_by, panel, points, ratio, subject
from text import bytes_text

PAPER = "Adinetz and Pleiter 2014, Halloc"
KERNELS = ("spree", "private")
SLIDES = (32, 512 << 20)  # threads that draw together, and the pool


def _waves_by_threads(rows):
    """Waves as the slides have them, where three numbers of threads and more were measured."""
    waves = rows.of("two_phase", drawn_by=SLIDES[0], pool_bytes=SLIDES[1], needs=("bytes", "threads"))
    panels = []
    for kernel, size, rounds in itertools.product(KERNELS, waves.values("bytes"), waves.values("rounds")):
        chosen = waves.of("two_phase", operations=(kernel,), bytes=size, rounds=rounds)
        if len(chosen.values("threads")) > 2:
            panels.append(
                panel(
                    f"waves, {kernel}, {bytes_text(size)}, {rounds} rounds, a pool of {bytes_text(SLIDES[1])}",
                    lines_by(chosen, subject, "threads", "operations_per_second"),
                    "rate",
                    "calls of malloc a second",
                    "higher",
                    "threads",
                )
            )
    return panels


def _threads(rows):
    pools = rows.of("scaling", subjects=("halloc",), operations=("malloc",))
    panels = _waves_by_threads(rows)
    for size in pools.values("bytes"):
        for pool in pools.of("scaling", bytes=size).values("pool_bytes"):
            chosen = rows.of("scaling", operations=("malloc",), bytes=size, pool_bytes=pool)
            panels.append(
                panel(
                    f"{bytes_text(size)}, a pool of {bytes_text(pool)}",
                    lines_by(chosen, subject, "threads", "operations_per_second"),
                    "rate",
                    "calls of malloc a second",
                    "higher",
                    "threads",
                )
            )
    return Figure(
        PAPER,
        "throughput by threads",
        "Calls a second by the number of threads",
        "The slides: waves by up to 25,000 threads on a K20X. Charts that do not name waves have one call a thread.",
        panels,
    )


def _sizes(rows):
    chosen = rows.of("burst", operations=("malloc",), needs=("bytes",))
    chosen.rows = [row for row in chosen.rows if row.subject != "null" and row.parameters.get("threads") == 1 << 20]

    def byte_rate(row):
        rate = row.value("operations_per_second")
        return rate * row.parameters["bytes"] if rate else None

    series = lines_by(chosen, subject, "bytes", byte_rate)
    return Figure(
        PAPER,
        "throughput by size",
        "Bytes a second by the size of a block",
        "The slides: 15 to 20 GiB/s, nearly flat, on a K20X; 51 GiB/s at best.",
        [
            panel(
                "2²⁰ threads, one call each",
                series,
                "byte_rate",
                "bytes asked for a second",
                "higher",
                "size of a block",
                "bytes",
                stated=stated.SIZES,
            )
        ],
    )


def _against_scatter(rows):
    """Halloc's rate over ScatterAlloc's, a line for each kernel, as the slides have them drawn by warp."""
    series = []
    for kernel in KERNELS:
        some = rows.of("two_phase", operations=(kernel,), drawn_by=SLIDES[0], pool_bytes=SLIDES[1])
        halloc, scatter = (
            points([row for row in some.rows if row.subject == name], "bytes", "operations_per_second")
            for name in ("halloc", "scatter")
        )
        series.append(Series(kernel, ratio(halloc, scatter)))
    return panel(
        "halloc over scatter, drawn by 32 threads, a pool of 512 MiB",
        series,
        "ratio",
        "times as many calls of malloc a second",
        "higher",
        "size of a block",
        "bytes",
        stated=stated.AGAINST_SCATTER,
    )


def _waves(rows):
    chosen = rows.of("two_phase", needs=("threads", "rounds"))
    for name in ("threads", "rounds"):
        chosen = chosen.of("two_phase", **{name: max(chosen.values(name), default=None)})
    panels = []
    for kernel in KERNELS:
        for pool in chosen.values("pool_bytes"):
            for drawn_by in chosen.values("drawn_by"):
                some = chosen.of("two_phase", operations=(kernel,), drawn_by=drawn_by, pool_bytes=pool)
                title = (
                    f"{kernel}, drawn by {drawn_by} thread{'s' if drawn_by > 1 else ''}, a pool of {bytes_text(pool)}"
                )
                panels.append(
                    panel(
                        title,
                        lines_by(some, subject, "bytes", "operations_per_second"),
                        "rate",
                        "calls of malloc a second",
                        "higher",
                        "size of a block",
                        "bytes",
                        stated=stated.WAVES if (drawn_by, pool) == SLIDES else None,
                    )
                )
    panels.append(_against_scatter(chosen))
    return Figure(
        PAPER,
        "two-phase test",
        "Waves: a kernel a step (spree), or one for all (private)",
        "The slides: Halloc 3 to 4 times as fast as ScatterAlloc where that holds, 10 to 1,000 times where it does not.",
        panels,
    )


def _fragmentation(rows):
    inside = rows.of("utilisation")
    inside.rows = [row for row in inside.rows if "bytes" in row.parameters]
    dense = {
        name for name in {row.subject for row in inside.rows} if sum(row.subject == name for row in inside.rows) > 40
    }
    if dense:
        inside.rows = [
            row for row in inside.rows if row.subject in dense and row.parameters.get("pool_bytes") == 16 << 20
        ] or inside.rows
    outside = rows.of("fragmentation", operations=("free",))
    return Figure(
        PAPER,
        "fragmentation",
        "Internal and external fragmentation",
        "The slides: internally, the mean over multiples of 8 bytes; externally, the fraction of slabs that are not free.",
        [
            panel(
                "internal: bytes asked for, of the pool",
                lines_by(inside, subject, "bytes", "utilisation"),
                "share",
                "of the pool",
                "higher",
                "size of a block",
                "bytes",
                x_log=not dense,
            ),
            panel(
                "external: slabs that are not free",
                lines_by(outside, subject, "left_permille", "slab_share"),
                "share",
                "of all slabs",
                "lower",
                "share of the blocks that is left",
                "permille",
            ),
        ],
    )


def _prefix_sum(rows):
    panels = []
    chosen = rows.of("prefix_sum", operations=("malloc",), needs=("least_bytes",))
    for most in chosen.values("most_bytes"):
        some = chosen.of("prefix_sum", most_bytes=most)
        least = some.values("least_bytes")[0]
        panels.append(
            panel(
                f"sizes of {least} to {bytes_text(most)}",
                lines_by(some, subject, "threads", "median_us"),
                "time",
                "until every thread has its pointer",
                "lower",
                "threads",
            )
        )
    return Figure(
        PAPER,
        "against a prefix sum",
        "malloc against a prefix sum and one cudaMalloc",
        "The slides: which is faster depends on the size and on the number of allocations.",
        panels,
    )


def figures(rows):
    if not any(row.subject.startswith("halloc") for row in rows.rows):
        return []
    made = [_threads(rows), _sizes(rows), _waves(rows), _fragmentation(rows), _prefix_sum(rows)]
    return [each for each in made if each.panels]
