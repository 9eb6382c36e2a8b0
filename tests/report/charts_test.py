# SPDX-License-Identifier: Apache-2.0
"""What charts and tables say: which allocator to take, who leads, what changed between two sets, maps of a heap."""

import unittest

from report_fixture import H200, SVG, burst, document, page_of, row, sources_of

import charts
import comparison
import heap_map
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
    return {name: texts for name, (texts, _) in made.table_rows(section, "leaders").items()}


def best_cells(made, section):
    return {name for name, (_, classes) in made.table_rows(section, "leaders").items() if "best" in classes}


class CommonLoads(unittest.TestCase):
    def test_say_which_allocator_to_take_for_a_burst_and_by_how_much(self):
        baseline = row("null", times=(8.0, 8.0, 8.0), bytes=0, threads=1024)
        made = page_of(document(baseline, burst("scatter", 60), burst("slab_bitmap", 20), burst("halloc", 20.1)))
        (words,) = made.loads()["Bursts of 256 B"]
        self.assertIn("slab_bitmap (the default) and halloc 20.0 µs scatter 60.0 µs (3.00× as long)", words)
        self.assertIn("size of a block: 256 B, 1,024 threads, 1 GiB pool, null kernel: 8.00 µs", words)

    def test_name_the_default_first_among_equals_and_wherever_it_stands(self):
        (words,) = page_of(document(burst("scatter", 19.9), burst("slab_bitmap", 20))).loads()["Bursts of 256 B"]
        self.assertIn("slab_bitmap (the default) and scatter 19.9 µs none", words)
        others = [burst(name, 30 + number) for number, name in enumerate(("halloc", "tbuddy", "ualloc", "rw", "queue_pages"))]
        (words,) = page_of(document(burst("scatter", 20), *others, burst("slab_bitmap", 90))).loads()["Bursts of 256 B"]
        self.assertIn("scatter 20.0 µs slab_bitmap (the default) 90.0 µs (4.50× as long); halloc", words)

    def test_are_of_the_size_nearest_to_theirs(self):
        (words,) = page_of(document(burst("slab_bitmap", 20, 3000), burst("scatter", 20, 3000))).loads()["Bursts of 4 KiB"]
        self.assertIn("median time of the kernel; size of a block: 3,000 B", words)

    def test_have_loads_without_an_axis(self):
        rows = [row(name, "malloc+free", "churn", (time,) * 3, rounds=64) for name, time in (("slab_bitmap", 10.0), ("scatter", 40.0))]
        made = page_of(document(*rows))
        self.assertIn("in this load: slab_bitmap (the default) in 1", made.words(made.section("loads")))
        self.assertEqual(list(made.loads()), ["load", "Churn within a kernel"])

    def test_are_not_decided_where_a_spread_is_wide(self):
        rows = [row("slab_bitmap", times=(20.0, 21.0, 22.0), bytes=256), row("scatter", times=(10.0, 30.0, 77.0), bytes=256)]
        made = page_of(document(*rows))
        (words,) = made.loads()["Bursts of 256 B"]
        self.assertIn("undecided, the spread is too wide (7.70×): slab_bitmap (the default) and scatter 21.0 µs none", words)
        self.assertIn("in this load: none", made.words(made.section("loads")))
        self.assertEqual(best_cells(made, "burst"), {"slab_bitmap"})
        self.assertEqual(table_cells(made, "burst")["scatter"], ["1.43 30.0 µs, undecided, the spread is too wide"])

    def test_let_none_lead_that_refuses_calls_others_serve(self):
        rows = [fill_level("slab_bitmap", 900, 50, 0.05), fill_level("scatter", 900, 80)]
        (words,) = page_of(document(*rows)).loads()["Churn at 90% fill"]
        self.assertIn("scatter 80.8 µs slab_bitmap (the default) 50.5 µs (refuses 5% of the calls)", words)
        rows[1] = fill_level("scatter", 900, 80, 0.1)
        (words,) = page_of(document(*rows)).loads()["Churn at 90% fill"]
        self.assertIn("slab_bitmap (the default) (refuses 5% of the calls) 50.5 µs scatter 80.8 µs (refuses 10% of the calls)", words)

    def test_are_of_the_nearest_level_at_which_several_were_measured(self):
        rows = [fill_level("slab_bitmap", 900, 50), fill_level("slab_bitmap", 700, 30), fill_level("halloc", 700, 300)]
        (several,) = page_of(document(*rows)).loads()["Churn at 90% fill"]
        self.assertIn("slab_bitmap (the default) 30.3 µs halloc 303 µs (10.0× as long)", several)

    def test_count_what_leads(self):
        rows = [burst(name, time, size) for name, size, time in
                (("slab_bitmap", 16, 20), ("scatter", 16, 40), ("slab_bitmap", 4096, 50), ("scatter", 4096, 20))]  # fmt: skip
        made = page_of(document(*rows))
        self.assertIn("in these 2 loads: slab_bitmap (the default) in 1 and scatter in 1", made.words(made.section("loads")))
        self.assertEqual(list(made.loads()), ["load", "Bursts of 16 B", "Bursts of 4 KiB"], "and none twice")

    def test_name_no_leader_of_one_allocator(self):
        self.assertIsNone(page_of(document(burst("slab_bitmap", 20))).section("loads"))

    def test_are_absent_where_nothing_of_them_was_measured(self):
        self.assertIsNone(page_of(document(row(scenario="atomic", bytes=1))).section("loads"))


class Charts(unittest.TestCase):
    def panel(self, *rows):
        made = page_of(document(*rows)).made.sections[0]
        return made.views[0][1][0]

    def test_have_the_default_and_cudas_own_and_of_each_family_the_best_before_others(self):
        times = {"toolkit": 900, "halloc": 30, "halloc_split": 20, "scatter": 50, "scatter_frames": 60, "tbuddy": 70, "ualloc": 80, "slab_bitmap": 40}
        panel = self.panel(*(burst(name, time, size) for name, time in times.items() for size in (16, 64)))
        names = [each.name for each in panel.ranked()]
        self.assertEqual(names, ["slab_bitmap", "toolkit", "halloc_split", "scatter", "tbuddy", "ualloc", "halloc", "scatter_frames"])
        drawn = {words.partition(",")[0] for *_, words in charts.draw(panel).points}
        self.assertEqual(drawn, {"CUDA's malloc", *names[:6]} - {"toolkit"})

    def test_have_the_null_kernel_as_a_line_where_it_was_measured_along_the_axis(self):
        def scaling(name, time, threads, size=64):
            return row(name, scenario="scaling", times=(time,) * 3, bytes=size, threads=threads)

        panel = self.panel(*(scaling("slab_bitmap", 9, threads) for threads in (32, 64)), *(scaling("null", 5, threads, 0) for threads in (32, 64)))
        self.assertEqual([(each.name, [point.y for point in each.points]) for each in panel.series], [("slab_bitmap", [9, 9]), ("null", [5, 5])])
        self.assertEqual(panel.best_of(panel.column(32))[0], "slab_bitmap", "the null kernel leads nothing")

    def test_mark_points_that_refused_calls_and_tell_how_many(self):
        rows = [fill_level(name, level, 50, refused) for level in (700, 900) for name, refused in (("slab_bitmap", 0.0), ("scatter", 0.8))]
        made = page_of(document(*rows))
        (told,) = made.charts()[:1]
        self.assertEqual([each.endswith("refuses 80% of the calls") for each in told], ["scatter" in each for each in told])
        words = [each.text for each in made.root.iter(f"{SVG}text")]
        self.assertIn("scatter †", words)
        self.assertNotIn("slab_bitmap †", words)
        self.assertTrue(any("† hollow: refused calls" in each for each in words if each))

    def test_put_each_point_where_its_value_is(self):
        points = charts.draw(self.panel(*(burst("slab_bitmap", size, size) for size in (10, 100, 1000)))).points
        (x1, y1, *_), (x2, y2, *_), (x3, y3, *_) = points
        self.assertAlmostEqual(x2 - x1, x3 - x2, delta=0.2)
        self.assertAlmostEqual(y1 - y2, y2 - y3, delta=0.2)

    def test_have_a_row_for_each_name_where_there_is_nothing_to_draw_over(self):
        picture = charts.draw(self.panel(burst("scatter", 30), burst("slab_bitmap", 20)))
        self.assertEqual([words.partition(",")[0] for *_, words in picture.points], ["slab_bitmap", "scatter"])

    def test_put_no_loads_together_that_differ(self):
        rows = [row("slab_bitmap", times=(threads,) * 3, bytes=size, threads=threads, pool_bytes=1 << 20) for threads in (32, 64) for size in (16, 64)]
        told = [[words for *_, words in charts.draw(panel).points] for panel in page_of(document(*rows)).made.sections[0].views[0][1]]
        self.assertEqual(told, [["slab_bitmap, 16 B: 32.0 µs", "slab_bitmap, 64 B: 32.0 µs"], ["slab_bitmap, 16 B: 64.0 µs", "slab_bitmap, 64 B: 64.0 µs"]])

    def test_put_files_together_whose_pool_follows_from_the_size(self):
        rows = [row("slab_bitmap", scenario="exhaust", bytes=size, pool_bytes=size << 20) for size in (16, 64)]
        other = [row("scatter", scenario="exhaust", bytes=size, pool_bytes=size << 20) for size in (16, 64)]
        small = [row("halloc", scenario="exhaust", bytes=size, pool_bytes=1 << 20) for size in (16, 64)]
        found = page_of(document(*rows), document(*other), document(*small)).made.sections[0].views[0][1]
        self.assertEqual([(panel.title, [each.name for each in panel.series]) for panel in found],
                         [("malloc, 16 to 64 MiB pool", ["slab_bitmap", "scatter"]), ("malloc, 1 MiB pool", ["halloc"])])  # fmt: skip

    def test_name_ends_of_lines_apart_and_in_order(self):
        placed = charts.spread_out([10, 11, 12, 90, 98], 13, 0, 100)
        self.assertTrue(all(after - before >= 13 for before, after in zip(placed, placed[1:])))
        self.assertLessEqual(placed[-1], 100)

    def test_show_on_paper_and_on_a_dark_screen(self):
        def luminance(colour):
            parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
            linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        for name, pair in charts.THEMES.items():
            for colour, paper in zip(pair, charts.THEMES["paper"]):
                low, high = sorted((luminance(colour), luminance(paper)))
                self.assertTrue(name in ("paper", "rule") or (high + 0.05) / (low + 0.05) > 3, (name, colour))


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
        self.assertEqual(table_cells(made, "burst")["scatter"], ["0.50† 10.0 µs, refuses 87.5% of the calls"])

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
        names = ("a", "b", "c", "d", "e")
        before = [row(name, times=(20.0, 21.0, 22.0), bytes=64) for name in names]
        after = [
            row(name, times=times, bytes=64)
            for name, times in zip(names, ((10.0, 10.5, 11.0), (40.0, 42.0, 44.0), (21.5, 22.5, 23.0), (50.0,), (10.0, 30.0, 40.0)))
        ]
        made, words = self.pairs(before, after)
        self.assertIn("5 rows are in both sets: 1 faster, 1 slower, 1 unchanged, 1 undecided, the spread is too wide, 1 not told: one repetition.", words)
        self.assertIn("burst a malloc, 64 B 21.0 µs 10.5 µs 0.50 faster", words)
        self.assertIn("burst b malloc, 64 B 21.0 µs 42.0 µs 2.00 slower", words)
        self.assertIn("burst c malloc, 64 B 21.0 µs 22.5 µs 1.07 unchanged", words)
        self.assertIn("before-and-after", made.made.pictures)

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
        self.assertNotIn("before-and-after", made.made.pictures)

    def test_keep_backends_apart(self):
        pairs = [[each for source in sources_of(document(row(), backend=name)) for each in source.rows] for name in ("host", "cuda")]
        self.assertEqual(comparison.pairs_of(*pairs), ([], 1, 1))


class Maps(unittest.TestCase):
    def mapped(self, step, octaves, permilles):
        figures = {"cell_octave": octaves, "cell_permille": permilles}
        return row("slab_bitmap", "drifting", "map", figures=figures, step=step, level_permille=900, cell_bytes=64)

    def test_have_a_strip_for_each_step_and_what_is_in_use(self):
        octaves = [16] * 64 + [0] * 32 + [2048] * 32
        made = page_of(document(self.mapped(8, octaves, [100] * 64 + [0] * 32 + [950] * 32), self.mapped(1, [0] * 128, [0] * 128)))
        (svg,) = made.section("map").iter(f"{SVG}svg")
        self.assertEqual(svg.get("aria-label"), "slab_bitmap, drifting sizes, asked for 90% of the pool")
        self.assertEqual(made.charts(), [["step 1: 0% in use", "step 8: 28.7% in use"]])  # (64 * 100 + 32 * 950) / 128

    def test_have_hues_of_sizes_and_depths_of_fill_where_there_are_blocks(self):
        runs = heap_map.runs_of([(16, 100)] * 32 + [(0, 0)] * 64 + [(2048, 950)] * 31 + [(16, 100)])
        self.assertEqual(runs, {(0, 0): [(0, 32), (127, 1)], (7, 4): [(96, 31)]})

    def test_put_cells_together_where_there_are_more_than_columns(self):
        columns = heap_map.columns_of([16, 64] * heap_map.COLUMNS, [200, 600] * heap_map.COLUMNS)
        self.assertEqual(columns, [(64, 400)] * heap_map.COLUMNS)

    def test_of_broken_lists_are_left_out(self):
        for octaves, permilles in (([16], [1, 2]), ([], []), ([16], ["x"]), ([-1], [5])):
            self.assertEqual(page_of(document(self.mapped(1, octaves, permilles))).charts(), [])


class Words(unittest.TestCase):
    def test_of_numbers_have_three_digits_and_a_unit(self):
        for value, told in (
            (0.0123, "12.3 ns"),
            (8.416, "8.42 µs"),
            (999.6, "1.00 ms"),
            (20123.0, "20.1 ms"),
            (3.4e6, "3.40 s"),
        ):
            self.assertEqual(text.FORMATS["time"](value), told)
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


if __name__ == "__main__":
    unittest.main()
