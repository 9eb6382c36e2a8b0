# SPDX-License-Identifier: Apache-2.0
"""The example programs, run as programs."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "adjacency_lists.py"

pytest.importorskip("numpy")


def run(*words, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, EXAMPLE, *words], capture_output=True, text=True, env=environment)


def test_the_example_says_what_it_takes():
    done = run("--help")
    assert done.returncode == 0 and "--scale" in done.stdout
    done = run("--scale", "99")
    assert done.returncode == 2 and "99" in done.stderr


def test_without_a_gpu_the_example_says_so():
    done = run("--scale", "4", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1 and "adjacency_lists: " in done.stderr and "Traceback" not in done.stderr
    assert "driver" in done.stderr or "GPU" in done.stderr


@pytest.mark.gpu
def test_the_example_builds_and_plots_a_small_graph(tmp_path):
    pytest.importorskip("numba.cuda.extending")
    pytest.importorskip("matplotlib")
    plot = tmp_path / "degrees.png"
    done = run("--scale", "12", "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    assert "65536 edges" in done.stdout and plot.read_bytes().startswith(b"\x89PNG")
