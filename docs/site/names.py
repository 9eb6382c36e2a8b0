# SPDX-License-Identifier: Apache-2.0
"""A directive for pages of the reference: every public name of the headers that it lists, one a line.

With `outline`, classes are shown without their members.
"""

import pathlib

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import documented_names

DIRECTIVES = {"class": "doxygenclass", "struct": "doxygenstruct", "concept": "doxygenconcept", "function": "doxygenfunction",
              "typedef": "doxygentypedef", "variable": "doxygenvariable", "enum": "doxygenenum"}  # fmt: skip


def shown(name, overloaded, with_members):
    """The lines that show a name."""
    asked = f"{name.name}({name.parameters})" if overloaded else name.name
    options = [":members:"] if with_members and name.kind in ("class", "struct") else []
    return [f"```{{{DIRECTIVES[name.kind]}}} {asked}", *options, "```", ""]


class Names(SphinxDirective):
    has_content = True
    option_spec = {"outline": directives.flag}

    def run(self):
        outer, _ = documented_names.public_names(pathlib.Path(self.config.breathe_projects["warpheap"]))
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


def setup(app):
    app.add_directive("names", Names)
    return {"parallel_read_safe": True}
