# SPDX-License-Identifier: Apache-2.0
"""The page's tables: who leads at each point of a chart, which allocator leads common loads, and the raw numbers.

A cell is text, or (class, number as text, what stands small beside it).
"""

import dataclasses

import panels as charts
import scenarios
from panels import BASELINES, DEFAULT, FIRST, title_of
from text import FORMATS, listed, parameter_text, ratio_text, six_digits

MOST_COLUMNS, MOST_LISTED = 10, 3
UNDECIDED = "undecided, the spread is too wide"


@dataclasses.dataclass
class Table:
    caption: str
    heads: tuple
    rows: list
    common: dict = dataclasses.field(default_factory=dict)  # what is the same in all rows


def _cell(panel, name, point, best):
    if point is None:
        return ("", "–", "")
    value, mark = FORMATS[panel.y_kind](point.y), "†" * panel.refused(point)
    verdict = "" if name in BASELINES else panel.verdict(point, best)
    ratio = panel.ratio_to(point, best)
    bare = ratio is None or panel.y_kind in ("share", "ratio")
    shown, *beside = (value,) if bare else (ratio_text(ratio), value)
    beside += [panel.refusal(point)] * bool(mark) + [UNDECIDED] * (verdict == "undecided")
    return "best" * (verdict == "even"), shown + mark, ", ".join(beside)


def leaders(panel):
    """Ratios to the best, with the measured values beside them; None where there is nothing to compare."""
    if len(panel.series) < 2:
        return None
    xs = panel.xs() if panel.is_lines() else panel.xs()[:1]
    if len(xs) > MOST_COLUMNS:
        xs = [xs[round(index * (len(xs) - 1) / (MOST_COLUMNS - 1))] for index in range(MOST_COLUMNS)]
    columns = {x: dict(panel.column(x)) for x in xs}
    best = {x: panel.best_of(list(columns[x].items()))[1] for x in xs}
    rows = [(title_of(each.name), *(_cell(panel, each.name, columns[x].get(each.name), best[x]) for x in xs)) for each in panel.ranked()]
    heads = (panel.x_label, *("" if x is None else FORMATS[panel.x_kind](x) for x in xs))
    return Table(f"{panel.title}: {panel.y_label}", heads, rows)


# A common load: its name, a scenario, its operation, the value of what is drawn over, and what else must be so.
LOADS = (
    ("Bursts of 16 B", "burst", "malloc", 16, {}),
    ("Bursts of 64 B", "burst", "malloc", 64, {}),
    ("Bursts of 256 B", "burst", "malloc", 256, {}),
    ("Bursts of 1 KiB", "burst", "malloc", 1024, {}),
    ("Bursts of 4 KiB", "burst", "malloc", 4096, {}),
    ("Bursts of 256 B from a new heap", "burst", "first_malloc", 256, {}),
    ("Bursts of 64 B by a million threads", "burst", "malloc", 64, {"threads": 1 << 20}),
    ("Bursts of 1 KiB by a million threads", "burst", "malloc", 1024, {"threads": 1 << 20}),
    ("Bursts of mixed sizes, up to 1 KiB", "mixed", "malloc", 1024, {}),
    ("Freeing a burst of 256 B", "burst", "free", 256, {}),
    ("Churn within a kernel", "churn", "malloc+free", None, {}),
    ("Churn at 90% fill", "fill_level", "constant malloc", 900, {}),
    ("Churn of drifting sizes at 70% fill", "fill_level", "drifting malloc", 700, {}),
    ("All of the pool in blocks of 256 B", "exhaust", "malloc", 256, {}),
    ("How full a pool gets, sizes up to 1 KiB", "utilisation", "fill", None, {"sizes": "16 B to 1 KiB"}),
    ("Large blocks: 1 MiB, 1,024 threads", "crowd", "malloc", 1024, {"bytes": 1 << 20}),
    ("Large blocks: 64 MiB, 16 threads", "crowd", "malloc", 16, {"bytes": 64 << 20}),
    ("Two tables joined", "join", "join", 1048576, {}),
)


def _nearest(panel, wanted):
    """The values of x at which several were measured, the one nearest to the wanted one first."""
    several = [x for x in panel.xs() if len(_compared(panel, x)) > 1]
    return several if wanted is None or None in several else sorted(several, key=lambda x: (abs(x - wanted), x))


def _compared(panel, x):
    return [each for each in panel.column(x) if each[0] not in BASELINES]


def _named(name):
    return title_of(name) + " (the default)" * (name == DEFAULT)


def _other(panel, name, point, best):
    ratio, words = panel.ratio_to(point, best), [panel.refusal(point)] * panel.refused(point)
    if ratio and panel.y_kind != "share" and not words:
        words.append(ratio_text(ratio) + ("× as long" if panel.y_kind == "time" else "× less"))
    return f"{_named(name)} {FORMATS[panel.y_kind](point.y)}" + f" ({', '.join(words)})" * bool(words)


def _load_row(title, panel, x):
    column = _compared(panel, x)
    leader, best = panel.best_of(column)
    undecided = any(panel.verdict(point, best) == "undecided" for _, point in column)
    wanted = ("even", "undecided") if undecided else ("even",)
    equals = [each for each in column if each[0] == leader or panel.verdict(each[1], best) in wanted]
    others = [each for each in column if each not in equals]
    others.sort(key=lambda each: (each[0] not in FIRST, panel.refused(each[1]) and not panel.refused(best)))
    shown = others if len(others) <= MOST_LISTED + 1 else others[:MOST_LISTED]
    words = [_other(panel, *each, best) for each in shown]
    if len(others) > len(shown):
        words.append(f"{len(others) - len(shown)} more, down to {_other(panel, *others[-1], best)}")
    given = [parameter_text(name, value) for name, value in panel.shared.items() if name not in ("rounds", "machine")]
    if x is not None:
        given.insert(0, f"{panel.x_label}: {FORMATS[panel.x_kind](x)}")
    given += [f"{label}: {FORMATS[panel.y_kind](value)}" for label, value in panel.baselines]
    equals.sort(key=lambda each: each[0] != DEFAULT)
    take = [_named(name) + f" ({panel.refusal(point)})" * panel.refused(point) for name, point in equals]
    if undecided:
        take = [f"{UNDECIDED} ({ratio_text(max(point.width() for _, point in equals))}×): {listed(take)}"]
    return [] if undecided else [name for name, _ in equals], (
        title, listed(take), ("" if undecided else "best", FORMATS[panel.y_kind](best.y), ""), "; ".join(words) or "none",
        f"{panel.y_label}; {', '.join(given)}")  # fmt: skip


def common_loads(rows):
    """Which allocator leads common loads that several were measured on, made from the rows and from nothing else: a sentence and a
    table."""
    nearest = {}  # (panel's title, x): how far it is from the load, the load, the panel
    for title, scenario, operation, wanted, where in LOADS:
        some = [row for row in rows if row.scenario == scenario]
        known = scenarios.scenario_of(scenario, some)
        panels = [panel for panel in charts.panels_of(some, known, known.views[0], {}) if panel.group == operation]
        panels = [panel for panel in panels if all(panel.shared.get(name) == value for name, value in where.items()) and _nearest(panel, wanted)]
        places = [(panel, _nearest(panel, wanted)[0]) for panel in panels]
        for panel, x in sorted(places, key=lambda place: -len(place[0].column(place[1])))[:1]:
            found = (abs(x - wanted) if x is not None and wanted is not None else 0, title, panel)
            nearest[scenario, panel.title, x] = min(nearest.get((scenario, panel.title, x), found), found, key=lambda each: each[0])
    made, led = [], {}
    for (_, _, x), (_, title, panel) in nearest.items():
        leading, row = _load_row(title, panel, x)
        made.append(row)
        for name in leading:
            led[name] = led.get(name, 0) + 1
    told = listed(f"{_named(name)} in {led[name]}" for name in sorted(led, key=lambda name: -led[name])[:4])
    loads = "this load" if len(made) == 1 else f"these {len(made)} loads"
    sentence = f"Best, or no different from the best beyond the spread of repetitions, in {loads}: {told or 'none'}. A load with several such counts for each."
    return sentence, Table("", ("load", "take", "its value", "others", "measured"), made)


def _columns_of(row):
    """Column to value, in the order of the file."""
    made = {"measured": row.subject, "operation": row.operation, **row.parameters}
    if row.skipped or row.fault:
        return {**made, "not measured": row.skipped or "failed its check: " + row.fault}
    if row.median is not None:
        made["median_us"] = row.median
    if row.times:
        made.update(least_us=min(row.times), most_us=max(row.times), repetitions=len(row.times))
    for name in ("operations_per_second", "bytes_per_second", "failures"):
        if row.fields.get(name) is not None:
            made[name] = row.fields[name]
    return {**made, **row.figures}


def raw_of(lines, names=None):
    """Rows of the same columns, as they are: whole numbers exactly, others to six significant digits."""
    names = names or list(lines[0])
    common = {name: lines[0].get(name) for name in names if all(name in each and each[name] == lines[0][name] for each in lines)}
    common = common if len(lines) > 1 else {}
    heads = [name for name in names if name not in common]
    values = [[line.get(name) for name in heads] for line in lines]
    rows = [[six_digits(value) if isinstance(value, str) else ("", six_digits(value), "") for value in line] for line in values]
    common = {name.replace("_", " "): six_digits(value) for name, value in common.items()}
    return Table("", [name.replace("_", " ") for name in heads], rows, common)


def raw(rows):
    """All rows of a scenario, in a table for each kind of columns."""
    kinds = {}
    for row in rows:
        line = {**_columns_of(row), "file": f"[{row.source.number}]"}
        kinds.setdefault(tuple(line), []).append(line)
    return [raw_of(lines) for lines in kinds.values()]


def others(source):
    """Rows of a file that are of no benchmark: what is a number, text or a truth value, in columns."""
    lines = [{name: value for name, value in each.items() if not isinstance(value, (dict, list))} for each in source.others]
    return raw_of(lines, list(dict.fromkeys(name for line in lines for name in line)))
