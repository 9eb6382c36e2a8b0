# SPDX-License-Identifier: Apache-2.0
"""The figures of Gelado and Garland 2019."""

import statistics

import stated
from bar_chart import Bars
from line_chart import Point, Series
from papers import Figure, lines_by, panel, ratio, subject
from text import bytes_text

PAPER = "Gelado and Garland 2019, Throughput-oriented GPU memory allocation"

COMPARED = ("toolkit", "throughput", "slab_bitmap")  # of figure 7


def _semaphores(rows):
    panels = []
    for batch in rows.of("semaphore").values("batch"):
        chosen = rows.of("semaphore", batch=batch, needs=("most_thread_block",)).over_most_shapes()
        for pause in chosen.values("batch_ns"):
            some = chosen.of("semaphore", batch_ns=pause)
            series = lines_by(some, lambda row: (row.subject, row.operation), "threads", "operations_per_second")
            for each, key in zip(series, dict.fromkeys((row.subject, row.operation) for row in some.rows)):
                each.name = key[0] if key[1] == "wait" else f"{key[0]}, {key[1]}"
                each.label = f"{key[0].split('_')[0]}, {key[1].replace('_with_company', '_converged')}"
            title = f"batches of {batch:,}" + (f", {pause / 1000:g} µs each" if pause else "")
            panels.append(panel(title, series, "rate", "units a second", "higher", "threads that ask at once"))
    panels = [each for each in panels if each]
    panels.sort(key=lambda each: not each.title.startswith("batches of 512"))
    return Figure(
        PAPER,
        "5",
        "Bulk semaphores against counting semaphores",
        "The paper's figure has batches of 512, and bulk semaphores ahead at every number of threads.",
        panels,
    )


def _threads_a_writer(row):
    return max(1, round(row.parameters["threads"] / max(1, row.parameters["writers"])))


def _delegation(rows):
    chosen = rows.of("rcu_delegation", operations=("conditional_barrier",), needs=("threads", "writers"))
    chosen = chosen.over_most_shapes()
    shares = [_threads_a_writer(row) for row in chosen.rows]
    shown = [share for share in sorted(set(shares)) if shares.count(share) > 1]
    labels = {share: f"1 writer in {share:,}" if share > 1 else "every thread writes" for share in shown}
    series = lines_by(chosen, _threads_a_writer, "threads", "ratio", labels)
    for each in series:
        each.name = each.label
    return Figure(
        PAPER,
        "6",
        "Speedup of delegation",
        "The paper: from 1.01% slower to 14 times as fast; the more threads and the more writers, the more it gains.",
        [
            panel(
                "time without delegation over time with it",
                series,
                "ratio",
                "speedup",
                "higher",
                "threads",
                stated=stated.DELEGATION,
            )
        ],
    )


def _shapes(rows, name, size):
    """The rows of an allocator at a size: one for each size of thread blocks, or else the one that is their mean."""
    found = [row for row in rows.rows if row.subject == name and row.parameters["bytes"] == size and row.median]
    return [row for row in found if "thread_block" in row.parameters] or found


def _mean_of_shapes(rows, name, size):
    """(served a second, all calls a second) for the mean time over sizes of thread blocks."""
    found = _shapes(rows, name, size)
    if not found:
        return None
    seconds = sum(row.median for row in found) / len(found) * 1e-6
    served = sum((row.value("operations_per_second") or 0) * row.median * 1e-6 for row in found) / len(found)
    failed = sum(row.failures for row in found) / len(found)
    return (served / seconds, (served + failed) / seconds) if seconds and served else None


def _failures(rows, sizes):
    """What every allocator refused, in the mean over sizes of thread blocks."""
    series = []
    for name in dict.fromkeys(row.subject for row in rows.rows):
        shares = {size: [row.value("failed_share") for row in _shapes(rows, name, size)] for size in sizes}
        found = [Point(size, statistics.mean(told)) for size, told in shares.items() if told and None not in told]
        series.append(Series(name, found))
    return panel(
        "calls that failed, every allocator",
        series,
        "share",
        "failed calls",
        "lower",
        "size of a block",
        "bytes",
        stated=stated.FAILURES,
    )


def _against_toolkit(bars, sizes):
    """The rate of each allocator over that of CUDA's, from the bars."""
    lines = {name: [Point(size, bar[1]) for size, bar in zip(sizes, heights) if bar] for name, heights in bars}
    toolkit = lines.pop("toolkit", [])
    return panel(
        "calls a second over those of CUDA's allocator",
        [Series(name, ratio(points, toolkit)) for name, points in lines.items()],
        "ratio",
        "times as many",
        "higher",
        "size of a block",
        "bytes",
        stated=stated.AGAINST_TOOLKIT,
    )


def _exhaustion(rows):
    chosen = rows.of("exhaust", operations=("malloc",), needs=("bytes",))
    # Pools of the paper's sizes.
    whole = [
        row
        for row in chosen.rows
        if row.parameters.get("pool_bytes") == min(512 << 20, row.parameters["bytes"] * (1 << 20))
    ]
    chosen.rows = whole or chosen.rows
    sizes = chosen.values("bytes")
    bars = [(name, [_mean_of_shapes(chosen, name, size) for size in sizes]) for name in COMPARED]
    bars = [(name, heights) for name, heights in bars if any(heights)]
    if not bars:
        return Figure(PAPER, "7", "", "", [])
    short = [bytes_text(size).replace(" B", "").replace(" KiB", "K").replace(" MiB", "M") for size in sizes]
    chart = Bars(
        "calls a second until the pool is exhausted; grey: calls that failed",
        short,
        bars,
        "rate",
        "calls a second",
        "higher",
        "size of a block",
    )
    return Figure(
        PAPER,
        "7",
        "The allocator against CUDA's own, to the end of the pool",
        "The paper compares its allocator (throughput here) with CUDA's (toolkit), the mean over sizes of thread blocks. "
        "It is ahead but at 2, 4, 64 and "
        "128 KiB, and no call fails above 4 KiB. slab_bitmap stands beside them.",
        [chart, _against_toolkit(bars, sizes), _failures(chosen, sizes)],
    )


def figures(rows):
    made = [_semaphores(rows), _delegation(rows), _exhaustion(rows)]
    return [each for each in made if each.panels]
