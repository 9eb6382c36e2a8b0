#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every public name of the Python package has a docstring; scripts/site.py makes the reference of them.

The source is read, not imported, so no other package is needed.
"""

import ast
import inspect
import textwrap

import compilers

PACKAGE = compilers.ROOT / "python" / "src" / "warpheap"
SUBMODULES = ("numba", "numba_cuda_mlir", "cupy", "torch")
HEAD = """# Python reference

From signatures and docstrings. [From Python](../docs/guide/python.md) is the guide.
"""


def parsed(package, name):
    """A module's stub, if it has one, or its source."""
    stub = package / f"{name}.pyi"
    return ast.parse((stub if stub.exists() else package / f"{name}.py").read_text())


def definitions(tree):
    """What a module defines at its top: name to node."""
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def imported(tree):
    """What a module has from others of the package: name to its module and its name there."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module)
    return {alias.asname or alias.name: (node.module, alias.name) for node in imports for alias in node.names}


def defined(package, module, name):
    """The node of what a module defines. A class has the members of bases that are from other modules of the package."""
    tree = parsed(package, module)
    node, origins = definitions(tree).get(name), imported(tree)
    if isinstance(node, ast.ClassDef):
        for base in [each for each in node.bases if ast.unparse(each) in origins]:
            node.bases.remove(base)
            node.body += defined(package, *origins[ast.unparse(base)]).body
    return node


def is_error(node):
    return isinstance(node, ast.ClassDef) and node.name.endswith("Error")


def exported(package, name):
    """The public things of a module, (name, node or None): what programs call, then the exceptions."""
    tree, found = parsed(package, name), []
    own, origins, listed = definitions(tree), imported(tree), None
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            listed = ast.literal_eval(node.value)
    for public in listed if listed is not None else [each for each in own if not each.startswith("_")]:
        found.append((public, defined(package, *origins.get(public, (name, public)))))
    return sorted(found, key=lambda each: is_error(each[1]))


def signature(node, drop=0):
    arguments = ast.unparse(node.args)
    if drop:
        arguments = arguments.partition(", ")[2]
    return f"({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def text(node):
    """A docstring as Markdown: lines with columns, and what is indented, stay as they are."""
    paragraphs = inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(
        f"```text\n{inspect.cleandoc(each)}\n```" if "   " in each.lstrip() or each.startswith(" ") else each for each in paragraphs
    )


def declared(name, declaration):
    """A heading and what is declared, both as Markdown."""
    lines = textwrap.fill(declaration, 88, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
    return f"{name}\n\n```python\n{lines}\n```"


def is_property(node):
    return any(getattr(decorator, "id", None) == "property" for decorator in node.decorator_list)


def members(node):
    for name, member in definitions(node).items():
        if not name.startswith("_") and ast.get_docstring(member):
            yield f"#### `{name}`" if is_property(member) else declared(f"#### `{name}`", f"{name}{signature(member, 1)}")
            yield text(member)


def described(module, name, node):
    full = f"{module}.{name}"
    if node is None:
        return
    if isinstance(node, ast.FunctionDef):
        yield declared(f"### `{full}`", f"{full}{signature(node)}")
        yield text(node)
        return
    made = definitions(node).get("__init__")
    yield declared(f"### `{full}`", f"class {full}{signature(made, 1)}") if made else f"### `{full}`"
    bases = [ast.unparse(base) for base in node.bases]
    if bases:
        yield f"Bases: {', '.join(f'`{base}`' for base in bases)}."
    yield text(node)
    yield from members(node)


def reference(package):
    """The page, and the names of what has no docstring."""
    parts, bare = [HEAD.strip()], []
    for module in ("__init__", *SUBMODULES):
        if not (package / f"{module}.py").exists():
            continue
        full = "warpheap" if module == "__init__" else f"warpheap.{module}"
        parts += [f"## `{full}`", text(parsed(package, module))]
        for name, node in exported(package, module):
            parts += described(full, name, node)
            inner = definitions(node) if isinstance(node, ast.ClassDef) else {}
            known = {name: node, **{f"{name}.{each}": inner[each] for each in inner if not each.startswith("_")}}
            bare += [f"{full}.{each}" for each, what in known.items() if what and not ast.get_docstring(what)]
    return "\n\n".join(part for part in parts if part) + "\n", bare


def faults(package):
    return [f"{name} has no docstring" for name in reference(package)[1]]


def negative_test():
    """A missing docstring."""
    source = 'from .base import Base\n\ndef f(x: int) -> int:\n    """Says."""\n\nclass Kind(Base, ValueError):\n    """Is."""\n    def g(self, y): "Does."\n'
    base = 'class Base:\n    def h(self): "Is inherited."\n'
    start = '"""Page."""\nfrom .part import f, Kind\n__all__ = ["f", "Kind"]\n'
    with compilers.folder_of({"__init__.py": start, "part.py": source, "base.py": base}) as package:
        content, wrong = reference(package)
        (package / "part.py").write_text(source.replace('"Does."', "pass"))
        planted = faults(package)
    expected = ("warpheap.f(x: int) -> int", "Bases: `ValueError`", "#### `g`", "g(y)", "Does.", "Is inherited.")
    wrong += [f"the page lacks {each}" for each in expected if each not in content]
    return wrong if len(planted) == 1 and "Kind.g" in planted[0] else [*wrong, f"of one missing docstring these were found: {planted}"]


def check():
    return faults(PACKAGE), "every public name of the Python package has a docstring"


if __name__ == "__main__":
    compilers.run(__doc__, check, negative_test)
