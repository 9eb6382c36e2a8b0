# SPDX-License-Identifier: Apache-2.0
"""What the checks share: their options, finding compilers, running them all at once, and saying clearly that CUDA is absent."""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ["75", "80", "90", "100", "120"]
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
GXX = [os.environ.get("CXX", "g++"), "-std=c++20", "-Wall", "-Wextra", f"-I{ROOT}/include"]


def arguments(page):
    """A parser of the options that every check takes; `page` describes the check."""
    parser = argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="inject faults, and fail unless each is caught")
    return parser


def find_nvcc():
    """The command line of nvcc, or None."""
    default = "/usr/local/cuda/bin/nvcc"
    nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or (default if os.access(default, os.X_OK) else None)
    return [nvcc, "-std=c++20", f"-I{ROOT}/include"] if nvcc else None


def nvcc_or_skip(what):
    """The command line of nvcc; without one, ends the check with a line that says what was skipped."""
    nvcc = find_nvcc()
    if not nvcc:
        print(f"SKIP: no nvcc, so {what} was not checked")
        sys.exit(SKIPPED)
    return nvcc


def compile(command):
    """Runs one compiler. Returns (succeeded, what it said, seconds)."""
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout.strip(), time.monotonic() - began


def compile_all(commands):
    """Runs a dictionary of compilers on all cores. Returns {name: (succeeded, what it said, seconds)}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return dict(zip(commands, workers.map(compile, commands.values())))


def judge_self_test(faults, planted):
    """The exit status of a self-test that must report `planted`, sorted; a fault begins `COMPILER NAME:`."""
    reported = sorted({fault.split(":")[0].split()[1] for fault in faults})
    if reported != planted:
        print(f"of {len(planted)} injected faults these were reported: {reported}\n" + "\n".join(faults))
        return 1
    print(f"caught {len(planted)} injected faults")
    return 0


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
NO_WAITING = ["--retries", "1", "--timeout", "15", "--only-binary=:all:"]


def fetch_wheels(packages, directory):
    """Unpacks packages from PyPI into `directory`; False if they cannot be had."""
    wheels = pathlib.Path(directory) / "wheels"
    try:
        done = subprocess.run(
            [*PIP, *NO_WAITING, "--dest", str(wheels), *packages],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode != 0:
        return False
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(directory)
    return True


def tracked(*patterns):
    """The files of the project that git has or would take, relative to its root; of some patterns, or all."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def sources():
    """Every C++ and CUDA source of the project, relative to its root."""
    folders = ["include", "tests", "tools", "examples", "bench"]
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found if path.suffix in (".hpp", ".cuh", ".cpp", ".cu"))
