# SPDX-License-Identifier: Apache-2.0
"""What each scenario of `warpheap bench` measures, in plain words, and which of its numbers are drawn over what.

A scenario that is not listed is drawn as well: its times over the parameter with the most values.
"""

import dataclasses


@dataclasses.dataclass
class View:
    """One number of a scenario's rows, and how it is drawn; of these operations, or of all but some."""

    y: str
    kind: str
    label: str
    better: str
    operations: tuple = ()
    without: tuple = ()


TIME = View("median_us", "time", "median time of the kernel", "lower")
MEDIAN = View("median_us", "time", "median time", "lower")
RATE = View("operations_per_second", "rate", "calls a second", "higher")


@dataclasses.dataclass
class Scenario:
    """`x`: the parameter to draw over. `ignored`: parameters that follow from others or do not change what a time means.
    `series`: what makes a line, "subject", "operation" or names of parameters. `fills`: calls are refused by design."""

    title: str
    text: str
    x: str = None
    x_label: str = ""
    x_kind: str = "count"
    x_log: bool = True
    views: tuple = (TIME,)
    ignored: set = frozenset()
    series: object = "subject"
    fills: bool = False


SIZE = {"x": "bytes", "x_label": "size of a block", "x_kind": "bytes"}
THREADS = {"x": "threads", "x_label": "threads"}
SHAPES = {"least_thread_block", "most_thread_block", "shapes"}

KNOWN = {
    "burst": Scenario("Bursts of one size",
        "Every thread asks for one block at the same instant, and another kernel frees them all.", **SIZE),
    "efficiency": Scenario("How much of the pool can be used",
        "64 B beside blocks of 16 other sizes; mixed sizes; large blocks after small ones, of which none, 1% at random or 1% in "
        "a run are kept; sizes that drift while the live bytes stay the same.", **SIZE, ignored={"blocks"}, fills=True,
        views=(View("utilisation", "share", "bytes in blocks, of the pool", "higher"),
            View("utilisation_at_1_percent", "share", "the same when 1% of the calls are refused", "higher"),
            View("got_share", "share", "large blocks got, of those that would fit", "higher"),
            View("failed_share", "share", "calls that were refused", "lower"),
            View("range_over_asked", "ratio", "address range over bytes asked for", "lower"))),
    "scaling": Scenario("By the number of threads", "Every thread asks for one block at the same instant.", **THREADS),
    "mixed": Scenario("Bursts of mixed sizes", "Every thread asks for one block of a size that it draws from a range.",
        x="most_bytes", x_label="largest size", x_kind="bytes"),
    "churn": Scenario("Churn within a kernel", "Threads free one of their four blocks or ask for another one, round after round."),
    "long_churn": Scenario("Churn for a long time",
        "A quarter of the blocks is freed and replaced in each step; is the heap as fast at the end as at the start?",
        x="tenth", x_label="tenth of the run", x_log=False, ignored={"slots", "kernels"},
        views=(View("median_us", "time", "median time of a step", "lower"),
            View("over_first", "ratio", "rate over that of the first tenth", "higher"))),
    "fill_level": Scenario("Churn by how full the pool is",
        "Blocks of 16 B to 4 KiB (or as stated) make up a share of the pool and live across kernels. In each step a quarter is "
        "freed by one kernel, and the next asks for others. Constant: sizes are drawn from the whole range. Drifting: the sizes "
        "move from small to large and back.", x="level_permille", x_label="share of the pool that is asked for", x_kind="permille",
        ignored={"slots"},
        views=(TIME, View("failed_share", "share", "calls that were refused", "lower"),
            View("cycles_p99", "cycles", "cycles of a call, 99th percentile", "lower"))),
    "fill": Scenario("To the last block",
        "A heap is filled to the first nullptr; a crowd asks the full heap; half of the blocks come back and it is filled again.",
        **SIZE, fills=True, views=(View("utilisation", "share", "bytes in blocks, of the pool", "higher"), TIME)),
    "exhaust": Scenario("All of the pool at once",
        "All threads together ask for exactly the pool: how fast, and how many are refused?", **SIZE,
        views=(RATE, View("failed_share", "share", "calls that were refused", "lower"))),
    "utilisation": Scenario("How full a pool gets", "A fresh heap is filled to the first nullptr.", **SIZE, fills=True,
        views=(View("utilisation", "share", "bytes asked for, of the pool", "higher"),)),
    "fragmentation": Scenario("What survivors keep",
        "A full pool from which all blocks are freed but a share, chosen at random: how much of it do these keep, and how many "
        "large blocks are still to be had?", x="left_permille", x_label="share of the blocks that is left", x_kind="permille",
        ignored={"blocks"}, fills=True,
        views=(View("slab_share", "share", "containers that are not free, of the pool", "lower"),
            View("live_over_slabs", "share", "bytes of live blocks, of their containers", "higher"),
            View("got_share", "share", "large blocks got, of those that would fit", "higher"))),
    "map": Scenario("Maps of a heap", "Where in the memory which sizes lie while blocks come and go.", views=()),
    "latency": Scenario("One call alone", "One lane calls malloc, and then free.", **SIZE,
        views=(View("cycles", "cycles", "cycles of a call", "lower"),)),
    "init": Scenario("Making a heap", "Making a heap, by the wall's clock, resetting it, and counting its slots.",
        x="pool_bytes", x_label="pool", x_kind="bytes", views=(MEDIAN,)),
    "workers": Scenario("Cycles of a call by workers",
        "How long a thread waits for its call while others call as well; blocks come and go.",
        x="workers", x_label="threads that call", views=(View("cycles", "cycles", "cycles of a call, mean", "lower"),)),
    "policy_overhead": Scenario("What the policies cost", "Time of the composed allocator over that of its creation policy alone.",
        **SIZE, views=(View("ratio", "ratio", "composed over direct", "lower"),)),
    "two_phase": Scenario("Waves", "Threads allocate and free in turn. Spree: a kernel a step. Private: all steps in one kernel.",
        x="drawn_by", x_label="neighbouring threads that do the same", ignored={"rounds"}, views=(RATE,)),
    "head_replacement": Scenario("Halloc's heads", "Bursts and waves of calls in which Halloc goes over to other slabs.", **SIZE,
        series="operation", ignored={"blocks_of_head", "rows", "threads", "waves"}),
    "prefix_sum": Scenario("Against a prefix sum",
        "Until every thread has its pointer: one kernel that calls malloc, or a scan of the sizes and one cudaMalloc (one_piece).",
        **THREADS, ignored={"pool_bytes"}, views=(View("median_us", "time", "median time, by the wall's clock", "lower"),)),
    "crowd": Scenario("Large blocks", "Many threads ask for a large block each; mixed: among three times as many small ones.",
        **THREADS,
        views=(View("median_us", "time", "median time of the kernel", "lower", without=("churn",)),
            View("large_share", "share", "after churn: bytes to be had as largest blocks", "higher", operations=("churn",)))),
    "placement": Scenario("Where blocks lie",
        "A kernel that reads or writes the blocks of a burst, against one that does so on a packed array.", **SIZE,
        views=(View("ratio_to_packed", "ratio", "time over that on a packed array", "lower"),
            View("range_over_asked", "ratio", "address range over bytes asked for", "lower", operations=("read own",)))),
    "bounds": Scenario("Kernels with launch bounds",
        "The default allocator in kernels that are bounded to some threads a block and blocks a multiprocessor.",
        series=("bound_threads", "bound_blocks")),
    "growth": Scenario("Pools that grow", "Growing and trimming, and bursts right after, beside a heap of fixed size.",
        series="operation", ignored={"committed_bytes", "initial_bytes"}, views=(MEDIAN,)),
    "peers": Scenario("Blocks of another GPU",
        "Freeing a burst as the member of a heap set that it is from, as another member, which posts it, and draining what was posted.",
        series="operation", views=(MEDIAN,)),
    "graph_scaling": Scenario("A dynamic graph on several GPUs",
        "The same graph on more members of a heap set (strong), and one that grows with them (weak).",
        x="members", x_label="members", x_log=False, series="operation", ignored={"devices", "scale"},
        views=(View("speedup", "ratio", "speedup over one member", "higher"), MEDIAN)),
    "tracing": Scenario("Heaps that record",
        "A burst, and a kernel that computes between its calls, on a heap that records them and on one that does not.",
        series="operation", views=(MEDIAN,)),
    "replay": Scenario("A program's calls, replayed",
        "Every allocator gets the calls that a program made: the same lanes together, in their order.",
        ignored={"kernels", "rounds"}, views=(View("median_us", "time", "time of all kernels", "lower"),)),
    "semaphore": Scenario("Semaphores", "Every thread takes a unit; units are made by the batch.", **THREADS, ignored=SHAPES,
        views=(View("operations_per_second", "rate", "units a second", "higher"),)),
    "rcu_delegation": Scenario("SRCU with delegation",
        "Threads search a list, and some remove an element and wait for readers, or leave that to another.", **THREADS,
        series="operation", ignored=SHAPES, views=(MEDIAN,)),
    "collective_mutex": Scenario("A collective mutex",
        "Every thread does a little work under one mutex, lane by lane or as groups of lanes.", **THREADS, ignored=SHAPES,
        views=(MEDIAN,)),
    "atomic": Scenario("One atomic addition",
        "Every thread adds to one word, lane by lane or once a warp, or to a word of its own.", **THREADS, ignored={"additions"},
        views=(View("ns_of_one", "number", "nanoseconds an addition", "lower"),
            View("cycles_p50", "cycles", "cycles of one addition, median", "lower"))),
    "arena": Scenario("Arenas",
        "Every thread asks an arena once, in its thread block's or in one that the grid shares; then the arena is reset, or dropped.",
        x="bytes", x_label="bytes a block", series=("regions",),
        views=tuple(View("median_us", "time", told, "lower", operations=(operation,)) for operation, told in (
            ("first_malloc", "median time of the first allocations"), ("malloc", "median time of those after a reset"),
            ("reset", "median time of a reset"), ("drop", "median time to give everything back")))),
    "append": Scenario("Lists that threads append to",
        "Every thread appends to one list, or to one of many, of which a few are long: in pages of a heap, by two passes and a scan, "
        "or in arrays with a bound.", x="lists", x_label="lists", ignored={"largest_list"},
        views=(MEDIAN, View("memory_bytes", "bytes", "memory of the lists", "lower", operations=("steady",)))),
    "random_walk": Scenario("Random walks over pages", "Every thread takes a page from a pool of which a share is free.",
        **THREADS, views=(MEDIAN,)),
    "instruction_latency": Scenario("Steps of a walk",
        "One lane counts bits, searches for the n-th set bit, or loads a word of a bitmap; each step needs the answer of the "
        "one before.", ignored={"steps", "words"}, views=(View("cycles", "cycles", "cycles of one step", "lower"),)),
    "hash_map": Scenario("Hash maps",
        "Threads insert keys into a hash map and find them, by how full it is, and in a map that must grow a hundredfold.",
        x="keys", x_label="keys", ignored={"pool_bytes"}, views=(View("operations_per_second", "rate", "keys a second", "higher"),)),
    "pic": Scenario("A plasma simulation", "A particle-in-cell code whose particles live in frames of the heap.",
        x="species", x_label="species", x_log=False, ignored={"steps"}, fills=True,
        views=(View("median_us", "time", "median time", "lower", without=("capacity",)),
            View("share_of_pool", "share", "share of the pool that one species can have", "higher", operations=("capacity",)))),
    "join": Scenario("A hash join", "Two tables are joined; the result goes to pages of the heap.",
        x="build_tuples", x_label="tuples of a table", ignored={"partitions", "pool_bytes", "probe_tuples"}, views=(MEDIAN,)),
    "graph": Scenario("A dynamic graph", "A graph is built and changed; every adjacency is one block.", ignored={"edges"},
        views=(View("median_us", "time", "time of the kernels", "lower"),)),
    "python_burst": Scenario("Bursts from Python", "Every thread of a kernel of Python asks for one block."),
    "python_heap": Scenario("Heaps from Python", "Making a heap."),
    "python_first_use": Scenario("First use from Python", "From the import to the first result."),
}  # fmt: skip


def scenario_of(name, rows):
    if name in KNOWN:
        return KNOWN[name]
    values = {}
    for row in rows:
        for parameter, value in row.parameters.items():
            if not isinstance(value, str):
                values.setdefault(parameter, set()).add(value)
    x = max((each for each in values if len(values[each]) > 1), key=lambda each: len(values[each]), default=None)
    kind = "bytes" if x and x.endswith("bytes") else "count"
    return Scenario(name.replace("_", " "), "", x, (x or "").replace("_", " "), kind, bool(x) and min(values[x]) > 0)
