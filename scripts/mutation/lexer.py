# SPDX-License-Identifier: Apache-2.0
"""The tokens of a C++ source, each with its place. Comments and preprocessor lines are left out.

So is what stands under an #if about CUDA's compilers: one branch is for the host alone, the other is not compiled by g++.
"""

import dataclasses
import re

TOKEN = re.compile(
    r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[\w.]|'(?=\w)|(?<=[eEpP])[+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)")
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # text, number, word or sign
    text: str
    start: int
    end: int
    spaced: bool  # white space on both sides: the formatter gives it to binary operators, and to no bracket of a template


def tokens_of(text):
    """The tokens of a source, in order."""
    found, at = [], 0
    conditions = []  # of the #ifs that are open: whether one is about CUDA
    while at < len(text):
        at_line_start = not text[text.rfind("\n", 0, at) + 1 : at].strip()
        directive = DIRECTIVE.match(text, at) if at_line_start else None
        if directive:
            name, rest = directive.groups()
            if name in ("if", "ifdef", "ifndef"):
                conditions.append("__CUDA" in rest)
            elif name == "endif" and conditions:
                conditions.pop()
            at = directive.end()
            continue
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no token at offset {at}: {text[at:at + 20]!r}")
        if match.lastgroup != "space" and not any(conditions):
            spaced = text[at - 1 : at].isspace() and text[match.end() : match.end() + 1].isspace()
            found.append(Token(match.lastgroup, match[0], at, match.end(), spaced))
        at = match.end()
    return found


def pair_brackets(tokens):
    """({index of a bracket: index of its partner}, [index of the innermost open bracket around each token, or None])."""
    partner, around, open_ones = {}, [], []
    for index, token in enumerate(tokens):
        if token.text in CLOSING:
            if not open_ones or OPENING[tokens[open_ones[-1]].text] != token.text:
                raise ValueError(f"a bracket without its partner at offset {token.start}")
            partner[index] = open_ones[-1]
            partner[open_ones.pop()] = index
        around.append(open_ones[-1] if open_ones else None)
        if token.text in OPENING:
            open_ones.append(index)
    if open_ones:
        raise ValueError(f"a bracket without its partner at offset {tokens[open_ones[-1]].start}")
    return partner, around
