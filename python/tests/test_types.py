# SPDX-License-Identifier: Apache-2.0
"""The user's program that check_python.py gives to mypy has every public name."""

import ast
import pathlib

import pytest

import warpheap

PROGRAM = pathlib.Path(__file__).parent / "typed_program.py"
PACKAGE = pathlib.Path(warpheap.__file__).parent


def names(path):
    """All names and attributes that a source has."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node.id if isinstance(node, ast.Name) else node.attr


def public_members(kind):
    return {name for each in kind.__mro__[:-1] for name in vars(each) if not name.startswith("_")}


def test_the_program_uses_every_public_name():
    used = set(names(PROGRAM))
    assert set(warpheap.__all__) <= used
    assert public_members(warpheap.Heap) <= used
    assert "nosuch" not in used


@pytest.mark.parametrize("module", ["numba", "numba_cuda_mlir"])
def test_a_stub_has_what_its_module_has(module):
    def listed(path):
        tree = ast.parse(path.read_text())
        made = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
        return ast.literal_eval(next(made))

    source, stub = PACKAGE / f"{module}.py", PACKAGE / f"{module}.pyi"
    assert listed(source) == listed(stub) == ["HeapType", "array", "prepare_args", "replace_malloc"]
