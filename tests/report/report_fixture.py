# SPDX-License-Identifier: Apache-2.0
"""Results to make pages of, and ways to look into a page."""

import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts" / "report"), str(ROOT / "scripts")]

import needed  # noqa: E402

needed.find()
import page  # noqa: E402
import results  # noqa: E402

H200 = {
    "cpu": "A CPU",
    "device": "NVIDIA H200",
    "driver": "580.1",
    "cuda": "13.0",
    "commit": "aaa111",
    "time": "2026-01-02T03:04:05Z",
}
HOST = {
    "cpu": "A CPU",
    "device": None,
    "driver": None,
    "cuda": None,
    "commit": "aaa111",
    "time": "2026-01-02T03:04:05Z",
}
HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def row(
    allocator="slab_bitmap",
    operation="malloc",
    scenario="burst",
    times=(20.0, 21.0, 22.0),
    failures=0,
    figures=None,
    **parameters,
):
    """A row as `warpheap bench` writes it."""
    median = sorted(times)[len(times) // 2] if times else None
    return {
        "scenario": scenario,
        "allocator": allocator,
        "operation": operation,
        "parameters": parameters or {"bytes": 256, "threads": 1024, "pool_bytes": 1 << 30},
        "times_us": list(times),
        "median_us": median,
        "operations_per_second": 1e6 / median if median else None,
        **(figures or {}),
        "failures": failures,
        "checked": True,
    }


def burst(allocator, time, size=256, **more):
    """A burst whose times lie within a hundredth of `time`."""
    return row(allocator, times=(time * 0.99, time, time * 1.01), bytes=size, threads=1024, pool_bytes=1 << 30, **more)


def document(*rows, machine=None, backend="cuda"):
    return {"schema": 1, "machine": machine or H200, "backend": backend, "seed": 1, "results": list(rows)}


def sources_of(*documents):
    made = [results.source_of(f"{number}.json", json.dumps(each)) for number, each in enumerate(documents, 1)]
    for number, source in enumerate(made, 1):
        source.number = number
    return made


def words_of(element):
    """All text, with single spaces."""
    return " ".join(" ".join(element.itertext()).split())


class Page:
    """A page that was made, and its parts."""

    def __init__(self, text, made=None):
        self.text, self.made = text, made
        self.root = xml.etree.ElementTree.fromstring(text.partition("<!DOCTYPE html>")[2])

    def section(self, identity):
        return next((each for each in self.root.iter(f"{HTML}section") if each.get("id") == identity), None)

    def words(self, element=None):
        return words_of(self.root if element is None else element)

    def loads(self):
        """{load: words of its rows} of the table of common loads."""
        made = {}
        for line in (self.section("loads") or ()) and self.section("loads").iter(f"{HTML}tr"):
            made.setdefault(line[0].text, []).append(words_of(line))
        return made

    def charts(self, element=None):
        """The texts of the points of each chart."""
        drawn = (self.root if element is None else element).iter(f"{SVG}svg")
        return [[each.text for group in svg.iter(f"{SVG}g") if group.get("class") == "p" for each in group.iter(f"{SVG}text")] for svg in drawn]

    def table_rows(self, section, kind):
        """{first cell: (texts, classes) of the others} of the section's first table of a kind."""
        table = next(each for each in self.section(section).iter(f"{HTML}table") if each.get("class") == kind)
        lines = list(table.find(f"{HTML}tbody"))
        return {line[0].text: ([words_of(cell) for cell in line[1:]], [cell.get("class") for cell in line[1:]]) for line in lines}

    def raw_rows(self, section):
        """The rows of a section's raw tables, each {column: text}, with what is told once above them."""
        made, above = [], {}
        for each in section.iter():
            if each.tag == f"{HTML}p":
                names = [told for told in each if told.get("class") == "common"]
                above = {told.find(f"{HTML}i").text: told.find(f"{HTML}b").text for told in names}
            if each.tag == f"{HTML}table" and each.get("class") == "raw":
                columns = [head.text for head in each.iter(f"{HTML}th")][: len(each.find(f"{HTML}thead")[0])]
                made += [{**above, **dict(zip(columns, (cell.text or "" for cell in line)))} for line in each.find(f"{HTML}tbody")]
                above = {}
        return made


def page_of(*documents, before=None):
    made = page.Page(sources_of(*documents), sources_of(*before) if before is not None else None)
    return Page(page.build(made)[0], made)


class CommandTest(unittest.TestCase):
    """Runs the script's command line in a folder of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def run_report(self, *arguments, given=""):
        """(exit status, standard output, standard error)"""
        spec = importlib.util.spec_from_file_location("report_main", ROOT / "scripts" / "report" / "__main__.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        out, err, before = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = script.main(list(arguments))
        finally:
            sys.stdin = before
        out.flush()
        return status, out.buffer.getvalue().decode(), err.getvalue()
