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
from papers import Rows
from text import escaped, listed

SHOWN_AT_ONCE = 6  # charts of a number; the others are folded
PAPERS = (paper_gelado, paper_halloc, paper_pham, paper_eckert)
OF_MAPS = """<p>A strip is the heap's whole memory after a step, metadata included. The hue of a cell is the size of the
blocks that have the most bytes there; the deeper it is, the more of the cell was asked for. Pale cells are memory that a
size keeps and hardly uses.</p>"""


def provenance(rows):
    """Which files and commits some charts are made of."""
    commits = {}
    for number, commit in sorted({(row.source.number, row.source.commit) for row in rows}):
        commits.setdefault(commit, []).append(f'<a href="#files">[{number}]</a>')
    told = listed(f"{escaped(commit)}&#160;{', '.join(numbers)}" for commit, numbers in commits.items())
    mixed = (
        f" These are {len(commits)} commits: small differences between them say nothing." if len(commits) > 1 else ""
    )
    return f'<p class="from">From {told}.{mixed}</p>'


def _grid(page, name, panels):
    drawn = [page.chart(name, panel) for panel in panels]
    body = f'<div class="grid">{"".join(drawn[:SHOWN_AT_ONCE])}</div>'
    rest = drawn[SHOWN_AT_ONCE:]
    return body + folded(f"{len(rest)} more charts", f'<div class="grid">{"".join(rest)}</div>') if rest else body


def _tables(panels):
    tables = [leaders.table(panel) for panel in panels if leaders.has_table(panel)][:SHOWN_AT_ONCE]
    if len(tables) < 2:
        return "".join(tables)
    more = "one more table" if len(tables) == 2 else f"{len(tables) - 1} more tables"
    return tables[0] + folded(f"{more} like this", "".join(tables[1:]))


def _views(page, name, known, rows):
    """Charts and tables of each number of a scenario."""
    body, used = "", []
    for view in known.views:
        panels = charts.panels_of(rows, known, view, page.machines)
        if not panels:
            continue
        used += [row for panel in panels for row in panel.rows()]
        if len(known.views) > 1:
            body += f"<h3>{escaped(view.label[0].upper() + view.label[1:])}</h3>"
        body += _grid(page, f"{name}-{view.y}", panels) + _tables(panels)
    return body + (provenance(used) if used else "")


def _maps(page, rows):
    found = heap_map.maps_of(rows)
    body = "".join(page.picture("map", heap_map.draw(title, members)) for title, members in found)
    return f'{OF_MAPS}<div class="grid maps">{body}</div>{provenance(rows)}' if body else ""


def add_scenarios(page):
    names = dict.fromkeys(row.scenario for row in page.rows)
    for name in sorted(names, key=lambda name: (name not in scenarios.KNOWN, [*scenarios.KNOWN, *names].index(name))):
        rows = [row for row in page.rows if row.scenario == name]
        known = scenarios.scenario_of(name, rows)
        body = f"<p>{escaped(known.text)}</p>" if known.text else ""
        body += _views(page, name, known, rows) + (_maps(page, rows) if name == "map" else "")
        page.add(name, known.title, body + folded(f"Raw numbers: {len(rows)} rows", raw_table.table(rows)))


def _figure_name(figure):
    if figure.number[0].islower():
        return f"Slides, {figure.number}"
    return f"Figure{'s' if ' and ' in figure.number else ''} {figure.number}"


def _figures(page, rows, on):
    """The figures of all papers from the rows of one machine."""
    body, paper = "", None
    for figure in [each for source in PAPERS for each in source.figures(rows)]:
        if figure.paper != paper:
            paper = figure.paper
            body += f"<h3>{escaped(paper + on)}</h3>"
        body += f"<h4>{escaped(_figure_name(figure))}: {escaped(figure.title)}</h4><p>{escaped(figure.text)}</p>"
        body += _grid(page, f"{paper.split()[0].lower()}-{figure.number}", figure.panels)
    return body


def add_papers(page):
    body = ""
    for machine, name in page.machines.items():
        rows = Rows([row for row in page.rows if row.source.where == machine])
        body += _figures(page, rows, f", on {name}" if len(page.machines) > 1 else "")
    if body:
        words = "The figures of four papers in their form, with our curves. A dashed line without a name is theory."
        page.add("papers", "The papers' figures", f"<p>{words}</p>{body}")


def add_others(page):
    body = ""
    for source in page.sources:
        name = f"[{source.number}] {escaped(source.name)}"
        if source.others:
            body += folded(f"{name}: {len(source.others)} rows", raw_table.other_table(source))
        elif not source.rows:
            body += f"<p>{name} has no results that this page knows.</p>"
    if body:
        page.add("others", "Other results", body)


def add_comparison(page):
    if page.before is None:
        return
    old = [row for source in page.before for row in source.rows]
    pairs, only_before, only_after = comparison.pairs_of(old, page.rows)
    body = f'<div class="compared">{page.picture("before-and-after", comparison.draw(pairs))}</div>' if pairs else ""
    page.add("compared", "Before and after", body + comparison.section(pairs, only_before, only_after))
