# SPDX-License-Identifier: Apache-2.0
"""The public names of the headers, from Doxygen's XML: where they are, whether they have a docstring, and a place on the site."""

import dataclasses
import re
import xml.etree.ElementTree
import zlib

# Namespaces whose names no program uses, and specialisations of templates.
INNER = re.compile(r"(^|::)(detail|std|\w+_parts)(::|$)|<")
# What launch() and its kin are made of: programs use them by the names that platform/simt.hpp gives.
BACKEND = "platform/cuda/"
COMPOUNDS = {"class", "struct", "concept"}


@dataclasses.dataclass(frozen=True)
class Name:
    name: str
    kind: str  # class, struct, concept, function, typedef, variable, enum
    header: str
    text: str  # its docstring, with what is code in backticks
    parameters: str = ""  # types of a function's


def text_of(node):
    return "" if node is None else re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def docstring_of(node):
    parts = [node.find(kind) for kind in ("briefdescription", "detaileddescription")]
    for code in [each for part in parts if part is not None for each in part.iter("computeroutput")]:
        words, tail = text_of(code), code.tail
        code.clear()
        code.text, code.tail = f"`{words}`", tail
    return " ".join(filter(None, map(text_of, parts)))


def header_of(node):
    return node.find("location").get("file").removeprefix("include/warpheap/")


def is_usual(member):
    """Whether it copies, moves, assigns or destroys: what these do goes without saying."""
    own_name, last = member.name.split("::")[-2:]
    copies = last == own_name and re.fullmatch(rf"{own_name} ?(const ?)?&&?", member.parameters)
    return bool(copies) or last == "operator=" or last.startswith("~")


def member_name(scope, node):
    types = [text_of(parameter.find("type")) for parameter in node.findall("param")]
    return Name(f"{scope}::{node.find('name').text}", node.get("kind"), header_of(node), docstring_of(node), ", ".join(types))


def public_names(folder):
    """(what stands in namespaces, what stands in classes), each in the order of the headers."""
    outer, members = [], []
    for entry in xml.etree.ElementTree.parse(folder / "index.xml").getroot():
        kind, name = entry.get("kind"), entry.find("name").text
        if kind not in COMPOUNDS | {"namespace"} or INNER.search(name):
            continue
        (node,) = xml.etree.ElementTree.parse(folder / f"{entry.get('refid')}.xml").getroot()
        if kind in COMPOUNDS and node.get("prot", "public") == "public":
            outer.append(Name(name, kind, header_of(node), docstring_of(node)))
        public = [each for each in node.iter("memberdef") if each.get("prot") == "public" and each.get("kind") != "friend"]
        found = [member_name(name, each) for each in public]
        (outer if kind == "namespace" else members).extend(each for each in found if "@" not in each.name and not is_usual(each))
    compounds = {each.name for each in outer if each.kind in COMPOUNDS}
    inside = {each.name for each in outer if each.name.rpartition("::")[0] in compounds}
    guides = {(each.name, "function") for each in outer if each.name in compounds}  # for the deduction of a class's arguments
    return [each for each in outer if each.name not in inside and (each.name, each.kind) not in guides], members


def placed_names(inventory):
    """The C++ names that have a place on the site, from Sphinx's inventory."""
    content = inventory.read_bytes().split(b"\n", 4)[4]
    return {line.split(" cpp:")[0] for line in zlib.decompress(content).decode().splitlines() if " cpp:" in line}


def class_of(member):
    return member.name.rpartition("::")[0]


def faults(outer, members, placed):
    found = [f"{each.name} ({each.header}) is on no page" for each in outer if each.name not in placed and BACKEND not in each.header]
    open_classes = {class_of(each) for each in members if each.name in placed}  # pages show those members that have a docstring
    bare = [each for each in outer if each.name in placed and not each.text]
    bare += [each for each in members if class_of(each) in open_classes and not each.text]
    return found + [f"{each.name} ({each.header}) has no docstring" for each in bare]
