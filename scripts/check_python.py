#!/usr/bin/env python3
"""Builds the Python package, installs it into a fresh virtual environment, and runs its tests there. They need no GPU."""

import pathlib
import subprocess
import sys
import tempfile

import compilers

PACKAGE = compilers.ROOT / "python"
NEEDED = ["cuda-bindings==13.*", "nvidia-cuda-nvrtc==13.*", "numpy", "pytest"]
NUMBA = "numba-cuda[cu13]==0.30.*"
PLANTED = "def test_planted():\n    import warpheap\n\n    assert not warpheap.allocators\n"


def run(*command):
    return subprocess.run([str(word) for word in command], cwd=tempfile.gettempdir(), capture_output=True, text=True)


def main():
    options = compilers.arguments(__doc__).parse_args()
    needed = NEEDED if options.self_test else [*NEEDED, NUMBA]
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        python = home / "venv" / "bin" / "python"
        made = run(sys.executable, "-m", "venv", home / "venv")
        fetched = made if made.returncode else run(python, "-m", "pip", "install", "-q", *needed, "hatchling")
        if fetched.returncode:
            print(f"SKIP: pip cannot fetch {', '.join(needed)}, so the Python package was not tried")
            return compilers.SKIPPED
        installed = run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", PACKAGE)
        if installed.returncode:
            print(f"the package cannot be installed:\n{installed.stderr}")
            return 1
        tests = PACKAGE / "tests"
        if options.self_test:
            tests = home / "test_planted.py"
            tests.write_text(PLANTED)
        tested = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
        print(tested.stdout[-4000:])
        if options.self_test:
            return 0 if "1 failed" in tested.stdout else 1
        return tested.returncode


if __name__ == "__main__":
    sys.exit(main())
