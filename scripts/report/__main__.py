# SPDX-License-Identifier: Apache-2.0
"""Makes one page of results: what `warpheap report` and `make report` run.

    python3 scripts/report RESULTS… [--before OLDER]… [--output FILE] [--tables FILE] [--images FOLDER]

Exit status 0, or 2 with one line on standard error for bad usage and bad input.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import needed

needed.find()
import page  # noqa: E402
import results  # noqa: E402
from text import printable  # noqa: E402

COMMAND = "warpheap report"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise results.Fault(message)


def _parse(arguments):
    parser = _Parser(prog=COMMAND, description="Makes one page of results.")
    add = parser.add_argument
    add("results", nargs="*", metavar="FILE", help="results as --json wrote them, folders of them, or '-' for standard input")
    add("--before", action="append", default=[], metavar="FILE", help="older results to compare with; may be given several times")
    add("--output", default="report.html", metavar="FILE", help="where the page goes; '-' is standard output")
    add("--tables", metavar="FILE", help="a page of their own for tables and raw numbers")
    add("--images", metavar="FOLDER", help="also write each picture there, as SVG and PNG")
    asked = parser.parse_args(arguments)
    if not asked.results:
        raise results.Fault("no results: name files that `warpheap bench --json FILE` wrote")
    return asked


def _write(option, content, target):
    try:
        path = pathlib.Path(os.path.realpath(target))
        if target == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        elif path.exists() and not path.is_file():
            path.write_bytes(content)  # a terminal, /dev/null
        else:
            _replace(path, content)
    except OSError as fault:
        raise results.Fault(f"{option}: {target}: {fault.strerror}") from None


def _replace(path, content):
    """Replaces the file as a whole, or leaves it as it was and nothing beside it."""
    opened, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with open(opened, "wb") as file:
            file.write(content)
        os.umask(mask := os.umask(0))
        os.chmod(beside, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _write_images(pictures, folder):
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as fault:
        raise results.Fault(f"--images: {folder}: {fault.strerror}") from None
    for name, picture in pictures.items():
        for form in ("svg", "png"):
            _write("--images", picture.saved(form, name), os.path.join(folder, f"{name}.{form}"))


def main(arguments):
    try:
        asked = _parse(arguments)
        sources = results.read_all(asked.results)
        made = page.Page(sources, results.read_all(asked.before) if asked.before else None)
        tables_at = os.path.relpath(asked.tables, os.path.dirname(asked.output)) if asked.tables else ""
        html, tables = page.build(made, tables_at)
        _write("--output", html.encode(), asked.output)
        if asked.tables:
            _write("--tables", tables.encode(), asked.tables)
        if asked.images:
            _write_images(made.pictures, asked.images)
    except results.Fault as fault:
        _say(f"{COMMAND}: {fault}", sys.stderr)
        return 2
    if asked.output != "-":
        rows = sum(len(source.rows) for source in sources)
        _say(f"{asked.output}: {rows} rows of {len(sources)} files, {len(made.pictures)} pictures", sys.stdout)
    return 0


def _say(words, stream):
    """One line, of what a terminal can show."""
    line = printable(words)
    print(line.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8"), file=stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
