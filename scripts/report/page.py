# SPDX-License-Identifier: Apache-2.0
"""The page: one file of HTML that is well-formed XML too, with its style sheet and pictures in it, and no script."""

import itertools
import re

import bar_chart
import dot_chart
import header
import line_chart
import panels as charts
import sections
import summary
from markup import Markup, element, joined, style
from stylesheet import STYLE
from text import listed


def _free_name(name, taken):
    """The name as an id or a file can have it, with a number where it is taken."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    numbered = itertools.chain([name], (f"{name}-no-{number}" for number in itertools.count(2)))
    return next(each for each in numbered if each not in taken)


class Page:
    """Collects sections, and the pictures in them by name."""

    def __init__(self, sources, before):
        self.sources, self.before = sources, before
        self.rows = [row for source in sources for row in source.rows]
        self.machines = charts.machine_names(sources)
        self.others = {}  # styles of names that have none of their own
        self.pictures = {}
        self.sections = []  # (id, heading, body)

    def picture(self, name, drawn):
        """A picture as it stands on the page."""
        self.pictures[_free_name(name.replace("_", "-"), self.pictures)] = drawn
        return element("figure", drawn.inline())

    def chart(self, name, panel):
        if isinstance(panel, bar_chart.Bars):
            return self.picture(name, bar_chart.draw(panel, self.others))
        draw = line_chart.draw if charts.is_lines(panel) else dot_chart.draw
        return self.picture(name, draw(panel, self.others))

    def add(self, identity, heading, *body):
        taken = {"files", *(each for each, _, _ in self.sections)}
        self.sections.append((_free_name(identity, taken), heading, joined(body)))


OF_HOST = Markup("<p>Do not choose an allocator by these times: on a GPU the order is another one.</p>")
OF_EVEN = Markup(
    '<p class="from">A difference within the spread of the repetitions counts as none, however large it is; charts show the '
    "spread. <b>null</b>, <b>direct</b> and the floors are kernels without an allocator. Charts, tables and raw numbers "
    "follow.</p>"
)


def _add_summary(page):
    parts = []
    for machine, name in page.machines.items():
        rows = [row for row in page.rows if row.source.where == machine]
        cards, sentence = summary.cards(rows), summary.overall(rows)
        if cards:
            parts += [element("h3", f"On {name}")] if len(page.machines) > 1 else []
            parts += [OF_HOST] if machine[0] == "host" else []
            parts += [element("p", sentence), element("div", cards, class_="cards")]
    if not parts:
        return
    is_host = all(where[0] == "host" for where in page.machines)
    title = "Which allocator is ahead on the host backend" if is_host else "Which allocator to take"
    page.add("summary", title, *parts, OF_EVEN)


def _title(page):
    names = listed("the host backend" if name == "host backend" else name for name in page.machines.values())
    return f"Warpheap: allocators measured on {names}" if names else "Warpheap: no results"


def _head(title):
    return element(
        "head",
        element("meta", charset="utf-8"),
        "\n",
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        "\n",
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        style(STYLE),
    )


def html_of(page):
    title = _title(page)
    links = [part for name, heading, _ in page.sections for part in (element("a", heading, href=f"#{name}"), " ")]
    links.append(element("a", "Files", href="#files"))
    body = [element("section", element("h2", heading), text, id=name) for name, heading, text in page.sections]
    above = [element("h1", title), header.machines(page.sources, "After" if page.before else "")]
    above += [header.machines(page.before, "Before")] if page.before else []
    above += [header.warnings(page)]
    above += [] if page.rows else [element("p", "These files have no rows of a benchmark.")]
    leads = bool(page.sections) and page.sections[0][0] == "summary"
    lines = [
        element("header", *above),
        *body[:leads],
        joined([element("nav", *links), header.HOW_TO_READ]),
        *body[leads:],
        header.files(page),
    ]
    content = [part for line in lines for part in ("\n", line)]
    html = element(
        "html", _head(title), "\n", element("body", *content[1:]), lang="en", xmlns="http://www.w3.org/1999/xhtml"
    )
    return Markup("<!DOCTYPE html>\n") + html + "\n"


def build(sources, before=None):
    """The page of some results; with older ones, a comparison too. Returns its HTML and its pictures by name."""
    page = Page(sources, before)
    _add_summary(page)
    sections.add_comparison(page)
    sections.add_scenarios(page)
    sections.add_papers(page)
    sections.add_others(page)
    return html_of(page), page.pictures
