# SPDX-License-Identifier: Apache-2.0
"""What the checks share: their options, finding compilers, running them all at once, and saying clearly that CUDA is absent."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
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


def run(page, check, negative_test):
    """A check as a program. `check` gives faults and the line that says that there are none; `negative_test` gives what the
    check judges wrongly of planted faults. Ends with status 1 if there is anything."""
    if arguments(page).parse_args().self_test:
        faults, none = negative_test(), "judged all planted faults rightly"
    else:
        faults, none = check()
    print("\n".join(faults) or none)
    sys.exit(1 if faults else 0)


@contextlib.contextmanager
def folder_of(texts):
    """A temporary folder with these files, given as {name: text}."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in texts.items():
            path = pathlib.Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield pathlib.Path(directory)


def families(build):
    """{file that CMake has made: the sources that it includes} where a build compiles sources together."""
    entries = json.loads((build / "compile_commands.json").read_text())
    files = [entry["file"] for entry in entries if "/Unity/unity_" in entry["file"]]
    return {file: re.findall(r'^#include "(.*)"', pathlib.Path(file).read_text(), re.MULTILINE) for file in files}


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


def wrongly_judged(faults, planted):
    """What is wrong where a check must report `planted`, sorted, and says these faults; each begins `COMPILER NAME:`."""
    reported = sorted({fault.split(":")[0].split()[1] for fault in faults})
    return [] if reported == planted else [f"reported {reported} of {planted}", *faults]


class Failed(Exception):
    """A command that should not have failed; says what it said."""


def succeed(*command, **variables):
    """What a command says, which has these variables of its environment."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        raise Failed(f"{' '.join(words[:4])} …\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout + done.stderr


def install_archive(work, architectures=ARCHITECTURES):
    """Builds the device archive below a new folder. Returns the one with its include/ and lib/."""
    build, prefix = work / "build", work / "prefix"
    names = f"-DWARPHEAP_ARCHIVE_ARCHITECTURES={';'.join(architectures)}"
    succeed("cmake", "-S", ROOT / "archive", "-B", build, "-G", "Ninja", names, "-DCMAKE_INSTALL_LIBDIR=lib", CUDACXX=find_nvcc()[0])
    succeed("cmake", "--build", build, "--target", "archive")
    succeed("cmake", "--install", build, "--prefix", prefix, "--component", "Archive")
    shutil.rmtree(build)
    return prefix


def venv_or_skip(home, *packages):
    """The interpreter of a new virtual environment with packages from PyPI; where they cannot be had, ends the check."""
    succeed(sys.executable, "-m", "venv", home / "venv")
    python = home / "venv" / "bin" / "python"
    try:
        succeed(python, "-m", "pip", "install", "-q", "--no-compile", *packages)
    except Failed:
        print(f"SKIP: pip cannot fetch {', '.join(packages)}")
        sys.exit(SKIPPED)
    return python


def fetch_or_skip(packages, directory):
    """Unpacks packages from PyPI into `directory`; where they cannot be had, ends the check."""
    wheels = pathlib.Path(directory) / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    try:
        succeed("timeout", 120, *pip, "--retries", 1, "--timeout", 15, "--dest", wheels, *packages)
    except Failed:
        print(f"SKIP: pip cannot fetch {' and '.join(packages)}")
        sys.exit(SKIPPED)
    for wheel in wheels.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(directory)


def tracked(*patterns):
    """The files of the project that git has or would take, relative to its root; of some patterns, or all."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def sources():
    """Every C, C++ and CUDA source of the project, relative to its root."""
    found = tracked("*.hpp", "*.cuh", "*.cpp", "*.cu", "*.h", "*.c")
    return sorted(name for name in found if not name.startswith("packaging/"))
