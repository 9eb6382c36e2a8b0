#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site in build/site/html: the pages of docs/, and the reference of the public headers and of the Python package.

Doxygen (Debian) reads the headers, Breathe and Sphinx (PyPI, in build/site/venv) make pages of that. A warning fails the build, and
so do a link that leads nowhere, and a public name without a docstring or a page. --browse looks at some pages in Chromium too, with
browse_site.py, and --links asks the addresses outside.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import venv

import amalgamate
import check_reference
import check_report
import compilers
import documented_names
import release

ROOT = compilers.ROOT
BUILD = ROOT / "build" / "site"
NEEDED = ["sphinx==9.*", "myst-parser==5.*", "breathe==5.*", "pydata-sphinx-theme", "sphinx-copybutton", "sphinx-design"]
NEEDED += ["axe-playwright-python"]  # for browse_site.py
BROWSED = ["index", "docs/guide/getting_started", "api/kernels", "api/python", "reference", "performance", "search"]
BROWSED.append("../../../docs/performance")  # the page of results as it is without the site
SITE = "docs/site/"
PLANTED = BUILD / "planted-html"
TABLES_HEAD = "---\norphan: true\nnosearch: true\n---\n\n# Tables of results\n\n"
NO_NAMES = {"version.hpp", "platform/address_range.hpp"}  # macros; what pools are made of


def has_tools():
    """Installs Sphinx where it is not, and says what is missing."""
    if not shutil.which("doxygen"):
        print("SKIP: no doxygen (Debian: doxygen), so the site was not built")
        return False
    complete = BUILD / "venv" / "complete"
    if not complete.exists() or complete.read_text() != str(NEEDED):
        venv.create(BUILD / "venv", with_pip=True, clear=True)
        pip = [BUILD / "venv" / "bin" / "python", "-m", "pip", "install", "-q", *NEEDED]
        if subprocess.run(pip, capture_output=True).returncode:
            print(f"SKIP: pip cannot fetch {', '.join(NEEDED)}, so the site was not built")
            return False
        complete.write_text(str(NEEDED))
    return True


def source_tree(tree):
    """A copy of all that pages may lead to, with the site's own pages at its top, and the Python reference."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in compilers.tracked():
        target = tree / name.removeprefix(SITE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    (tree / "api" / "python.md").write_text(check_reference.reference(check_reference.PACKAGE)[0])
    (tree / check_report.PAGE).unlink()
    (tree / check_report.TABLES).unlink()
    (tree / "performance.inc").write_text(page_of_results(check_report.PAGE))
    (tree / "performance").mkdir()
    (tree / "performance" / "tables.md").write_text(TABLES_HEAD + page_of_results(check_report.TABLES))
    return tree


def style_of_results(style):
    """A page's style sheet for what is in `.report` alone; the site's switch says whether it is dark, and the site has margins."""
    dark = r"@media [^{]*prefers-color-scheme: ?dark\)\s*\{\s*:root\s*\{([^}]*)\}\s*\}"
    nested = re.sub(r":root(?=\s*\{)|\bbody(?=\s*\{)", "&", re.sub(dark, r"html[data-theme=dark] &{\1}", style))
    if "prefers-color-scheme" in nested:
        raise ValueError(f"{check_report.PAGE} has a dark rule that is not of :root alone")
    return f"<style>.report{{{nested}&{{margin:0;padding:0;max-width:none;background:none;font:inherit}}table{{margin:0}}}}</style>"


def page_of_results(place):
    """A page that scripts/report made, as Markdown: the site has its headings, and the rest is HTML as it was."""
    style, body = re.search(r"<style>(.*?)</style>.*?<body\b[^>]*>(.*)</body>", (ROOT / place).read_text(), re.DOTALL).groups()
    body = re.sub(r"<nav>.*?</nav>|<h1\b.*?</h1>|</?(?:header|main)\b[^>]*>|</section>", "", body, flags=re.DOTALL)
    before, *sections = re.split(r'<section\b[^>]*\bid="([^"]*)"[^>]*>\s*<h2\b[^>]*>(.*?)</h2>', body)
    made = [raw_html(style_of_results(style) + f'<div class="report" id="top">{before}</div>')]
    for name, heading, content in zip(*(sections[start::3] for start in range(3))):
        is_own = name == re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")  # then Sphinx gives the heading this name
        made += [] if is_own else [raw_html(f'<span id="{name}"></span>')]
        made += [f"## {heading}\n", raw_html(f'<div class="report">{content}</div>')]
    return "\n".join(made)


def raw_html(text):
    return f"````{{raw}} html\n{text}\n````\n"


def run_doxygen(xml):
    settings = (ROOT / SITE / "Doxyfile").read_text() + f"XML_OUTPUT = {xml}\nPROJECT_NUMBER = {release.version_of()}\n"
    return subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT).returncode == 0


def unread_headers(names):
    """Headers that warpheap.hpp or all.hpp includes, or programs include by name, and of which Doxygen has read nothing."""
    text = "".join((amalgamate.INCLUDE / name).read_text() for name in ("warpheap.hpp", "all.hpp"))
    wanted = {*re.findall(r'#include "(.+)"', text), *amalgamate.EXTRAS, *amalgamate.HOST_EXTRAS} - NO_NAMES
    return sorted(wanted - {name.header for name in names})


def run_sphinx(builder, source, output):
    variables = {"WARPHEAP_SITE": str(BUILD), "WARPHEAP_VERSION": release.version_of(), "WARPHEAP_REPOSITORY": release.repository() or ""}
    words = ["-b", builder, "-W", "--keep-going", "-q", "-E", "-j", "auto", "-c", ROOT / SITE, source, output]
    return subprocess.run([BUILD / "venv" / "bin" / "sphinx-build", *words], env={**os.environ, **variables}).returncode == 0


def dead_links(html):
    """Links within the site that lead nowhere. Sphinx knows those of Markdown, and not those of the page of results."""
    texts = {page: page.read_text() for page in html.rglob("*.html")}
    places = {page: set(re.findall(r'\b(?:id|name)="([^"]*)"', text)) for page, text in texts.items()}
    for page, text in texts.items():
        for file, place in re.findall(r'\bhref="([^":?#]*)(?:#([^"]*))?"', text):
            target = (page.parent / urllib.parse.unquote(file)).resolve() if file else page
            if not target.exists() or (place and target in places and urllib.parse.unquote(place) not in places[target]):
                yield f"{page.relative_to(html)} leads to {file}#{place}, which is nowhere"


def build():
    """Whether the site is made, without a fault."""
    html = BUILD / "html"
    shutil.rmtree(html, ignore_errors=True)
    if not run_doxygen(BUILD / "xml") or not run_sphinx("html", source_tree(BUILD / "source"), html):
        return False
    outer, members = documented_names.public_names(BUILD / "xml")
    found = documented_names.faults(outer, members, documented_names.placed_names(html / "objects.inv"))
    found += [f"{header} is not in {SITE}Doxyfile" for header in unread_headers(outer)] + list(dead_links(html))
    print("\n".join(found) or f"{html}/index.html")
    return not found


def browse(html, names):
    """Whether Chromium shows pages without a fault."""
    command = [BUILD / "venv" / "bin" / "python", ROOT / "scripts" / "browse_site.py", shutil.which("chromium"), html]
    return subprocess.run([*command, *(f"{name}.html" for name in names)]).returncode == 0


def planted_page(content):
    """Whether a site of one page is made."""
    tree = BUILD / "planted"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    (tree / "index.md").write_text(f"# Planted\n\n{content}\n")
    return run_sphinx("html", tree, PLANTED)


def self_test():
    """A link to nowhere, a name that a page shows and the headers lack, a public name that no page shows, and a picture that a blind
    reader knows nothing of must be found."""
    outer, members = documented_names.public_names(BUILD / "xml") if run_doxygen(BUILD / "xml") else ([], [])
    bare = documented_names.Name("warpheap::planted", "struct", "planted.hpp", "")
    judged = documented_names.faults([bare], [], set()) and documented_names.faults([bare], [], {bare.name})
    missed = [] if judged and outer and members else ["a name without a page or a docstring"]
    missed += [] if "heap/heap.hpp" in unread_headers([bare]) else ["a header that is not read"]
    planted = {"link": "[x](docs/nowhere.md)", "name": "```{doxygenclass} warpheap::nothing\n```", "header": "```{names}\nnone.hpp\n```"}
    missed += [name for name, line in planted.items() if planted_page(line)]
    if not planted_page('```{raw} html\n<a href="#nowhere">x</a>\n```') or len(list(dead_links(PLANTED))) != 1:
        missed.append("a link of HTML")
    picture = "```{raw} html\n<img src='_static/file.png'>\n```"
    if shutil.which("chromium") and not (planted_page("One word.") and browse(PLANTED, ["index"])):
        missed.append("that nothing is wrong with a page")
    if shutil.which("chromium") and not (planted_page(picture) and not browse(PLANTED, ["index"])):
        missed.append("a picture without a description")
    print(f"missed: {missed}" if missed else "caught the injected faults")
    return 1 if missed else 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--links", action="store_true", help="ask addresses outside, too, and list those that do not answer")
    parser.add_argument("--browse", action="store_true", help="look at pages in Chromium, where it is installed, and list what is wrong")
    options = parser.parse_args()
    if not has_tools():
        return compilers.SKIPPED
    if options.self_test:
        return self_test()
    good = build()
    if options.browse and not shutil.which("chromium"):
        print("no Chromium (Debian: chromium), so the pages were not looked at")
    elif options.browse:
        good = browse(BUILD / "html", BROWSED) and good
    if options.links and not run_sphinx("linkcheck", BUILD / "source", BUILD / "links"):
        print("some addresses outside do not answer")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
