# SPDX-License-Identifier: Apache-2.0
"""Whatever a results file has in one of its fields, there is a page in which it is text, or a sentence that names the file."""

import ast
import collections
import html.parser
import json
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from report_fixture import ROOT, CommandTest, document, page, page_of, results, row

import markup

SCRIPTS = ROOT / "scripts" / "report"
SCRIPT = '"><script>alert(1)</script><a onload="'
# As they are in a file.
TEXTS = (json.dumps(SCRIPT), r'"\u0000\ud800\ufffe\u001b[2J"', '""', '"_"')
BEYOND = ("1e999", "-1e999", "1" + 400 * "0", "1" + 5000 * "0", "1e308", "5e-324")
NUMBERS = ("1e100", "1e-100", "-5", "0", "0.5")
OTHERS = ("null", "true", "[]", "{}", "[1]", '[{"a": [null]}]', '{"a": {"b": 1}}', '["x", 1]')
HERE = "@here@"
# What the page is made of.
ATTRIBUTES = {"class", "id", "href", "lang", "xmlns", "charset", "name", "content", "data-name", "viewbox", "role", "x", "y", "d",
              "stroke-dasharray", "fill-opacity"}  # fmt: skip
ELEMENTS = set("html head meta title style body header nav section details summary h1 h2 h3 h4 p a ul li b i em small span div figure table "
               "caption thead tbody tr th td svg text path".split())  # fmt: skip


class _Browser(html.parser.HTMLParser):
    """What HTML's own rules make of a page: (element, {attribute: value}) of each start tag."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def documents():
    """For each scenario of the real results some rows of it, and a document of each other kind."""
    rows = collections.defaultdict(list)
    for path in sorted((ROOT / "bench" / "results").glob("*.json")):
        found = json.loads(path.read_text())
        for each in found.get("results") or [] if isinstance(found, dict) else []:
            if "scenario" in each and len(rows[each["scenario"]]) < 5:
                rows[each["scenario"]].append(each)
    made = {name: document(*some) for name, some in rows.items()}
    made["unknown"] = document(*(row(scenario="new_one", times=(size / 8,) * 3, bytes=size) for size in (16, 64, 256)))
    made["map"] = document(*(row(scenario="map", figures={"cell_octave": [16, 64], "cell_permille": [9, 99]}, step=step, level_permille=900)
                             for step in (1, 2)))  # fmt: skip
    made["skipped"] = document(row(figures={"skipped": "too large"}), row("scatter", figures={"fault": "an overlap"}))
    made["stress"] = document({"allocator": "halloc", "rounds": 17, "faults": {"damaged": 0}})
    made["graph"] = {"schema": 1, "vertices": 9, "runs": [{"vertices": 9, "edges": 8, "seconds": 0.5, "allocator": "halloc", "input": "x.mtx",
                                                           "pool_bytes": 1024, "mallocs": 5, "failures": 0}]}  # fmt: skip
    return made


def places(value, path=()):
    """The ways to all values of a document; of a list, to its first element alone."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def changed(value, path, whole):
    """The document with HERE at the place, and where `whole`, in all elements of the lists on the way."""
    if not path:
        return HERE
    if isinstance(value, list):
        return [changed(each, path[1:], whole) if whole or not index else each for index, each in enumerate(value)]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {key: changed(each, path[1:], whole) if key == path[0] else each for key, each in value.items()}


class EveryField(unittest.TestCase):
    def assert_page_or_sentence(self, content):
        """Returns whether it was a page."""
        try:
            sources = [results.source_of("x.json", content)]
            text, pictures = page.build(sources, sources if "script" in content else None)
        except results.Fault as fault:
            self.assertTrue(str(fault).startswith("x.json: "), fault)
            return False
        self.assert_only_ours(text.encode().decode(), "script" in content)
        for picture in pictures.values():
            drawn = picture.standalone()
            xml.etree.ElementTree.fromstring(drawn.encode())
            self.assertNotRegex(drawn, r"\b(nan|inf)\b")
        return True

    def assert_only_ours(self, text, as_html):
        self.assertIsNone(re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", text))
        root = xml.etree.ElementTree.fromstring(text.partition("\n")[2])
        seen = [(each.tag.rpartition("}")[2], each.attrib) for each in root.iter()]
        for elements in (seen, *([_Browser(text).seen] if as_html else [])):
            self.assertLessEqual({name for name, _ in elements}, ELEMENTS)
            self.assertLessEqual({name.lower() for _, given in elements for name in given}, ATTRIBUTES)
            ids = [given["id"] for _, given in elements if "id" in given]
            self.assertEqual(len(ids), len(set(ids)), ids)
            self.assertLessEqual(
                {given["href"] for _, given in elements if "href" in given}, {f"#{each}" for each in ids}
            )

    def of_values(self, values, whole, names=None):
        """How many pages they made, for all places of the documents."""
        pages = 0
        shared = set()  # what all documents have at their top
        made = documents()
        for name in names or made:
            given = made[name]
            for path in places(given):
                if path[:1] not in (("results",), ("runs",)) and path in shared:
                    continue
                shared.add(path)
                template = json.dumps(changed(given, path, whole))
                for value in values:
                    with self.subTest(document=name, path=path, value=value[:40], whole=whole):
                        pages += self.assert_page_or_sentence(template.replace(json.dumps(HERE), value))
        return pages

    def test_may_have_any_text(self):
        self.assertGreater(self.of_values(TEXTS[:1], True), 200)
        self.assertGreater(self.of_values(TEXTS[1:], False), 1000)

    def test_may_have_any_number(self):
        self.assertGreater(self.of_values(NUMBERS, True), 1000)
        self.assertEqual(self.of_values(BEYOND, True, ("burst", "graph", "stress", "map")), 0, "sentences")

    def test_may_have_another_number_than_other_rows(self):
        self.assertGreater(self.of_values(("0", "0.5", "-1e100", "100000000000000001"), False), 1000)

    def test_may_have_any_type(self):
        self.assertGreater(self.of_values(OTHERS, True), 200)
        self.assertGreater(self.of_values(OTHERS[:2], False), 200)


class Elements(unittest.TestCase):
    def test_escape_whatever_is_no_markup(self):
        made = markup.element("td", SCRIPT, markup.element("b", "x & y"), data_name=SCRIPT, class_="")
        seen = [(name, given) for name, given in _Browser(made).seen]
        self.assertEqual(seen, [("td", {"data-name": SCRIPT}), ("b", {})])
        root = xml.etree.ElementTree.fromstring(made)
        self.assertEqual((root.text, root[0].text, root.attrib), (SCRIPT, "x & y", {"data-name": SCRIPT}))
        self.assertNotIsInstance(made + "text", markup.Markup)


class TheSources(unittest.TestCase):
    def test_have_one_function_that_writes_markup(self):
        """Others hold markup in literals alone, so what they put in comes through `element`."""
        for path in SCRIPTS.glob("*.py"):
            if path.name == "markup.py":
                continue
            tree = ast.parse(path.read_text())
            calls = [
                each
                for each in ast.walk(tree)
                if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "Markup"
            ]
            self.assertTrue(all(isinstance(each.args[0], ast.Constant) for each in calls), path.name)
            literals = {id(each.args[0]) for each in calls}
            for each in ast.walk(tree):
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in literals:
                    self.assertNotRegex(each.value.replace("<stdin>", ""), "</?[a-z]", f"{path.name}:{each.lineno}")


class ThePage(unittest.TestCase):
    def test_has_an_id_and_a_file_of_its_own_for_every_name(self):
        names = ("files", "papers", "compared", "a b", "a-b", "a_b", "a/../b", "..", "summary")
        made = page_of(document(*(row(scenario=name) for name in names)))
        ids = [name for each in made.root.iter() if (name := each.get("id"))]
        self.assertEqual((len(ids), len(set(ids))), (len(names) + 1,) * 2)
        self.assertEqual(len(made.pictures), len(names))
        self.assertTrue(all(re.fullmatch(r"[\w.-]+", name) for name in [*ids, *made.pictures]))

    def test_leaves_out_a_histogram_of_times_that_are_apart_by_orders_of_magnitude(self):
        steps = [
            row(name, "step", "pic", [1.0] * 60 + [last] * 60, species=1)
            for name, last in (("ring_buffer", 1.0), ("halloc", 1e90))
        ]
        self.assertNotIn("Figure 5.5", page_of(document(*steps)).text)
        steps[1]["times_us"][60:] = [1.2] * 60
        self.assertIn("Figure 5.5", page_of(document(*steps)).text)


class TheCommand(CommandTest):
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
        for coding in ("utf-8", "utf-8-sig", "utf-16"):
            for locale in ("C", "C.UTF-8"):
                variables = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": "/usr/bin:/bin"}
                done = subprocess.run([*command, "-"], input=given.encode(coding), capture_output=True, env=variables)
                self.assertEqual((done.returncode, done.stderr), (0, b""), (coding, locale))
                self.assertIn("café", done.stdout.decode())
                target = self.folder / "é.html"
                done = subprocess.run(
                    [*command, str(target)], input=given.encode(coding), capture_output=True, env=variables
                )
                self.assertEqual((done.returncode, done.stderr), (0, b""), (coding, locale))
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
