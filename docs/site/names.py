# SPDX-License-Identifier: Apache-2.0
"""What pages of the reference are made of: two directives, and classes that begin with their functions.

`names` shows every public name of the headers that it lists, one a line; with `outline`, classes without their members. `calls` is a
table of what programs write most: each line has that, two spaces or more, and the name that it leads to; the table adds the first
sentence of the name's docstring.
"""

import pathlib
import re

from breathe.renderer.sphinxrenderer import SphinxRenderer
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective

import documented_names

DIRECTIVES = {"class": "doxygenclass", "struct": "doxygenstruct", "concept": "doxygenconcept", "function": "doxygenfunction",
              "typedef": "doxygentypedef", "variable": "doxygenvariable", "enum": "doxygenenum"}  # fmt: skip
REFERS = ("As above", "As below")  # how the docstring of an overload begins that has no text of its own


def shown(name, overloaded, with_members):
    """The lines that show a name."""
    asked = f"{name.name}({name.parameters})" if overloaded else name.name
    options = [":members:"] if with_members and name.kind in ("class", "struct") else []
    return [f"```{{{DIRECTIVES[name.kind]}}} {asked}", *options, "```", ""]


def public_names(directive):
    return documented_names.public_names(pathlib.Path(directive.config.breathe_projects["warpheap"]))


class Names(SphinxDirective):
    has_content = True
    option_spec = {"outline": directives.flag}

    def run(self):
        outer, _ = public_names(self)
        lines = []
        for header in self.content:
            found = [each for each in outer if each.header == header.strip()]
            if not found:
                raise self.error(f"{header} has no public names")
            counts = [each.name for each in outer]
            for each in found:
                lines += shown(each, counts.count(each.name) > 1, "outline" not in self.options)
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), self.content_offset, holder)
        return holder.children


def first_sentence(docstring):
    parts = re.split(r"(?<=\.)\s", docstring, maxsplit=1)[0].split("`")
    return [nodes.literal("", part) if number % 2 else nodes.Text(part) for number, part in enumerate(parts)]


class Calls(SphinxDirective):
    has_content = True

    def link(self, written, name):
        to = {"refdomain": "cpp", "reftype": "any", "reftarget": name, "refdoc": self.env.docname}
        return pending_xref("", nodes.literal("", written), refexplicit=True, refwarn=True, **to)

    def run(self):
        known = [each for some in public_names(self) for each in some if each.text and not each.text.startswith(REFERS)]
        documented = {each.name: each.text for each in reversed(known)}
        body = nodes.tbody()
        for line in self.content:
            written, _, name = line.partition("  ")
            if name.strip() not in documented:
                raise self.error(f"{name.strip()} is no public name with a docstring")
            cells = [self.link(written, name.strip())], first_sentence(documented[name.strip()])
            body += nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))
        columns = [nodes.colspec(colwidth=width) for width in (35, 65)]
        return [nodes.table("", nodes.tgroup("", *columns, body, cols=2), classes=["calls"])]


def setup(app):
    SphinxRenderer.sections.sort(key=lambda kind: kind[1].endswith("Types"))
    app.add_directive("names", Names)
    app.add_directive("calls", Calls)
    return {"parallel_read_safe": True}
