# SPDX-License-Identifier: Apache-2.0
"""Which allocator to take for common loads, in plain words, made from the rows and from nothing else."""

import panels as charts
import scenarios
from leaders import BASELINES, best_of, is_even, ratio_to, refused
from markup import element, joined
from text import FORMATS, listed, parameter_text, ratio_text, share_text


class Question:
    """A load: a scenario's operation at a value of what it is drawn over, or the nearest that was measured."""

    def __init__(self, title, scenario, operation, x=None, view=0, where=None):
        self.title, self.scenario, self.operation = title, scenario, operation
        self.x, self.view, self.where = x, view, where or {}


QUESTIONS = (
    Question("Bursts of 16 B", "burst", "malloc", 16),
    Question("Bursts of 256 B", "burst", "malloc", 256),
    Question("Bursts of 4 KiB", "burst", "malloc", 4096),
    Question("Bursts of mixed sizes, up to 1 KiB", "mixed", "malloc", 1024),
    Question("Freeing a burst of 256 B", "burst", "free", 256),
    Question("Churn within a kernel", "churn", "malloc+free"),
    Question("Churn at 90% fill", "fill_level", "constant malloc", 900),
    Question("Churn of drifting sizes at 70% fill", "fill_level", "drifting malloc", 700),
    Question("All of the pool in blocks of 256 B", "exhaust", "malloc", 256),
    Question("How full a pool gets, sizes up to 1 KiB", "utilisation", "fill", where={"sizes": "16 B to 1 KiB"}),
    Question("Large blocks: 1 MiB, 1,024 threads", "crowd", "malloc", 1024, where={"bytes": 1 << 20}),
    Question("Two tables joined", "join", "join", 1048576),
)
MOST_LISTED = 4


def _column(panel, x):
    """(label, point) of every line at x, the best first."""
    found = [(each.label, point) for each in panel.series for point in each.points if point.x == x]
    return sorted(found, key=lambda pair: pair[1].y, reverse=panel.better == "higher")


def _nearest(panel, wanted, least):
    """The value of x nearest to the wanted one at which at least some lines have a point; None if there is none."""
    xs = {point.x for each in panel.series for point in each.points}
    enough = [x for x in xs if len(_column(panel, x)) >= least]
    if wanted is None or None in xs:
        return enough[0] if enough else None
    return min(enough, key=lambda x: (abs(x - wanted), x)) if enough else None


def _fits(panel, question):
    """Whether the load that the question names is that of the panel."""
    return all(panel.shared.get(name) == value for name, value in question.where.items())


def _panels(rows, question):
    known = scenarios.scenario_of(question.scenario, rows)
    view = known.views[question.view]
    found = charts.panels_of([row for row in rows if row.scenario == question.scenario], known, view, {})
    found = [panel for panel in found if panel.group == question.operation and _fits(panel, question)]
    return sorted(found, key=lambda panel: -len(_column(panel, _nearest(panel, question.x, 1))))


def _load(panel, x):
    """What was measured, in words."""
    given = {name: value for name, value in panel.shared.items() if name not in ("rounds", "machine")}
    words = [parameter_text(name, value) for name, value in given.items()]
    if x is not None and panel.x_label:
        words.insert(0, f"{panel.x_label}: {FORMATS[panel.x_kind](x)}")
    return ", ".join(words)


def _refusals(panel, point):
    """What share of the calls got nullptr."""
    if not refused(point, panel):
        return ""
    share = point.row.figures.get("failed_share")
    return f"{share_text(share)} of the calls" if share is not None else f"{point.row.failures:,} calls"


def _times_as(panel, ratio):
    if panel.y_kind == "share":
        return ""
    return f"{ratio_text(ratio)}× as long" if panel.y_kind == "time" else f"{ratio_text(ratio)}× less"


def _line_of_other(panel, name, point, best):
    value, none = FORMATS[panel.y_kind](point.y), " without an allocator" if name in BASELINES else ""
    if is_even(point, best, panel):
        told = "no difference beyond the spread" if point.y != best.y else "the same"
    elif refused(point, panel) and not refused(best, panel):
        told = f"but refuses {_refusals(panel, point)}"
    else:
        told = _times_as(panel, ratio_to(point, best, panel.better) or 0)
    return element("li", element("b", name), f"{none} {value}", *_aside(told))


def _aside(words):
    return (" ", element("em", words)) if words else ()


def _line_of_rest(panel, rest, best):
    name, point = rest[-1]
    ratio = ratio_to(point, best, panel.better)
    times = _aside(_times_as(panel, ratio) if ratio else "")
    more = f"{len(rest)} others, down to " if len(rest) > 1 else ""
    return element("li", more, element("b", name), f" {FORMATS[panel.y_kind](point.y)}", *times)


def _answer(panel, x):
    """The card's words for one column."""
    column = _column(panel, x)
    leader, best = best_of(column, panel)
    refusals = _refusals(panel, best)
    even = [name for name, point in column if name != leader and name not in BASELINES and is_even(point, best, panel)]
    names = [part for name in [leader, *even[:2]] for part in (" or ", element("b", name))][1:]
    names += [" or others"] if len(even) > 2 else []
    refusing = f", refusing {refusals}" if refusals else ""
    words = [element("p", *names, f": {FORMATS[panel.y_kind](best.y)}{refusing}", class_="take")]
    others = [each for each in column if each[0] != leader]
    others.sort(key=lambda each: refused(each[1], panel) and not refused(best, panel))
    if others:
        lines = [_line_of_other(panel, name, point, best) for name, point in others[:MOST_LISTED]]
        lines += [_line_of_rest(panel, others[MOST_LISTED:], best)] if len(others) > MOST_LISTED else []
        words.append(element("ul", *lines))
    else:
        words.append(element("p", "The only one measured here."))
    floor = f"; {panel.floors[0][0]} {FORMATS[panel.y_kind](panel.floors[0][1])}" if panel.floors else ""
    words.append(element("p", f"{panel.y_label}; {_load(panel, x)}{floor}", class_="load"))
    return joined(words)


def _card(rows, question):
    found = _panels(rows, question)
    if not found:
        return ""
    panel = found[0]
    x = _nearest(panel, question.x, 1)
    title = question.title
    if question.x is not None and x is not None and x != question.x:
        title += f" (measured: {FORMATS[panel.x_kind](x)})"
    words = [element("h3", title), _answer(panel, x)]
    several = _nearest(panel, question.x, 2)
    if len(_column(panel, x)) == 1 and several is not None:
        words.append(element("h4", f"At {FORMATS[panel.x_kind](several)}, where more were measured"))
        words.append(_answer(panel, several))
    return element("div", *words, class_="card")


def cards(rows):
    """Cards for the loads that were measured; empty where none was."""
    return joined(_card(rows, question) for question in QUESTIONS)


def overall(rows):
    """One sentence: which allocators lead how many of the loads."""
    led, asked = {}, 0
    for question in QUESTIONS:
        found = _panels(rows, question)
        if not found:
            continue
        panel = found[0]
        x = _nearest(panel, question.x, 2)
        if x is None:
            continue
        asked += 1
        column = _column(panel, x)
        best = best_of(column, panel)[1]
        for name, point in column:
            if name not in BASELINES and is_even(point, best, panel):
                led[name] = led.get(name, 0) + 1
    if not asked:
        return ""
    order = sorted(led, key=lambda name: -led[name])
    told = listed(f"{name} in {led[name]}" for name in order[:4])
    return (
        f"Of {asked} common loads with two or more allocators measured, the best, or no different from it beyond the spread "
        f"of repetitions, are: {told}. A load with several such counts for each."
    )
