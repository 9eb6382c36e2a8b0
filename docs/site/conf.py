# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the site. scripts/site.py runs it, over a tree of links to the pages of the repository."""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["WARPHEAP_SITE"])  # where scripts/site.py works

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "docs" / "site")]

project = "Warpheap"
author = "the Warpheap authors"
project_copyright = author
version = release = os.environ["WARPHEAP_VERSION"]

extensions = ["names", "breathe", "myst_parser", "sphinx_copybutton"]
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
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2, "header_links_before_dropdown": 6}
html_sidebars = {"index": []}

LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+/?)(#[^)\s]*)?\)")


def without_folders(app, docname, source):
    """A link to a folder of the repository becomes its text: the site has pages and files, and no folders."""
    here = pathlib.Path(app.srcdir, docname).parent

    def text_of(link):
        return link[1] if "://" not in link[2] and (here / link[2]).is_dir() else link[0]

    source[0] = LINK.sub(text_of, source[0])


def setup(app):
    app.connect("source-read", without_folders)
