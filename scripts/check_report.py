#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/performance.html and its tables are what scripts/report makes of the results below; --write makes them and the
pictures.

Jinja2 and matplotlib are Debian 12's: another matplotlib writes other SVG. The pictures, docs/images/*.png, depend on fonts: of them the check
looks at the size alone.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import compilers

PAGE, TABLES = pathlib.Path("docs/performance.html"), pathlib.Path("docs/performance/tables.html")
IMAGES = pathlib.Path("docs/images")
MOST_PAGE_BYTES, MOST_IMAGE_BYTES = 600_000, 100_000
RESULTS = pathlib.Path("bench/results")
SCRIPT = compilers.ROOT / "scripts" / "report"
# All scenarios, on one H200 at one commit.
NAMES = [f"page-{name}" for name in """
append arena atomic bounds burst churn collective-mutex crowd efficiency exhaust fill fill-level fragmentation graph growth hash-map
head-replacement init join latency long-churn map mixed pic placement policy-overhead prefix-sum random-walk rcu-delegation scaling
semaphore tracing two-phase utilisation workers
""".split()]
# Picture of the docs: results, and its name among those that scripts/report writes.
PICTURES = {
    "speed.png": (["h200-page-scaling.json"], "speed"),
    "heap_map.png": (["host-map.json"], "map-no-2"),
}


def made_pages(root, names):
    """{place: content} of what the script makes in a folder; paths on the page are relative to that."""
    files = [str(RESULTS / f"h200-{name}.json") for name in names]
    with tempfile.TemporaryDirectory() as directory:
        made = {place: pathlib.Path(directory) / place for place in (PAGE, TABLES)}
        made[TABLES].parent.mkdir(parents=True)
        command = [sys.executable, "-B", SCRIPT, "--output", made[PAGE], "--tables", made[TABLES], *files]
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
        return {place: path.read_bytes() for place, path in made.items()}


def faults(root, names=NAMES, pictures=PICTURES):
    wanted = made_pages(root, names)
    for place, content in wanted.items():
        if not (root / place).exists() or (root / place).read_bytes() != content:
            yield f"{place} is not what scripts/report makes of bench/results: run scripts/check_report.py --write"
    if len(wanted[PAGE]) > MOST_PAGE_BYTES:
        yield f"{PAGE} would have {len(wanted[PAGE]):,} bytes, and may have {MOST_PAGE_BYTES:,}"
    for name in pictures:
        image = root / IMAGES / name
        if not image.exists() or not 0 < image.stat().st_size <= MOST_IMAGE_BYTES:
            yield f"{IMAGES / name} is missing, or has more than {MOST_IMAGE_BYTES:,} bytes"


def write_pages(root, names):
    for place, content in made_pages(root, names).items():
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).write_bytes(content)


def write(root):
    write_pages(root, NAMES)
    (root / IMAGES).mkdir(exist_ok=True)
    for name, (files, picture) in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", SCRIPT, "--output", os.devnull, "--images", folder]
            command += [str(RESULTS / file) for file in files]
            subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
            (root / IMAGES / name).write_bytes((pathlib.Path(folder) / f"{picture}.png").read_bytes())


def self_test():
    """A page that is right, one of an older file, and pictures that are missing or too large."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / RESULTS).mkdir(parents=True)
        (root / IMAGES).mkdir(parents=True)
        source = root / RESULTS / "h200-burst.json"
        text = (compilers.ROOT / RESULTS / "h200-burst.json").read_text()
        source.write_text(text)
        write_pages(root, ["burst"])
        (root / IMAGES / "good.png").write_bytes(b"x" * 1000)
        good = list(faults(root, ["burst"], ["good.png"]))
        source.write_text(text.replace('"median_us": 8.4', '"median_us": 9.4', 1))
        (root / IMAGES / "large.png").write_bytes(b"x" * (MOST_IMAGE_BYTES + 1))
        planted = list(faults(root, ["burst"], ["good.png", "large.png", "gone.png"]))
    if good or len(planted) != 4:
        print(f"a good page gave {good}; a changed result and two bad pictures gave {planted}")
        return 1
    print("caught the changed result on the page and in its tables, the missing picture and the one that is too large")
    return 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--write", action="store_true", help="write page and pictures")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.write:
        write(compilers.ROOT)
    found = list(faults(compilers.ROOT))
    print("\n".join(found) or f"{PAGE} shows bench/results")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
