# SPDX-License-Identifier: Apache-2.0
"""What stands around the sections: machines, warnings, how to read the page, and the list of files."""

from markup import Markup, element, joined
from text import listed

MACHINE_COLUMNS = ("backend", "GPU", "CPU", "driver", "CUDA", "commits", "measured", "files")

HOW_TO_READ = Markup("""<details class="how"><summary>How to read this page</summary><ul>
<li>A point is the median of the repetitions. A bar through it is their spread: without the fastest and the slowest tenth of
them, and from five on without at least one of each. Where there is no bar, the mark hides it.</li>
<li>Axes are logarithmic, but those of shares. An arrow says which direction is better.</li>
<li><b>null</b> is a kernel that does the same without an allocator: it stores one pointer a thread. <b>floor of free</b> is the
chain of loads and atomics that no free of slab_bitmap's protocol can avoid.</li>
<li>In tables the best is 1.00, and green; others that are green do not differ from it beyond the spread. † marks rows in which
calls got nullptr; such a row leads only where every row has some.</li>
<li>Where several files measured the same thing on one machine, charts and tables show the newest. Raw numbers are all of
them.</li></ul></details>""")


def folded(words, body):
    return element("details", element("summary", words), body)


def table_of(names, lines, kind="", caption=""):
    """A table in a box that scrolls sideways; `lines` are rows of cells, which are elements."""
    parts = [element("caption", caption)] if caption else []
    parts.append(element("thead", element("tr", *(element("th", name) for name in names))))
    parts.append(element("tbody", joined(element("tr", *line) for line in lines)))
    return element("div", element("table", *parts, class_=kind), class_="wide")


def _machine_line(machine, sources):
    backend, device, cpu, driver, cuda = machine
    commits = listed(dict.fromkeys(source.commit for source in sources))
    dates = sorted(str(source.machine.get("time") or "?")[:10] for source in sources)
    date = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    cells = [
        backend or "?",
        device or "none",
        cpu or "?",
        driver or "none",
        cuda or "none",
        commits,
        date,
        len(sources),
    ]
    return [element("td", cell, data_name=name) for name, cell in zip(MACHINE_COLUMNS, cells)]


def machines(sources, caption=""):
    groups = {}
    for source in sources:
        groups.setdefault(source.where, []).append(source)
    return table_of(MACHINE_COLUMNS, [_machine_line(*each) for each in groups.items()], "machines", caption)


def warnings(page):
    """What a reader must know before comparing anything."""
    everything = page.sources + (page.before or [])
    commits = {source.commit for source in page.sources if source.rows}
    told = []
    if any(source.backend == "host" for source in everything):
        told.append(
            "Results of the host backend are on this page: lanes are fibers on a CPU. They show that programs run and how "
            "allocators behave; they say nothing of speed on a GPU."
        )
    if len(page.machines) > 1:
        told.append(
            f"Results of {len(page.machines)} machines, drivers or backends are on this page. No chart mixes them: each names "
            "its own."
        )
    if len(commits) > 1:
        told.append(
            f"Results of {len(commits)} commits are on this page. Below each scenario stands which are in it; small "
            "differences between commits say nothing."
        )
    if page.before is not None:
        sets = [{source.where for source in some if source.rows} for some in (page.before, page.sources)]
        if sets[0] != sets[1]:
            told.append(
                "Before and after are not of the same machines, drivers and backends: their ratios are not those of the code "
                "alone."
            )
    if any(source.commit.endswith("-dirty") for source in everything):
        told.append("Some results are of a source that was changed after its commit (-dirty).")
    return joined(element("p", words, class_="note") for words in told)


def _file_lines(sources):
    for source in sources:
        yield (
            element("td", f"[{source.number}]"),
            element("th", source.name),
            element("td", source.commit),
            element("td", source.machine.get("time") or "?"),
            element("td", len(source.rows) + len(source.others)),
        )


def files(page):
    columns = ("", "file", "commit", "measured", "rows")
    body = [table_of(columns, _file_lines(page.sources))]
    if page.before:
        body += [element("h3", "Before"), table_of(columns, _file_lines(page.before))]
    told = element("p", "Raw numbers are the files' own, to six significant digits.")
    return element(
        "section", element("h2", "Files"), told, folded(f"{len(page.sources)} files", joined(body)), id="files"
    )
