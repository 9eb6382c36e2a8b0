# SPDX-License-Identifier: Apache-2.0
"""The page is one well-formed file that needs nothing else, from any results, and its numbers are those of the files."""

import json
import re
import unittest

from report_fixture import HOST, HTML, ROOT, SVG, H200, Page, burst, document, page, page_of, results, row, sources_of

RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))


def built(path):
    return Page(*page.build(results.read_all([str(path)])))


class ThePage(unittest.TestCase):
    def test_is_well_formed_and_refers_to_nothing_outside_of_it_for_every_results_file(self):
        self.assertGreater(len(RESULTS), 50)
        for path in RESULTS:
            made = built(path)  # parsed as XML
            with self.subTest(path.name):
                self.assertEqual([each.tag for each in made.root.iter() if each.tag.endswith("script")], [])
                for each in made.root.iter():
                    for name, value in each.attrib.items():
                        if name.rpartition("}")[2] in ("src", "href", "data", "action", "srcset"):
                            self.assertTrue(value.startswith("#"), f"{each.tag} {name}={value}")
                self.assertIsNone(re.search(r"url\(|@import|<link|<iframe|<img|<object", made.text))
                self.assertLess(made.text.count("http"), 1000)
                told = [value for value in re.findall(r'https?://[^"<\s]+', made.text) if "www.w3.org" not in value]
                self.assertTrue(all("github.com" in value for value in told), told)

    def test_has_ids_that_its_links_lead_to_and_none_twice(self):
        made = Page(*page.build(results.read_all([str(path) for path in RESULTS])))
        ids = [each.get("id") for each in made.root.iter() if each.get("id")]
        self.assertEqual(len(ids), len(set(ids)))
        links = {each.get("href")[1:] for each in made.root.iter(f"{HTML}a")}
        self.assertLessEqual(links, set(ids))
        self.assertIn("burst", links)
        self.assertIn("papers", links)

    def test_is_the_same_each_time(self):
        paths = [str(path) for path in RESULTS[:20]]
        self.assertEqual(page.build(results.read_all(paths))[0], page.build(results.read_all(paths))[0])

    def test_of_no_rows_says_that_there_are_none(self):
        made = page_of(document())
        self.assertIn("Warpheap: no results", made.words())
        self.assertIn("no rows of a benchmark", made.words())
        self.assertEqual(list(made.root.iter(f"{SVG}svg")), [])

    def test_styles_have_no_character_that_html_and_xml_read_differently(self):
        style = re.search(r"<style>(.*?)</style>", page_of(document(row())).text, re.DOTALL)[1]
        self.assertIsNone(re.search(r"[<&]", style))
        self.assertIn("prefers-color-scheme:dark", style)
        self.assertIn("@media print", style)

    def test_escapes_names(self):
        made = page_of(document(row(allocator='<b>"&', times=(1.0, 2.0)), row(allocator="other")))
        self.assertIn('<b>"&', made.words())
        self.assertEqual([each for each in made.section("burst").iter(f"{HTML}b") if each.text == '"&'], [])

    def test_draws_a_scenario_that_it_does_not_know(self):
        rows = [row(scenario="new_one", times=(size / 8,) * 3, bytes=size, rounds=3) for size in (16, 64, 256)]
        section = page_of(document(*rows)).section("new_one")
        self.assertEqual(section.find(f"{HTML}h2").text, "new one")
        self.assertEqual(len(list(section.iter(f"{SVG}svg"))), 1)

    def test_lists_files_of_other_kinds_and_those_without_results(self):
        stress = {
            "schema": 1,
            "machine": H200,
            "backend": "cuda",
            "results": [{"allocator": "halloc", "rounds": 17, "faults": {"damaged": 0}}],
        }
        made = page_of(stress, {"commit": "x", "mutants": []})
        words = made.words(made.section("others"))
        self.assertIn("halloc 17", words)
        self.assertIn("[2] 2.json has no results that this page knows", words)


class RawNumbers(unittest.TestCase):
    def assert_equal_number(self, told, wanted, where):
        if wanted == int(wanted):
            self.assertEqual(told, str(int(wanted)), where)
        else:
            self.assertEqual(float(told), float(f"{wanted:.6g}"), where)

    def test_equal_those_of_the_files(self):
        checked = 0
        for path in RESULTS:
            fields = json.loads(path.read_text()).get("results") or []
            rows = [each for each in fields if isinstance(each, dict) and "scenario" in each]
            made = built(path)
            for scenario in dict.fromkeys(each["scenario"] for each in rows):
                wanted = [each for each in rows if each["scenario"] == scenario]
                told = made.raw_rows(made.section(scenario))
                self.assertEqual(len(told), len(wanted), f"{path.name} {scenario}")
                for line in told:
                    checked += self.check(line, wanted, f"{path.name} {scenario}")
                self.assertEqual(wanted, [], "every row once")
        self.assertGreater(checked, 50_000)

    def check(self, line, wanted, where):
        """Finds the file's row of a line of the table, removes it, and compares all numbers; returns how many."""
        numbers = {
            name: cell for name, cell in line.items() if name not in ("measured", "operation", "file", "not measured")
        }
        for each in wanted:
            told = {
                **each.get("parameters", {}),
                **{name: value for name, value in each.items() if isinstance(value, (int, float))},
            }
            told.update({name: value for name, value in each.items() if isinstance(value, str)})
            if each.get("times_us"):
                told.update(
                    least_us=min(each.get("times_us")),
                    most_us=max(each.get("times_us")),
                    repetitions=len(each.get("times_us")),
                )
            told = {name.replace("_", " "): value for name, value in told.items()}
            parameters = {name.replace("_", " ") for name in each.get("parameters", {})}
            same = (
                line["measured"] == (each.get("allocator") or each.get("primitive"))
                and line["operation"] == each["operation"]
            )
            if same and parameters <= set(numbers) and all(numbers[name] == str(told[name]) for name in parameters):
                break
        else:
            self.fail(f"{where}: no such row: {line}")
        for name, cell in numbers.items():
            if isinstance(told[name], str):
                self.assertEqual(cell, told[name], where)
            else:
                self.assert_equal_number(cell, told[name], f"{where} {name}")
        if each.get("times_us"):
            self.assertIn("median us", numbers)
        wanted.remove(each)
        return len(numbers)

    def test_tell_why_a_row_was_not_measured(self):
        skipped = {**row(times=()), "skipped": "ualloc serves at most 1024 bytes"}
        broken = {**row(times=(), operation="free"), "checked": False, "fault": "3 blocks lost"}
        lines = page_of(document(skipped, broken)).raw_rows(page_of(document(skipped, broken)).section("burst"))
        self.assertEqual(
            [line["not measured"] for line in lines],
            ["ualloc serves at most 1024 bytes", "failed its check: 3 blocks lost"],
        )


class Machines(unittest.TestCase):
    def test_stand_at_the_top_with_driver_cuda_and_commit(self):
        made = page_of(document(row()))
        self.assertIn(
            "cuda NVIDIA H200 A CPU 580.1 13.0 aaa111 2026-01-02", made.words(made.root.find(f".//{HTML}header"))
        )
        self.assertEqual([each for each in made.root.iter(f"{HTML}p") if each.get("class") == "note"], [])

    def test_that_differ_are_pointed_out_and_never_share_a_chart(self):
        for name, value in (("device", "NVIDIA A100"), ("driver", "570.0"), ("cuda", "12.0"), ("cpu", "Another")):
            other = document(burst("slab_bitmap", 50), burst("scatter", 60), machine={**H200, name: value})
            made = page_of(document(burst("slab_bitmap", 20), burst("scatter", 30)), other)
            self.assertIn("Results of 2 machines, drivers or backends are on this page", made.words())
            titles = [each.title for each in made.pictures.values()]
            self.assertEqual(len(titles), 2, titles)
            self.assertTrue(any(value in title for title in titles), titles)
            self.assertEqual(len(set(titles)), 2, titles)

    def test_keep_rows_of_the_same_parameters_apart(self):
        made = page_of(
            document(burst("slab_bitmap", 20)), document(burst("slab_bitmap", 7000), machine=HOST, backend="host")
        )
        self.assertIn("On NVIDIA H200", made.words(made.section("summary")))
        self.assertIn("On host backend", made.words(made.section("summary")))
        told = [made.words(svg) for svg in made.section("burst").iter(f"{SVG}svg")]
        self.assertEqual(len(told), 2)
        self.assertIn("20 µs", next(words for words in told if "NVIDIA H200" in words).replace("20.0", "20"))
        self.assertIn("7 ms", next(words for words in told if "host backend" in words).replace("7.00", "7"))

    def test_commits_that_differ_are_pointed_out_and_named_where_they_are_shown(self):
        made = page_of(
            document(burst("slab_bitmap", 20)), document(burst("scatter", 20), machine={**H200, "commit": "bbb222"})
        )
        self.assertIn("Results of 2 commits are on this page", made.words())
        self.assertIn("From aaa111 [1] and bbb222 [2] . These are 2 commits", made.words(made.section("burst")))

    def test_of_the_host_backend_are_named_as_such(self):
        made = page_of(document(burst("slab_bitmap", 20), burst("scatter", 30), machine=HOST, backend="host"))
        self.assertIn("Warpheap: allocators measured on the host backend", made.words())
        self.assertIn("they say nothing of speed on a GPU", made.words())
        self.assertIn("Do not choose an allocator by these times", made.words(made.section("summary")))
        self.assertNotIn("host backend", page_of(document(row())).words())

    def test_a_source_that_was_changed_after_its_commit_is_pointed_out(self):
        made = page_of(document(row(), machine={**H200, "commit": "aaa111-dirty"}))
        self.assertIn("changed after its commit", made.words())

    def test_of_rows_that_were_measured_twice_the_newer_is_shown(self):
        older = document(burst("slab_bitmap", 80))
        newer = document(burst("slab_bitmap", 20), machine={**H200, "time": "2026-02-02T00:00:00Z"})
        for order in ((older, newer), (newer, older)):
            made = page_of(*order)
            told = made.words(next(made.section("burst").iter(f"{SVG}svg")))
            self.assertIn("20.0 µs", told)
            self.assertNotIn("80.0 µs", told)
            self.assertEqual(len(made.raw_rows(made.section("burst"))), 2, "raw numbers are all of them")


if __name__ == "__main__":
    unittest.main()
