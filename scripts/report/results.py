# SPDX-License-Identifier: Apache-2.0
"""Reads results files, and says what is wrong with one that cannot be read.

A file is a JSON document as the tool's --json writes it (docs/guide/command_line.md, "JSON"): `schema` 1, a `machine`, and
`results`, whose rows of benchmarks have a scenario, parameters and times. Rows without a scenario, such as those of
`stress`, are kept as they are and shown as tables alone.
"""

import json
import os
import pathlib
import sys

# Numbers beyond these are no measurements, and products of a few within them are doubles.
LEAST_NUMBER, MOST_NUMBER = 1e-100, 1e100
MACHINE_KEYS = ("cpu", "device", "driver", "cuda", "commit", "time")
# What a row of a benchmark has beside its figures.
ROW_KEYS = set("scenario allocator primitive backend operation parameters times_us median_us operations_per_second failures checked fault "
               "skipped".split())  # fmt: skip


class Fault(Exception):
    """Bad usage or bad input, as one line."""


class Source:
    """One results file."""

    def __init__(self, name, document):
        self.name, self.document = name, document
        self.number = 0  # on the page, from 1
        machine = document.get("machine") if isinstance(document.get("machine"), dict) else {}
        self.machine = {key: machine.get(key) for key in MACHINE_KEYS}
        self.backend = document.get("backend")
        for key, value in (*self.machine.items(), ("backend", self.backend)):
            if value is not None and not isinstance(value, str):
                raise Fault(f"{name}: {key} is no text")
        self.rows = []
        self.others = []  # rows that are of no benchmark

    @property
    def commit(self):
        return str(self.machine.get("commit") or "unknown")

    @property
    def where(self):
        """What must be equal for times to be comparable: backend, device, processor, driver, CUDA."""
        return tuple([self.backend or "?"] + [self.machine.get(key) for key in ("device", "cpu", "driver", "cuda")])


class Row:
    """One operation of one allocator or primitive, measured some times."""

    def __init__(self, source, index, fields):
        self.source, self.index, self.fields = source, index, fields
        self.scenario = fields["scenario"]
        self.subject = fields.get("allocator") or fields.get("primitive") or "?"
        self.operation = fields.get("operation") or ""
        self.parameters = dict(fields.get("parameters") or {})
        self.times = fields.get("times_us") or []
        self.median = fields.get("median_us")
        self.failures = fields.get("failures") or 0
        self.skipped, self.fault = str(fields.get("skipped") or ""), str(fields.get("fault") or "")
        others = {key: value for key, value in fields.items() if key not in ROW_KEYS}
        self.lists = {key: value for key, value in others.items() if isinstance(value, list)}
        self.figures = {key: value for key, value in others.items() if not isinstance(value, (list, dict))}
        for key in [key for key, value in self.figures.items() if isinstance(value, str)]:
            self.parameters[key] = self.figures.pop(key)  # tells rows apart, like Python's `kind`

    @property
    def key(self):
        """Equal for rows that measured the same thing, on whatever machine."""
        parameters = tuple(sorted(self.parameters.items(), key=str))
        return (self.scenario, self.subject, self.operation, parameters, self.source.backend)

    def value(self, name):
        """The number called `name`, or None."""
        if self.skipped or self.fault:
            return None
        if name in ("median_us", "operations_per_second"):
            return self.fields.get(name) or None
        return self.figures[name] if is_number(self.figures.get(name)) else None

    def spread(self):
        """The ends of the times without the fastest and the slowest tenth: from five on at least one of each is left out, so
        that one odd time does not widen it."""
        if not self.times:
            return None
        ordered = sorted(self.times)
        cut = max(len(ordered) // 10, len(ordered) >= 5)
        return ordered[cut], ordered[-1 - cut]


def newest(rows):
    """Of rows that measured the same thing on one machine, the one measured last; in the order of the first of each."""
    chosen = {}
    for row in rows:
        same = (row.key, row.source.where)
        seen = chosen.get(same)
        if seen is None or str(row.source.machine.get("time")) >= str(seen.source.machine.get("time")):
            chosen[same] = row
    return list(chosen.values())


def _no_constant(text):
    raise ValueError(f"{text} is no number of JSON")


def _number_by(make):
    def read(text):
        size = abs(float(text))
        if size > MOST_NUMBER or 0 < size < LEAST_NUMBER:
            told = text if len(text) <= 20 else f"{text[:20]}… ({len(text)} characters)"
            raise Fault(f"{told} is no measurement: numbers are 0, or {LEAST_NUMBER:g} to {MOST_NUMBER:g} in size")
        return make(text)

    return read


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_row(fields, place):
    """Raises Fault if a benchmark's row has not the types that it must have."""
    parameters, times = fields.get("parameters") or {}, fields.get("times_us") or []
    if not isinstance(parameters, dict):
        raise Fault(f"{place}: parameters is no object")
    for name, value in parameters.items():
        if not is_number(value) and not isinstance(value, str):
            raise Fault(f"{place}: parameters: {name} is neither a number nor text")
    if not isinstance(times, list) or not all(is_number(time) and time >= 0 for time in times):
        raise Fault(f"{place}: times_us is no list of times")
    told = {name: value for name, value in fields.items() if value is not None}
    for name in ("median_us", "operations_per_second", "failures"):
        if not is_number(told.get(name, 0)) or told.get(name, 0) < 0:
            raise Fault(f"{place}: {name} is no number, or less than 0")
    for name in ("scenario", "operation", "allocator", "primitive", "backend", "skipped", "fault"):
        if not isinstance(told.get(name, ""), str):
            raise Fault(f"{place}: {name} is no text")
    if not fields["scenario"]:
        raise Fault(f"{place}: scenario is empty")


def _graph_row(fields):
    """A result of `warpheap graph` as a benchmark's row."""
    kept = {key: fields[key] for key in ("allocator", "mallocs", "frees", "live_bytes", "peak_bytes", "lost", "failures") if key in fields}
    parameters = {"input": str(fields.get("input", "?")), "edges": fields["edges"], "pool_bytes": fields.get("pool_bytes", 0)}
    microseconds = fields["seconds"] * 1e6
    return {"scenario": "graph", "operation": "build and change", "parameters": parameters, "times_us": [microseconds],
            "median_us": microseconds, **kept}  # fmt: skip


def _rows_of(name, document):
    for key in ("results", "runs" if "vertices" in document else "programs"):
        if document.get(key) and not isinstance(document[key], list):
            raise Fault(f"{name}: {key} is no list")
        if document.get(key):
            return document[key]
    return [document] if "vertices" in document else []


def source_of(name, content):
    """What a document says; bytes of it are UTF-8, or UTF-16 or 32, with or without a byte order mark."""
    try:
        numbers = {"parse_int": _number_by(int), "parse_float": _number_by(float), "parse_constant": _no_constant}
        document = json.loads(content, **numbers)
    except Fault as fault:
        raise Fault(f"{name}: {fault}") from None
    except UnicodeDecodeError as fault:
        raise Fault(f"{name}: not {fault.encoding.upper()}: {fault.reason} at byte {fault.start}") from None
    except (ValueError, RecursionError) as fault:
        raise Fault(f"{name}: not JSON: {fault}") from None
    if not isinstance(document, dict):
        raise Fault(f"{name}: the document is no object")
    if document.get("schema", 1) != 1:
        raise Fault(f"{name}: schema is {json.dumps(document['schema'])}, and this program knows 1")
    source = Source(name, document)
    for index, fields in enumerate(_rows_of(name, document)):
        place = f"{name}: results[{index}]"
        if not isinstance(fields, dict):
            raise Fault(f"{place} is no object")
        if "vertices" in fields and is_number(fields.get("seconds")) and is_number(fields.get("edges")):
            fields = _graph_row(fields)
        if "scenario" not in fields:
            source.others.append(fields)
            continue
        _check_row(fields, place)
        source.rows.append(Row(source, index, fields))
    if source.backend is None:
        told = {row.fields.get("backend") for row in source.rows} - {None}
        source.backend = told.pop() if len(told) == 1 else "cuda" if source.machine.get("device") else None
    return source


def read_all(typed):
    """The sources of files, of all in folders, and of standard input, numbered from 1."""
    paths, sources = [], []
    for name in typed:
        found = sorted(pathlib.Path(name).glob("*.json")) if os.path.isdir(name) else [name]
        if not found:
            raise Fault(f"{name}: no .json file in this folder")
        paths += found
    for number, path in enumerate(paths, 1):
        try:
            content = sys.stdin.buffer.read() if path == "-" else pathlib.Path(path).read_bytes()
        except OSError as fault:
            raise Fault(f"{path}: {fault.strerror}") from None
        sources.append(source_of("<stdin>" if path == "-" else str(path), content))
        sources[-1].number = number
    return sources
