# SPDX-License-Identifier: Apache-2.0
"""Makes one page of results: what `warpheap report` and `make report` run.

    python3 scripts/report RESULTS… [--before OLDER]… [--output FILE] [--images FOLDER]

Needs Python 3.9 and nothing else. Exit status 0, or 2 with one line on standard error for bad usage and bad input.
"""

import sys

if sys.version_info < (3, 9):
    sys.exit("warpheap report: Python 3.9 or later is needed, and this is " + sys.version.split()[0])

import argparse
import os
import pathlib
import re
import tempfile

import images
import page
import results
from markup import printable

COMMAND = "warpheap report"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise results.Fault(message)


def _parse(arguments):
    parser = _Parser(prog=COMMAND, description="Makes one page of results.")
    parser.add_argument(
        "results",
        nargs="*",
        metavar="FILE",
        help="results as --json wrote them, folders of them, or '-' for standard input",
    )
    parser.add_argument(
        "--before",
        action="append",
        default=[],
        metavar="FILE",
        help="older results to compare with; may be given several times",
    )
    parser.add_argument(
        "--output", default="report.html", metavar="FILE", help="where the page goes; '-' is standard output"
    )
    parser.add_argument("--images", metavar="FOLDER", help="also write each picture there, as SVG and PNG")
    asked = parser.parse_args(arguments)
    if not asked.results:
        raise results.Fault("no results: name files that `warpheap bench --json FILE` wrote")
    return asked


def _write(content, target):
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
        raise results.Fault(f"--output: {target}: {fault.strerror}") from None


def _replace(path, content):
    """Replaces the file as a whole, or leaves it as it was and nothing beside it."""
    opened, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with open(opened, "wb") as file:
            file.write(content)
        os.chmod(beside, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def main(arguments):
    try:
        asked = _parse(arguments)
        sources = results.read_all(asked.results)
        before = results.read_all(asked.before) if asked.before else None
        text, pictures = page.build(sources, before)
        _write(text.encode(), asked.output)
        left_out = images.write_all(pictures, asked.images) if asked.images else ""
    except results.Fault as fault:
        _say(f"{COMMAND}: {fault}", sys.stderr)
        return 2
    if left_out:
        _say(f"{COMMAND}: {left_out}", sys.stderr)
    if asked.output != "-":
        rows = sum(len(source.rows) for source in sources)
        _say(f"{asked.output}: {rows} rows of {len(sources)} files, {len(pictures)} pictures", sys.stdout)
    return 0


def _say(words, stream):
    """One line, of what a terminal can show."""
    line = printable(re.sub(r"[\t\r\n]", " ", words))
    print(line.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8"), file=stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
