#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header of the library alone, so that each includes what it uses.

With g++ the host backend is chosen, with --nvcc the device code of the CUDA backend. A backend's own headers are left to
their compiler, explore/, which is the host backend's, to g++, and nvshmem/ to check_nvshmem.py. Each header is included twice, because the second time must do nothing.

Alone is expensive: most of what a compiler reads is the standard library, for each header again. But a header that comes
after those that it includes anyhow sees no more than it does alone. So the headers are made chains, each header of which
includes all before it, and a compiler reads a chain at once: a third of the units of CMake's VERIFY_INTERFACE_HEADER_SETS. Includes
under an #if do not count. For g++ the header that most include is precompiled once, for those that include it. Of a chain that fails
each header is compiled alone, to say which it is.

Other headers come first, and users choose the warnings. So no name of ours may be a macro of a header that many programs
include: each chain is compiled behind those macros, and the text of all headers is searched for them. g++ reports WARNINGS in
each chain and in programs that instantiate what chains only define: those of examples/, one that calls every function of every
heap, one whose allocator has no optional function, and the inspection's. clang++, and the host compiler under nvcc, report them
in all headers together, `warpheap.hpp` first, whose names may be shadowed by those that follow, and in the programs.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import compilers

MOST_INCLUDED = "platform/simt.hpp"
# Included in place of another one, and not after it.
IN_PLACE = {
    "heap/override_forgiving.hpp",
    "heap/override_growing.hpp",
    "adaptor/override_traced.hpp",
    "adaptor/override_traced_growing.hpp",
    "platform/cuda/setup.hpp",
    "platform/host/race_checker.hpp",
    "platform/host/race_hooks.hpp",
}
EVERY_HEAP = "every_heap.cpp"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wuseless-cast", "-Wold-style-cast"]
CLANG_WARNINGS = [flag for flag in WARNINGS if flag != "-Wuseless-cast"]
# nvcc itself writes casts of C into what the host compiler reads.
NVCC_WARNINGS = ["-Werror=all-warnings", f"-Xcompiler={','.join(WARNINGS[:-1])}"]
# Macros by the header that defines them; a name that ends in () is a macro only where a parenthesis follows.
MACROS = {
    "Qt's qtmetamacros.h and qforeach.h": "slots signals emit foreach forever",
    "Windows' minwindef.h, rpcndr.h and combaseapi.h": "min() max() near far small hyper pascal interface IN OUT",
    "X11's X.h and Xlib.h": "None Bool Status Success Always Above Below Complex True False Unsorted",
    "Apple's AssertMacros.h": "check() verify() require()",
    "glibc's sys/sysmacros.h": "major() minor() makedev()",
}
# Not min and max: libstdc++ takes them away, but needs them gone before its first header.
BEHIND = [name for names in MACROS.values() for name in names.split() if name not in ("min()", "max()")]
DEFINES = "".join(f"#define {name.replace('()', '(...)')} @a macro of another header\n" for name in BEHIND)


def headers(base, nvcc):
    others = ("nvshmem/", "platform/host/", "explore/") if nvcc else ("nvshmem/", "platform/cuda/")
    found = sorted(path.relative_to(base).as_posix() for path in base.rglob("*.[hc][pu][ph]"))
    return [name for name in found if not name.startswith(others) and (nvcc or not name.endswith(".cuh"))]


def always_included(path):
    """The headers beside it that `path` includes whatever is defined."""
    depth = 0  # of open #ifs
    for directive, name in re.findall(r'^\s*#\s*(if|endif|include\s*"([^"]+)")', path.read_text(), re.MULTILINE):
        depth += {"if": 1, "endif": -1}.get(directive, 0)
        if name and depth == 0:
            yield (path.parent / name).resolve()


def below_each(base, names):
    """{header: the headers that it includes, or that those include}, of `names` alone."""
    of_path = {(base / name).resolve(): name for name in names}
    direct = {name: {of_path[other] for other in always_included(path) if other in of_path} for path, name in of_path.items()}

    def reached(name, found):
        for other in direct[name] - found:
            found.add(other)
            reached(other, found)
        return found

    return {name: reached(name, set()) - {name} for name in names}


def chains(below):
    """Few chains, lowest header first: each header behind the highest end of a chain that it includes."""
    made = []
    for name in sorted(below, key=lambda name: len(below[name])):
        fitting = [chain for chain in made if chain[-1] in below[name]]
        if not fitting:
            made.append([])
        max(fitting, key=lambda chain: len(below[chain[-1]]), default=made[-1]).append(name)
    return made


def names_of_macros(text):
    """{name in the code of `text` that is a macro of another header: that header}."""
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', " ", text, flags=re.S | re.M)
    patterns = {name: rf"\b{name.replace('()', '')}\b" + (r"\s*\(" if "()" in name else "") for names in MACROS.values() for name in names.split()}
    return {name: source for source, names in MACROS.items() for name in names.split() if re.search(patterns[name], code)}


def compile_in_order(base, lists, nvcc, precompiled=()):
    """Returns {list of headers: what the compiler said} of those lists that do not compile. Those of which all headers are in
    `precompiled` have MOST_INCLUDED before them."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        first = folder / "first.hpp"
        first.write_text(f'{DEFINES}#include "{base}/{MOST_INCLUDED}"\n')
        has_first = any(set(names) <= set(precompiled) for names in lists) and compilers.compile(
            [*compilers.GXX, *WARNINGS, "-x", "c++-header", "-o", f"{first}.gch", str(first)]
        )[0]
        commands = {}
        for number, names in enumerate(lists):
            source = folder / (f"{number}.cu" if nvcc else f"{number}.cpp")
            source.write_text(DEFINES + "".join(f'#include "{base}/{name}"\n' * 2 for name in names))
            if nvcc:
                # -ptx stops after the device code; its front end has seen the host code too.
                how = [*nvcc, "-arch=sm_90", "-Werror=all-warnings", "-ptx", "-o", "/dev/null"]
            else:
                how = [*compilers.GXX, *WARNINGS, "-Werror", "-fsyntax-only"]
                if has_first and set(names) <= set(precompiled):
                    how += ["-include", str(first)]
            commands[tuple(names)] = [*how, str(source)]
        results = compilers.compile_all(commands)
    return {names: said for names, (good, said, _) in results.items() if not good}


def warn_of_all(base, names, nvcc, programs):
    """Returns {source: what the compiler said} of all headers in one source, and of programs, where there are warnings."""
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / ("all.cu" if nvcc else "all.cpp")
        listed = ["warpheap.hpp"] * ("warpheap.hpp" in names) + [name for name in names if name not in IN_PLACE]
        source.write_text("".join(f'#include "{base}/{name}"\n' for name in listed))
        if nvcc:
            how = [*nvcc, "-x", "cu", "-arch=compute_90", "--Ofast-compile=max", *NVCC_WARNINGS, "-c", "-o"]
            commands = {"all under nvcc": [*how, f"{source}.o", str(source)]}
            commands |= {str(path): [*how, f"{directory}/{path.stem}.o", str(path)] for path in programs}
        else:
            how = ["-Werror", "-fsyntax-only"]
            commands = {str(path): [*compilers.GXX, *WARNINGS, *how, str(path)] for path in programs}
            clang = shutil.which("clang++")
            for name, path in [("all", source), *((path.name, path) for path in programs if path.name == EVERY_HEAP)]:
                if clang:
                    commands[f"{name} under clang++"] = [clang, *compilers.GXX[1:], *CLANG_WARNINGS, *how, str(path)]
        results = compilers.compile_all(commands)
        failed = {name: said for name, (good, said, _) in results.items() if not good}
        for object_file in pathlib.Path(directory).glob("*.o"):
            found = functions_for_the_device(object_file)
            if found:
                failed.setdefault(object_file.stem, f"host code calls what is for the device alone: {', '.join(found)}")
    return failed


def functions_for_the_device(object_file):
    """Functions for the device alone that host code in an object calls. Templates may, for nvcc, whose host's side of such a function
    ends the program by exit()."""
    text = subprocess.run(["objdump", "-drC", object_file], capture_output=True, text=True).stdout
    functions = re.findall(r"^[0-9a-f]+ <(.*)>:$((?:\n.+)*)", text, re.MULTILINE)
    return sorted({name for name, code in functions if re.search(r"\bR_\w+\s+exit\b", code)})


def faults_of(base, nvcc, programs=()):
    """Returns (headers compiled, {header: what the compiler said} of those that failed)."""
    names = headers(base, nvcc)
    below = below_each(base, names)
    precompiled = [] if nvcc else [name for name in names if MOST_INCLUDED in below[name]]
    lists = [[name] for name in names if name in IN_PLACE]
    for chain in chains({name: others for name, others in below.items() if name not in IN_PLACE}):
        apart = [name for name in chain if name not in precompiled]  # the lower part
        lists += [part for part in (apart, chain[len(apart):]) if part]
    broken = compile_in_order(base, lists, nvcc, precompiled)
    alone = compile_in_order(base, [[name] for chain in broken for name in chain], nvcc)
    failed = {chain[0]: said for chain, said in alone.items()}
    for chain, said in broken.items():
        if not failed.keys() & set(chain):  # they are at odds with each other
            failed[" and ".join(chain)] = said
    for name in names:
        for word, source in names_of_macros((base / name).read_text()).items():
            failed.setdefault(name, f"{word} is a macro of {source}")
    return names, failed or warn_of_all(base, names, nvcc, programs)


def failures_of(planted, nvcc):
    """What fails of headers given as {name: text}, sorted."""
    with compilers.folder_of(planted) as base:
        return sorted(faults_of(base, nvcc)[1])


def self_test(nvcc):
    """A header that lacks an include, beside good ones that have it: where it includes none of them, or perhaps, or another
    one. One without include guard, between two of its chain. Names that are macros. Good ones, a circle among them; then good
    ones beside one that has a warning."""
    vector = "#pragma once\n#include <vector>\ninline int f(std::vector<int> const& v) { return v[0]; }\n"
    planted = {
        "lacks.hpp": "#pragma once\nstd::vector<int> f();\n",
        "lacks_perhaps.hpp": '#pragma once\n#if 0\n#include "good.hpp"\n#endif\nstd::vector<int> g();\n',
        "lacks_above.hpp": '#pragma once\n#include "lowest.hpp"\nstd::vector<int> h();\n',
        "twice.hpp": '#include "lowest.hpp"\nstruct twice {};\n',
        "above_twice.hpp": '#pragma once\n#include "twice.hpp"\ninline twice t;\n',
        "lowest.hpp": "#pragma once\n",
        "good.hpp": vector,
        "good_above.hpp": '#pragma once\n#include "good.hpp"\nstd::vector<int> k();\n',
        MOST_INCLUDED: vector,
        "above_most.hpp": f'#pragma once\n#include "{MOST_INCLUDED}"\nstd::vector<int> m();\n',
        "lacks_most.hpp": f'#pragma once\n#if 0\n#include "{MOST_INCLUDED}"\n#endif\nstd::vector<int> n();\n',
        "above_most_lacks.hpp": f'#pragma once\n#include "{MOST_INCLUDED}"\nstd::map<int, int> o();\n',
        "macro.hpp": "#pragma once\ninline int far = 0;\n",
        "macro_with_parenthesis.hpp": "#pragma once\n#include <algorithm>\ninline int p(int a) { return std::min(a, 1); }\n",
        "good_names.hpp": "#pragma once\n#include <algorithm>\n// far\ninline int check = (std::min)(1, 2);\n",
        "round.hpp": '#pragma once\n#include "about.hpp"\n',
        "about.hpp": '#pragma once\n#include "round.hpp"\n',
    }
    shadows = "#pragma once\nstruct s { int a; s(int a) : a{a} {} };\n"
    expected = ["above_most_lacks.hpp", "lacks.hpp", "lacks_above.hpp", "lacks_most.hpp", "lacks_perhaps.hpp", "macro.hpp",
                "macro_with_parenthesis.hpp", "twice.hpp"]
    tried = [(planted, expected), ({"good.hpp": vector, "shadows.hpp": shadows}, ["all under nvcc" if nvcc else "shadows.hpp"])]
    if nvcc:
        calls = "#pragma once\ntemplate <class T> struct s { __device__ int f() { return 1; } };\n"
        calls += "template <class T> int g(T x) { return x.f(); }\ninline int (*const h)(s<int>) = g<s<int>>;\n"
        tried.append(({"good.hpp": vector, "calls.hpp": calls + "inline int k(s<int> x) { return h(x); }\nint l = k({});\n"}, ["all.cu"]))
    if not nvcc and shutil.which("clang++"):
        unused = "#pragma once\nclass s { int a = 0; };\n"  # clang++ alone warns of it
        tried.append(({"good.hpp": vector, "unused.hpp": unused}, ["all under clang++"]))
    failed = [(failures_of(texts, nvcc), wanted) for texts, wanted in tried]
    wrong = [f"{found} failed, and not {wanted}" for found, wanted in failed if found != wanted]
    print("\n".join(wrong) or f"caught {len(expected)} planted headers, and warnings")
    return 1 if wrong else 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("--nvcc", action="store_true", help="compile for the CUDA backend")
    options = parser.parse_args()
    nvcc = compilers.nvcc_or_skip("that each header compiles alone as CUDA") if options.nvcc else None
    if options.self_test:
        return self_test(nvcc)
    tests = compilers.ROOT / "tests"
    programs = [tests / "compile" / "bare_allocator.cpp", tests / "compile" / EVERY_HEAP]
    if not nvcc:
        programs += [tests / "heap" / "host" / "other_inspection_unit.cpp", *sorted((compilers.ROOT / "examples").glob("*.cpp"))]
    names, failed = faults_of(compilers.ROOT / "include" / "warpheap", nvcc, programs)
    for name, said in failed.items():
        print(f"{name}:\n{said}\n")
    print(f"{len(names)} headers, {len(failed)} that do not compile alone without a warning under {'nvcc' if nvcc else 'g++'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
