# SPDX-License-Identifier: Apache-2.0
"""The rows of results files as they are: whole numbers exactly, others to six significant digits, with their file."""

from header import table_of
from markup import Markup, element, joined
from text import six_digits


def _columns_of(row):
    """Column to value, in the order of the file."""
    made = {"measured": row.subject, "operation": row.operation, **row.parameters}
    if row.skipped or row.fault:
        return {**made, "not measured": row.skipped or "failed its check: " + row.fault}
    if row.median is not None:
        made["median_us"] = row.median
    if row.times:
        made.update(least_us=min(row.times), most_us=max(row.times), repetitions=len(row.times))
    for name in ("operations_per_second", "bytes_per_second"):
        if row.fields.get(name) is not None:
            made[name] = row.fields[name]
    if row.fields.get("failures") is not None:
        made["failures"] = row.fields["failures"]
    made.update({name: value for name, value in row.figures.items() if name != "bytes_per_second"})
    return made


def _cell(value):
    return element("th" if isinstance(value, str) else "td", six_digits(value))


def _table_of(names, lines):
    heads = [name.replace("_", " ") for name in names]
    return table_of(heads, ([_cell(line.get(name)) for name in names] for line in lines), "raw")


def _constants(lines):
    """Columns that have one value in all of several lines, and that value."""
    if len(lines) < 2:
        return {}
    return {name: value for name, value in lines[0].items() if all(line[name] == value for line in lines)}


def _table(lines):
    """Rows of the same columns."""
    common = _constants(lines)
    shown = [name for name in lines[0] if name not in common]
    told = []
    for name, value in common.items():
        words = (element("i", name.replace("_", " ")), " ", element("b", six_digits(value)))
        told += [" ", element("span", *words, class_="common")]
    above = element("p", f"In each of these {len(lines)} rows:", *told) if told else Markup("")
    return joined([above, _table_of(shown, lines)])


def table(rows):
    """All rows of a scenario, in a table for each kind of columns. What all rows of one have in common stands once, above it."""
    kinds = {}
    for row in rows:
        line = {**_columns_of(row), "file": f"[{row.source.number}]"}
        kinds.setdefault(tuple(line), []).append(line)
    return joined(map(_table, kinds.values()))


def other_table(source):
    """Rows of a file that are of no benchmark: what is a number, text or a truth value, in columns."""
    lines = [
        {name: value for name, value in fields.items() if not isinstance(value, (dict, list))}
        for fields in source.others
    ]
    names = list(dict.fromkeys(name for line in lines for name in line))
    return _table_of(names, lines)
