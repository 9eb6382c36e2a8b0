# SPDX-License-Identifier: Apache-2.0
"""Says in one sentence which package is missing or does not fit, and how to install it."""

import contextlib
import importlib.metadata
from collections.abc import Iterator


@contextlib.contextmanager
def needed(module: str, package: str, remedy: str, *distributions: str) -> Iterator[None]:
    """For imports of `package` by `module`, which installing `remedy` mends. `distributions` may be there in a wrong version."""
    try:
        yield
    except (ImportError, AttributeError) as problem:  # NumPy's modules, too, lack what an old package looks for
        found = ", ".join(f"{name} {version}" for name in (*distributions, "numpy") if (version := _version_of(name)))
        clone = f", or './python{remedy.removeprefix('warpheap')}' in a clone," if remedy.startswith("warpheap[") else ""
        sentence = f"{module} needs {package}, which `pip install '{remedy}'`{clone} brings: {problem}; found: {found or 'none of it'}"
        kind = ModuleNotFoundError if isinstance(problem, ModuleNotFoundError) else ImportError
        raise kind(sentence, name=getattr(problem, "name", None)) from problem


def _version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
