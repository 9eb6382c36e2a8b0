#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site in build/site/html: the pages of docs/, and the reference of the public headers and of the Python package.

Doxygen (Debian) reads the headers, Breathe and Sphinx (PyPI, in build/site/venv) make pages of that. A warning fails the build, and
so do a link that leads nowhere, and a public name without a docstring or a page. --links asks the addresses outside as well.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

import amalgamate
import check_reference
import check_report
import compilers
import documented_names
import release

ROOT = compilers.ROOT
BUILD = ROOT / "build" / "site"
NEEDED = ["sphinx==9.*", "myst-parser==5.*", "breathe==5.*", "pydata-sphinx-theme", "sphinx-copybutton"]
SITE = "docs/site/"
NO_NAMES = {"version.hpp", "platform/address_range.hpp"}  # macros; what pools are made of


def has_tools():
    """Installs Sphinx where it is not, and says what is missing."""
    if not shutil.which("doxygen"):
        print("SKIP: no doxygen (Debian: doxygen), so the site was not built")
        return False
    if not (BUILD / "venv" / "complete").exists():
        venv.create(BUILD / "venv", with_pip=True, clear=True)
        pip = [BUILD / "venv" / "bin" / "python", "-m", "pip", "install", "-q", *NEEDED]
        if subprocess.run(pip, capture_output=True).returncode:
            print(f"SKIP: pip cannot fetch {', '.join(NEEDED)}, so the site was not built")
            return False
        (BUILD / "venv" / "complete").touch()
    return True


def source_tree(tree):
    """A copy of all that pages may lead to, with the site's own pages at its top, and the Python reference."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in compilers.tracked():
        target = tree / name.removeprefix(SITE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    (tree / "api" / "python.md").write_text(check_reference.reference(check_reference.PACKAGE)[0])
    return tree


def run_doxygen(xml):
    settings = (ROOT / SITE / "Doxyfile").read_text() + f"XML_OUTPUT = {xml}\nPROJECT_NUMBER = {release.version_of()}\n"
    return subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT).returncode == 0


def unread_headers(names):
    """Headers that warpheap.hpp or all.hpp includes, or programs include by name, and of which Doxygen has read nothing."""
    text = "".join((amalgamate.INCLUDE / name).read_text() for name in ("warpheap.hpp", "all.hpp"))
    wanted = {*re.findall(r'#include "(.+)"', text), *amalgamate.EXTRAS, *amalgamate.HOST_EXTRAS} - NO_NAMES
    return sorted(wanted - {name.header for name in names})


def run_sphinx(builder, source, output):
    variables = {"WARPHEAP_SITE": str(BUILD), "WARPHEAP_VERSION": release.version_of()}
    words = ["-b", builder, "-W", "--keep-going", "-q", "-E", "-j", "auto", "-c", ROOT / SITE, source, output]
    return subprocess.run([BUILD / "venv" / "bin" / "sphinx-build", *words], env={**os.environ, **variables}).returncode == 0


def build():
    """Whether the site is made, without a fault."""
    html = BUILD / "html"
    if not run_doxygen(BUILD / "xml") or not run_sphinx("html", source_tree(BUILD / "source"), html):
        return False
    shutil.copy(ROOT / check_report.PAGE, html / "report.html")
    (html / "performance").mkdir(exist_ok=True)
    shutil.copy(ROOT / check_report.TABLES, html / "performance")
    outer, members = documented_names.public_names(BUILD / "xml")
    found = documented_names.faults(outer, members, documented_names.placed_names(html / "objects.inv"))
    found += [f"{header} is not in {SITE}Doxyfile" for header in unread_headers(outer)]
    print("\n".join(found) or f"{html}/index.html")
    return not found


def self_test():
    """A link to nowhere, a name that a page shows and the headers lack, and a public name that no page shows must be found."""
    outer, members = documented_names.public_names(BUILD / "xml") if run_doxygen(BUILD / "xml") else ([], [])
    bare = documented_names.Name("warpheap::planted", "struct", "planted.hpp", False)
    judged = documented_names.faults([bare], [], set()) and documented_names.faults([bare], [], {bare.name})
    missed = [] if judged and outer and members else ["a name without a page or a docstring"]
    missed += [] if "heap/heap.hpp" in unread_headers([bare]) else ["a header that is not read"]
    for name, line in {"link": "[x](docs/nowhere.md)", "name": "```{doxygenclass} warpheap::nothing\n```", "header": "```{names}\nnone.hpp\n```"}.items():
        tree = BUILD / "planted"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        (tree / "index.md").write_text(f"# Planted\n\n{line}\n")
        missed += [name] if run_sphinx("html", tree, BUILD / "planted-html") else []
    print(f"missed: {missed}" if missed else "caught the injected faults")
    return 1 if missed else 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--links", action="store_true", help="ask addresses outside, too, and list those that do not answer")
    options = parser.parse_args()
    if not has_tools():
        return compilers.SKIPPED
    if options.self_test:
        return self_test()
    good = build()
    if options.links and not run_sphinx("linkcheck", BUILD / "source", BUILD / "links"):
        print("some addresses outside do not answer")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
