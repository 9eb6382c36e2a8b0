# SPDX-License-Identifier: Apache-2.0
"""The page is well-formed and needs nothing else; what it shows are the numbers of the files, with their units; nothing of a results file
is markup on it."""

import collections
import html.parser
import json
import random
import re
import unittest

from report_fixture import HOST, HTML, ROOT, SVG, H200, Page, burst, document, page, page_of, results, row

import check_report

RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))
SCRIPT = '"><script>alert(1)</script><a onload="'
VALUES = (SCRIPT, "\0\ud800\ufffe\x1b[2J$x^2$", "", None, True, [], {}, [1], 1e100, 1e-100, -5, 0, 0.5, 10**17, 1e300, 10**400)
UNITS = {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6, "G/s": 1e9, "M/s": 1e6, "k/s": 1e3, "/s": 1, "G": 1e9, "M": 1e6, "k": 1e3, "%": 0.01, "": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class TheDocumentation(unittest.TestCase):
    """docs/performance.html, of which check_report says that the program makes it."""

    @classmethod
    def setUpClass(cls):
        cls.page, cls.tables = (Page((ROOT / each).read_text()) for each in (check_report.PAGE, check_report.TABLES))
        documents = [json.loads((ROOT / f"bench/results/h200-{name}.json").read_text()) for name in check_report.NAMES]
        cls.rows = [each for document in documents for each in document["results"] if "scenario" in each]
        for each in [each for document in documents for each in document["results"] if "vertices" in each]:
            kept = {name: each[name] for name in ("allocator", "mallocs", "frees", "live_bytes", "peak_bytes", "lost", "failures") if name in each}
            parameters = {name: each[name] for name in ("input", "edges", "pool_bytes")}
            time = each["seconds"] * 1e6
            cls.rows.append({**kept, "scenario": "graph", "operation": "build and change", "parameters": parameters, "times_us": [time], "median_us": time})

    def values(self, scenario):
        """{subject or operation: [numbers]} of the rows of a scenario, its times and what follows from them too."""
        made = collections.defaultdict(set)
        for each in self.rows:
            if each["scenario"] == scenario:
                numbers = [value for value in each.values() if isinstance(value, (int, float))] + (each.get("times_us") or [])
                rate, median = each.get("operations_per_second"), each.get("median_us")
                numbers += [rate * median / time for time in each.get("times_us") or [] if rate and time]
                of_parameters = [str(value) if value else "none" for value in (each.get("parameters") or {}).values()]
                for name in (each.get("allocator") or each.get("primitive"), each["operation"], *of_parameters):
                    made[name].update(numbers)
        return made

    def test_shows_at_each_point_a_number_of_the_results_with_its_unit(self):
        """Written anew here: a number to three digits and a unit must be that of a row of the line's name."""
        checked = 0
        figures = list(zip(("scaling", "burst", "efficiency"), self.page.charts()))  # of the first screen
        names = {"Warpheap": "slab_bitmap", "CUDA's malloc": "toolkit", "storing a pointer": "null", "null kernel": "null"}
        for section in self.page.root.iter(f"{HTML}section"):
            figures += [(section.get("id").replace("-", "_"), told) for told in self.page.charts(section)]
        self.assertEqual([told for _, told in figures], self.page.charts())
        for scenario, points in figures:
            values = self.values(scenario)
            for told in points if scenario != "map" else ():
                name, told = re.fullmatch(r"([\w +'×]+)(?:, [^:]+)?: (.*?)(?:, refuses .*)?", told).groups()
                name = names.get(name, name)
                value, low, high = re.fullmatch(r"(.+?)(?: \((.+) to (.+)\))?", told).groups()
                unit = re.search(r"[^\d.,]*$", value)[0].strip()
                for each in (value, low, high) if low else (value,):
                    number, own = re.fullmatch(r"([\d.,]+) ?(.*)", each).groups()
                    number = float(number.replace(",", ""))
                    factor = UNITS[own or (re.search(r"[^\d.,]*$", high)[0].strip() if each is low else unit)]
                    near = [given for given in set.intersection(*(values[part] for part in name.replace("× 0", "× none").split(" × "))) if abs(given - number * factor) <= max(0.006 * abs(given), 0.00051)]
                    self.assertTrue(near, f"{scenario}: {name}: {each} of {told}")
                    checked += 1
        self.assertGreater(checked, 1500)

    def test_has_at_most_six_lines_in_a_chart_and_a_value_at_each_mark(self):
        maps = list(self.page.section("map").iter(f"{SVG}svg"))
        for svg, told in [pair for pair in zip(self.page.root.iter(f"{SVG}svg"), self.page.charts()) if pair[0] not in maps]:
            names = {re.match(r"[^:,]+", each)[0] for each in told}
            if len(told) > len(names):
                self.assertLessEqual(len(names), 6, svg.get("aria-label"))
            marks = sum(1 for _ in svg.iter(f"{SVG}use"))
            self.assertEqual(marks, len(told) if len(told) < 2 or marks else 0, svg.get("aria-label"))
            ends = {(each.text or "").removesuffix(" †") for each in svg.iter(f"{SVG}text")}
            self.assertLessEqual(names, ends, "each line is named at its end")

    def test_tells_values_under_the_mouse_and_on_focus_without_a_script(self):
        self.assertIn(".p :hover+text,.p :focus+text{visibility:visible}", self.page.text)
        for group in (each for each in self.page.root.iter(f"{SVG}g") if each.get("class") == "p"):
            for circle, words in zip(group[::2], group[1::2]):
                self.assertEqual((circle.tag, circle.get("tabindex"), words.tag), (f"{SVG}circle", "0", f"{SVG}text"))

    def test_has_every_raw_number_of_the_results(self):
        """Each row of a raw table is a row of the files: whole numbers exactly, others to six digits."""
        given, told = collections.Counter(), collections.Counter()
        for each in self.rows:
            numbers = {**each.get("parameters", {}), **each}
            kept = {name.replace("_", " "): value for name, value in numbers.items() if not isinstance(value, (bool, list, dict, str, type(None)))}
            kept["repetitions"] = len(each["times_us"]) if each.get("times_us") and not each.get("skipped") else None
            if each.get("skipped") or each.get("fault"):
                kept = {name.replace("_", " "): value for name, value in each.get("parameters", {}).items() if not isinstance(value, str)}
            named = (each["scenario"], each.get("allocator") or each.get("primitive"), each["operation"])
            given[named, tuple(sorted((name, f"{value:.6g}" if isinstance(value, float) else str(value)) for name, value in kept.items() if value is not None))] += 1
        for section in self.tables.root.iter(f"{HTML}section"):
            for line in self.tables.raw_rows(section):
                named = (section.get("id").replace("-", "_"), line.pop("measured"), line.pop("operation"))
                numbers = {name: cell for name, cell in line.items() if name not in ("least us", "most us", "file") and re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", cell)}
                told[named, tuple(sorted(numbers.items()))] += 1
        whole = {(named, tuple((name, f"{float(cell):.6g}") for name, cell in cells)): count for (named, cells), count in given.items()}
        shown = collections.Counter()
        for (named, cells), count in told.items():
            shown[named, tuple((name, f"{float(cell):.6g}") for name, cell in cells)] += count
        self.assertEqual(sum(told.values()), len(self.rows))
        self.assertEqual(set(shown) - set(whole), set())

    def test_leads_to_its_tables_and_these_to_places(self):
        ids = {each.get("id") for each in self.tables.root.iter() if each.get("id")}
        links = {each.get("href") for each in self.page.root.iter(f"{HTML}a")}
        tables = {link.partition("#")[2] for link in links if link.startswith("performance/tables.html#")}
        self.assertEqual(tables, ids)
        for each in links - {f"performance/tables.html#{name}" for name in ids}:
            self.assertTrue(each.startswith("#") or (ROOT / "docs" / each).exists(), each)

    def test_begins_with_speed_and_memory_of_one_commit_beside_cudas_malloc(self):
        header = self.page.root.find(f".//{HTML}header")
        self.assertEqual([each.text.partition(":")[0] for each in header.iter(f"{HTML}figcaption")], ["Speed", "Speed", "Memory"])
        for told in ("NVIDIA H200", "580.159.04", "CUDA 13.0"):
            self.assertIn(told, self.page.words(header))
        self.assertNotIn("commits are on this page", self.page.words(header))
        for told in self.page.charts(header)[:2]:
            names = {re.match(r"[^:,]+", each)[0] for each in told}
            self.assertLessEqual({"Warpheap", "CUDA's malloc"}, names)
            self.assertLessEqual(len(names), 5)

    def test_has_as_many_loads_as_it_counts(self):
        (count,) = re.findall(r"in these (\d+) loads", self.page.words(self.page.section("loads")))
        self.assertEqual(int(count), sum(map(len, self.page.loads().values())) - 1, "beside the head")


class _Browser(html.parser.HTMLParser):
    """What HTML's own rules make of a page."""

    def __init__(self, content):
        super().__init__()
        self.seen = []
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


class ThePage(unittest.TestCase):
    def assert_safe(self, made):
        self.assertIsNone(re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", made.text))
        elements = [(each.tag.rpartition("}")[2], each.attrib) for each in made.root.iter()]
        for tag, given in elements + _Browser(made.text).seen:
            self.assertNotIn(tag, ("script", "iframe", "img", "object", "link", "image"))
            self.assertFalse([name for name in given if name.lower().startswith("on") or name in ("src", "data")], given)
            self.assertRegex(given.get("href", "#"), "^#[\\w.-]*$")
        ids = [given["id"] for _, given in elements if "id" in given]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual({given["href"][1:] for _, given in elements if "href" in given}, set(ids))
        for each in made.root.iter():
            if each.tag.startswith(SVG):
                self.assertNotRegex(f"{each.get('d')} {each.get('x')} {each.get('cx')}", r"\b(nan|inf)\b")

    def test_is_well_formed_and_safe_for_every_kind_of_results(self):
        for path in RESULTS[::9]:
            with self.subTest(path.name):
                self.assert_safe(Page(page.build(page.Page(results.read_all([str(path)])))[0]))

    def test_is_well_formed_and_safe_whatever_a_field_has_or_names_the_file(self):
        """Parts of real documents are replaced or dropped, by a seed."""
        pages = 0
        for seed in range(100):
            draw = random.Random(seed)
            changed = json.loads(draw.choice(RESULTS).read_text())
            changed["results"] = draw.sample(changed.get("results") or [], min(10, len(changed.get("results") or [])))
            for _ in range(draw.randint(1, 3)):
                self.change(changed, draw)
            with self.subTest(seed=seed):
                try:
                    source = results.source_of("x.json", json.dumps(changed))
                except results.Fault as fault:
                    self.assertTrue(str(fault).startswith("x.json: "), fault)
                    continue
                self.assert_safe(Page(page.build(page.Page([source], [source] if seed % 8 == 0 else None))[0]))
                pages += 1
        self.assertGreater(pages, 30)

    def change(self, place, draw):
        """Changes one thing somewhere in the document."""
        while place:
            key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.9:
                place = place[key]
                continue
            if draw.random() < 0.2:
                del place[key]
            else:
                place[key] = draw.choice(VALUES)
            return

    def test_has_text_of_a_file_as_text_everywhere(self):
        fields = {"allocator": SCRIPT, "operation": SCRIPT, "scenario": SCRIPT, "parameters": {SCRIPT: SCRIPT, "kind": SCRIPT, "n": 1}, SCRIPT: 2}
        broken = document({**row(), **fields}, {**row(), **fields, "parameters": {**fields["parameters"], "n": 2}},
                          machine={**H200, "device": SCRIPT, "commit": SCRIPT}, backend=SCRIPT)  # fmt: skip
        made = page_of(broken, before=[broken])
        self.assert_safe(made)
        self.assertIn(SCRIPT, made.words())

    def test_has_an_id_and_a_file_of_its_own_for_every_name(self):
        names = ("files", "loads", "compared", "a b", "a-b", "a_b", "a/../b", "..", "others", "top")
        made = page_of(document(*(row(scenario=name) for name in names)))
        self.assert_safe(made)
        self.assertEqual(len(made.made.pictures), len(names))
        self.assertTrue(all(re.fullmatch(r"[\w.-]+", name) for name in made.made.pictures))

    def test_is_the_same_each_time(self):
        built = [page.build(page.Page(results.read_all([str(path) for path in RESULTS[:6]]))) for _ in range(2)]
        self.assertEqual(*built)

    def test_of_no_rows_says_that_there_are_none(self):
        made = page_of(document())
        self.assertIn("Warpheap: no results", made.words())
        self.assertIn("no rows of a benchmark", made.words())

    def test_shows_rows_of_no_benchmark_as_a_table(self):
        made = page_of(document({"allocator": "halloc", "rounds": 17, "faults": {"damaged": 0}}))
        self.assertEqual(made.raw_rows(made.section("others")), [{"allocator": "halloc", "rounds": "17"}])

    def test_shows_what_graph_measured_as_a_benchmark(self):
        run = {"vertices": 9, "edges": 8, "seconds": 0.5, "allocator": "halloc", "input": "x.mtx", "pool_bytes": 1024, "failures": 0}
        made = page_of({"schema": 1, "vertices": 9, "runs": [run]})
        self.assertEqual(made.charts(made.section("graph")), [["halloc: 500 ms"]])

    def test_tells_why_a_row_was_not_measured(self):
        skipped = {**row(times=()), "skipped": "ualloc serves at most 1024 bytes"}
        broken = {**row(times=(), operation="free"), "checked": False, "fault": "3 blocks lost"}
        made = page_of(document(skipped, broken))
        told = [line["not measured"] for line in made.raw_rows(made.section("burst"))]
        self.assertEqual(told, ["ualloc serves at most 1024 bytes", "failed its check: 3 blocks lost"])


class Machines(unittest.TestCase):
    def test_stand_at_the_top_with_driver_cuda_and_commit(self):
        header = page_of(document(row())).root.find(f".//{HTML}header")
        told = "backend cuda GPU NVIDIA H200 CPU A CPU driver 580.1 CUDA 13.0 measured 2026-01-02 files 1 all at commit aaa111"
        self.assertIn(told, Page.words(None, header))

    def test_that_differ_are_pointed_out_and_never_share_a_chart(self):
        for name, value in (("device", "NVIDIA A100"), ("driver", "570.0"), ("cuda", "12.0"), ("cpu", "Another")):
            other = document(burst("slab_bitmap", 50), burst("scatter", 60), machine={**H200, name: value})
            made = page_of(document(burst("slab_bitmap", 20), burst("scatter", 30)), other)
            self.assertIn("Results of 2 machines, drivers or backends are on this page", made.words())
            self.assertEqual(sum(value in svg.get("aria-label") for svg in made.root.iter(f"{SVG}svg")), 1)
            times = [sorted(re.search(r": ([\d.]+)", each)[1] for each in told) for told in made.charts()]
            self.assertEqual(sorted(times), [["20.0", "30.0"], ["50.0", "60.0"]])

    def test_of_the_host_backend_are_named_as_such(self):
        rows = [burst("slab_bitmap", 20), burst("scatter", 30)]
        made = page_of(document(*rows, machine=HOST, backend="host"), document(burst("slab_bitmap", 7), burst("scatter", 9)))
        self.assertIn("Warpheap, 256 B: 7.00 µs (6.93 to 7.07 µs)", made.charts()[0], "the first screen is of the GPU")
        self.assertIn("they say nothing of speed on a GPU", made.words())
        self.assertIn("On host backend Do not choose an allocator by these times", made.words(made.section("loads")))
        self.assertNotIn("host backend", page_of(document(row())).words())

    def test_commits_that_differ_are_pointed_out_and_named_where_they_are_shown(self):
        made = page_of(document(burst("slab_bitmap", 20)), document(burst("scatter", 20), machine={**H200, "commit": "bbb222"}))
        self.assertIn("Results of 2 commits are on this page", made.words())
        self.assertIn("From aaa111 [1], bbb222 [2]. These are 2 commits", made.words(made.section("burst")).replace(" ,", ",").replace(" .", "."))

    def test_a_source_that_was_changed_after_its_commit_is_pointed_out(self):
        made = page_of(document(row(), machine={**H200, "commit": "aaa111-dirty"}))
        self.assertIn("changed after its commit", made.words())

    def test_never_share_a_line_even_where_they_measured_different_points(self):
        def bursts(*threads):
            return [row(scenario="scaling", times=(9.0, 9.1, 9.2), bytes=64, threads=each) for each in threads]

        made = page_of(document(*bursts(32, 256)), document(*bursts(2048, 16384), machine={**H200, "device": "NVIDIA A100"}))
        self.assertEqual([len(told) for told in made.charts()], [2, 2])
        self.assertIn("At 256 threads: Warpheap 9.10 µs (64 B)", made.words())

    def test_of_rows_that_were_measured_twice_the_newer_is_shown(self):
        older = document(burst("slab_bitmap", 80))
        newer = document(burst("slab_bitmap", 20), machine={**H200, "time": "2026-02-02T00:00:00Z"})
        for order in ((older, newer), (newer, older)):
            made = page_of(*order)
            self.assertEqual(made.charts(), [["Warpheap, 256 B: 20.0 µs (19.8 to 20.2 µs)"]])
            self.assertEqual(len(made.raw_rows(made.section("burst"))), 2, "raw numbers are all of them")


if __name__ == "__main__":
    unittest.main()
