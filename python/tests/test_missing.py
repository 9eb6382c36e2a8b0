# SPDX-License-Identifier: Apache-2.0
"""What imports say where another package is missing, or has another version than is needed."""

import os
import subprocess
import sys

import pytest

from warpheap.missing import needed


@pytest.mark.parametrize(
    ("missing", "use", "sentence"),
    [
        ("numba", "import warpheap.numba", "warpheap.numba needs numba-cuda 0.30 or newer, which `pip install 'warpheap[numba]'`, or './python[numba]' in"),
        ("llvmlite", "import warpheap.numba", "warpheap.numba needs numba-cuda"),
        ("numba_cuda_mlir", "import warpheap.numba_cuda_mlir", "which `pip install 'numba_cuda_mlir'` brings"),
        ("torch", "import warpheap.torch; warpheap.torch.load_inline('a', '', '')", "'./python[torch]' in a clone, brings"),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(missing, use, sentence):
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.modules[{missing!r}] = None; {use}"], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ModuleNotFoundError: ") and sentence in last, done.stderr


def test_a_package_of_another_version_is_named_with_it():
    for problem in (ImportError("cannot import name 'a'"), AttributeError("module 'b' has no attribute 'c'")):
        with pytest.raises(ImportError, match=f"^d needs e 2 or newer, which .* brings: {problem}; found: pytest {pytest.__version__}"):
            with needed("d", "e 2 or newer", "e", "pytest", "no-such-distribution"):
                raise problem


def test_a_package_without_a_simulator_gets_no_heaps_of_the_host():
    command = [sys.executable, "-c", "import warpheap.numba_cuda_mlir"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"})
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: warpheap.numba_cuda_mlir: NUMBA_ENABLE_CUDASIM is set") and "no simulator" in last


def test_other_errors_are_not_replaced():
    with pytest.raises(ValueError, match="^f$"):
        with needed("d", "e", "e"):
            raise ValueError("f")
