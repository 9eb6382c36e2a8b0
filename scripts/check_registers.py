#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds kernels that call the default allocator to what they may take on a GPU: registers, stack, machine code.

The kernels are in tests/compile/allocating_kernels.cu, their limits in tests/compile/registers.limits, a row a kernel and
architecture. A figure above its limit is a fault; one more than a tenth below its limit is named. Figures of a kernel:

  registers  of a thread; ptxas gives a kernel all that the functions it calls need
  stack      bytes of local memory of a thread
  spills     bytes of stores and loads that ptxas added to save registers, in the kernel and what it calls
  code       bytes of machine code, with the functions that it calls, of which ptxas gives each kernel copies of its own
  inlined    bytes of the kernel itself, without those

What a warp executes cannot be had without a GPU: scripts/count_instructions.py counts it there. The page shows what it wrote,
and a page that shows something else is a fault.

One limit is fixed here and not in the file: malloc_only, compiled with -maxrregcount=48 for sm_90, has no stack and no
spills.

The file holds for one version of CUDA; ptxas of another may decide otherwise. With another version figures above the limits
are named, and only malloc_only can be a fault.
"""

import json
import pathlib
import re
import sys
import tempfile

import compilers
import cubins

ARCHITECTURES = ["80", "90", "120"]
SOURCE = compilers.ROOT / "tests" / "compile" / "allocating_kernels.cu"
LIMITS = compilers.ROOT / "tests" / "compile" / "registers.limits"
PAGE = compilers.ROOT / "docs" / "design" / "registers.md"
INSTRUCTIONS = compilers.ROOT / "bench" / "results" / "h100-instructions.json"
FIGURES = ["registers", "stack", "spills", "code", "inlined"]
# What malloc may cost a kernel: five thread blocks of 256 to a multiprocessor.
BOUNDED, MOST_REGISTERS, BOUNDED_ARCHITECTURE = "malloc_only", 48, "sm_90"
WITH_BOUND = f"{BOUNDED}_{MOST_REGISTERS}"  # the row of this kernel compiled with -maxrregcount=48
ROOM = 1.05  # bytes change with every edit of device code, so new limits leave some room
LOWERABLE = 0.9  # the share of its limit below which a figure is named


# --- What is measured: {(kernel, architecture): {figure: value}} ---


def read_kernel(said, cubin, kernel):
    """The figures of one kernel, from what `ptxas -v` said of it and of its callees, and from the machine code."""
    symbol, = (s for s in cubin.symbols if s["name"] == kernel and s["type"] == 2)
    inside = [s for s in cubin.symbols if s["section"] == symbol["section"] and s["type"] == 2 and s is not symbol]
    code = cubin.section_size(symbol["section"])
    return {
        "registers": int(re.search(r"Used (\d+) registers", said)[1]),
        "stack": max(int(found) for found in re.findall(r"(\d+) bytes (?:stack frame|cumulative stack size)", said)),
        "spills": sum(int(found) for found in re.findall(r"(\d+) bytes spill (?:stores|loads)", said)),
        "code": code,
        "inlined": code - sum(s["size"] for s in inside),
    }


def read_kernels(said, cubin):
    """{kernel: figures}; the library's own kernels, whose names are mangled, are left out."""
    parts = re.split(r"Compiling entry function '(\w+)'", said)
    of_kernels = {name: part for name, part in zip(parts[1::2], parts[2::2]) if not name.startswith("_Z")}
    return {name: read_kernel(part, cubin, name) for name, part in of_kernels.items()}


def measure(nvcc, source, architectures):
    """Compiles for all architectures at once, each once to PTX and from there without and with the bound. Exits where
    something does not compile, or has no kernel."""
    with tempfile.TemporaryDirectory() as directory:
        def output(arch, kind):
            return str(pathlib.Path(directory) / f"{arch}.{kind}")

        def assemble(arch, bound, options):
            to = output(arch, f"cubin{bound}")
            return [nvcc[0], f"-arch=sm_{arch}", "-Xptxas", "-v", *options, "-cubin", "-o", to, output(arch, "ptx")]

        front_end = [*nvcc, "-DNDEBUG", "-ptx", str(source)]
        succeed({arch: [*front_end, f"-arch=sm_{arch}", "-o", output(arch, "ptx")] for arch in architectures})
        bounds = {"": [], f"_{MOST_REGISTERS}": [f"-maxrregcount={MOST_REGISTERS}", "-Xptxas", f"--entry={BOUNDED}"]}
        said = succeed({
            (arch, bound): assemble(arch, bound, options) for arch in architectures for bound, options in bounds.items()
        })
        found = {
            (kernel + bound, f"sm_{arch}"): figures
            for (arch, bound), text in said.items()
            for kernel, figures in read_kernels(text, cubins.Cubin(output(arch, f"cubin{bound}"))).items()
        }
    return in_order(found, source.read_text(), [f"sm_{arch}" for arch in architectures])


def in_order(figures, source, architectures):
    """By architecture, and there as the kernels stand in the source."""
    def place(row):
        kernel, arch = row
        named = re.search(rf"\b{kernel.removesuffix(f'_{MOST_REGISTERS}')}\b", source)
        return architectures.index(arch), named.start(), kernel

    return {row: figures[row] for row in sorted(figures, key=place)}


def succeed(commands):
    """What each compiler said. Exits if one failed."""
    results = compilers.compile_all(commands)
    failed = [said for good, said, _ in results.values() if not good]
    if failed:
        sys.exit("does not compile:\n" + "\n".join(failed))
    return {name: said for name, (_, said, _) in results.items()}


def cuda_version(nvcc):
    good, said, _ = compilers.compile([nvcc[0], "--version"])
    found = re.search(r"release (\d+\.\d+)", said)
    if not good or not found:
        sys.exit(f"{nvcc[0]} does not say its version:\n{said}")
    return found[1]


# --- Limits, as a file and against what was measured ---


def limits_of(figures):
    """What new limits are: registers as they are, bytes with some room; what is zero stays so."""
    return {
        row: {name: value if name == "registers" else int(value * ROOM) for name, value in of_row.items()}
        for row, of_row in figures.items()
    }


def write_limits(limits, version):
    rows = [["kernel", "architecture", *FIGURES]]
    rows += [[*row, *(str(of_row[name]) for name in FIGURES)] for row, of_row in limits.items()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    names = [[cell.ljust(width) for cell, width in zip(row, widths)][:2] for row in rows]
    values = [[cell.rjust(width) for cell, width in zip(row, widths)][2:] for row in rows]
    lines = ["  ".join(name + value) + "\n" for name, value in zip(names, values)]
    return (
        "# The most that kernels of allocating_kernels.cu may take. scripts/check_registers.py --update writes this file:\n"
        f"# registers as measured, bytes with up to {ROOM - 1:.0%} of room.\nCUDA {version}\n" + "".join(lines)
    )


def read_limits(text):
    """(limits, version of CUDA)"""
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 2 or lines[0][:-1] != ["CUDA"] or lines[1] != ["kernel", "architecture", *FIGURES]:
        sys.exit("the file of limits does not begin with a version of CUDA and the names of the columns")
    limits = {}
    for line in lines[2:]:
        row, values = tuple(line[:2]), line[2:]
        if len(values) != len(FIGURES) or not all(map(str.isdigit, values)) or row in limits:
            sys.exit(f"the file of limits has a wrong or second row of {' on '.join(row)}")
        limits[row] = dict(zip(FIGURES, map(int, values)))
    return limits, lines[0][-1]


def above(figures, limits):
    """What is above its limit or has none, and limits of nothing, as lines."""
    architectures = {architecture for _, architecture in figures}
    gone = [row for row in limits if row not in figures and row[1] in architectures]
    faults = [f"{kernel} on {arch}: there is no such kernel" for kernel, arch in gone]
    faults += [f"{kernel} on {arch}: has no limits" for kernel, arch in figures if (kernel, arch) not in limits]
    faults += [
        f"{kernel} on {arch}: {name} {value}, limit {limits[kernel, arch][name]}"
        for (kernel, arch), of_row in figures.items() if (kernel, arch) in limits
        for name, value in of_row.items() if value > limits[kernel, arch][name]
    ]
    return faults


def lowerable(figures, limits):
    return [
        f"{kernel} on {arch}: {name} {value}, limit {limits[kernel, arch][name]}"
        for (kernel, arch), of_row in figures.items() if (kernel, arch) in limits
        for name, value in of_row.items() if value < LOWERABLE * limits[kernel, arch][name]
    ]


def unfit(figures):
    """Whether malloc takes more than it may, whatever the limits say, as lines."""
    architectures = {architecture for _, architecture in figures}
    if BOUNDED_ARCHITECTURE not in architectures:
        return []
    of_row = figures.get((WITH_BOUND, BOUNDED_ARCHITECTURE))
    if not of_row:
        return [f"there is no {BOUNDED} on {BOUNDED_ARCHITECTURE}"]
    fits = of_row["registers"] <= MOST_REGISTERS and of_row["stack"] == of_row["spills"] == 0
    return [] if fits else [
        f"{BOUNDED} on {BOUNDED_ARCHITECTURE} does not fit into {MOST_REGISTERS} registers: {of_row['registers']}, "
        f"{of_row['stack']} bytes of stack, {of_row['spills']} of spills"
    ]


def judge(figures, limits, same_version):
    """(faults, what else to say)"""
    faults, remarks = unfit(figures), []
    (faults if same_version else remarks).extend(above(figures, limits))
    return faults, remarks + [f"{line}: could be lowered" for line in lowerable(figures, limits)]


# --- For the documentation ---


def markdown(figures, version):
    architectures = list(dict.fromkeys(architecture for _, architecture in figures))
    kernels = list(dict.fromkeys(kernel for kernel, _ in figures))

    def table(heads, cells):
        rows = [["kernel", *(head for arch in architectures for head in heads(arch))]]
        rows.append(["---"] * len(rows[0]))
        for kernel in kernels:
            rows.append([f"`{kernel}`", *(cell for arch in architectures for cell in cells(figures[kernel, arch]))])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"

    def registers(of_row):
        local = f", {of_row['stack']} B, {of_row['spills']:,} B" if of_row["stack"] or of_row["spills"] else ""
        return [f"{of_row['registers']}{local}"]

    return (
        f"Registers and, where there are any, bytes of stack and of spills (CUDA {version}):\n\n"
        + table(lambda arch: [arch], registers)
        + "\nBytes of machine code, with all functions that the kernel calls, and of the kernel itself:\n\n"
        + table(lambda arch: [arch, "itself"], lambda of_row: [f"{of_row['code']:,}", f"{of_row['inlined']:,}"])
    )


def instructions_table(document):
    """What a warp executes for a call, as count_instructions.py wrote it."""
    machine = document["machine"]
    kinds = {"malloc": "`malloc`", "first_malloc": "the first of a heap", "free": "`free`"}
    rows = [[name, *(f"{of_size[kind]:,}" for of_size in document["instructions"])] for kind, name in kinds.items()]
    heads = ["", *(f"{of_size['bytes']:,} B" for of_size in document["instructions"])]
    return (
        f"\nInstructions that a warp executes for one call a thread ({machine['device']}, driver {machine['driver']}, "
        f"CUDA {machine['cuda']}, commit {machine['commit']}):\n\n"
        + "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]) + "\n"
    )


def put_into_page(page, tables):
    """The page with its tables replaced, which stand between two comments."""
    begin, end = "<!-- scripts/check_registers.py --update writes these tables -->\n\n", "\n<!-- until here -->\n"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(end) < page.index(begin):
        sys.exit(f"{PAGE} has no place for the tables")
    return page[: page.index(begin) + len(begin)] + tables + page[page.index(end) :]


# --- Planted kernels ---

MANY = """
  float x[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) x[i] = out[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) out[95 - i] = x[i];
"""
PLANTED = f"""
extern "C" __global__ void sound(float* out) {{ *out = 1; }}
extern "C" __global__ void many_registers(float* out) {{ {MANY} }}
extern "C" __global__ void __maxnreg__(32) spilled(float* out) {{ {MANY} }}
extern "C" __global__ void stack_frame(int* out, int n) {{
  int local[64];
  for (int i = 0; i < 64; ++i) local[i] = i;
  for (int i = 0; i < n; ++i) local[out[i] & 63] += i;
  out[0] = local[out[n] & 63];
}}
__device__ __noinline__ void callee(float* out) {{ {MANY} }}
extern "C" __global__ void calls(float* out) {{ callee(out); }}
"""
SPILLED_MALLOC = f'extern "C" __global__ void {BOUNDED}(float* out) {{ {MANY} }}\n'
SOUND_MALLOC = f'extern "C" __global__ void {BOUNDED}(float* out) {{ *out = 1; }}\n'


def wrongly_read(figures):
    """Figures that cannot be right of the planted kernels."""
    of = {kernel: of_row for (kernel, _), of_row in figures.items()}
    expected = {
        "sound": of["sound"]["registers"] < 20 and of["sound"]["stack"] == of["sound"]["spills"] == 0,
        "many_registers": of["many_registers"]["registers"] > 96 and of["many_registers"]["spills"] == 0,
        "spilled": of["spilled"]["registers"] <= 32 and of["spilled"]["spills"] > 4 * 64 and of["spilled"]["stack"] >= 4 * 64,
        "stack_frame": of["stack_frame"]["stack"] >= 256 and of["stack_frame"]["spills"] == 0,
        # 96 loads and 96 stores of 16 bytes of code each
        "calls": of["calls"]["code"] > of["calls"]["inlined"] + 192 * 16 and 0 < of["calls"]["inlined"] < 192 * 16,
        "one body": of["many_registers"]["code"] == of["many_registers"]["inlined"] > 192 * 16,
    }
    return [f"{kernel}: read wrongly: {of.get(kernel)}" for kernel, right in expected.items() if not right]


COLUMNS = "kernel architecture " + " ".join(FIGURES)
MALFORMED = [
    "",
    f"{COLUMNS}\nsound sm_90 1 2 3 4 5\n",
    "CUDA 1.2\nsound sm_90 1 2 3 4 5\n",
    f"CUDA 1.2\n{COLUMNS}\nsound sm_90 1 2 3 4\n",
    f"CUDA 1.2\n{COLUMNS}\nsound sm_90 1 2 3 4 x\n",
    f"CUDA 1.2\n{COLUMNS}\nsound sm_90\n",
    f"CUDA 1.2\n{COLUMNS}\nsound\n",
    f"CUDA 1.2\n{COLUMNS}\n" + 2 * "sound sm_90 1 2 3 4 5\n",
]


def is_read(text):
    try:
        read_limits(text)
    except SystemExit:
        return False
    return True


def wrongly_judged(figures):
    """Limits that are sound, one below each figure, missing, and far above: what the judge says of them that is wrong."""
    sound = limits_of(figures)
    wrong = [] if judge(figures, sound, True) == ([], []) else ["sound limits are not kept"]
    if read_limits(write_limits(sound, "1.2")) != (sound, "1.2"):
        wrong.append("limits are not read as they are written")
    wrong += [f"limits are read from {text!r}" for text in MALFORMED if is_read(text)]
    for (kernel, arch), of_row in figures.items():
        for name, value in of_row.items():
            lower, higher = (
                sound | {(kernel, arch): sound[kernel, arch] | {name: new}} for new in (value - 1, 2 * value + 1)
            )
            line = f"{kernel} on {arch}: {name} {value}, limit "
            if judge(figures, lower, True)[0] != [f"{line}{value - 1}"]:
                wrong.append(f"not a fault: {line}{value - 1}")
            if judge(figures, lower, False) != ([], [f"{line}{value - 1}"]):
                wrong.append(f"not named with another CUDA: {line}{value - 1}")
            if judge(figures, higher, True) != ([], [f"{line}{2 * value + 1}: could be lowered"]):
                wrong.append(f"not lowered: {line}{2 * value + 1}")
        without = {row: limit for row, limit in sound.items() if row != (kernel, arch)}
        if judge(figures, without, True)[0] != [f"{kernel} on {arch}: has no limits"]:
            wrong.append(f"not missed: limits of {kernel}")
    gone = sound | {("gone", BOUNDED_ARCHITECTURE): sound[WITH_BOUND, BOUNDED_ARCHITECTURE]}
    if judge(figures, gone, True)[0] != [f"gone on {BOUNDED_ARCHITECTURE}: there is no such kernel"]:
        wrong.append("not missed: a kernel that has limits")
    return wrong


def self_test(nvcc):
    def measured(text):
        with tempfile.TemporaryDirectory() as directory:
            source = pathlib.Path(directory) / "planted.cu"
            source.write_text(text)
            return measure(nvcc, source, ["90"])

    figures = measured(PLANTED + SOUND_MALLOC)
    wrong = wrongly_read(figures) + wrongly_judged(figures)
    spilled = measured(SPILLED_MALLOC)
    faults = judge(spilled, limits_of(spilled), False)[0]
    if len(faults) != 1 or "does not fit" not in faults[0]:
        wrong.append(f"a malloc that spills is no fault: {faults}")
    if judge({("other", BOUNDED_ARCHITECTURE): {}}, {}, False)[0] != [f"there is no {BOUNDED} on {BOUNDED_ARCHITECTURE}"]:
        wrong.append("no malloc is no fault")
    print("\n".join(wrong) or f"read and judged {len(figures)} planted kernels rightly")
    return 1 if wrong else 0


def main():
    parser = compilers.arguments(__doc__)
    known = f"of {', '.join(ARCHITECTURES)} (default: all)"
    parser.add_argument("architectures", nargs="*", metavar="architecture", help=known)
    parser.add_argument("--markdown", action="store_true", help="print the figures as tables, and judge nothing")
    parser.add_argument("--update", action="store_true", help=f"write {LIMITS.name} and the tables of {PAGE.name} anew")
    options = parser.parse_args()
    unknown = set(options.architectures) - set(ARCHITECTURES)
    if unknown:
        parser.error(f"no limits for sm_{', sm_'.join(sorted(unknown))}, only for sm_{', sm_'.join(ARCHITECTURES)}")
    if options.update and options.architectures:
        parser.error("--update takes all architectures")
    nvcc = compilers.nvcc_or_skip("what kernels take of a GPU")
    if options.self_test:
        return self_test(nvcc)
    figures, version = measure(nvcc, SOURCE, options.architectures or ARCHITECTURES), cuda_version(nvcc)
    executed = instructions_table(json.loads(INSTRUCTIONS.read_text()))
    if options.markdown:
        print(markdown(figures, version) + executed, end="")
        return 0
    if options.update:
        PAGE.write_text(put_into_page(PAGE.read_text(), markdown(figures, version) + executed))
        LIMITS.write_text(write_limits(limits_of(figures), version))
    limits, of_version = read_limits(LIMITS.read_text())
    if version != of_version:
        print(f"the limits are of CUDA {of_version}, this is {version}: what is above them is no fault")
    faults, remarks = judge(figures, limits, version == of_version)
    if executed not in PAGE.read_text():
        faults.append(f"{PAGE.name} does not show what {INSTRUCTIONS.name} says a warp executes: --update")
    lines = [*remarks, *(f"FAULT {fault}" for fault in faults)]
    print("\n".join(lines) or f"{len(figures)} kernels are within their limits")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
