#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header includes only what include/warpheap/README.md lets it.

The tables on that page are the rule; this script reads them. Folders of tools/warpheap include only those before them. It reports each include that breaks a layer, chooses a
backend, joins two policies, closes a circle, or brings the standard library or another library where it may not be.
"""

import fnmatch
import graphlib
import re
import sys

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
ONE_SIDE = re.compile(r"\s*#\s*if\s+(!?)\s*defined\(\s*(?:__CUDACC_RTC__|__CUDACC__)\s*\)\s*$")
CHOOSERS = ("platform/simt.hpp", "platform/address_range.hpp")
TOOL_LAYERS = ("measure", "cli", "backend", "workloads", "scenarios", "io", "commands", "pes")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def table(page, name):
    """The cells of a table's rows."""
    rows = page.partition(f"<!-- table: {name} -->\n")[2].partition("\n\n")[0].strip().splitlines()[2:]  # without heading and rule
    if not rows:
        sys.exit(f"README.md has no table '{name}'")
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


class Rules:
    """The tables of README.md."""

    def __init__(self, page):
        def names(cell):
            return re.findall(r"`([^`]+)`", cell)

        self.layers = [(int(row[0]), row[1].strip("`")) for row in table(page, "layers")]
        self.siblings = [(names(a)[0], names(b)) for a, b in table(page, "siblings")]
        self.shared = [names(row[0])[0] for row in table(page, "shared words of the policies")]
        self.host_only = [name for row in table(page, "host-only files") for name in names(row[0])]
        self.libraries = [(names(a)[0], names(b)) for a, b in table(page, "other libraries")]

    def layer(self, name):
        return next((number for number, place in self.layers if name == place or (place.endswith("/") and name.startswith(place))), None)


def allows(pairs, file, included):
    return any(fnmatch.fnmatchcase(file, who) and matches(included, what) for who, what in pairs)


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
    sections = []  # of each open #if: whether this branch is for the host alone, and the #else
    for number, line in enumerate(path.read_text().splitlines(), 1):
        directive = re.match(r"\s*#\s*(if|elif|else|endif)", line)
        if directive and directive[1] == "if":
            side = ONE_SIDE.match(line)
            sections.append((bool(side and side[1]), bool(side and not side[1])))
        elif directive and sections:
            _, of_else = sections.pop()
            if directive[1] != "endif":
                sections.append((of_else, False) if directive[1] == "else" else (False, False))
        if found := INCLUDE.match(line):
            yield number, found[1], found[2], any(host for host, _ in sections)


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
    return None if allows(rules.siblings, file, included) else "is a sibling that README.md does not name"


def circles(edges):
    """Reports a circle of includes, if there is one."""
    try:
        list(graphlib.TopologicalSorter(edges).static_order())
    except graphlib.CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def fault_of(rules, base, path, quoted, angled, host):
    """(what an include includes of the library, or None; what is wrong with it, or None)"""
    file = path.relative_to(base).as_posix()
    if quoted is None and not angled.startswith("warpheap/"):
        right = (angled in STANDARD and host) or allows(rules.libraries, file, angled)
        return None, None if right else f"<{angled}> is not for code that NVRTC compiles, or not for this file"
    target = (base.parent / angled if quoted is None else path.parent / quoted).resolve()
    if not target.is_relative_to(base.resolve()):
        return None, f"{quoted or angled} is outside include/warpheap"
    included = target.relative_to(base.resolve()).as_posix()
    if not target.exists():
        return None, f"{included} does not exist"
    wrong = judge(rules, file, included)
    if not wrong and matches(included, rules.host_only) and not host:
        wrong = "is for the host alone"
    return included, wrong and f"{included} {wrong}"


def tool_faults(root):
    """Includes from one folder of the tool to a later one of TOOL_LAYERS."""
    base = root / "tools" / "warpheap"
    for path in sorted(path for path in base.rglob("*.?pp") if path.parent != base):
        folder = path.relative_to(base).parts[0]
        for number, quoted, _, _ in includes_of(path):
            beside = quoted is None or (path.parent / quoted).exists()
            theirs = folder if beside else quoted.split("/")[0]
            if theirs in TOOL_LAYERS and TOOL_LAYERS.index(theirs) > TOOL_LAYERS.index(folder):
                yield f"{path.relative_to(root)}:{number}: {quoted} is above layer {folder}"


def check(root=compilers.ROOT):
    base = root / "include" / "warpheap"
    rules = Rules((base / "README.md").read_text())
    faults, edges = [], {}
    for path in sorted([*base.rglob("*.hpp"), *base.rglob("*.cuh")]):
        file = path.relative_to(base).as_posix()
        edges[file] = set()
        if rules.layer(file) is None:
            faults.append(f"{file}: is in no layer")
            continue
        for number, quoted, angled, host_section in includes_of(path):
            included, fault = fault_of(rules, base, path, quoted, angled, host_section or matches(file, rules.host_only))
            edges[file] |= {included} - {None}
            faults += [f"{file}:{number}: {fault}"] if fault else []
    faults += [f"circle: {circle}" for circle in circles(edges)]
    return [*faults, *tool_faults(root)], f"{len(edges)} headers include only what they may"


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
    "tools/warpheap/measure/upwards.hpp": ('#include "commands/choices.hpp"', "above layer"),
    "tools/warpheap/commands/downwards.hpp": ('#include "measure/result.hpp"', None),
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


def negative_test():
    """One fault of each kind: each must be reported, and nothing beside them."""
    page = "include/warpheap/README.md"
    files = {name if name.startswith("tools/") else f"include/warpheap/{name}": text + "\n" for name, (text, _) in PLANTED.items()}
    with compilers.folder_of({**files, page: (compilers.ROOT / page).read_text()}) as root:
        faults, _ = check(root)
    wrong = []
    for name, (_, fault) in PLANTED.items():
        mine = [f for f in faults if f.startswith(name) or (fault == "circle" and f.startswith("circle") and name in f)]
        if fault and not any(fault in f for f in mine):
            wrong.append(f"not caught: {name} ({fault})")
        if not fault and mine:
            wrong.append(f"caught for nothing: {mine[0]}")
    return wrong


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
