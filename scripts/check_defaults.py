#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of configurations that a build may set: the page says which there are, and every one does what it says.

docs/guide/policies/defaults.md has a table of macros: the field that each sets, its default, and another value. Policies' headers
must use these macros and no others, in every field of every configuration that uses one; describe() must name every such field.
Compiled with g++ and, where it is, nvcc: without a macro each field has its default; with all of them set, by -D, each has the
other value, and the policies accept them. What policies do not accept is tests/compile/refused's.
"""

import pathlib
import re
import tempfile

import compilers

PAGE = compilers.ROOT / "docs" / "guide" / "policies" / "defaults.md"
POLICIES = compilers.ROOT / "include" / "warpheap" / "policy"
ROW = re.compile(r"^\| `(WARPHEAP_\w+)` \| `(\w+)::(\w+_config)::([\w.]+)` \| `([^`]+)` \| `([^`]+)` \|$", re.M)
STRUCT = re.compile(r"struct (\w+_config) \{\n(.*?)\n\};", re.S)
FIELD = re.compile(r"^  (?:u32|bool|size_t|walk_kind|hash_parameters) (\w+)\s*(.*?);", re.S | re.M)
DESCRIBED = re.compile(r"describe\((\w+) const& config\) \{(.*?)\}\n#endif", re.S)
# One policy of each configuration.
ACCEPTED = [
    "creation::slab_bitmap<>", "creation::scatter<>", "creation::halloc<>", "creation::random_walk<>", "creation::rw_malloc<>",
    "creation::ring_buffer<>", "creation::tbuddy<>", "creation::ualloc<>", "creation::throughput<>", "distribution::warp_coalesce",
]  # fmt: skip


def rows_of(page):
    return ROW.findall(page.read_text())


def name_in_text(field):
    return field.replace(".", "_")


def faults_of_headers(rows, policies):
    """What the headers have that the page has not, and the other way round."""
    listed = {macro for macro, *_ in rows}
    used, faults = set(), []
    for header in sorted(policies.rglob("*.hpp")):
        text = header.read_text()
        if header.name == "defaults.hpp":
            given = dict(re.findall(r"#ifndef (WARPHEAP_\w+)\n#define \1 (.+)\n#endif", text))
            faults += [f"{macro}: not in defaults.hpp" for macro in sorted(listed - set(given))]
            faults += [f"{macro}: not on the page" for macro in sorted(set(given) - listed)]
            continue
        told = dict(DESCRIBED.findall(text))
        for struct, body in STRUCT.findall(text):
            macros = {field: re.findall(r"WARPHEAP_\w+", value) for field, value in FIELD.findall(body)}
            if not any(macros.values()):
                continue
            used |= {macro for names in macros.values() for macro in names}
            faults += [f"{struct}: no build can set {field}" for field, names in macros.items() if not names]
            for macro, _, of, field, *_ in rows:
                if of == struct and macro not in macros.get(field.split(".")[0], []):
                    faults.append(f"{macro}: does not set {struct}::{field}")
                if of == struct and f'"{name_in_text(field)}"' not in told.get(struct, ""):
                    faults.append(f"{struct}: info() does not tell {field}")
    faults += [f"{macro}: nothing uses it" for macro in sorted(listed - used)]
    return faults + [f"{macro}: used, and not on the page" for macro in sorted(used - listed)]


def source_of(rows, column):
    """A program that compiles if every field has the value of that column."""
    lines = ["#include <warpheap/all.hpp>", "using namespace warpheap;", "using creation::walk_kind;"]
    for row in rows:
        macro, space, struct, field = row[:4]
        value = f"walk_kind::{row[column]}" if field == "kind" else row[column]
        lines.append(f'static_assert({space}::{struct}{{}}.{field} == {value}, "{macro}");')
    lines += [f"{policy} policy_{number};" for number, policy in enumerate(ACCEPTED)]
    return "\n".join(lines) + "\n"


def faults_of_compilers(rows, nvcc=None):
    commands = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, column in {"defaults": 4, "others": 5}.items():
            source = pathlib.Path(directory) / f"{name}.cpp"
            source.write_text(source_of(rows, column))
            flags = [f"-D{row[0]}={row[5]}" for row in rows] if name == "others" else []
            commands[f"g++ {name}"] = [*compilers.GXX, *flags, "-fsyntax-only", str(source)]
            if nvcc:
                ptx = str(source.with_suffix(".ptx"))
                commands[f"nvcc {name}"] = [*nvcc, *flags, "-x", "cu", "-arch=sm_90", "-ptx", "-o", ptx, str(source)]
        results = compilers.compile_all(commands)
    return [f"{name}:\n{said}" for name, (good, said, _) in results.items() if not good]


def negative_test():
    """A wrong default, a value that has no effect, a macro that is not there and one that the page lacks must be noticed."""
    rows = rows_of(PAGE)
    wrong_default = [(*row[:4], "3" if row[0] == "WARPHEAP_SCATTER_WASTE_FACTOR" else row[4], row[5]) for row in rows]
    no_effect = [("WARPHEAP_NOBODYS", *row[1:]) if row[0] == "WARPHEAP_SCATTER_WASTE_FACTOR" else row for row in rows]
    compiled = {fault.partition(":")[0]: fault for rows in (wrong_default, no_effect) for fault in faults_of_compilers(rows)}
    found = faults_of_headers(no_effect, POLICIES)
    caught = {
        "a wrong default": "WARPHEAP_SCATTER_WASTE_FACTOR" in compiled.get("g++ defaults", ""),
        "a value without effect": "WARPHEAP_NOBODYS" in compiled.get("g++ others", ""),
        "a macro that is nowhere": "WARPHEAP_NOBODYS: nothing uses it" in found,
        "a macro that the page lacks": "WARPHEAP_SCATTER_WASTE_FACTOR: not on the page" in found,
        "another field": any("does not set" in fault for fault in faults_of_headers([(rows[0][0], *rows[1][1:])], POLICIES)),
    }
    return [what for what, good in caught.items() if not good]


def check():
    nvcc, rows = compilers.find_nvcc(), rows_of(PAGE)
    if not nvcc:
        print("no nvcc: what it makes of the values was not checked")
    faults = faults_of_headers(rows, POLICIES) + faults_of_compilers(rows, nvcc)
    return faults if rows else ["the page has no table"], f"{len(rows)} values of configurations can be set by a build"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
