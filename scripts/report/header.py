"""What stands around the sections: machines, warnings, how to read the page, and the list of files."""

from text import escaped, listed

MACHINE_COLUMNS = ("backend", "GPU", "CPU", "driver", "CUDA", "commits", "measured", "files")

HOW_TO_READ = """<details class="how"><summary>How to read this page</summary><ul>
<li>A point is the median of the repetitions. A bar through it is their spread: without the fastest and the slowest tenth of
them, and from five on without at least one of each. Where there is no bar, the mark hides it.</li>
<li>Axes are logarithmic, but those of shares. An arrow says which direction is better.</li>
<li><b>null</b> is a kernel that does the same without an allocator: it stores one pointer a thread. <b>floor of free</b> is the
chain of loads and atomics that no free of slab_bitmap's protocol can avoid.</li>
<li>In tables the best is 1.00, and green; others that are green do not differ from it beyond the spread. † marks rows in which
calls got nullptr; such a row leads only where every row has some.</li>
<li>Where several files measured the same thing on one machine, charts and tables show the newest. Raw numbers are all of
them.</li></ul></details>"""


def folded(words, body):
    return f"<details><summary>{words}</summary>{body}</details>"


def table_of(names, lines, kind="", caption=""):
    """A table in a box that scrolls sideways; `lines` are rows of cells, of HTML."""
    head = "".join(f"<th>{name}</th>" for name in names)
    kind = f' class="{kind}"' if kind else ""
    caption = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="wide"><table{kind}>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table></div>"
    )


def _machine_line(machine, sources):
    backend, device, cpu, driver, cuda = machine
    commits = listed(dict.fromkeys(escaped(source.commit) for source in sources))
    dates = sorted(str(source.machine.get("time") or "?")[:10] for source in sources)
    date = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    cells = [escaped(str(cell or "?")) for cell in (backend, device or "none", cpu, driver or "none", cuda or "none")]
    cells += [commits, escaped(date), len(sources)]
    return "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in zip(MACHINE_COLUMNS, cells))


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
    return "".join(f'<p class="note">{words}</p>' for words in told)


def _file_lines(sources):
    for source in sources:
        time = escaped(str(source.machine.get("time") or "?"))
        yield (
            f"<td>[{source.number}]</td><th>{escaped(source.name)}</th><td>{escaped(source.commit)}</td><td>{time}</td>"
            f"<td>{len(source.rows) + len(source.others)}</td>"
        )


def files(page):
    columns = ("", "file", "commit", "measured", "rows")
    body = table_of(columns, _file_lines(page.sources))
    if page.before:
        body += "<h3>Before</h3>" + table_of(columns, _file_lines(page.before))
    return (
        '<section id="files"><h2>Files</h2><p>Raw numbers are the files\' own, to six significant digits.</p>'
        f"<details><summary>{len(page.sources)} files</summary>{body}</details></section>"
    )
