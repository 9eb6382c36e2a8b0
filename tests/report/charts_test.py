# SPDX-License-Identifier: Apache-2.0
"""What charts and tables say: the summary, who leads, what changed between two sets, maps of a heap, the papers' figures."""

import re
import unittest

from report_fixture import HTML, ROOT, SVG, H200, burst, document, page, page_of, results, row, sources_of

import comparison
import heap_map
import paper_gelado
import paper_halloc
import paper_pham
import papers
import scales
import sections
import stated
import styles
import svg
import text


def fill_level(allocator, level, time, refused=0.0):
    failures = int(1000 * refused)
    return row(
        allocator,
        "constant malloc",
        "fill_level",
        (time, time * 1.01, time * 1.02),
        failures,
        {"failed_share": refused},
        level_permille=level,
        least_bytes=16,
        most_bytes=4096,
        slots=4096,
        kernels=8,
        pool_bytes=1 << 20,
    )


def table_cells(made, section):
    """{row: cells} of the first table of leaders."""
    table = next(each for each in made.section(section).iter(f"{HTML}table") if each.get("class") == "leaders")
    return {line[0].text: [made.words(cell) for cell in line[1:]] for line in table.find(f"{HTML}tbody")}


def best_cells(made, section):
    table = next(each for each in made.section(section).iter(f"{HTML}table") if each.get("class") == "leaders")
    return {line[0].text for line in table.find(f"{HTML}tbody") if any(cell.get("class") == "best" for cell in line)}


class TheSummary(unittest.TestCase):
    def test_says_which_allocator_to_take_for_a_burst_and_by_how_much(self):
        floor = row("null", times=(8.0, 8.0, 8.0), bytes=0, threads=1024)
        words = page_of(document(floor, burst("scatter", 60), burst("slab_bitmap", 20), burst("halloc", 20.1))).cards()[
            "Bursts of 256 B"
        ]
        self.assertIn("slab_bitmap or halloc : 20.0 µs", words)
        self.assertIn("halloc 20.1 µs no difference beyond the spread", words)
        self.assertIn("scatter 60.0 µs 3.00× as long", words)
        self.assertIn("1,024 threads, 1 GiB pool; null 8.00 µs", words)

    def test_names_the_size_that_was_measured_where_it_is_another(self):
        cards = page_of(document(burst("slab_bitmap", 20, 64), burst("slab_bitmap", 90, 4096))).cards()
        self.assertIn("Bursts of 256 B (measured: 64 B)", cards)
        self.assertIn("Bursts of 4 KiB", cards)
        self.assertIn("The only one measured here.", cards["Bursts of 4 KiB"])

    def test_of_churn_at_90_percent_fill_lets_none_lead_that_refuses_calls_others_serve(self):
        rows = [fill_level("slab_bitmap", 900, 50, 0.05), fill_level("scatter", 900, 80)]
        words = page_of(document(*rows)).cards()["Churn at 90% fill"]
        self.assertIn("scatter : 80.8 µs", words)
        self.assertIn("slab_bitmap 50.5 µs but refuses 5% of the calls", words)
        words = page_of(
            document(fill_level("slab_bitmap", 900, 50, 0.05), fill_level("scatter", 900, 80, 0.1))
        ).cards()["Churn at 90% fill"]
        self.assertIn("slab_bitmap : 50.5 µs, refusing 5% of the calls", words)

    def test_shows_the_nearest_level_at_which_several_were_measured_too(self):
        rows = [fill_level("slab_bitmap", 900, 50), fill_level("slab_bitmap", 700, 30), fill_level("halloc", 700, 300)]
        words = page_of(document(*rows)).cards()["Churn at 90% fill"]
        self.assertIn("slab_bitmap : 50.5 µs The only one measured here.", words)
        self.assertIn("At 70%, where more were measured slab_bitmap : 30.3 µs halloc 303 µs 10.0× as long", words)

    def test_counts_what_leads(self):
        made = page_of(
            document(
                burst("slab_bitmap", 20, 16),
                burst("scatter", 40, 16),
                burst("slab_bitmap", 50, 4096),
                burst("scatter", 20, 4096),
            )
        )
        words = made.words(made.section("summary"))
        self.assertRegex(words, "Of 3 common loads with two or more allocators measured")

    def test_is_absent_where_nothing_of_it_was_measured(self):
        made = page_of(document(row(scenario="atomic", bytes=1)))
        self.assertIsNone(made.section("summary"))


class Leaders(unittest.TestCase):
    def test_have_ratio_1_and_the_others_their_ratio_beside_what_was_measured(self):
        rows = [
            burst("slab_bitmap", 20),
            burst("scatter", 30),
            burst("slab_bitmap", 40, 1024),
            burst("scatter", 10, 1024),
        ]
        made = page_of(document(*rows))
        self.assertEqual(
            table_cells(made, "burst"),
            {"slab_bitmap": ["1.00 20.0 µs", "4.00 40.0 µs"], "scatter": ["1.50 30.0 µs", "1.00 10.0 µs"]},
        )

    def test_do_not_differ_where_spreads_overlap(self):
        rows = [
            row("slab_bitmap", times=(20.0, 21.0, 24.0), bytes=64),
            row("scatter", times=(23.0, 25.0, 26.0), bytes=64),
            row("halloc", times=(30.0,) * 3, bytes=64),
        ]
        self.assertEqual(best_cells(page_of(document(*rows)), "burst"), {"slab_bitmap", "scatter"})

    def test_are_not_widened_by_one_odd_time_of_five(self):
        rows = [
            row("slab_bitmap", times=(20.0, 21.0, 21.0, 22.0, 90.0), bytes=64),
            row("scatter", times=(30.0, 31.0, 31.0, 32.0, 9.0), bytes=64),
        ]
        self.assertEqual(best_cells(page_of(document(*rows)), "burst"), {"slab_bitmap"})

    def test_are_none_of_those_that_refused_calls_which_others_served(self):
        made = page_of(document(burst("slab_bitmap", 20), burst("scatter", 10, failures=7)))
        self.assertEqual(best_cells(made, "burst"), {"slab_bitmap"})
        self.assertEqual(table_cells(made, "burst")["scatter"], ["0.50 10.0 µs†"])

    def test_are_allocators_and_not_what_stands_beside_them(self):
        rows = [
            row(name, "join", "join", (time,) * 3, build_tuples=16384)
            for name, time in (("direct", 10.0), ("slab_bitmap", 20.0), ("scatter", 40.0))
        ]
        made = page_of(document(*rows))
        self.assertEqual(best_cells(made, "join"), {"slab_bitmap"})
        self.assertEqual(table_cells(made, "join")["direct"], ["0.50 10.0 µs"])

    def test_of_rates_are_the_highest(self):
        rows = [
            row(name, scenario="exhaust", times=(time,) * 3, bytes=64)
            for name, time in (("slab_bitmap", 10.0), ("scatter", 40.0))
        ]
        made = page_of(document(*rows))
        self.assertEqual(best_cells(made, "exhaust"), {"slab_bitmap"})
        self.assertEqual(table_cells(made, "exhaust"), {"slab_bitmap": ["1.00 100 k/s"], "scatter": ["4.00 25.0 k/s"]})


class Comparisons(unittest.TestCase):
    def pairs(self, before, after):
        made = page_of(document(*after), before=[document(*before)])
        return made, made.words(made.section("compared"))

    def test_tell_faster_slower_and_unchanged_by_the_spread_of_repetitions(self):
        names = ("a", "b", "c", "d")
        before = [row(name, times=(20.0, 21.0, 22.0), bytes=64) for name in names]
        after = [
            row(name, times=times, bytes=64)
            for name, times in zip(names, ((10.0, 10.5, 11.0), (40.0, 42.0, 44.0), (21.5, 22.5, 23.0), (50.0,)))
        ]
        made, words = self.pairs(before, after)
        self.assertIn("4 rows are in both sets: 1 faster, 1 slower, 1 unchanged, 1 not told: one repetition.", words)
        self.assertIn("burst a malloc, 64 B 21.0 µs 10.5 µs 0.50 faster", words)
        self.assertIn("burst b malloc, 64 B 21.0 µs 42.0 µs 2.00 slower", words)
        self.assertIn("burst c malloc, 64 B 21.0 µs 22.5 µs 1.07 unchanged", words)
        self.assertIn("before-and-after", made.pictures)

    def test_count_rows_of_one_set_alone(self):
        _, words = self.pairs([burst("a", 20), burst("b", 20)], [burst("b", 20), burst("c", 20), burst("d", 20)])
        self.assertIn("1 rows are in both sets", words)
        self.assertIn("1 rows are only in the set before, and 2 only in the one after", words)

    def test_say_that_machines_differ(self):
        made = page_of(
            document(burst("a", 20)), before=[document(burst("a", 30), machine={**H200, "device": "NVIDIA A100"})]
        )
        self.assertIn("Before and after are not of the same machines", made.words())
        self.assertIn("1 rows are in both sets", made.words(made.section("compared")))
        self.assertNotIn(
            "not of the same machines", page_of(document(burst("a", 20)), before=[document(burst("a", 30))]).words()
        )

    def test_pair_rows_of_one_machine_where_there_are_some(self):
        other = {**H200, "device": "NVIDIA A100"}
        before = [document(burst("a", 10)), document(burst("a", 99), machine=other)]
        after = [document(burst("a", 20)), document(burst("a", 99), machine=other)]
        made = page_of(*after, before=before)
        self.assertIn("1 slower, 1 unchanged", made.words(made.section("compared")))

    def test_of_sets_without_a_common_row_say_so(self):
        made, words = self.pairs([burst("a", 20)], [burst("b", 20)])
        self.assertIn("0 rows are in both sets: none.", words)
        self.assertNotIn("before-and-after", made.pictures)

    def test_keep_backends_apart(self):
        pairs, _, _ = comparison.pairs_of(
            [
                each
                for source in [
                    results.source_of(
                        "a", '{"backend": "host", "results": [{"scenario": "s", "times_us": [1], "median_us": 1}]}'
                    )
                ]
                for each in source.rows
            ],
            [
                each
                for source in [
                    results.source_of(
                        "b", '{"backend": "cuda", "results": [{"scenario": "s", "times_us": [1], "median_us": 1}]}'
                    )
                ]
                for each in source.rows
            ],
        )
        self.assertEqual(pairs, [])


class Maps(unittest.TestCase):
    def mapped(self, step, octaves, permilles):
        return row(
            "slab_bitmap",
            "drifting",
            "map",
            figures={"cell_octave": octaves, "cell_permille": permilles},
            step=step,
            level_permille=900,
            cell_bytes=64,
        )

    def test_have_a_strip_for_each_step_with_hues_of_sizes_and_depths_of_fill(self):
        octaves = [16] * 64 + [0] * 32 + [2048] * 32
        made = page_of(
            document(self.mapped(8, octaves, [100] * 64 + [0] * 32 + [950] * 32), self.mapped(1, [0] * 128, [0] * 128))
        )
        drawn = next(made.section("map").iter(f"{SVG}svg"))
        words = made.words(drawn)
        self.assertIn("slab_bitmap, drifting sizes, asked for 90% of the pool", words)
        self.assertLess(words.index("step 1"), words.index("step 8"))
        self.assertIn("28.7%", words)  # (64 * 100 + 32 * 950) / 128
        cells = {
            (each.get("class"), each.get("fill-opacity"))
            for each in drawn.iter(f"{SVG}path")
            if each.get("fill-opacity")
        }
        self.assertIn(("q0", "0.22"), cells)
        self.assertIn(("q7", "1"), cells)
        self.assertEqual([name for name in made.pictures], ["map"])

    def test_cover_as_much_of_the_strip_as_has_blocks(self):
        picture = svg.Picture(heap_map.WIDTH, 100, "")
        heap_map._draw_strip(picture, 0, [(16, 500)] * 32 + [(0, 0)] * 64 + [(64, 500)] * 32)
        widths = [
            float(number)
            for part in picture.parts
            if "fill-opacity" in part
            for number in re.findall(r"M[\d.]+ [\d.]+h([\d.]+)", part)
        ]
        self.assertAlmostEqual(sum(widths), (heap_map.WIDTH - heap_map.LEFT - 56) / 2, delta=0.2)

    def test_put_cells_together_where_there_are_more_than_columns(self):
        columns = heap_map.columns_of([16, 64] * heap_map.COLUMNS, [200, 600] * heap_map.COLUMNS)
        self.assertEqual(columns, [(64, 400)] * heap_map.COLUMNS)

    def test_of_broken_lists_are_left_out(self):
        for octaves, permilles in (([16], [1, 2]), ([], []), ([16], ["x"]), ([-1], [5])):
            made = page_of(document(self.mapped(1, octaves, permilles)))
            self.assertEqual(list(made.section("map").iter(f"{SVG}svg")), [])


def exhausted(allocator, size, share, **shape):
    pool = min(512 << 20, size << 20)
    return row(allocator, scenario="exhaust", figures={"failed_share": share}, bytes=size, pool_bytes=pool, **shape)


def figures_of(paper, *rows):
    """{number: figure} of one paper."""
    made = papers.Rows([each for source in sources_of(document(*rows)) for each in source.rows])
    return {each.number: each for each in paper.figures(made)}


def drawn_points(panel):
    """{name: [(x, y)]} of a panel's lines."""
    return {each.name: [(point.x, point.y) for point in each.points] for each in panel.series}


def queue_rows():
    """What is drawn of queues beside random walks, of which queue_pages is the fastest by 1,024 threads."""
    times = {"rw_malloc": {1024: 10, 4096: 10}, "queue_pages": {1024: 100, 4096: 400}, "queue_chunks": {1024: 200, 4096: 300}}
    alike = {"bytes": 16, "pool_bytes": 8 << 30}
    walked = {"pages": 1 << 25, "free_pages": 1 << 24}
    made = []
    for name, by_threads in times.items():
        for threads, time in by_threads.items():
            given = {"times": (time,) * 3, "threads": threads}
            made += [row(name, operation, "scaling", **given, **alike) for operation in ("malloc", "free")]
            made.append(row(name, "malloc", "mixed", **given, least_bytes=4, most_bytes=64, pool_bytes=8 << 30))
            made.append(row("corw" if name == "rw_malloc" else name, "get_page", "random_walk", **given, **walked))
        made.append(row(name, "malloc", "burst", bytes=64, threads=1 << 20, pool_bytes=8 << 30))
        made.append(row(name, "fill", "utilisation", figures={"utilisation": 1}, bytes=16, pool_bytes=64 << 20))
        made.append(row("corw_256" if name == "rw_malloc" else name, "join", "join", lanes_a_chain=32, build_tuples=16384))
    return made


class Papers(unittest.TestCase):
    def test_have_their_figures_where_the_results_are(self):
        made = page.build(results.read_all([str(ROOT / "bench" / "results")]))[0]
        for name in ("Figure 5: Bulk", "Figure 6: Speedup", "Figure 7: The allocator", "Slides, throughput by threads", "Slides, throughput by size", "Slides, two-phase test",
                     "Slides, fragmentation", "Slides, against a prefix sum", "Figure 1: Latency", "Figures 4 and 7", "Figure 8: What", "Figure 9: RW_malloc", "Figure 10: RW_malloc",
                     "Figure 11: Mixed", "Figure 12: How full", "Figure 13: A hash join", "Figure 5.1: Cycles", "Figure 5.2: Cycles", "Figure B.1: Every", "Figures 5.3 and 5.4",
                     "Figure 5.5: A step", "Figure 5.6: Particles"):  # fmt: skip
            self.assertIn(f"<h4>{name}", made)
        without = "The text has no number for these axes."
        self.assertIn(without, re.search("<h4>Figure 5: Bulk[^<]*</h4><p>([^<]*)</p>", made)[1])
        self.assertNotIn(without, re.search("<h4>Figure 6: Speedup[^<]*</h4><p>([^<]*)</p>", made)[1])

    def test_have_a_stated_number_where_a_measured_one_of_its_size_would_be(self):
        shares = {256: 0.1, 2048: 0.5, 8192: 0.0}
        made = page_of(document(*(exhausted("throughput", size, shares[size]) for size in shares)))
        drawn = "".join(made.pictures["gelado-7-no-2"].parts)
        shapes = (svg.MARKS[name][1] for name in ("diamond", "star"))
        measured, stars = (re.findall(rf"M([\d.]+ [\d.]+){re.escape(shape)}", drawn) for shape in shapes)
        self.assertEqual((len(measured), len(stars)), (3, 8))
        self.assertEqual(set(measured[1:]) - set(stars), set())
        self.assertNotIn(measured[0], stars)
        self.assertIn("the paper, Titan V", drawn)
        self.assertIsNone(re.search(r'class="l[^"]* c5"', drawn))  # unconnected
        self.assertIn("(50%) of failed allocations", made.words(made.section("papers")))

    def test_draw_every_number_that_is_stated(self):
        rows = [each for source in results.read_all([str(ROOT / "bench" / "results")]) for each in source.rows]
        rows += [each for source in sources_of(document(*queue_rows())) for each in source.rows]
        figures = [each for paper in sections.PAPERS for each in paper.figures(papers.Rows(rows))]
        drawn = {place for figure in figures for panel in figure.panels for place in panel.places}
        known = [each for each in vars(stated).values() if isinstance(each, stated.Numbers)]
        self.assertEqual(drawn, {place for each in known for place in each.places})

    def test_draw_no_number_where_nothing_was_measured(self):
        self.assertIsNone(papers.panel("", [], "share", "", "", "", stated=stated.FAILURES))

    def test_make_no_line_of_pools_or_waves_that_differ(self):
        fills = [
            row("rw_malloc", "fill", "utilisation", figures={"utilisation": 1 / pool}, bytes=64, pool_bytes=pool)
            for pool in (8, 4)
        ]
        by_pool = [drawn_points(panel)["rw_malloc"] for panel in figures_of(paper_pham, *fills)["12"].panels]
        self.assertEqual(by_pool, [[(64, 1 / 4)], [(64, 1 / 8)]])
        alike = {"bytes": 16, "rounds": 64, "drawn_by": 32, "pool_bytes": 512 << 20}
        waves = [row("halloc", "spree", "two_phase", (time,) * 3, threads=time, **alike) for time in (32, 1024, 25000)]
        short = row("halloc", "spree", "two_phase", threads=25000, **{**alike, "rounds": 16})
        figures = figures_of(paper_halloc, *waves, short)
        (by_threads,) = figures["throughput by threads"].panels
        self.assertEqual(drawn_points(by_threads)["halloc"], [(time, 1e6 / time) for time in (32, 1024, 25000)])
        self.assertEqual(drawn_points(figures["two-phase test"].panels[0])["halloc"], [(16, 1e6 / 25000)])

    def test_take_means_over_all_sizes_of_thread_blocks(self):
        failed = [exhausted("throughput", 8, share, thread_block=size) for size, share in ((1, 0.1), (1024, 0.3))]
        (_, failures) = figures_of(paper_gelado, *failed, exhausted("throughput", 16, 0.5))["7"].panels
        self.assertEqual(drawn_points(failures)["throughput"], [(8, 0.2), (16, 0.5)])
        waits = [
            row("bulk_semaphore", "wait", "semaphore", (time,) * 3, threads=64, batch=512, batch_ns=0, least_thread_block=least,
                most_thread_block=64, shapes=shapes) for time, least, shapes in ((10, 1, 7), (20, 32, 2))
        ]  # fmt: skip
        (panel,) = figures_of(paper_gelado, *waits)["5"].panels
        self.assertEqual(drawn_points(panel), {"bulk_semaphore": [(64, 1e5)]})

    def test_show_index_queues_beside_random_walks(self):
        figures = figures_of(paper_pham, *queue_rows())
        for number in ("4 and 7", "9", "10", "11", "12", "13"):
            named = [{each.name for each in panel.series} for panel in figures[number].panels]
            self.assertTrue(any({"queue_pages", "queue_chunks"} < names for names in named), number)
        gain = figures["9"].panels[0]
        self.assertEqual(drawn_points(gain), {"16 B": [(1024, 10), (4096, 30)]})
        self.assertEqual(gain.floors, [("Titan V: up to", 1000)])

    def test_are_absent_without_their_results(self):
        self.assertIsNone(page_of(document(row(scenario="churn"))).section("papers"))


class Scales(unittest.TestCase):
    def test_put_equal_ratios_at_equal_distances(self):
        scale = scales.Scale(1, 1000, 0, 300, True)
        self.assertEqual([round(scale(value)) for value in (1, 10, 100, 1000)], [0, 100, 200, 300])

    def test_have_ticks_within_their_ends_in_any_range(self):
        for low, high in ((1, 2), (0.9, 1.1), (3, 4000), (1e-9, 1e9), (7, 7)):
            scale = scales.value_scale([low, high], 300, 0, "time")
            ticks = scales.value_ticks(scale)
            self.assertGreaterEqual(len(ticks), 2, (low, high))
            self.assertLessEqual(len(ticks), 12, (low, high))
            self.assertTrue(all(scale.low <= tick <= scale.high * 1.000001 for tick in ticks))
            self.assertLessEqual(scale.low, low)
            self.assertGreaterEqual(scale.high, high)

    def test_of_shares_begin_at_zero(self):
        scale = scales.value_scale([0.4, 0.9], 300, 0, "share")
        self.assertEqual((scale.logarithmic, scale.low), (False, 0))

    def test_put_names_apart_and_keep_their_order(self):
        placed = scales.spread_out([10, 11, 12, 90, 98], 13, 0, 100)
        self.assertTrue(all(after - before >= 13 for before, after in zip(placed, placed[1:])))
        self.assertLessEqual(placed[-1], 100)


class Words(unittest.TestCase):
    def test_of_numbers_have_three_digits_and_a_unit(self):
        for value, told in (
            (0.0123, "12.3 ns"),
            (8.416, "8.42 µs"),
            (999.6, "1.00 ms"),
            (20123.0, "20.1 ms"),
            (3.4e6, "3.40 s"),
        ):
            self.assertEqual(text.time_text(value), told)
        self.assertEqual([text.bytes_text(value) for value in (16, 1000, 1024, 3000, 1536, 8 << 30, 128849018880)],
                         ["16 B", "1,000 B", "1 KiB", "3,000 B", "1.5 KiB", "8 GiB", "120 GiB"])  # fmt: skip
        self.assertEqual([text.count_text(value) for value in (1024, 1 << 20, 100000)], ["1,024", "2²⁰", "100,000"])
        self.assertEqual(
            [text.ratio_text(value) for value in (1.0, 0.0078, 3.456, 45.67, 1234.5)],
            ["1.00", "0.0078", "3.46", "45.7", "1,234"],
        )
        self.assertEqual([text.tick_text("time", value) for value in (10, 1000, 1500)], ["10 µs", "1 ms", "1.5 ms"])
        self.assertEqual(
            [text.six_digits(value) for value in (8.415999822318554, 1048576, 6584955.0, True)],
            ["8.416", "1048576", "6584955", "yes"],
        )


def _luminance(colour):
    colour = colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class Styles(unittest.TestCase):
    def test_of_two_allocators_differ_in_more_than_their_colour(self):
        shapes = {}
        for name, (colour, mark, dash) in styles.KNOWN.items():
            if not name.endswith("_256") or name == "rw_malloc_256":  # join's walks stand in for those of 8 KiB
                shapes.setdefault((colour, mark, dash), []).append(name)
        alike = [names for names in shapes.values() if len(names) > 1]
        self.assertLessEqual({name for names in alike for name in names}, {
            "null", "packed", "queue", "one_piece", "direct_warp", "scatter", "slab_bitmap", "halloc",
            "counting_semaphore", "bulk_semaphore", "spin_mutex", "collective_mutex", "each_lane", "each_warp", "own_word"})  # fmt: skip

    def test_show_on_paper_and_on_a_dark_screen(self):
        for theme, paper in ((0, styles.LIGHT["paper"]), (1, styles.DARK["paper"])):
            for pair in styles.COLOURS:
                lights = sorted((_luminance(pair[theme]), _luminance(paper)))
                self.assertGreater((lights[1] + 0.05) / (lights[0] + 0.05), 3, pair)

    def test_of_unknown_names_are_each_their_own(self):
        others = {}
        given = [styles.style_of(f"name {number}", others) for number in range(30)]
        self.assertEqual(len(set(given)), 30)
        self.assertEqual(styles.style_of("name 3", others), given[3])


if __name__ == "__main__":
    unittest.main()
