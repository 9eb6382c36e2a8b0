"""The page: one file of HTML that is well-formed XML too, with its style sheet and pictures in it, and no script."""

import bar_chart
import dot_chart
import header
import line_chart
import panels as charts
import sections
import summary
from stylesheet import STYLE
from text import escaped, listed


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
        """A picture as it stands on the page. Its name gets a number where it is used already."""
        number = sum(each == name or each.startswith(name + "-no-") for each in self.pictures)
        self.pictures[f"{name}-no-{number + 1}" if number else name] = drawn
        return f"<figure>{drawn.inline()}</figure>"

    def chart(self, name, panel):
        if isinstance(panel, bar_chart.Bars):
            return self.picture(name, bar_chart.draw(panel, self.others))
        draw = line_chart.draw if charts.is_lines(panel) else dot_chart.draw
        return self.picture(name, draw(panel, self.others))

    def add(self, identity, heading, body):
        self.sections.append((identity, heading, body))


OF_HOST = "<p>Do not choose an allocator by these times: on a GPU the order is another one.</p>"


def _add_summary(page):
    parts = []
    for machine, name in page.machines.items():
        rows = [row for row in page.rows if row.source.where == machine]
        cards, sentence = summary.cards(rows), summary.overall(rows)
        if cards:
            on = f"<h3>On {escaped(name)}</h3>" if len(page.machines) > 1 else ""
            warning = OF_HOST if machine[0] == "host" else ""
            parts.append(f'{on}{warning}<p>{sentence}</p><div class="cards">{cards}</div>')
    if not parts:
        return
    is_host = all(where[0] == "host" for where in page.machines)
    title = "Which allocator is ahead on the host backend" if is_host else "Which allocator to take"
    note = (
        "A difference within the spread of the repetitions counts as none, however large it is; charts show the spread. "
        "<b>null</b>, <b>direct</b> and the floors are kernels without an allocator. Charts, tables and raw numbers follow."
    )
    page.add("summary", title, f'{"".join(parts)}<p class="from">{note}</p>')


def _title(page):
    names = listed("the host backend" if name == "host backend" else name for name in page.machines.values())
    return f"Warpheap: allocators measured on {names}" if names else "Warpheap: no results"


def html_of(page):
    title = escaped(_title(page))
    links = "".join(f'<a href="#{name}">{escaped(heading)}</a> ' for name, heading, _ in page.sections)
    body = [
        f'<section id="{name}"><h2>{escaped(heading)}</h2>{text}</section>' for name, heading, text in page.sections
    ]
    above = header.machines(page.sources, "After" if page.before else "")
    above += header.machines(page.before, "Before") if page.before else ""
    empty = "" if page.rows else "<p>These files have no rows of a benchmark.</p>"
    navigation = f'<nav>{links}<a href="#files">Files</a></nav>{header.HOW_TO_READ}'
    leads = bool(page.sections) and page.sections[0][0] == "summary"
    lines = [
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f'<meta name="color-scheme" content="light dark"/><title>{title}</title><style>{STYLE}</style></head>',
        f"<body><header><h1>{title}</h1>{above}{header.warnings(page)}{empty}</header>",
        *body[:leads],
        navigation,
        *body[leads:],
        header.files(page) + "</body></html>\n",
    ]
    return "\n".join(lines)


def build(sources, before=None):
    """The page of some results; with older ones, a comparison too. Returns its HTML and its pictures by name."""
    page = Page(sources, before)
    _add_summary(page)
    sections.add_comparison(page)
    sections.add_scenarios(page)
    sections.add_papers(page)
    sections.add_others(page)
    return html_of(page), page.pictures
