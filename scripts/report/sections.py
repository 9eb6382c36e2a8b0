# SPDX-License-Identifier: Apache-2.0
"""The sections of the page: a scenario each, the papers' figures, a comparison of two sets, and what is of no benchmark."""

import comparison
import heap_map
import leaders
import paper_eckert
import paper_gelado
import paper_halloc
import paper_pham
import panels as charts
import raw_table
import scenarios
from header import folded
from markup import Markup, element, joined
from papers import Rows
from text import separated

SHOWN_AT_ONCE = 6  # charts of a number; the others are folded
PAPERS = (paper_gelado, paper_halloc, paper_pham, paper_eckert)
OF_MAPS = Markup(
    """<p>A strip is the heap's whole memory after a step, metadata included. The hue of a cell is the size of the
blocks that have the most bytes there; the deeper it is, the more of the cell was asked for. Pale cells are memory that a
size keeps and hardly uses.</p>"""
)


def provenance(rows):
    """Which files and commits some charts are made of."""
    commits = {}
    for number, commit in sorted({(row.source.number, row.source.commit) for row in rows}):
        commits.setdefault(commit, []).append(element("a", f"[{number}]", href="#files"))
    told = (joined([commit, "\u00a0", *_with_commas(links)]) for commit, links in commits.items())
    mixed = (
        f" These are {len(commits)} commits: small differences between them say nothing." if len(commits) > 1 else ""
    )
    return element("p", "From ", *separated(told), ".", mixed, class_="from")


def _with_commas(parts):
    return [piece for part in parts for piece in (", ", part)][1:]


def _grid(page, name, panels):
    drawn = [page.chart(name, panel) for panel in panels]
    parts = [element("div", *drawn[:SHOWN_AT_ONCE], class_="grid")]
    rest = drawn[SHOWN_AT_ONCE:]
    if rest:
        parts.append(folded(f"{len(rest)} more charts", element("div", *rest, class_="grid")))
    return joined(parts)


def _tables(panels):
    tables = [leaders.table(panel) for panel in panels if leaders.has_table(panel)][:SHOWN_AT_ONCE]
    if len(tables) < 2:
        return joined(tables)
    more = "one more table" if len(tables) == 2 else f"{len(tables) - 1} more tables"
    return joined([tables[0], folded(f"{more} like this", joined(tables[1:]))])


def _views(page, name, known, rows):
    """Charts and tables of each number of a scenario."""
    parts, used = [], []
    for view in known.views:
        panels = charts.panels_of(rows, known, view, page.machines)
        if not panels:
            continue
        used += [row for panel in panels for row in panel.rows()]
        if len(known.views) > 1:
            parts.append(element("h3", view.label[0].upper() + view.label[1:]))
        parts += [_grid(page, f"{name}-{view.y}", panels), _tables(panels)]
    return joined(parts + ([provenance(used)] if used else []))


def _maps(page, rows):
    drawn = [page.picture("map", heap_map.draw(title, members)) for title, members in heap_map.maps_of(rows)]
    return joined([OF_MAPS, element("div", *drawn, class_="grid maps"), provenance(rows)] if drawn else [])


def add_scenarios(page):
    names = dict.fromkeys(row.scenario for row in page.rows)
    for name in sorted(names, key=lambda name: (name not in scenarios.KNOWN, [*scenarios.KNOWN, *names].index(name))):
        rows = [row for row in page.rows if row.scenario == name]
        known = scenarios.scenario_of(name, rows)
        parts = [element("p", known.text)] if known.text else []
        parts += [_views(page, name, known, rows), *([_maps(page, rows)] if name == "map" else [])]
        parts.append(folded(f"Raw numbers: {len(rows)} rows", raw_table.table(rows)))
        page.add(name, known.title, *parts)


def _figure_name(figure):
    if figure.number[0].islower():
        return f"Slides, {figure.number}"
    return f"Figure{'s' if ' and ' in figure.number else ''} {figure.number}"


def _figures(page, rows, on):
    """The figures of all papers from the rows of one machine."""
    parts, paper = [], None
    for figure in [each for source in PAPERS for each in source.figures(rows)]:
        if figure.paper != paper:
            paper = figure.paper
            parts.append(element("h3", paper + on))
        places = dict.fromkeys(place for each in figure.panels for place in each.places)
        text = figure.text if places else f"{figure.text} The text has no number for these axes."
        parts += [element("h4", f"{_figure_name(figure)}: {figure.title}"), element("p", text)]
        parts.append(_grid(page, f"{paper.split()[0].lower()}-{figure.number}", figure.panels))
        if places:
            parts.append(element("p", "Stated in ", "; ".join(places), ".", class_="from"))
    return parts


def add_papers(page):
    parts = []
    for machine, name in page.machines.items():
        rows = Rows([row for row in page.rows if row.source.where == machine])
        parts += _figures(page, rows, f", on {name}" if len(page.machines) > 1 else "")
    if parts:
        words = (
            "The figures of four papers in their form, with our curves. A dashed line without a name is theory. Stars, and "
            "dashed lines that name a GPU, are numbers that a paper's text gives; no value is read from its curves."
        )
        page.add("papers", "The papers' figures", element("p", words), *parts)


def add_others(page):
    parts = []
    for source in page.sources:
        name = f"[{source.number}] {source.name}"
        if source.others:
            parts.append(folded(f"{name}: {len(source.others)} rows", raw_table.other_table(source)))
        elif not source.rows:
            parts.append(element("p", f"{name} has no results that this page knows."))
    if parts:
        page.add("others", "Other results", *parts)


def add_comparison(page):
    if page.before is None:
        return
    old = [row for source in page.before for row in source.rows]
    pairs, only_before, only_after = comparison.pairs_of(old, page.rows)
    parts = []
    if pairs:
        drawn = page.picture("before-and-after", comparison.draw(pairs))
        parts.append(element("div", drawn, class_="compared"))
    page.add("compared", "Before and after", *parts, comparison.section(pairs, only_before, only_after))
