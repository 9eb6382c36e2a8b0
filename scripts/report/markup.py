# SPDX-License-Identifier: Apache-2.0
"""Writes elements of HTML and SVG. Whatever is not markup yet is escaped here, and nowhere else.

A value of a results file is text, so it cannot become an element or an attribute of its own. `Markup` plus text is text again,
and would be escaped: a place that forgets `element` shows its angle brackets.
"""

import re

# What XML cannot have at all, in entities either, and controls of a terminal. U+FFFD takes their place.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


class Markup(str):
    """Markup as it is. Outside of this file it is made of literals alone."""


def printable(words):
    return _UNPRINTABLE.sub("\ufffd", words)


def markup(part):
    return part if isinstance(part, Markup) else Markup(printable(str(part)).translate(_ENTITIES))


def joined(parts):
    return Markup("".join(map(markup, parts)))


def element(name, /, *content, **attributes):
    """Attributes that are None or empty are left out; `class_` and `data_name` are class and data-name."""
    given = joined(
        Markup(f' {key.rstrip("_").replace("_", "-")}="{markup(value)}"')
        for key, value in attributes.items()
        if value not in (None, "")
    )
    return Markup(f"<{name}{given}>{joined(content)}</{name}>" if content else f"<{name}{given}/>")


def style(rules):
    """A style sheet, which HTML does not unescape. The rules are ours."""
    return Markup(f"<style>{rules}</style>")
