#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header includes only what include/warpheap/README.md lets it.

The tables on that page are the rule; this script reads them. It reports each include that breaks a layer, chooses a
backend, joins two policies, closes a circle, or brings the standard library or another library where it may not be.
"""

import fnmatch
import pathlib
import re
import shutil
import sys
import tempfile

import compilers

STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfloat charconv chrono cinttypes climits
    cmath compare complex concepts condition_variable csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime deque
    exception execution filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd
    iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional
    ostream queue random ranges ratio regex semaphore set shared_mutex source_location span sstream stack stdexcept
    stop_token streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version""".split()
)
HOST_ONLY_IF = re.compile(r"^\s*#\s*if\s+!\s*defined\(\s*(__CUDACC_RTC__|__CUDACC__)\s*\)\s*$")
HOST_ONLY_ELSE = re.compile(r"^\s*#\s*if\s+defined\(\s*(__CUDACC_RTC__|__CUDACC__)\s*\)\s*$")
CHOOSERS = ("platform/simt.hpp", "platform/address_range.hpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class Rules:
    """The tables of README.md."""

    def __init__(self, page):
        self.layers = [(int(row[0]), row[1].strip("`")) for row in self.table(page, "layers")]
        self.siblings = [(self.names(a)[0], self.names(b)) for a, b in self.table(page, "siblings")]
        self.shared = [self.names(row[0])[0] for row in self.table(page, "shared words of the policies")]
        self.host_only = [name for row in self.table(page, "host-only files") for name in self.names(row[0])]
        self.libraries = [(self.names(a)[0], self.names(b)) for a, b in self.table(page, "other libraries")]

    @staticmethod
    def names(cell):
        return re.findall(r"`([^`]+)`", cell)

    @staticmethod
    def table(page, name):
        after = page.partition(f"<!-- table: {name} -->")[2]
        if not after:
            sys.exit(f"README.md has no table '{name}'")
        rows = []
        for line in after.strip().splitlines():
            if not line.startswith("|"):
                break
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        return rows[2:]  # without heading and rule

    def layer(self, name):
        for number, place in self.layers:
            if name == place or (place.endswith("/") and name.startswith(place)):
                return number
        return None

    def sibling_allowed(self, file, included):
        return any(fnmatch.fnmatchcase(file, who) and matches(included, what) for who, what in self.siblings)

    def library_allowed(self, file, header):
        return any(fnmatch.fnmatchcase(file, who) and matches(header, what) for who, what in self.libraries)


def policy_of(name, rules):
    """('creation', 'scatter') for a file of that policy, None for any other file."""
    parts = name.removesuffix(".hpp").removesuffix(".cuh").split("/")
    if parts[0] != "policy" or len(parts) < 3 or matches(name, rules.shared):
        return None
    return parts[1], parts[2]


def backend_of(name):
    parts = name.split("/")
    return parts[1] if parts[0] == "platform" and len(parts) > 2 else None


def includes_of(path):
    """Yields (line number, quoted, angled, whether the line is for the host alone) for each include."""
    sections = []  # one [then-branch is host-only, else-branch is host-only, in else] an open #if
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"^\s*#\s*if", line):
            sections.append([bool(HOST_ONLY_IF.match(line)), bool(HOST_ONLY_ELSE.match(line)), False])
        elif re.match(r"^\s*#\s*elif", line) and sections:
            sections[-1] = [False, False, False]
        elif re.match(r"^\s*#\s*else", line) and sections:
            sections[-1][2] = True
        elif re.match(r"^\s*#\s*endif", line) and sections:
            sections.pop()
        found = INCLUDE.match(line)
        if found:
            host = any(section[1] if section[2] else section[0] for section in sections)
            yield number, found.group(1), found.group(2), host


def judge(rules, file, included):
    """What is wrong with `file` including `included`, or None."""
    mine, theirs = rules.layer(file), rules.layer(included)
    if theirs is None:
        return "is in no layer"
    my_backend, its_backend = backend_of(file), backend_of(included)
    if its_backend and its_backend != my_backend and file not in CHOOSERS:
        return f"is a backend's; {' and '.join(CHOOSERS)} alone choose"
    my_policy, its_policy = policy_of(file, rules), policy_of(included, rules)
    if my_policy and its_policy:
        return None if my_policy == its_policy else "is another policy; only heap/ composes policies"
    if theirs < mine:
        return None
    if theirs > mine:
        return f"is of layer {theirs}, above layer {mine}"
    return None if rules.sibling_allowed(file, included) else "is a sibling that README.md does not name"


def circles(edges):
    """Reports each circle of includes once."""
    done, path, found = set(), [], []

    def visit(file):
        if file in path:
            found.append(" -> ".join(path[path.index(file):] + [file]))
            return
        if file in done:
            return
        path.append(file)
        for included in sorted(edges.get(file, ())):
            visit(included)
        path.pop()
        done.add(file)

    for file in sorted(edges):
        visit(file)
    return found


def check(root):
    base = root / "include" / "warpheap"
    rules = Rules((base / "README.md").read_text())
    faults, edges, count = [], {}, 0
    for path in sorted([*base.rglob("*.hpp"), *base.rglob("*.cuh")]):
        count += 1
        file = path.relative_to(base).as_posix()
        if rules.layer(file) is None:
            faults.append(f"{file}: is in no layer")
            continue
        host_file = matches(file, rules.host_only)
        for number, quoted, angled, host_section in includes_of(path):
            where = f"{file}:{number}"
            host = host_file or host_section
            if quoted is None and not angled.startswith("warpheap/"):
                standard = angled in STANDARD and host
                if not standard and not rules.library_allowed(file, angled):
                    faults.append(f"{where}: <{angled}> is not for code that NVRTC compiles, or not for this file")
                continue
            target = base.parent / angled if quoted is None else path.parent / quoted
            if base.resolve() not in target.resolve().parents:
                faults.append(f"{where}: {quoted or angled} is outside include/warpheap")
                continue
            included = target.resolve().relative_to(base.resolve()).as_posix()
            if not target.exists():
                faults.append(f"{where}: {included} does not exist")
                continue
            edges.setdefault(file, set()).add(included)
            wrong = judge(rules, file, included)
            if wrong:
                faults.append(f"{where}: {included} {wrong}")
            if matches(included, rules.host_only) and not host:
                faults.append(f"{where}: {included} is for the host alone")
    faults += [f"circle: {circle}" for circle in circles(edges)]
    return count, faults


PLANTED = {  # file: (text, part of the fault that must be reported)
    "sync/upwards.hpp": ('#include "../structure/thing.hpp"', "above layer"),
    "util/sideways.hpp": ('#include "other.hpp"', "does not name"),
    "heap/chooses.hpp": ('#include "../platform/cuda/simt.hpp"', "alone choose"),
    "policy/creation/first.hpp": ('#include "second.hpp"', "another policy"),
    "policy/oom/joins.hpp": ('#include "../creation/second.hpp"', "another policy"),
    "structure/standard.hpp": ("#include <vector>", "NVRTC"),
    "structure/boost.hpp": ("#if !defined(__CUDACC_RTC__)\n#include <boost/any.hpp>\n#endif", "NVRTC"),
    "structure/after.hpp": ("#if !defined(__CUDACC_RTC__)\n#endif\n#include <vector>", "NVRTC"),
    "structure/throws.hpp": ('#include "../platform/errors.hpp"', "host alone"),
    "heap/round.hpp": ('#include "about.hpp"', "circle"),
    "heap/about.hpp": ('#include "round.hpp"', None),
    "elsewhere/lost.hpp": ("", "no layer"),
    "heap/missing.hpp": ('#include "nowhere.hpp"', "does not exist"),
    "heap/good.hpp": (
        '#include "../policy/creation/second.hpp"\n'
        '#if !defined(__CUDACC_RTC__)\n#include <vector>\n#include "../platform/errors.hpp"\n#endif\n'
        "#if defined(__CUDACC_RTC__)\n#else\n#include <string>\n#endif",
        None,
    ),
    "policy/creation/second.hpp": ('#include "second/part.hpp"\n#include "report.hpp"', None),
    "policy/creation/second/part.hpp": ("", None),
    "policy/creation/report.hpp": ("", None),
    "platform/cuda/simt.hpp": ("", None),
    "platform/errors.hpp": ("#include <string>", None),
    "structure/thing.hpp": ("", None),
    "util/other.hpp": ("", None),
}


def self_test(root):
    """Injects one fault of each kind; each must be reported, and nothing beside them."""
    with tempfile.TemporaryDirectory() as directory:
        base = pathlib.Path(directory) / "include" / "warpheap"
        base.mkdir(parents=True)
        shutil.copy(root / "include" / "warpheap" / "README.md", base)
        for name, (text, _) in PLANTED.items():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(text + "\n")
        _, faults = check(pathlib.Path(directory))
    wrong = []
    for name, (_, fault) in PLANTED.items():
        mine = [f for f in faults if f.startswith(name) or (fault == "circle" and f.startswith("circle") and name in f)]
        if fault and not any(fault in f for f in mine):
            wrong.append(f"not caught: {name} ({fault})")
        if not fault and mine:
            wrong.append(f"caught for nothing: {mine[0]}")
    print("\n".join(wrong) or f"caught all {sum(1 for _, f in PLANTED.values() if f)} injected faults")
    return 1 if wrong else 0


def main():
    if compilers.arguments(__doc__).parse_args().self_test:
        return self_test(compilers.ROOT)
    count, faults = check(compilers.ROOT)
    print("\n".join(faults) or f"{count} headers include only what they may")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
