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
    bounds = {"": [], f"_{MOST_REGISTERS}": [f"-maxrregcount={MOST_REGISTERS}", "-Xptxas", f"--entry={BOUNDED}"]}
    with tempfile.TemporaryDirectory() as directory:
        succeed({arch: [*nvcc, "-DNDEBUG", "-ptx", str(source), f"-arch=sm_{arch}", "-o", f"{directory}/{arch}.ptx"] for arch in architectures})
        assemble = [nvcc[0], "-Xptxas", "-v", "-cubin"]
        said = succeed({
            (arch, bound): [*assemble, *options, f"-arch=sm_{arch}", "-o", f"{directory}/{arch}.cubin{bound}", f"{directory}/{arch}.ptx"]
            for arch in architectures for bound, options in bounds.items()
        })
        found = {
            (kernel + bound, f"sm_{arch}"): figures
            for (arch, bound), text in said.items()
            for kernel, figures in read_kernels(text, cubins.Cubin(f"{directory}/{arch}.cubin{bound}")).items()
        }
    text = source.read_text()

    def place(row):  # by architecture, and there as the kernels stand in the source
        return architectures.index(row[1][3:]), re.search(rf"\b{row[0].removesuffix(f'_{MOST_REGISTERS}')}\b", text).start(), row[0]

    return {row: found[row] for row in sorted(found, key=place)}


def succeed(commands):
    """What each compiler said. Exits if one failed."""
    results = compilers.compile_all(commands)
    failed = [said for good, said, _ in results.values() if not good]
    if failed:
        sys.exit("does not compile:\n" + "\n".join(failed))
    return {name: said for name, (_, said, _) in results.items()}


def cuda_version(nvcc):
    return re.search(r"release (\d+\.\d+)", succeed({"": [nvcc[0], "--version"]})[""])[1]


# --- Limits, as a file and against what was measured ---


def limits_of(figures):
    """What new limits are: registers as they are, bytes with some room; what is zero stays so."""
    return {
        row: {name: value if name == "registers" else int(value * ROOM) for name, value in of_row.items()}
        for row, of_row in figures.items()
    }


def write_limits(limits, version):
    rows = [["kernel", "architecture", *FIGURES], *([*row, *map(str, of_row.values())] for row, of_row in limits.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))) for row in rows]
    return (
        "# The most that kernels of allocating_kernels.cu may take. scripts/check_registers.py --update writes this file:\n"
        f"# registers as measured, bytes with up to {ROOM - 1:.0%} of room.\nCUDA {version}\n" + "\n".join(lines) + "\n"
    )


def read_limits(text):
    """(limits, version of CUDA); ValueError if the file is not as write_limits() writes it."""
    (name, version), columns, *rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    limits = {(kernel, arch): dict(zip(FIGURES, map(int, values), strict=True)) for kernel, arch, *values in rows}
    if name != "CUDA" or columns != ["kernel", "architecture", *FIGURES] or len(limits) != len(rows):
        raise ValueError("the file of limits has other columns, or two rows of one kernel")
    return limits, version


def beyond(figures, limits, is_beyond):
    return [
        f"{kernel} on {arch}: {name} {value}, limit {limits[kernel, arch][name]}"
        for (kernel, arch), of_row in figures.items() if (kernel, arch) in limits
        for name, value in of_row.items() if is_beyond(value, limits[kernel, arch][name])
    ]


def above(figures, limits):
    """What is above its limit or has none, and limits of nothing, as lines."""
    architectures = {architecture for _, architecture in figures}
    faults = [f"{kernel} on {arch}: there is no such kernel" for kernel, arch in limits if (kernel, arch) not in figures and arch in architectures]
    faults += [f"{kernel} on {arch}: has no limits" for kernel, arch in figures if (kernel, arch) not in limits]
    return faults + beyond(figures, limits, lambda value, limit: value > limit)


def unfit(figures):
    """Whether malloc takes more than it may, whatever the limits say, as lines."""
    if BOUNDED_ARCHITECTURE not in {architecture for _, architecture in figures}:
        return []
    of_row = figures.get((WITH_BOUND, BOUNDED_ARCHITECTURE))
    if of_row and of_row["registers"] <= MOST_REGISTERS and of_row["stack"] == of_row["spills"] == 0:
        return []
    return [f"{BOUNDED} on {BOUNDED_ARCHITECTURE} does not fit into {MOST_REGISTERS} registers without stack and spills: {of_row}"]


def judge(figures, limits, same_version):
    """(faults, what else to say)"""
    faults, remarks = unfit(figures), []
    (faults if same_version else remarks).extend(above(figures, limits))
    lowerable = beyond(figures, limits, lambda value, limit: value < LOWERABLE * limit)
    return faults, remarks + [f"{line}: could be lowered" for line in lowerable]


# --- For the documentation ---


def table(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows]) + "\n"


def markdown(figures, version):
    architectures = list(dict.fromkeys(architecture for _, architecture in figures))
    kernels = list(dict.fromkeys(kernel for kernel, _ in figures))

    def registers(of_row):
        local = f", {of_row['stack']} B, {of_row['spills']:,} B" if of_row["stack"] or of_row["spills"] else ""
        return f"{of_row['registers']}{local}"

    return (
        f"Registers and, where there are any, bytes of stack and of spills (CUDA {version}):\n\n"
        + table(["kernel", *architectures], [[f"`{k}`", *(registers(figures[k, arch]) for arch in architectures)] for k in kernels])
        + "\nBytes of machine code, with all functions that the kernel calls, and of the kernel itself:\n\n"
        + table(["kernel", *(head for arch in architectures for head in (arch, "itself"))],
                [[f"`{k}`", *(f"{figures[k, arch][name]:,}" for arch in architectures for name in ("code", "inlined"))] for k in kernels])
    )  # fmt: skip


def instructions_table(document):
    """What a warp executes for a call, as count_instructions.py wrote it."""
    machine, sizes = document["machine"], document["instructions"]
    kinds = {"malloc": "`malloc`", "first_malloc": "the first of a heap", "free": "`free`"}
    return (
        f"\nInstructions that a warp executes for one call a thread ({machine['device']}, driver {machine['driver']}, "
        f"CUDA {machine['cuda']}, commit {machine['commit']}):\n\n"
        + table(["", *(f"{of_size['bytes']:,} B" for of_size in sizes)],
                [[name, *(f"{of_size[kind]:,}" for of_size in sizes)] for kind, name in kinds.items()])
    )  # fmt: skip


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


def is_read(text):
    try:
        return bool(read_limits(text))
    except ValueError:
        return False


def wrongly_judged(figures):
    """Limits that are sound, one below each figure, missing, and far above: what the judge says of them that is wrong."""
    sound = limits_of(figures)
    wrong = [] if judge(figures, sound, True) == ([], []) else ["sound limits are not kept"]
    if read_limits(write_limits(sound, "1.2")) != (sound, "1.2"):
        wrong.append("limits are not read as they are written")
    written = write_limits(sound, "1.2")
    row = written.splitlines()[-1]
    malformed = ["", written.replace("CUDA 1.2\n", ""), written.replace("  stack", "  stock"), written + row, *(written + text for text in ("gone", "gone sm_90 1 2 3 4", "gone sm_90 1 2 3 4 x"))]
    wrong += [f"limits are read from {text!r}" for text in malformed if is_read(text)]
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
        with compilers.folder_of({"planted.cu": text}) as folder:
            return measure(nvcc, folder / "planted.cu", ["90"])

    figures = measured(PLANTED + SOUND_MALLOC)
    wrong = wrongly_read(figures) + wrongly_judged(figures)
    spilled = measured(SPILLED_MALLOC)
    faults = judge(spilled, limits_of(spilled), False)[0]
    if len(faults) != 1 or "does not fit" not in faults[0]:
        wrong.append(f"a malloc that spills is no fault: {faults}")
    if len(judge({("other", BOUNDED_ARCHITECTURE): {}}, {}, False)[0]) != 1:
        wrong.append("no malloc is no fault")
    print("\n".join(wrong) or f"read and judged {len(figures)} planted kernels rightly")
    return 1 if wrong else 0


def main():
    parser = compilers.arguments(__doc__)
    parser.add_argument("architectures", nargs="*", metavar="architecture", help=f"of {', '.join(ARCHITECTURES)} (default: all)")
    parser.add_argument("--markdown", action="store_true", help="print the figures as tables, and judge nothing")
    parser.add_argument("--update", action="store_true", help=f"write {LIMITS.name} and the tables of {PAGE.name} anew")
    options = parser.parse_args()
    if set(options.architectures) - set(ARCHITECTURES) or (options.update and options.architectures):
        parser.error(f"there are limits for {', '.join(ARCHITECTURES)}, and --update takes all")
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
