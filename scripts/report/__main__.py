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
import tempfile

import images
import page
import results

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


def _write(text, target):
    """Replaces the file as a whole, or leaves it as it was."""
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = pathlib.Path(os.path.realpath(target))
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a terminal, /dev/null
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
        ) as beside:
            beside.write(text)
        os.chmod(beside.name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(beside.name, path)
    except OSError as fault:
        raise results.Fault(f"--output: {target}: {fault.strerror}") from None


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
        _write(text, asked.output)
        left_out = images.write_all(pictures, asked.images) if asked.images else ""
    except results.Fault as fault:
        print(f"{COMMAND}: {fault}".replace("\n", " "), file=sys.stderr)
        return 2
    if left_out:
        print(f"{COMMAND}: {left_out}", file=sys.stderr)
    if asked.output != "-":
        print(
            f"{asked.output}: {sum(len(source.rows) for source in sources)} rows of {len(sources)} files, "
            f"{len(pictures)} pictures"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
