# SPDX-License-Identifier: Apache-2.0
"""What is wrong with results that cannot be read is one line that names the file, and the exit status is 2; what can be read makes
a page."""

import copy
import json
import os
import pathlib
import random
import unittest
import xml.etree.ElementTree

from report_fixture import ROOT, CommandTest, burst, document, page, results, row


class TheCommand(CommandTest):
    def assert_refused(self, arguments, said, given=""):
        status, out, err = self.run_report(*arguments, "--output", str(self.folder / "page.html"), given=given)
        self.assertEqual((status, out), (2, ""), err)
        self.assertTrue(err.startswith("warpheap report: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(said, err)
        self.assertFalse((self.folder / "page.html").exists())

    def test_writes_a_page_and_says_what_is_on_it(self):
        file, target = self.write("a.json", document(row())), self.folder / "page.html"
        status, out, err = self.run_report(file, "--output", str(target))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, f"{target}: 1 rows of 1 files, 1 pictures\n")
        self.assertIn("Warpheap: allocators measured on NVIDIA H200", target.read_text())
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.json", "page.html"], "and nothing else")

    def test_reads_standard_input_and_writes_standard_output(self):
        status, out, err = self.run_report("-", "--output", "-", given=json.dumps(document(row())))
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("<!DOCTYPE html>"))
        self.assertIn("&lt;stdin&gt;", out)
        self.assert_refused(["-"], "<stdin>: not JSON", given="{")

    def test_takes_a_folder_for_all_files_in_it(self):
        self.write("a.json", document(row("slab_bitmap")))
        self.write("b.json", document(row("scatter")))
        self.write("c.txt", "no result")
        status, out, _ = self.run_report(str(self.folder), "--output", str(self.folder / "page.html"))
        self.assertEqual(status, 0)
        self.assertIn("2 rows of 2 files", out)
        empty = self.folder / "empty"
        empty.mkdir()
        (self.folder / "page.html").unlink()
        self.assert_refused([str(empty)], f"{empty}: no .json file in this folder")

    def test_refuses_what_is_missing_and_what_is_no_json(self):
        self.assert_refused([], "no results: name files that `warpheap bench --json FILE` wrote")
        gone = str(self.folder / "gone.json")
        self.assert_refused([gone], f"{gone}: No such file or directory")
        for content in ("", "{", "nonsense", '{"schema": 1, "results": [NaN]}', '{"a": 1} {"b": 2}', "[" * 100_000):
            file = self.write("bad.json", content)
            self.assert_refused([self.write("good.json", document(row())), file], f"{file}: not JSON: ")
        latin = self.folder / "latin.json"
        latin.write_bytes(b'{"schema": 1, "name": "\xe4"}')
        self.assert_refused([str(latin)], f"{latin}: not UTF-8: ")

    def test_refuses_documents_whose_parts_have_other_types(self):
        def bad(**fields):
            return document({**row(), **fields})

        for broken, said in (
            ([], "the document is no object"),
            ("text", "the document is no object"),
            ({**document(row()), "schema": 2}, "schema is 2, and this program knows 1"),
            (document(row(), 7), "results[1] is no object"),
            (bad(parameters=[1]), "results[0]: parameters is no object"),
            (bad(parameters={"bytes": None}), "results[0]: parameters: bytes is neither a number nor text"),
            (bad(parameters={"bytes": True}), "results[0]: parameters: bytes is neither a number nor text"),
            (bad(times_us="fast"), "results[0]: times_us is no list of times"),
            (bad(times_us=[1, "2"]), "results[0]: times_us is no list of times"),
            (bad(times_us=[-1]), "results[0]: times_us is no list of times"),
            (bad(median_us="20"), "results[0]: median_us is no number"),
            ({**document(row()), "backend": 3}, "backend is no text"),
            ({**document(row()), "machine": {"device": ["H200"]}}, "device is no text"),
            (bad(operation=3), "results[0]: operation is no text"),
            (bad(scenario=3), "results[0]: scenario is no text"),
            (bad(scenario=""), "results[0]: scenario is empty"),
        ):
            file = self.write("bad.json", json.dumps(broken))
            self.assert_refused([file], f"{file}: {said}")

    def test_refuses_options_that_there_are_not(self):
        self.assert_refused([self.write("a.json", document(row())), "--wings"], "unrecognized arguments: --wings")

    def test_leaves_the_older_page_as_it_was_where_it_cannot_write(self):
        file = self.write("a.json", document(row()))
        status, _, err = self.run_report(file, "--output", str(self.folder / "none" / "page.html"))
        self.assertEqual(status, 2)
        self.assertIn("--output: ", err)
        older = self.write("page.html", "older")
        self.assertEqual(self.run_report(self.write("bad.json", "{"), "--output", older)[0], 2)
        self.assertEqual(pathlib.Path(older).read_text(), "older")
        self.assertEqual(self.run_report(file, "--output", older)[0], 0)
        self.assertTrue(pathlib.Path(older).read_text().startswith("<!DOCTYPE html>"))

    def test_writes_pictures_that_stand_alone(self):
        rows = [burst("slab_bitmap", size / 10, size) for size in (16, 64, 256)]
        file, images = self.write("a.json", document(*rows)), self.folder / "images"
        arguments = [file, "--output", str(self.folder / "page.html"), "--images", str(images)]
        status, _, err = self.run_report(*arguments)
        self.assertEqual(status, 0, err)
        drawing = (images / "burst-median-us.svg").read_text()
        xml.etree.ElementTree.fromstring(drawing)
        self.assertNotIn("var(", drawing)
        self.assertIn("slab_bitmap", drawing)
        told = (images / "burst-median-us.png").exists() or "rsvg-convert (Debian: librsvg2-bin) was not found" in err
        self.assertTrue(told, err)


class Documents(unittest.TestCase):
    def test_of_any_content_make_a_page_or_a_fault(self):
        """Parts of real documents are dropped, doubled or replaced, by a seed."""
        values = [None, 0, -1, 1e300, 5e-324, "", "text", True, [], {}, [1], {"a": 1}, 2.5, 10**30, [-1.0]]
        documents = []
        for path in sorted((ROOT / "bench" / "results").glob("*.json")):
            made = json.loads(path.read_text())
            if isinstance(made.get("results"), list):
                made["results"] = made["results"][:12] + made["results"][-4:]
            documents.append(made)
        pages = 0
        for seed in range(1000):
            draw = random.Random(seed)
            changed = copy.deepcopy(draw.choice(documents))
            for _ in range(draw.randint(1, 4)):
                self.change(changed, draw, values)
            try:
                source = results.source_of("x.json", json.dumps(changed))
            except results.Fault as fault:
                self.assertTrue(str(fault).startswith("x.json: "))
                continue
            with self.subTest(seed=seed):
                text, pictures = page.build([source])
                xml.etree.ElementTree.fromstring(text.partition("\n")[2])
                for picture in pictures.values():
                    self.assertNotRegex(picture.inline(), r"\b(nan|inf)\b")
                pages += 1
        self.assertGreater(pages, 300)

    def change(self, document, draw, values):
        """Changes one thing somewhere in the document."""
        place = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = draw.choice(keys)
            if isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.85:
                place = place[key]
                continue
            if draw.random() < 0.3:
                del place[key]
            else:
                place[key] = copy.deepcopy(draw.choice(values))
            return


if __name__ == "__main__":
    unittest.main()
