# SPDX-License-Identifier: Apache-2.0
"""What is wrong with results that cannot be read is one line that names the file, and the exit status is 2; what can be read makes a page."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from report_fixture import ROOT, SVG, CommandTest, Page, burst, document, row

SCRIPTS = ROOT / "scripts" / "report"


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

    def test_writes_tables_to_a_page_of_their_own_that_the_page_leads_to(self):
        file = self.write("a.json", document(burst("slab_bitmap", 20), burst("scatter", 30)))
        (self.folder / "more").mkdir()
        places = [str(self.folder / each) for each in ("page.html", "more/tables.html")]
        self.assertEqual(self.run_report(file, "--output", places[0], "--tables", places[1])[0], 0)
        html, tables = (Page(pathlib.Path(each).read_text()) for each in places)
        self.assertIn("more/tables.html#burst", html.text)
        self.assertNotIn('class="raw"', html.text)
        self.assertEqual(len(tables.raw_rows(tables.section("burst"))), 2)

    def test_writes_pictures_that_stand_alone(self):
        rows = [burst("slab_bitmap", size / 10, size) for size in (16, 64, 256)]
        file, images = self.write("a.json", document(*rows)), self.folder / "images"
        arguments = [file, "--output", str(self.folder / "page.html"), "--images", str(images)]
        status, _, err = self.run_report(*arguments)
        self.assertEqual((status, err), (0, ""))
        drawing = (images / "speed.svg").read_text()
        self.assertIn("Warpheap", [each.text for each in xml.etree.ElementTree.fromstring(drawing).iter(f"{SVG}text")])
        self.assertNotIn("var(", drawing)
        self.assertTrue((images / "speed.png").read_bytes().startswith(b"\x89PNG"))

    def test_says_what_to_install_where_a_package_is_missing(self):
        call = "import needed; needed.find(('json', 'no_such_package'), system='/nowhere')"
        done = subprocess.run([sys.executable, "-B", "-c", call], cwd=SCRIPTS, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn("no_such_package missing", done.stderr)
        self.assertIn("apt-get install python3-jinja2 python3-matplotlib", done.stderr)

    def test_prints_nothing_that_steers_a_terminal(self):
        file = self.write("a\x1b[2J.json", document(row(kind=[1], **{"\x1b]0;x\x07\r\n": [2]})))
        status, out, err = self.run_report(file, "--output", str(self.folder / "page.html"))
        self.assertEqual((status, out, err.count("\n")), (2, "", 1))
        self.assertIsNone(re.search(r"[\0-\x09\x0b-\x1f\x7f-\x9f]", err), err)

    def test_takes_any_name_of_a_file_that_a_system_has(self):
        name = self.folder / "\udcff\x1b.json"
        name.write_text(json.dumps(document(row())))
        target = self.folder / "\udcfe.html"
        status, out, err = self.run_report(str(name), "--output", str(target))
        self.assertEqual((status, err), (0, ""))
        self.assertIn("\ufffd\ufffd.json", target.read_bytes().decode())
        self.assertIn("\ufffd.html: 1 rows", out)

    def test_reads_and_writes_bytes_whatever_the_locale(self):
        given = json.dumps(document(row(allocator="café")), ensure_ascii=False)
        command = [sys.executable, "-B", str(SCRIPTS), "-", "--output"]
        for coding, locale, name in (("utf-8-sig", "C", "-"), ("utf-16", "C", "é.html"), ("utf-8", "C.UTF-8", "é.html")):
            variables = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": "/usr/bin:/bin"}
            target = name if name == "-" else str(self.folder / name)
            done = subprocess.run([*command, target], input=given.encode(coding), capture_output=True, env=variables)
            self.assertEqual((done.returncode, done.stderr), (0, b""), (coding, locale))
            self.assertIn("café", done.stdout.decode() if name == "-" else pathlib.Path(target).read_text("utf-8"))
        done = subprocess.run([*command, "-"], input=b'{"a": "\xff"}', capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"<stdin>: not UTF-8", done.stderr)

    def test_leaves_no_half_of_a_page(self):
        file = self.write("a.json", document(row()))
        limited = f"ulimit -f 1; exec {sys.executable} -B {SCRIPTS} {file} --output {self.folder}/page.html"
        done = subprocess.run(["bash", "-c", "trap '' XFSZ; " + limited], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "^warpheap report: --output: .*page.html: File too large\n$")
        self.assertEqual([each.name for each in self.folder.iterdir()], ["a.json"])
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPTS), file, "--output", "-"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("--output: -: No space left on device", done.stderr)


if __name__ == "__main__":
    unittest.main()
