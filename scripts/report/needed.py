# SPDX-License-Identifier: Apache-2.0
"""Says what to install where Jinja2 or matplotlib is missing. A Python of one's own, first in PATH, makes way for the system's, which sees
Debian's packages."""

import importlib.util
import os
import sys

SYSTEM = "/usr/bin/python3"


def find(names=("jinja2", "matplotlib"), system=SYSTEM):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing and os.path.exists(system) and not os.path.samefile(system, sys.executable):
        os.execv(system, [system, *sys.orig_argv[1:]])
    if missing:
        print(f"warpheap report: {' and '.join(missing)} missing: the page needs Python 3.10, Jinja2 and matplotlib 3.6, or later ones "
              "(Debian: apt-get install python3-jinja2 python3-matplotlib)", file=sys.stderr)  # fmt: skip
        sys.exit(2)
