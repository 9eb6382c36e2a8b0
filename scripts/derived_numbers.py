# SPDX-License-Identifier: Apache-2.0
"""Numbers that the pages of the papers' figures derive from bench/results: ratios, means, shares, correlations.

For each page a generator of (fragment, numbers): a part of a sentence with a place for each number, which stands on the page as
`fragment.format(*numbers)`. check_papers.py compares. Who measures anew gets the sentences to write from it.
"""

import collections
import itertools
import json
import math
import statistics

Z95 = 1.959964  # half of an interval of 95% in standard deviations


class Results:
    """Rows of bench/results/h200-NAME.json, with their parameters beside their figures; a name may have h100- or host- itself."""

    def __init__(self, folder):
        self.folder, self.read = folder, {}

    def rows(self, name, **wanted):
        if name not in self.read:
            file = name if name.startswith(("h100-", "host-")) else f"h200-{name}"
            document = json.loads((self.folder / f"{file}.json").read_text())
            rows = document.get("results") or document["rows"]
            names = [row.get("allocator") or row.get("primitive") for row in rows]
            self.read[name] = [{**row, **row.get("parameters", {}), "subject": subject} for row, subject in zip(rows, names)]
        return [row for row in self.read[name] if all(row.get(key) == value for key, value in wanted.items())]

    def figure(self, name, figure, **wanted):
        """A figure of the one row that is meant."""
        (row,) = self.rows(name, **wanted)
        return row[figure]

    def groups(self, name, keys, figure, **wanted):
        """{values of keys: {subject: figure}}; no two rows are alike in keys and subject."""
        found, rows = {}, self.rows(name, **wanted)
        for row in rows:
            found.setdefault(tuple(row.get(key) for key in keys), {})[row["subject"]] = row[figure]
        assert sum(map(len, found.values())) == len(rows), f"{name}: rows differ by more than {keys}"
        return found


def spread(values):
    values = list(values)
    return min(values), max(values)


def moments(values):
    return statistics.mean(values), statistics.median(values), statistics.stdev(values)


def step_ratios(results, name, subject, base="ring_buffer"):
    """What each step takes over the same step of another allocator."""
    times = {row["subject"]: row["times_us"] for row in results.rows(name, operation="step")}
    return [mine / theirs for mine, theirs in zip(times[subject], times[base])]


def slow_share_and_cycles(results, call):
    """By 1 to 64 workers: the share of `malloc`'s lanes on the slow path, counted on the host, and a call's cycles."""
    counted = sorted(results.rows("host-scatter-work", subject="scatter", operation="malloc", times=1), key=lambda row: row["workers"])
    cycles = [results.figure("workers-every", "cycles", subject="scatter", operation=call, workers=row["workers"]) for row in counted]
    return [row["slow_lanes"] for row in counted], cycles


def slow_turns_and_cycles(results):
    """Of scatter_original at 128 B by 1 to 32 workers: a warp's turns on the slow path of `malloc`, counted on the host, and its cycles."""
    counted = results.rows("host-scatter-work", subject="scatter_original")[:32]
    cycles = [results.figure("h100-workers-every", "cycles", operation="malloc", workers=row["workers"]) for row in counted]
    return [row["slow_turns"] * row["workers"] for row in counted], cycles


def slow_turns(results):
    turns, cycles = slow_turns_and_cycles(results)
    return statistics.mean(turns[25:31]), turns[31], correlation(turns, cycles)


def growths_of_original(results):
    """By how much calls of scatter_original grow from 1,024 to 16,384 workers: malloc of 32 and 64 B, free of both."""
    calls = results.groups("h100-workers", ["operation", "bytes", "workers"], "cycles", subject="scatter_original")
    for call, size in itertools.product(("malloc", "free"), (32, 64)):
        few, many = (calls[call, size, workers]["scatter_original"] for workers in (1024, 16384))
        yield many / few - 1


def every_of_128(results):
    """By whether the count is above 64: {count: cycles of malloc at 128 B}."""
    rows = results.rows("h100-workers-every", operation="malloc")
    return [{row["workers"]: row["cycles"] for row in rows if (row["workers"] > 64) == many} for many in (False, True)]


def stalls(results, operation):
    """Profiled launches of scatter's kernel at 16 B with 1,024 workers, and with 16,384."""
    launches = results.rows("h100-workers-stalls", operation=operation)
    return [[row for row in launches if row["workers"] == workers] for workers in (1024, 16384)]


def of_a_warp_in(launches, *figures):
    """Means of figures that are counted for the kernel."""
    return [statistics.mean(row[figure] / row["warps"] for row in launches) for figure in figures]


def cycles(launch, *reasons):
    """Cycles of a warp: all, or those that it waits for these reasons."""
    share = sum(launch[f"stall_{reason}"] for reason in reasons) if reasons else launch["cycles_an_instruction"]
    return share * launch["instructions"] / launch["warps"]


def mean_cycles(launches, *reasons):
    return statistics.mean(cycles(row, *reasons) for row in launches)


def growth(few, many, *reasons):
    return mean_cycles(many, *reasons) - mean_cycles(few, *reasons)


def cycles_of_a_read(launches):
    """Slope of a warp's cycles over its reads, and their correlation."""
    reads, taken = [row["reads"] / row["warps"] for row in launches], [cycles(row) for row in launches]
    return statistics.linear_regression(reads, taken).slope, statistics.correlation(reads, taken)


def steps_at_peak(results):
    """Even and odd steps of scatter_picongpu whose ratio is 1.02, and whether no other hundredth has more."""
    for first in (0, 1):
        counted = collections.Counter(round(100 * ratio) for ratio in step_ratios(results, "h100-pic", "scatter_picongpu")[first::2])
        assert max(counted, key=counted.get) == 102
        yield counted[102]


def eckert_stalls(results):
    few, many = stalls(results, "malloc")
    yield "from {:,.0f} to {:,.0f} cycles", mean_cycles(few), mean_cycles(many)
    pairs = zip(of_a_warp_in(few, "instructions", "reads"), of_a_warp_in(many, "instructions", "reads"))
    yield "{:.0f} and {:.0f} instructions, and reads {:.2f} and {:.2f} times", *itertools.chain(*pairs)
    yield "each read more takes {:.0f} cycles (correlation {:.2f})", *cycles_of_a_read(many)
    reads = of_a_warp_in(many, "reads")[0] - of_a_warp_in(few, "reads")[0]
    yield "the reads are {:.0%} of the growth", reads * cycles_of_a_read(many)[0] / growth(few, many)
    yield "{:.0f} cycles longer for memory, {:.0f} for constants, {:.0f} for branches", *(
        growth(few, many, reason) for reason in ("long_scoreboard", "imc_miss", "branch_resolving")
    )
    yield "{:.1f} and {:.1f}% of what it can", *(statistics.mean(row["l2_throughput_percent"] for row in launches) for launches in (few, many))
    few, many = stalls(results, "free")
    yield "{:,.0f} and {:,.0f} cycles a warp, reads {:.2f} and {:.2f} times", mean_cycles(few), mean_cycles(many), *of_a_warp_in(few, "reads"), *of_a_warp_in(many, "reads")
    yield "{:.0f} cycles longer for memory and {:.0f} at fences", growth(few, many, "long_scoreboard"), growth(few, many, "membar")
    yield "of even and of odd steps ({} and {} of 800)", *steps_at_peak(results)


def eckert_small_chunks(results):
    cycles = results.groups("h100-workers", ["bytes", "workers", "operation"], "cycles")
    most = [cycles[size, 16384, "malloc"]["toolkit"] / cycles[size, 16384, "malloc"]["scatter_original"] for size in (32, 64)]
    yield "{:,.0f} and {:,.0f} times `scatter_original`'s with 16,384 workers", *most
    layer = [row[name] / cycles[size, workers, "direct_malloc"][name] - 1 for (size, workers, call), row in cycles.items()
             if call == "malloc" for name in ("scatter", "scatter_original")]  # fmt: skip
    yield "the interface at most {:.1%} of `malloc`'s cycles", max(layer)
    yield "grows by {:.0%} and {:.0%} up to 16,384 with `scatter_original`, and `free` by {:.0%} and {:.0%}", *growths_of_original(results)
    small, large = every_of_128(results)
    usual = statistics.median(large.values())
    yield "no count more than {:.0%} above the median", max(large.values()) / usual - 1
    yield "with 26 to 31 workers it takes up to {:,.0f}, {:.1f} times that median", max(small.values()), max(small.values()) / usual
    last = {row["subject"]: row for row in results.rows("h100-long-churn", tenth=10)}
    yield (
        "the last tenth is {:.0%} faster than the first with `scatter` and {:.1%} with `scatter_coalesced`",
        *(last[name]["over_first"] - 1 for name in ("scatter", "scatter_coalesced")),
    )
    refused = [spread(row["failures"] for row in results.rows("host-long-churn", level_permille=level)) for level in (300, 500)]
    yield "refuses {:,} to {:,} of some 60,000 calls a tenth on the host backend", *refused[1]
    yield "where it refuses {:,} at 0.3", refused[0][1]


def eckert(results):
    cycles = results.groups("workers", ["bytes", "workers", "operation"], "cycles")
    malloc, free, direct = ({key[:2]: row for key, row in cycles.items() if key[2] == name} for name in ("malloc", "free", "direct_malloc"))
    yield (
        "at 16 B {:,.0f} times `scatter`'s with 1,024 workers and {:,.0f} times with 16,384",
        *(malloc[16, workers]["toolkit"] / malloc[16, workers]["scatter"] for workers in (1024, 16384)),
    )
    growths = [calls[size, 16384]["scatter"] / calls[size, 1024]["scatter"] - 1 for calls in (malloc, free) for size in (16, 128)]
    yield "grows by {:.0%} up to 16,384 at 16 B ({:.0%} at 128 B); `free` by {:.0%} and {:.0%}", *growths
    yield "({:,.0f} and {:,.0f} cycles at 32)", malloc[16, 32]["scatter"], malloc[128, 32]["scatter"]
    yield "`scatter`'s `malloc` {:.0f} to {:.0f} cycles", *spread(malloc[key]["scatter"] - direct[key]["scatter"] for key in malloc)

    slow = results.groups("host-scatter-work", ["bytes", "workers"], "slow_lanes", operation="malloc", times=3)
    shares = [slow[key]["scatter"] for key in ((128, 32), (128, 8), (16, 32))]
    yield "{:.0%} of the lanes take the slow path of `malloc` at 128 B from 32 workers on, {:.0%} with 8", *shares[:2]
    yield "at 16 B {:.1%}, none and none", shares[2]
    (freed,) = results.rows("host-scatter-work", operation="free", times=3, bytes=128, workers=8)
    yield "{:.2f} times with 8 and once from 32 on", freed["withdrawals"] / freed["groups"]
    by_workers = [slow_share_and_cycles(results, call) for call in ("malloc", "free")]
    yield "{:.0%} of them with 7 and {:.0%} with 31", *(by_workers[0][0][workers - 1] for workers in (7, 31))
    yield "cycles of `malloc` by {:.2f} and with those of `free` by {:.2f}", *(correlation(*pair) for pair in by_workers)

    yield "takes {:.1f} turns of the slow path with 26 to 31 workers and {:.1f} with 32; by 1 to 32 workers these correlate with its cycles by {:.2f}", *slow_turns(results)

    every = [row["cycles"] for row in results.rows("workers-every", subject="scatter", operation="malloc")]
    every_free = [row["cycles"] for row in results.rows("workers-every", subject="scatter", operation="free")]
    yield (
        "`scatter` takes up to {:.1f} times its median for `malloc` and {:.1f} times for `free`",
        *(max(each) / statistics.median(each) for each in (every, every_free)),
    )

    yield from eckert_small_chunks(results)

    for file, subject in (
        ("pic", "slab_bitmap"), ("pic-large", "slab_bitmap"), ("h100-pic", "scatter_picongpu"), ("h100-pic-large", "scatter_picongpu"),
    ):  # fmt: skip
        name = file if file.startswith("h100-") else f"h200-{file}"
        yield f"| {{:.3f}} | {{:.3f}} | {{:.3f}} | [{name}.json]", *moments(step_ratios(results, file, subject))
    coalesced = results.groups("h100-coalesced", ["operation", "bytes"], "median_us")
    ratios = {call: [row["scatter_coalesced"] / row["scatter"] for key, row in coalesced.items() if key[0] == call and "scatter" in row]
              for call in ("malloc", "free")}  # fmt: skip
    yield "`malloc` takes {:.1f} to {:.1f} times as long as `scatter` alone, and `free` {:.1f} to {:.1f} times", *spread(ratios["malloc"]), *spread(ratios["free"])
    toolkit = {row["subject"]: row["times_us"] for row in results.rows("pic-toolkit", operation="step")}
    yield (
        "CUDA's allocator, 20 steps: {:.0f} ms a step for {:.1f}, {:.0f} times as long in the median, from {:.0f} to {:.0f} ms",
        statistics.median(toolkit["toolkit"]) / 1000,
        statistics.median(toolkit["ring_buffer"]) / 1000,
        statistics.median(step_ratios(results, "pic-toolkit", "toolkit")),
        *(time / 1000 for time in spread(toolkit["toolkit"])),
    )
    whole = results.rows("pic-capacity-toolkit", subject="toolkit")[0]
    yield "gives one species {:.1%} of 512 MiB, after {:.0f} seconds", whole["share_of_pool"], whole["median_us"] / 1e6


def slow_path(results, level):
    """Shares of the cycles of halloc's slow path: means over steps."""
    steps = results.rows("h100-halloc-time", level=level)
    cycles = [statistics.mean(row[f"{part}_cycles"] for row in steps) for part in ("probe", "head", "search")]
    return [part / sum(cycles) for part in cycles]


def over_original(results, name):
    """Calls a second of scatter_original over another's."""
    rows = results.groups("h100-two-phase-original", ["bytes", "operation"], "operations_per_second").values()
    return spread(row["scatter_original"] / row[name] for row in rows)


def adinetz_slow_path(results):
    shares = {level: slow_path(results, level) for level in (0.3, 0.5, 0.7, 0.85)}
    yield "{:.0%} and {:.0%} are for places and the rest for heads at 0.3 and 0.5", shares[0.3][0], shares[0.5][0]
    yield "{:.0%}, {:.0%} and {:.0%} for places, heads and searches at 0.7, and {:.0%}, {:.0%} and {:.0%} at 0.85", *shares[0.7], *shares[0.85]
    yield "{:.1f} to {:.1f} times as many calls a second as `halloc`, and {:.1f} to {:.1f} times as many as `halloc_split`", *over_original(results, "halloc"), *over_original(results, "halloc_split")


def adinetz(results):
    rate = "operations_per_second"
    burst = results.groups("halloc", ["bytes"], "median_us", scenario="burst", operation="malloc")
    yield "The burst at 16 bytes is {:.1f} billion blocks a second", 2**20 / burst[16,]["halloc"] / 1000
    yield "A burst of 4 KiB takes {:.0f} times as long as one of 1 KiB", burst[4096,]["halloc"] / burst[1024,]["halloc"]

    waves = results.groups("two-phase", ["bytes", "drawn_by", "operation"], rate)
    by_warp = [waves[32, 32, way] for way in ("spree", "private")]
    yield "ours makes {:.1f} and {:.1f} billion at 32 bytes drawn by warp", *(rates["halloc"] / 1e9 for rates in by_warp)
    yield "(`halloc_split`: 512 MiB, three quarters for slabs) {:.1f} and {:.1f}", *(rates["halloc_split"] / 1e9 for rates in by_warp)
    yield (
        "Here `scatter` makes {:.1f} to {:.1f} times as many calls a second as halloc in all rows of the file",
        *spread(rates["scatter"] / rates["halloc"] for rates in waves.values()),
    )
    yield "makes {:.1f} to {:.1f} of halloc's calls", *spread(rates["halloc_split"] / rates["halloc"] for rates in waves.values())

    busiest = results.groups("host-read-modify-writes", ["bytes"], "busiest_words", scenario="two_phase")
    one_word = [busiest[16,][name][0] for name in ("halloc", "scatter")]
    yield "four steps make {:,} read-modify-writes of one word with `halloc` at 16 B, and {:,} with `scatter`", *one_word
    alternate = results.groups("h100-two-phase-spree", ["bytes"], "median_us", operation="spree")
    yield "`halloc` takes {:.1f} and {:.1f} times as long as `scatter`", *(alternate[size,]["halloc"] / alternate[size,]["scatter"] for size in (16, 256))
    toolkit = results.groups("h100-two-phase-toolkit", ["operation", "bytes", "threads"], rate).items()
    yield "{:.0f} to {:.0f} times as many as CUDA's", *spread(rates["halloc"] / rates["toolkit"] for _, rates in toolkit if "toolkit" in rates)
    threads = results.groups("h100-two-phase-threads", ["operation", "bytes", "threads"], rate)
    one_head = spread(rates["halloc_one_head"] / rates["halloc"] for key, rates in threads.items() if key[2] == 262144)
    yield "`halloc_one_head` makes {:.1f} to {:.1f} of halloc's calls by 262,144 threads", *one_head

    noticed = [results.figure(name, "median_us", scenario="churn", subject="halloc") for name in ("double-frees-before", "double-frees")]
    yield "since a second free is noticed, churn takes [{:.1f} times as long]", noticed[1] / noticed[0]
    gib = 1 << 30
    mixed = [
        results.figure("two-phase-mixed", "bytes_per_second", subject="halloc", operation="spree", least_bytes=size, most_bytes=size)
        for size in (16, 256)
    ]
    small = [
        results.figure("two-phase", "bytes_per_second", subject="halloc", operation="spree", drawn_by=32, bytes=size)
        for size in (16, 32, 256)
    ]
    yield (
        "{:,.0f} GiB/s at 16 B and {:,.0f} at 256 B in 8 GiB, and {:.0f}, {:.0f} and {:.0f} at 16, 32 and 256 B in 512 MiB",
        *(rate / gib for rate in mixed + small),
    )

    calls = [
        results.figure("two-phase-mixed", rate, subject="halloc", operation="spree", least_bytes=size, most_bytes=size) for size in (16, 256)
    ]
    yield "{:.1f} times in 8 GiB, for 16 times the bytes", calls[0] / calls[1]
    pieces = results.groups("prefix-sum", ["least_bytes", "most_bytes", "threads"], "median_us", operation="malloc")
    ratios = {name: sorted(times["one_piece"] / times[name] for times in pieces.values()) for name in ("halloc", "slab_bitmap")}
    yield (
        "halloc is {:.1f} to {:.1f} times as fast, and {:.1f} times at 2<sup>20</sup>",
        ratios["halloc"][1],
        ratios["halloc"][-1],
        ratios["halloc"][0],
    )
    yield "slab_bitmap {:.1f} to {:.1f} times.", *spread(ratios["slab_bitmap"])

    contended = results.groups("halloc-variants", ["bytes"], "median_us", scenario="scaling", operation="malloc", threads=1 << 20)
    yield (
        "With more rows it is {:.1f} and {:.1f} times as fast at 2^20 threads",
        *(contended[size,]["halloc"] / contended[size,]["halloc_rows"] for size in (16, 256)),
    )
    (spree,) = results.groups("halloc-variants", ["bytes"], "median_us", scenario="two_phase", operation="spree", bytes=256).values()
    yield "950 costs the spree at 256 B {:.0%}", spree["halloc_late"] / spree["halloc"] - 1
    for name in ("halloc", "slab_bitmap", "scatter"):
        filled = results.rows("internal-fragmentation", subject=name, least_bytes=None)  # one size each
        yield "| " + name + " | {:.1%} |", statistics.mean(row["utilisation"] for row in filled)


def by_median(laps):
    return statistics.median(other / mine for other, mine in laps)


def times_as_fast(results, name, base):
    """[((threads, writers), how many times as fast as the other barrier conditional_barrier is)]; lone writers were measured more than once."""
    others, mine = (results.rows(name, operation=operation) for operation in (base, "conditional_barrier"))
    pairs = [(row, list(zip(other["times_us"], row["times_us"]))) for other, row in zip(others, mine, strict=True)]
    return [((row["threads"], row["writers"]), by_median(laps)) for row, laps in pairs]


def gelado_delegation(results):
    classical, waits_for_all = (times_as_fast(results, "h100-rcu-delegation", base) for base in ("classical_barrier", "barrier"))
    yield (
        "{:.2f} to {:.2f} times as fast as SRCU's own, {:.2f} to {:.2f} as `barrier`",
        *spread(ratio for _, ratio in classical),
        *spread(ratio for _, ratio in waits_for_all),
    )
    yield "with 64 threads it is {:.2f} to {:.2f} times as fast", *spread(times for (threads, _), times in classical if threads == 64)
    by_medians = [f"{ratio:.2f}" for _, ratio in times_as_fast(results, "h100-rcu-lone-writers", "classical_barrier")]
    assert by_medians == [by_medians[0]] * 3
    yield "the median is {} times as fast at each", by_medians[0]
    yield "1,024 threads gain {:.1f} times with 256 writers, and {:.1f} where all write", *(dict(classical)[1024, writers] for writers in (256, 1024))
    many = [spread(times for (threads, _), times in classical if threads == number) for number in (524288, 131072)]
    yield "it gains {:.1f} to {:.1f} times, and with 131,072 threads {:.1f} to {:.1f}", *many[0], *many[1]


def parts_of_removal(results):
    """Of the most writers, in ms: removal without a barrier, with SRCU's own, and with conditional_barrier."""
    (row,) = results.rows("h100-rcu-parts", writers=16384)
    return [row[f"{part}_us"] / 1000 for part in ("no_barrier", "classical", "conditional")]


def gelado_parts(results):
    removal, classical, conditional = parts_of_removal(results)
    yield "takes {:.1f} ms without any barrier, {:.0%} of the {:.1f} that it takes with `conditional_barrier`", removal, removal / conditional, conditional
    yield "a barrier that costs nothing would be {:.1f} times as fast as SRCU's own ({:.1f} ms)", classical / removal, classical


ARENAS = ("1", "8", "33", "one a multiprocessor")


def arenas(results, lanes, size):
    """Of each number of arenas: the share of lines of several multiprocessors, and the hit rate of L1."""
    rows = [row for number in ARENAS for row in results.rows("h100-arenas", lanes=lanes, bytes=size, arenas=number)]
    return [row["lines_of_several_multiprocessors"] for row in rows], [row["load_sectors_hit"] / row["load_sectors"] for row in rows]


def gains_together(results):
    """Percentage points of the hit rate from one arena to one a multiprocessor, from 64 B on."""
    rates = [arenas(results, "together", size)[1] for size in (64, 256, 1024)]
    return [100 * (each[-1] - each[0]) for each in rates]


def gelado_arenas(results):
    shared = {size: arenas(results, "each for itself", size)[0] for size in (16, 64)}
    yield "shared by multiprocessors fall from {:.0%} to {:.0%}", shared[16][0], shared[16][-1]
    yield "though {:.0%} of the lines were shared at 64 B", shared[64][0]
    yield "raises the hit rate from {:.0%} to {:.0%} at 16 B", *(arenas(results, "each for itself", 16)[1][number] for number in (0, -1))
    yield "from {:.0%} to {:.0%} at 16 B, by {:.1f} to {:.1f} points", *(arenas(results, "together", 16)[1][number] for number in (0, -1)), *spread(gains_together(results))
    times = {number: {(row["lanes"], row["bytes"], call): row[call] for row in results.rows("h100-arenas", arenas=number) for call in ("write_us", "read_us")}
             for number in (ARENAS[0], ARENAS[-1])}  # fmt: skip
    one, each = times.values()
    yield (
        "takes {:.2f} to {:.2f} of one arena's time to write or read the blocks",
        *spread(each[key] / one[key] for key in one if key[1] >= 256),
    )


def gelado_waits(results):
    """Of today's times over those with naps."""
    ratios = {True: [], False: []}
    for row in results.rows("h100-waits"):
        if row["allocator"] != "ring_buffer":
            ratios[row["bytes"] >= 4096 and row["allocator"] != "ualloc"].append(row["now_us"] / row["naps_us"])
    yield "take {:.2f} to {:.2f} of the time from 4 KiB on", *spread(ratios[True])
    yield "no row takes more than {:.2f} of it", max(ratios[False])


def gelado_as_printed(results):
    rate = "operations_per_second"
    served = results.groups("h100-exhaust-original", ["bytes", "thread_block"], rate)
    of_today = {"ualloc_original": "ualloc", "tbuddy_original": "tbuddy", "throughput_original": "throughput_8"}
    shares = {(name, block > 1): [] for name in of_today for _, block in served}
    for (_, block), row in served.items():
        for name in set(row) & set(of_today):
            shares[name, block > 1].append(row[name] / row[of_today[name]])
    yield "makes {:.2f} to {:.2f} times today's calls", *spread(itertools.chain(*(each for (_, warps), each in shares.items() if not warps)))
    for name in of_today:
        yield f"`{name}` " + "{:.3f} to {:.2f}", *spread(shares[name, True])
    longest = results.groups("h100-exhaust-original", ["bytes", "thread_block"], "median_us")[2048, 256]
    yield "a round takes {:.2f} s for {:.3f}", *(longest[name] / 1e6 for name in ("throughput_original", "throughput_8"))


def gelado(results):
    rate, figures = "operations_per_second", results.groups("exhaust", ["bytes"], "operations_per_second")
    failed = results.groups("exhaust", ["bytes"], "failed_share")
    wide = [figures[size,]["throughput_wide_2048"] / figures[size,]["throughput"] for size in (512, 1024)]
    yield "Wide bins make {:.1f} times as many calls a second at 512 bytes and {:.1f} times at 1 KiB", *wide
    work = results.groups("host-read-modify-writes", ["bytes"], "read_modify_writes", scenario="exhaust")
    bins = [work[size,][name] for name in ("throughput", "throughput_wide_2048") for size in (512, 1024)]
    yield "a call makes {:.1f} and {:.1f} read-modify-writes, with wide bins {:.1f} and {:.1f}", *bins
    yield "With wide bins {:.1%} of the calls fail", failed[1024,]["throughput_wide_2048"]
    yield "At 2 KiB {:.1%} fail", failed[2048,]["throughput_wide_2048"]
    yield "With blocks of 8 bytes {:.0%} of the calls fail at 8 bytes", failed[8,]["throughput_8"]
    old, new = (results.groups(name, ["bytes"], rate, subject="ualloc") for name in ("exhaust-all", "exhaust-ualloc"))
    yield (
        "share the clearing of headers: {:.1f} to {:.1f} times as many calls a second",
        *spread(new[size]["ualloc"] / old[size]["ualloc"] for size in new),
    )

    times = results.groups("exhaust-toolkit", ["bytes", "thread_block"], "median_us")
    over_blocks = [
        statistics.mean(times[size, block]["toolkit"] for block in (1, 32, 256, 1024))
        / statistics.mean(times[size, block]["throughput"] for block in (1, 32, 256, 1024))
        for size in sorted({size for size, _ in times})
    ]
    yield "{:.1f} times at 64 KiB to {:.0f} at 32 KiB, {:.0f} in the arithmetic mean", *spread(over_blocks), statistics.mean(over_blocks)
    served = [
        results.figure("exhaust-toolkit", rate, subject="toolkit", thread_block=32, bytes=size) / 1e6 for size in (2048, 32768, 65536)
    ]
    yield "from {:.2f} million calls a second at 2 KiB to {:.2f} at 32 KiB, and is {:.2f} at 64 KiB", *served
    left = spread(100 * row["failed_share"] for row in results.rows("exhaust-toolkit", subject="toolkit"))
    yield "leaves {:.0f} to {:.0f}% of the pool", *left


def correlation(a, b):
    mean_a, mean_b = statistics.mean(a), statistics.mean(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return product / math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))


def fisher(r, n):
    """The interval of a correlation of n pairs."""
    half = Z95 / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def steps_and_time(rows):
    """Correlations of TAS and of WAS with time, and the interval of their difference (Zou 2007, for correlations that share a variable)."""
    tas, was, time = ([row[key] for row in rows] for key in ("tas", "was", "median_us"))
    r, s, between = correlation(was, time), correlation(tas, time), correlation(was, tas)
    (r_least, r_most), (s_least, s_most) = fisher(r, len(rows)), fisher(s, len(rows))
    shared = ((between - r * s / 2) * (1 - r * r - s * s - between * between) + between**3) / ((1 - r * r) * (1 - s * s))
    below, above = ((r - r_least, s_most - s), (r_most - r, s - s_least))
    half = [math.sqrt(a * a + b * b - 2 * shared * a * b) for a, b in (below, above)]
    return s, r, r - s - half[0], r - s + half[1]


def walks_profiled(results, primitive, share, threads):
    """Means over the launches, and reads of a warp."""
    launches = results.rows("h100-walk-stalls", primitive=primitive, page_share=share, threads=threads, counts_steps=False)
    means = {key: statistics.mean(row[key] for row in launches) for key, kind in launches[0].items() if isinstance(kind, (int, float))}
    return {**means, "reads_a_warp": means["reads"] / means["warps"]}


def pham_walk_stalls(results):
    few, many = (walks_profiled(results, "rw", 0.5, threads) for threads in (1024, 262144))
    yield "RW reads {:.1f} and {:.1f} times a warp by 1,024 threads and by 262,144", few["reads_a_warp"], many["reads_a_warp"]
    yield "waits {:.1f} and {:.1f} cycles for memory", few["stall_long_scoreboard"], many["stall_long_scoreboard"]
    yield "L2 is at {:.0f} and {:.0f}% of its throughput", few["l2_throughput_percent"], many["l2_throughput_percent"]
    with_half = results.rows("h100-walk-stalls", page_share=0.5)
    yield (
        "{:.0f} to {:.0f}% of the reads hit L2, and memory behind it is at {:.0f}% at most",
        *spread(row["l2_hit_rate_percent"] for row in with_half),
        max(row["dram_throughput_percent"] for row in with_half),
    )


def pham_walks(results):
    walks = {name: results.rows("random-walk", subject=name) for name in ("rw", "rw_bitmap", "corw", "queue")}

    def some(name, least=0.0, most=1.0, threads=0):
        return [row for row in walks[name] if least < row["free_pages"] / row["pages"] < most and row["threads"] >= threads]

    def times(rows):
        return spread(row["median_us"] for row in rows)

    yield "RW-BM's TAS is up to {:.1%} over theory", max(row["tas"] / row["predicted_tas"] for row in walks["rw_bitmap"]) - 1
    yield "RW's WAS up to {:.1%} over its bound", max(row["was"] / row["predicted_was"] for row in walks["rw"]) - 1
    of_bound = spread(row["was"] / row["predicted_was"] for row in walks["rw_bitmap"])
    yield "RW-BM's WAS is from {:.0%} below its bound to {:.0%} above", 1 - of_bound[0], of_bound[1] - 1
    pairs = zip(some("rw", most=0.0055), some("rw_bitmap", most=0.0055))
    yield "RW's steps over RW-BM's come to {:.1f} to {:.1f} with 0.5% free", *spread(rw["tas"] / words["tas"] for rw, words in pairs)
    collisions = [
        [row["collisions"] / row["predicted_collisions"] for row in some("rw", *part, threads=16384)]
        for part in ((0.4, 1), (0.05, 0.4), (0, 0.05))
    ]
    yield "RW has up to {:.1f} times as many", max(collisions[0])
    yield (
        "{:.0f} times as many with 10% free, {:.0f} to {:.0f} times with 1% and less",
        statistics.mean(collisions[1]),
        *(round(c, -1) for c in spread(collisions[2])),
    )
    yield (
        "CoRW's from {:.1f} to {:.1f} µs with half free, RW's from {:.0f} to {:,.0f} with 1%",
        *times(some("corw", least=0.4)),
        *times(some("rw", least=0.008, most=0.05)),
    )
    of_half = [[row["was"] for row in some(name, least=0.4)] for name in ("corw", "rw")]
    yield "CoRW's WAS is {:.2f} in each row, RW's {:.2f} to {:.2f}", max(of_half[0]), *spread(of_half[1])
    first, *_, last = some("rw", least=0.008, most=0.05)
    yield "262,144 threads take {:.0%} of the free pages", last["threads"] / last["free_pages"]
    was, slower = (last[key] / first[key] for key in ("was", "median_us"))
    yield "RW's WAS {:.1f} times from 1,024 threads on, the time of a step {:.1f} times", was, slower / was
    of = {row["subject"]: row for row in results.rows("random-walk-few-pages", free_pages=5242, threads=5000)}
    yield "RW takes {:.1f} ms, RW-BM {:.2f} and CoRW {:.3f}", *(of[name]["median_us"] / 1000 for name in ("rw", "rw_bitmap", "corw"))
    yield (
        "{:,.0f} for 5,000 threads and 0.5%, where lanes that come to a queue one by one have {:,.0f}. The walk itself has {:,.0f}",
        of["rw"]["predicted_was"],
        math.floor(32 * 5001 / 33),
        of["rw"]["was"],
    )
    yield "they have {:.3f} and {:.3f}, a difference of {:.3f} to {:.3f}", *steps_and_time(walks["rw"] + walks["rw_bitmap"] + walks["corw"])
    yield "in RW's 23 rows {:.3f} to {:.3f}", *steps_and_time(walks["rw"])[2:]
    most_of_it = max(walks["rw"], key=lambda row: row["median_us"])
    yield "without it RW has {:.3f} and {:.3f}", *steps_and_time([row for row in walks["rw"] if row is not most_of_it])[:2]
    for name, title in (("rw", "RW"), ("rw_bitmap", "RW-BM")):
        found = steps_and_time(walks[name])[:2]
        yield (
            "| " + title + " | {:.3f} ({:.3f} to {:.3f}) | {:.3f} ({:.3f} to {:.3f}) |",
            *itertools.chain(*((r, *fisher(r, 23)) for r in found)),
        )


def pham_queues(results):
    def ratios(name, subject, base, operation="malloc", **wanted):
        keys = ["bytes", "least_bytes", "most_bytes"]
        rows = results.groups(name, keys, "median_us", operation=operation, **wanted).items()
        return {key: row[subject] / row[base] for key, row in rows if base in row}

    by_size = ratios("h100-rw-malloc", "queue_chunks", "rw_malloc")
    small, large = ([ratio for key, ratio in by_size.items() if (key[0] <= 512) == is_small] for is_small in (True, False))
    yield (
        "`queue_chunks` takes {:.1f} to {:.1f} times what `rw_malloc` takes for up to 512 B, and {:.2f} to {:.2f} times from 1 KiB on",
        *spread(small),
        *spread(large),
    )
    virtual = [ratio for key, ratio in ratios("h100-rw-malloc", "queue_chunks_virtual", "rw_malloc").items() if key[0] <= 128]
    yield "With virtual queues blocks of up to 128 B take {:.0f} to {:.0f} times as long", *spread(virtual)
    few, many = (ratios(f"h100-rw-malloc-mixed-{threads}", "queue_pages", "rw_malloc").values() for threads in (1024, 32768))
    yield "Of mixed sizes `queue_pages` takes {:.1f} to {:.1f} times as long by 1,024 threads and {:.1f} to {:.1f} by 32,768", *spread(few), *spread(many)
    of_pages = [ratio for form in ("pages", "chunks") for kind in ("", "_virtual")
                for ratio in ratios("h100-pages-of-queues", f"queue_{form}{kind}", "corw").values()]  # fmt: skip
    yield "the four forms take {:.1f} to {:.1f} times what CoRW takes for a quarter of a million pages of 8 KiB", *spread(of_pages)


def queues_by_lane(results, lanes, operation="malloc", **wanted):
    """Over rw_malloc, or CoRW for pages, in the same program: {form: {(bytes, threads): ratio}}."""
    ratios = {}
    for key, row in results.groups("h100-queues-by-lane", ["bytes", "threads"], f"{operation}_us", lanes=lanes, **wanted).items():
        base = row.pop("rw_malloc", None) or row.pop("corw")
        for form, time in row.items():
            ratios.setdefault(form, {})[key] = time / base
    return ratios


def alone(results, form, operation="malloc", **wanted):
    return spread(queues_by_lane(results, "each for itself", operation, **wanted)[form].values())


def pages_alone(results):
    """What 262,144 pages of 8 KiB take of queue_chunks and of queue_pages_virtual, over CoRW."""
    ratios = queues_by_lane(results, "each for itself", bytes=8192, threads=262144)
    return [next(iter(ratios[form].values())) for form in ("queue_chunks", "queue_pages_virtual")]


def pham_queues_by_lane(results):
    most = 1 << 20
    together, by_itself = (
        spread(itertools.chain(*(each.values() for each in queues_by_lane(results, lanes, threads=most).values())))
        for lanes in ("together", "each for itself")
    )
    yield "`malloc` takes {:.0f} to {:,.0f} times as long as `rw_malloc` by 2<sup>20</sup> threads, for {:.1f} to {:.0f} with lanes together", *by_itself, *together
    yield "262,144 pages {:.1f} times as long as CoRW with `queue_chunks`, and {:.1f} times with `queue_pages_virtual`", *pages_alone(results)
    frees = queues_by_lane(results, "each for itself", "free")
    virtual = frees.pop("queue_pages_virtual")
    yield (
        "`free` takes {:.1f} to {:.0f} times as long as theirs, with `queue_pages_virtual` {:.1f} to {:,.0f}",
        *spread(itertools.chain(*(each.values() for each in frees.values()))),
        *spread(virtual.values()),
    )
    added = most * results.figure("h100-atomic", "ns_of_one", threads=most, subject="each_lane") / 1e6
    taken = [spread(row["malloc_us"] / 1000 for row in results.rows("h100-queues-by-lane", lanes="each for itself", threads=most, subject=form))
             for form in ("queue_pages", "queue_chunks", "queue_chunks_virtual")]  # fmt: skip
    yield "2<sup>20</sup> additions to one word take {:.2f} ms, `queue_pages` {:.1f} to {:.1f}, `queue_chunks` {:.1f} to {:.1f} and `queue_chunks_virtual` {:.0f} to {:.0f}", added, *itertools.chain(*taken)
    for size, threads in ((16, most), (256, most), (8192, 262144)):
        both = [results.groups("h100-queues-by-lane", ["bytes"], "malloc_us", lanes=lanes, bytes=size, threads=threads)[size,] for lanes in ("together", "each for itself")]
        cells = [row.get(form) for form in ("queue_pages", "queue_chunks", "queue_pages_virtual", "queue_chunks_virtual") for row in both]
        base = both[1].get("rw_malloc") or both[1]["corw"]
        shown = " | ".join("–" if cell is None else "{:,.1f}" for cell in cells)
        yield f"| {size:,} | {threads:,} | {{:.1f}} | {shown} |", base, *(cell for cell in cells if cell is not None)


def queues_by_threads(results):
    """Over rw_malloc in as large a pool: {operation: {form: ratios}}."""
    ratios = {"malloc": {}, "free": {}}
    for (*_, call), row in results.groups("h100-rw-malloc-scaling", ["pool_bytes", "bytes", "threads", "operation"], "median_us").items():
        for form in row.keys() - {"rw_malloc"}:
            ratios[call].setdefault(form, []).append(row[form] / row["rw_malloc"])
    return ratios


def pham_queues_by_threads(results):
    ratios = queues_by_threads(results)
    yield "`malloc` of the four forms takes {:.2f} to {:.0f} times `rw_malloc`'s time", *spread(itertools.chain(*ratios["malloc"].values()))
    slowest = ratios["free"].pop("queue_pages_virtual")
    yield "`free` {:.1f} to {:.1f}", *spread(itertools.chain(*ratios["free"].values()))
    yield "that of `queue_pages_virtual` {:.1f} to {:.0f}", *spread(slowest)


def queues_over_walk(results, operation, lanes):
    """Over RW of the same run: {form: ratios by tuples}."""
    ratios = {}
    for name in ("h100-join", "h100-join-pages"):
        for row in results.groups(name, ["build_tuples"], "median_us", operation=operation, lanes_a_chain=lanes).values():
            for form in row.keys():
                if form.startswith("queue"):
                    ratios.setdefault(form, []).append(row[form] / row["rw_256"])
    return ratios


def pham_join_of_queues(results):
    by_warp = [spread(itertools.chain(*queues_over_walk(results, operation, 32).values())) for operation in ("probe", "join")]
    yield "the probe takes {:.1f} to {:.0f} times RW's, and the whole join {:.1f} to {:.1f} times", *by_warp[0], *by_warp[1]


def additions(results):
    """What an addition of each of 262,144 lanes to one word takes, in µs, and over CoRW with half and 1% of the pages free."""
    taken = 262144 * results.figure("h100-atomic", "ns_of_one", threads=262144, subject="each_lane") / 1000
    walks = [results.figure("random-walk", "median_us", subject="corw", threads=262144, free_pages=free) for free in (16777216, 335544)]
    return taken, *(taken / walk for walk in walks)


def pham_additions(results):
    each = {row["subject"]: row for row in results.rows("atomic", threads=131072)}
    yield "An H200 does {:.2f} billion additions a second to one word", each["each_lane"]["operations_per_second"] / 1e9
    yield (
        "counted up {:.0f} times as fast, {:.0f} billion a second",
        each["each_warp"]["operations_per_second"] / each["each_lane"]["operations_per_second"],
        each["each_warp"]["operations_per_second"] / 1e9,
    )
    yield (
        "An addition of each takes {:.0f} µs, {:.0f} times as long as CoRW with half of the pages free, and {:.1f} times with 1%",
        *additions(results),
    )
    yield "With 262,144 threads one addition takes {:.2f} ns", results.figure("h100-atomic", "ns_of_one", threads=262144, subject="each_lane")


def pham_malloc(results):
    full = {row["operation"]: row["median_us"] / 1000 for row in results.rows("rw-malloc", subject="rw_malloc", bytes=8192, scenario="burst")}
    yield "searches for its last runs, {:.0f} to {:.0f} ms", *spread((full["malloc"], full["first_malloc"]))
    windows = results.groups("rw-malloc-windows", ["bytes", "threads"], "median_us", operation="malloc")
    wide = [row["rw_malloc_4_words"] / row["rw_malloc"] for (size, threads), row in windows.items() if size < 8192 and threads >= 32768]
    yield "blocks of 16 to 1,024 B by 32,768 threads and more take {:.1f} to {:.1f} times as long", *spread(wide)
    levels = [
        results.figure("fill-level-others", "median_us", subject="rw_malloc", operation="constant malloc", level_permille=level)
        for level in (300, 500, 700)
    ]
    yield "takes {:,.0f}, {:,.0f} and {:,.0f} µs with 30, 50 and 70% of the pool live", *levels
    units = results.groups("rw-malloc-units", ["bytes", "threads"], "median_us", operation="malloc")
    long = [units[size, threads]["rw_malloc_256"] for threads in (1024, 262144) for size in (8192, 16)]
    yield "8 KiB take {:.1f} µs with 1,024 threads, and 16 B {:.1f}; with 262,144 threads {:.1f} and {:.1f}", *long


def pham_join(results):
    def groups(operation, figure):
        keys = ["build_tuples", "lanes_a_chain"]
        both = (results.groups(name, keys, figure, operation=operation) for name in ("join", "join-32gib"))
        return dict(itertools.chain(*(rows.items() for rows in both)))

    probe, whole = groups("probe", "median_us"), groups("join", "median_us")
    walks, most_threads = ("rw_256", "rw_bitmap_256", "corw_256"), 131072

    def over(times, names, base, lanes, least=0, most=1 << 30):
        chosen = [row for (tuples, chain), row in times.items() if chain == lanes and least <= tuples <= most]
        return spread(row[name] / row[base] for row in chosen for name in names)

    yield "RW-BM or CoRW takes {:.2f} to {:.2f} of direct output's", *over(probe, walks[1:], "direct", 1)
    yield (
        "RW-BM and CoRW take {:.2f} to {:.2f} of its probe, `slab_bitmap` {:.2f} to {:.2f}",
        *over(probe, walks[1:], "direct_warp", 1, most_threads),
        *over(probe, ["slab_bitmap"], "direct_warp", 1, most_threads),
    )
    yield (
        "the walks take {:.2f} to {:.2f} of direct output's probe, `slab_bitmap` {:.2f} to {:.2f}",
        *over(probe, walks, "direct", 32, most_threads),
        *over(probe, ["slab_bitmap"], "direct", 32, most_threads),
    )
    yield (
        "RW, RW-BM and CoRW take {:.2f} to {:.2f} of direct output's from 131,072 tuples on, and up to {:.2f} at 16,384",
        *over(whole, walks, "direct", 32, most_threads),
        over(whole, walks, "direct", 32, most=most_threads - 1)[1],
    )


def eckert_items(results):
    cycles = results.groups("workers", ["bytes", "workers", "operation"], "cycles", subject="scatter")
    growth_of = {(size, call): cycles[size, 16384, call]["scatter"] / cycles[size, 1024, call]["scatter"] - 1 for size in (16, 128) for call in ("malloc", "free")}
    yield "then grows by {:.0%} at 16 B and {:.0%} at 128 B", growth_of[16, "malloc"], growth_of[128, "malloc"]
    yield "by {:.0%} at 16 B and {:.0%} at 128 B, in a profile", growth_of[16, "free"], growth_of[128, "free"]
    yield "{:.0%} of the lanes take the slow path", results.figure("host-scatter-work", "slow_lanes", operation="malloc", times=3, bytes=128, workers=32)
    small, large = every_of_128(results)
    yield "up to {:.1f} times the median of larger counts", max(small.values()) / statistics.median(large.values())


def adinetz_items(results):
    yield "so is `scatter_original`, {:.1f} to {:.1f} times", *over_original(results, "halloc")


def gelado_items(results):
    classical = times_as_fast(results, "h100-rcu-delegation", "classical_barrier")
    yield "{:.1f} times, with 16,384 writers", max(ratio for _, ratio in classical)
    removal, classical_ms, _ = parts_of_removal(results)
    yield "a barrier that costs nothing would be {:.1f} times as fast", classical_ms / removal
    yield "{:.2f} to {:.2f} times as fast with 64 threads", *spread(ratio for (threads, _), ratio in classical if threads == 64)
    yield "of 1,024 threads {:.1f} with 256 writers and {:.1f} with 1,024", *(dict(classical)[1024, writers] for writers in (256, 1024))
    hits = [arenas(results, lanes, 16)[1][number] for lanes in ("each for itself", "together") for number in (0, -1)]
    yield (
        "from {:.0%} to {:.0%} at 16 B, by less than 0.1 points from 64 B on; together from {:.0%} to {:.0%}, and by at most {:.1f} points",
        *hits,
        max(gains_together(results)),
    )
    rates = results.groups("exhaust", ["bytes"], "operations_per_second")
    yield "{:.1f} and {:.1f} times the calls a second at 512 B and 1 KiB", *(rates[size,]["throughput_wide_2048"] / rates[size,]["throughput"] for size in (512, 1024))


def pham_items(results):
    queues = queues_by_threads(results)
    yield "`malloc` takes {:.2f} to {:.0f} times as long with our queues", *spread(itertools.chain(*queues["malloc"].values()))
    yield "`free` up to {:.0f} times", max(itertools.chain(*queues["free"].values()))
    most = [max(alone(results, form, call, threads=1 << 20)) for call, form in (("malloc", "queue_chunks_virtual"), ("free", "queue_pages_virtual"))]
    yield "each lane by itself up to {:,.0f} and {:,.0f}", *most
    yield "262,144 lanes add in {:.0f} µs, {:.0f} times CoRW with half free", *additions(results)[:2]
    yield "each lane by itself {:.1f} times (`queue_chunks`), {:.1f} (`queue_pages_virtual`)", *pages_alone(results)
    yield "each lane by itself {:.0f} to {:.0f} times by 2<sup>20</sup> threads", *alone(results, "queue_chunks", threads=1 << 20)
    few = [alone(results, form, threads=32768) for form in ("queue_pages", "queue_chunks_virtual")]
    yield "each lane by itself {:.1f} to {:.1f} (`queue_pages`) and {:.0f} to {:.0f} times (`queue_chunks_virtual`)", *few[0], *few[1]


def published(results):
    """The rows of our figures beside those that others published."""
    ours = {"subject": "slab_bitmap", "threads": 1 << 20}
    for call in ("first_malloc", "malloc", "free"):
        constant = [results.figure("page-burst", "median_us", operation=call, bytes=size, **ours) for size in (16, 64, 256, 1024, 4096)]
        mixed = [results.figure("page-mixed", "median_us", operation=call, most_bytes=most, **ours) for most in (64, 256, 1024, 4096)]
        yield f"ours, `{call}` | H200 |" + " {:.1f} |" * 9, *constant, *mixed
    yield "threads that only store a pointer takes {:.1f}", results.figure("page-burst", "median_us", subject="null", operation="malloc", threads=1 << 20)

    def few(subject, call):
        burst = {"scenario": "burst", "threads": 65536, "subject": subject, "operation": call}
        return [results.figure("page-burst", "median_us", bytes=size, **burst) for size in (64, 1024)]

    for call in ("first_malloc", "malloc"):
        yield f"ours, `{call}` and `free` | H200 |" + " {:.1f} |" * 4, *few("slab_bitmap", call), *few("slab_bitmap", "free")
    toolkit = few("toolkit", "malloc")
    yield "measured by us (`toolkit`) | H200 |" + " {:,.0f} |" * 4, *toolkit, *few("toolkit", "free")
    times = [theirs / mine for theirs, mine in zip(toolkit, few("slab_bitmap", "malloc"))]
    yield "CUDA's takes {:,.0f} and {:,.0f} times as long as ours", *times
    yield "ours on the H200 takes {:.1f} times as long", few("slab_bitmap", "first_malloc")[0] / 12.3
    yield "64 B take {:.1f}, {:.1f} and {:.1f} times as long", *(others / toolkit[0] for others in (13932.5, 9567.68, 8398.85))


def first_numbers(results):
    """µs of 2^20 calls of malloc(64), of as many stores of a pointer, of the same calls in the picture, and of CUDA's there; and the share
    of a pool in use at the first nullptr."""
    asked = {"figure": "median_us", "operation": "malloc", "threads": 1 << 20}
    ours, stores = (results.figure("page-burst", subject=name, bytes=size, **asked) for name, size in (("slab_bitmap", 64), ("null", 0)))
    pictured = (results.figure("page-scaling", subject=name, bytes=64, **asked) for name in ("slab_bitmap", "toolkit"))
    return ours, stores, *pictured, results.figure("page-efficiency", "utilisation", subject="slab_bitmap", operation="mixed fill")


def pictured(results):
    """The line below the first picture."""
    def times(name, size, unit=1):
        rows = results.rows("page-scaling", subject=name, bytes=size, operation="malloc")
        return spread(row["median_us"] / unit for row in rows)

    (least, _), (_, most) = times("toolkit", 64), times("toolkit", 64, 1000)
    yield "Warpheap stays between {:.0f} and {:.0f} µs, storing a pointer takes {:.0f} to {:.0f}, CUDA's malloc rises from {:.0f} µs to {:.0f} ms", *times("slab_bitmap", 64), *times("null", 0), least, most


def readme(results):
    ours, stores, *_, mixed = first_numbers(results)
    asked = {"figure": "median_us", "subject": "slab_bitmap", "threads": 1 << 20, "bytes": 64}
    yield "block after {:.1f} µs, {:.1f} if the heap is new. A kernel that stores one pointer a thread takes {:.1f} µs", ours, results.figure("page-burst", operation="first_malloc", **asked), stores
    drift = results.figure("page-fill-level", "failed_share", subject="slab_bitmap", operation="drifting malloc", level_permille=700)
    yield "fill {:.0%} of 512 MiB before the first `nullptr`; where sizes drift for long, {:.0%} of the calls are refused at 70%", mixed, drift
    large = [results.figure("page-crowd", "median_us", operation="malloc", threads=16, bytes=64 << 20, subject=name) for name in ("slab_bitmap", "toolkit")]
    yield "64 MiB for each of 16 threads {:.2f} ms, where CUDA's `malloc` takes {:.2f}", *(each / 1000 for each in large)


def first_page(results):
    ours, stores, pictured, cuda, mixed = first_numbers(results)
    yield "served in {:.1f} µs, by a kernel that takes {:.1f} µs if each thread only stores a pointer", ours, stores
    yield "{:.1f} µs for 2<sup>20</sup> calls of `malloc(64)` from 8 GiB, one a thread: {:.1f} times", ours, ours / stores
    yield "{:,.0f} times as fast as CUDA's own `malloc`: in the picture 2<sup>20</sup> threads have 64 bytes each, from 512 MiB, after {:.1f} µs, and CUDA's after {:.0f} ms", cuda / pictured, pictured, cuda / 1000
    yield "{:.0%} of a pool is in use at the first `nullptr`, with sizes from 16 bytes to 4 KiB", mixed


PAGES = {
    "README.md": [readme, pictured],
    "docs/site/index.md": [first_page, pictured],
    "docs/design/eckert2014_items.md": [eckert_items],
    "docs/design/adinetz2014_items.md": [adinetz_items],
    "docs/design/gelado2019_items.md": [gelado_items],
    "docs/design/pham2022_items.md": [pham_items],
    "docs/design/eckert2014_figures.md": [eckert, eckert_stalls],
    "docs/design/adinetz2014_figures.md": [adinetz, adinetz_slow_path],
    "docs/design/gelado2019_figures.md": [gelado, gelado_delegation, gelado_parts, gelado_arenas, gelado_waits, gelado_as_printed],
    "docs/design/pham2022_figures.md": [pham_additions, pham_walks, pham_walk_stalls],
    "docs/design/pham2022_malloc_figures.md": [pham_malloc, pham_queues, pham_queues_by_lane, pham_queues_by_threads, pham_join, pham_join_of_queues],
    "docs/design/published_figures.md": [published],
}


def claims(root, pages=PAGES):
    """(page, fragment, its numbers by the results) of each claim."""
    results = Results(root / "bench" / "results")
    for page, parts in pages.items():
        for fragment, *numbers in itertools.chain(*(part(results) for part in parts)):
            yield page, fragment, numbers


def faults(root, pages=PAGES):
    flat = {page: " ".join((root / page).read_text().split()) for page in pages}
    for page, fragment, numbers in claims(root, pages):
        sentence = fragment.format(*numbers)
        if sentence not in flat[page]:
            yield f"{page} does not say what bench/results has: {sentence}"


def count(root):
    """How many numbers are compared."""
    return sum(len(numbers) for _, _, numbers in claims(root))
