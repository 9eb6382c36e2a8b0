# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the site. scripts/site.py runs it, over a tree of links to the pages of the repository."""

import os
import pathlib
import re
import sys

from docutils import nodes

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["WARPHEAP_SITE"])  # where scripts/site.py works

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "docs" / "site")]

project = "Warpheap"
author = "the Warpheap authors"
project_copyright = author
version = release = os.environ["WARPHEAP_VERSION"]

extensions = ["names", "breathe", "myst_parser", "sphinx_copybutton", "sphinx_design"]
source_suffix = {".md": "markdown"}
primary_domain = "cpp"
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # listings that leave something out with …

breathe_projects = {"warpheap": str(BUILD / "xml")}
breathe_default_project = "warpheap"
breathe_domain_by_extension = {"hpp": "cpp"}
cpp_id_attributes = ["__device__", "__host__"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "pydata_sphinx_theme"
html_title = f"Warpheap {version}"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["print.js"]
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2, "header_links_before_dropdown": 6}
if address := os.environ["WARPHEAP_REPOSITORY"]:
    html_theme_options["icon_links"] = [{"name": "Repository", "url": address, "icon": "fa-brands fa-git-alt"}]
html_sidebars = {"index": [], "performance": [], "performance/tables": []}

LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+/?)(#[^)\s]*)?\)")


def led_on_the_site(app, docname, source):
    """A link to a folder of the repository becomes its text, for the site has none; a link to the page of results leads to the site's."""
    here = pathlib.Path(app.srcdir, docname).parent
    results = {pathlib.Path(app.srcdir, "docs", f"{name}.html"): f"/{name}.md" for name in ("performance", "performance/tables")}

    def led(link):
        target = pathlib.Path(os.path.normpath(here / link[2]))
        if "://" not in link[2] and target.is_dir():
            return link[1]
        return f"[{link[1]}]({results[target]}{link[3] or ''})" if target in results else link[0]

    source[0] = LINK.sub(led, source[0])


def visit_entry(translator, entry):
    """The empty corner of a table heads nothing."""
    type(translator).visit_entry(translator, entry)
    if not entry.astext() and translator.context[-1].startswith("</th"):
        translator.body[-1] = translator.body[-1].replace("<th", "<td", 1)
        translator.context[-1] = "</td>\n"


def setup(app):
    app.add_node(nodes.entry, override=True, html=(visit_entry, lambda translator, entry: type(translator).depart_entry(translator, entry)))
    app.connect("source-read", led_on_the_site)
