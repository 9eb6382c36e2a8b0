# SPDX-License-Identifier: Apache-2.0
"""The page: what stands on it, in order. page.html and tables.html say how. It is well-formed XML too, and has no script."""

import itertools
import pathlib
import re

import charts
import comparison
import heap_map
import jinja2
import panels
import scenarios
import tables
from markupsafe import Markup
from text import FORMATS, listed, parameter_text, printable

MOST_CHARTS, MOST_OF_A_NUMBER = 76, 6
# What the first screen shows: title, number, and scenarios and operations of which the first that was measured is taken.
FIRST = (
    ("Speed: malloc of all threads at once", "median_us", (("scaling", "malloc"),)),
    ("Speed: malloc by size of a block", "median_us", (("burst", "malloc"),)),
    ("Memory: in use at the first nullptr", "utilisation", (("efficiency", "mixed fill"), ("utilisation", "fill"))),
)
FIRST_BYTES, FIRST_LINES = 64, 5  # the size of a block whose numbers are told, and the most lines
FIRST_TITLES = {panels.DEFAULT: "Warpheap", panels.BASELINE: "storing a pointer"}


def _unique(name, taken):
    """The name as an id or a file can have it, with a number where it is taken."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", name)
    made = next(each for each in itertools.chain([name], (f"{name}-no-{n}" for n in itertools.count(2))) if each not in taken)
    taken.add(made)
    return made


class _Section:
    """A scenario: its numbers as (heading, panels), with their tables."""

    def __init__(self, name, rows, machines, identities):
        self.known = scenarios.scenario_of(name, rows)
        self.id, self.name, self.rows = _unique(name, identities), name, rows
        self.views = [(view, panels.panels_of(rows, self.known, view, machines)) for view in self.known.views]
        self.maps = list(heap_map.maps_of(rows)) if name == "map" else []

    def leave_out(self, first):
        """What the first screen shows is not drawn again."""
        self.drawn = [(view, [panel for panel in some if panel not in first]) for view, some in self.views]
        self.above = sum(panel in first for _, some in self.views for panel in some)

    def tables(self):
        made = [tables.leaders(panel) for _, some in self.views for panel in some]
        return [table for table in made if table]

    def raw(self):
        return tables.raw(self.rows)

    def sources(self):
        """{commit: numbers of the files} of what is shown."""
        shown = [row for _, some in self.views for panel in some for row in panel.rows()]
        shown += [row for _, rows in self.maps for row in rows]
        made = {}
        for number, commit in sorted({(row.source.number, row.source.commit) for row in shown}):
            made.setdefault(commit, []).append(number)
        return made


class Page:
    def __init__(self, sources, before=None):
        self.sources, self.before = sources, before or []
        self.rows = [row for source in sources for row in source.rows]
        self.machines = panels.machine_names(sources)
        self.pictures, self.themes, self.most_lines, self.wide = {}, charts.THEMES, charts.MOST_LINES, panels.WIDE
        self.notes = list(self._notes(before is not None))
        taken = {"files", "loads", "compared", "others", "top"}
        names = dict.fromkeys(row.scenario for row in self.rows)
        order = sorted(names, key=lambda name: (name not in scenarios.KNOWN, [*scenarios.KNOWN, *names].index(name)))
        self.sections = [
            _Section(name, [row for row in self.rows if row.scenario == name], self.machines, taken) for name in order
        ]
        self.first = list(self._first())
        for section in self.sections:
            section.leave_out([panel for *_, panel in self.first])
        numbers = [some for section in self.sections for _, some in section.drawn]
        self.most = next(
            (most for most in range(MOST_OF_A_NUMBER, 1, -1) if sum(min(most, len(some)) for some in numbers) <= MOST_CHARTS), 1
        )
        self.loads = []
        for where, name in self.machines.items():
            sentence, table = tables.common_loads([row for row in self.rows if row.source.where == where])
            if table.rows:
                self.loads.append((name, where[0] == "host", sentence, table))
        self.compared = self._compared() if before is not None else None
        self.others = [(source, tables.others(source)) for source in sources if source.others]

    def title(self):
        names = listed("the host backend" if name == "host backend" else name for name in self.machines.values())
        return f"Warpheap: allocators measured on {names}" if names else "Warpheap: no results"

    def _notes(self, compares):
        """What a reader must know before comparing anything."""
        everything = self.sources + self.before
        commits = {source.commit for source in self.sources if source.rows}
        if any(source.backend == "host" for source in everything):
            yield (
                "Results of the host backend are on this page: lanes are fibers on a CPU. They show that programs run and how "
                "allocators behave; they say nothing of speed on a GPU."
            )
        if len(self.machines) > 1:
            yield f"Results of {len(self.machines)} machines, drivers or backends are on this page. No chart mixes them: each names its own."
        if len(commits) > 1:
            yield (
                f"Results of {len(commits)} commits are on this page. Below each scenario stands which are in it; small differences "
                "between commits say nothing."
            )
        sets = [{source.where for source in some if source.rows} for some in (self.before, self.sources)]
        if compares and sets[0] != sets[1]:
            yield "Before and after are not of the same machines, drivers and backends: their ratios are not those of the code alone."
        if any(source.commit.endswith("-dirty") for source in everything):
            yield "Some results are of a source that was changed after its commit (-dirty)."

    def _compared(self):
        pairs, *alone = comparison.pairs_of([row for source in self.before for row in source.rows], self.rows)
        picture = self._picture("before-and-after", comparison.draw(pairs)) if pairs else ""
        return len(pairs), alone, picture, *comparison.told(pairs)

    def _picture(self, name, picture):
        self.pictures[name := _unique(name, set(self.pictures))] = picture
        return picture.inline(name)

    def chart(self, name, panel):
        """For the template: the panel's picture."""
        return self._picture(name, charts.draw(panel))

    def map(self, title, rows):
        return self._picture("map", heap_map.draw(title, rows))

    def _first(self):
        """(title, panel) of the first screen: of each number the first place that was measured, on a GPU if on any, and there the
        chart with the most to compare, CUDA's malloc before all."""
        machines = list(self.machines.values())
        for title, y, places in FIRST:
            found = [(section.name, panel) for section in self.sections for view, some in section.views if view.y == y for panel in some]
            found = [(place, panel) for place in places for name, panel in found if (name, panel.group) == place]

            def order(pair):
                given, names = pair[1].shared, {each.name for each in pair[1].series}
                bytes_differ = given.get("bytes") not in (None, FIRST_BYTES)
                return machines.index(given.get("machine", machines[0])), places.index(pair[0]), -len(names.intersection(panels.FIRST)), bytes_differ

            yield from ((title, panel) for _, panel in sorted(found, key=order)[:1])

    def first_chart(self, title, panel):
        return self._picture(title.partition(":")[0].lower(), charts.draw(panel, FIRST_LINES, FIRST_TITLES))

    def first_words(self, panel):
        """In numbers what it shows of Warpheap's own, CUDA's and no allocator, where the most of these were measured."""
        def measured(x):
            return [(name, point) for name, point in panel.column(x) if name in panels.FIRST]

        value, wanted = FORMATS[panel.y_kind], FIRST_BYTES if panel.x_kind == "bytes" else None
        x = max(reversed(panel.xs()), key=lambda x: (len(measured(x)), x == wanted))
        told = [f"{FIRST_TITLES.get(name, panels.title_of(name))} {value(point.y)} {panel.refusal(point)}".strip() for name, point in measured(x)]
        if not told:
            return ""
        told = listed([*told, *(f"{FIRST_TITLES[panels.BASELINE]} {value(baseline)}" for _, baseline in panel.baselines)])
        unit = f" {panel.x_label}" if panel.x_kind == "count" else ""
        given = ", ".join(parameter_text(name, value) for name, value in panel.shared.items() if name != "machine")
        return (told if x is None else f"At {FORMATS[panel.x_kind](x)}{unit}: {told}") + f" ({given})" * bool(given)

    def first_note(self):
        """What a reader of the first screen must know, sentence by sentence."""
        if any(each.name == panels.DEFAULT for _, panel in self.first for each in panel.series):
            yield "Warpheap is slab_bitmap, its default. But for CUDA's malloc, the others are Warpheap's own implementations of published designs."
        if any(panel.group == "first_malloc" for section in self.sections for _, some in section.views for panel in some):
            yield "Times are of heaps that were used before; what a new one takes is called first malloc."

    def where(self, sources):
        """(names and values, commits) of each machine of some results."""
        groups = {}
        for source in sources:
            groups.setdefault(source.where, []).append(source)
        for where, some in groups.items():
            dates = sorted(str(source.machine.get("time") or "?")[:10] for source in some)
            date = " to ".join(dict.fromkeys((dates[0], dates[-1])))
            cells = dict(zip(panels.WHERE, (value or "none" for value in where)), measured=date, files=len(some))
            yield cells, list(dict.fromkeys(source.commit for source in some))


def _printable(value):
    return value if isinstance(value, Markup) else printable(value)


def build(page, tables_at=""):
    """(HTML of the page, HTML of its tables). The tables are on a page of their own where `tables_at` is that page's address."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, finalize=_printable, keep_trailing_newline=True,
    )  # fmt: skip
    given = {"page": page, "tables_at": tables_at, "style": Markup((pathlib.Path(__file__).parent / "style.css").read_text())}
    made = [environment.get_template(name).render(given) for name in ("page.html", "tables.html")]
    return made
