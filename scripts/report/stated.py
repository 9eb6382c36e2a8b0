# SPDX-License-Identifier: Apache-2.0
"""Numbers that the papers' texts give for what their figures show, each with its place in the paper.

No value is read from a curve, and none is more exact than in print. A number whose argument the text names is drawn as a star,
and one without, a bound or a mean, as a dashed line. Units are those of our axes.
"""

from line_chart import Point, Series

STAR = (5, "star", None)  # without a line
KIB, GIB = 1 << 10, 1 << 30


class Numbers:
    """What a paper says of one panel: (argument or what the number is, value, place in the paper) each."""

    def __init__(self, source, machine, stated):
        self.name, self.machine = f"{source}, {machine}", machine
        self.points = [Point(at, value) for at, value, _ in stated if not isinstance(at, str)]
        self.lines = [(at, value) for at, value, _ in stated if isinstance(at, str)]
        self.places = list(dict.fromkeys(place for _, _, place in stated))

    def add_to(self, panel):
        if self.points:
            panel.series.insert(0, Series(self.name, self.points, style=STAR))  # the first lies on top
        panel.floors += [(f"{self.machine}: {what}", value) for what, value in self.lines]
        panel.places = self.places


# Section 5, CUDA 9.2. Of figure 5 the text has no rate.
_GELADO = ("the paper", "Titan V")
DELEGATION = Numbers(
    *_GELADO,
    [
        ("at most", 14, "section 5.2, “as much as 14X”"),
        ("few threads", 1.023, "section 5.2, “2.3% faster” for small thread counts"),
        ("at least", 1 / 1.0101, "section 5.2, “in the worst-case … 1.01% slower”"),
    ],
)
FAILURES = Numbers(
    *_GELADO,
    [
        (2 * KIB, 0.5, "section 5.3, “the 2KB case also shows a high number (50%) of failed allocations”"),
        *((KIB << order, 0, "section 5.3, “sizes larger than 4KB … our allocator never fails”") for order in range(3, 10)),
    ],
)
AGAINST_TOOLKIT = Numbers(
    *_GELADO,
    [
        ("at most", 346, "section 1, “between 0.22 and 346 times faster”"),
        ("mean", 16.56, "section 1, “an average 16.56X improvement”"),
        ("at least", 0.22, "section 1, “between 0.22 and 346 times faster”"),
    ],
)

# The slides, CUDA 5.5. Those of the two tests by threads, of external fragmentation and of the prefix sum have no number.
_HALLOC = ("the slides", "K20X")
SIZES = Numbers(
    *_HALLOC,
    [
        (32, 50.66 * GIB, "slide Head Replacement, “1.7 Gmalloc/s × 32 B = 50.66 GiB/s”, of a test that is not named"),
        ("15 GiB/s", 15 * GIB, "slide Different Allocation Sizes, “around 15–20 GiB/s”"),
        ("20 GiB/s", 20 * GIB, "slide Different Allocation Sizes, “around 15–20 GiB/s”"),
    ],
)
WAVES = Numbers(*_HALLOC, [(32, 1.7e9, "slide Head Replacement, “1.7 Gmalloc/s × 32 B”, of a test that is not named")])
AGAINST_SCATTER = Numbers(
    *_HALLOC,
    [
        ("holds, from", 3, "slide Halloc vs ScatterAlloc, “ScatterAlloc ‘holds’: Halloc is 3–4x faster”"),
        ("holds, to", 4, "slide Halloc vs ScatterAlloc, “ScatterAlloc ‘holds’: Halloc is 3–4x faster”"),
        ("else, from", 10, "slide Halloc vs ScatterAlloc, “‘doesn’t hold’: Halloc is 10–1000x faster”"),
        ("else, to", 1000, "slide Halloc vs ScatterAlloc, “‘doesn’t hold’: Halloc is 10–1000x faster”"),
    ],
)

# CUDA 11.4. Of figures 1, 4, 10 and 13 the text has no number. Orders of magnitude are as round as they are there.
_PHAM = ("the paper", "Titan V")
PAGES = Numbers(*_PHAM, [("most, over", 10, "section 5.2.1, “by more than an order of magnitude under most of the cases”")])
BITMAP = Numbers(*_PHAM, [("few free", 32, "section 5.2.1, “when the percentage approaches zero … very close to 32”")])
MALLOC_BY_THREADS = Numbers(
    *_PHAM, [("up to", 1000, "section 5.2.2, “faster than Ouroboros by up to 3 orders of magnitude”")]
)
FREE_BY_THREADS = Numbers(*_PHAM, [("up to", 10, "section 5.2.2, “by up to an order of magnitude”")])
MIXED = Numbers(*_PHAM, [("best cases", 100, "section 5.2.2, “reaches 2 orders of magnitude in the best cases”")])
UTILISATION = Numbers(*_PHAM, [("RW_malloc", 1, "section 5.2.2, “always close to 100%”")])

# Chapter 5, CUDA 6.0. Of figures 5.1 to 5.4 and B.1 the text has neither cycles nor times.
_ECKERT = "the thesis"
STEPS = Numbers(  # in percent
    _ECKERT,
    "K20M",
    [
        ("peak", 103, "section 5.2.2, “one around 103% and one around 107%”"),
        ("median", 103.7, "figure 5.5, “a median of 3.7%”"),
        ("mean", 104.5, "figure 5.5, “4.5% longer”; section 5.2.2 has 4.6%"),
        ("peak", 107, "section 5.2.2, “one around 103% and one around 107%”"),
    ],
)
SPECIES = Numbers(
    _ECKERT,
    "computed",
    [
        *((species, 1, "section 5.2.2, mallocMC and CUDA “100% … by a single species”") for species in range(1, 17)),
        *((species, 1 / species, "section 5.2.2, HeapBuffer “never … more than 1/n”") for species in range(2, 17)),
    ],
)
