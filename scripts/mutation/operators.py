# SPDX-License-Identifier: Apache-2.0
"""The faults that the tool injects. Each operator gives the edits of a source that inject its fault."""

import dataclasses
import re

ONE = re.compile(r"1[uUlL]*")
UPDATES = {f"fetch_{what}" for what in ("add", "sub", "or", "and", "xor", "min", "max")} | {"exchange", "compare_exchange"}
FENCES, BARRIERS = {"full_fence", "release_fence"}, {"sync_warp", "sync_block"}


@dataclasses.dataclass(frozen=True)
class Edit:
    """`text` in place of what stands at [start, end)."""

    start: int
    end: int
    text: str


def replace(source, first, last, text):
    return Edit(source.tokens[first].start, source.tokens[last].end, text)


def weaken_order(source):
    """A memory order becomes the next weaker one, or each of two."""
    weaker = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"], "fenced": ["relaxed"], "seq_cst": ["acq_rel"]}
    for at in source.code:
        if source.word(at - 2) == "order" and source.word(at - 1) == "::":
            for order in weaker.get(source.word(at), []):
                yield replace(source, at, at, order)


def drop_calls(of_names):
    """Statements go that are calls of functions of which `of_names` is true."""

    def edits(source):
        for first, end in source.calls():
            if of_names(source.word(source.partner[end - 1] - 1)):  # what the statement calls last
                yield replace(source, first, end, ";")

    return edits


def split_update(source):
    """A read-modify-write becomes a load and a store of the value that it would have stored (split.hpp)."""
    for at in source.code:
        if source.word(at) in UPDATES and source.word(at - 1) == "." and source.word(at + 1) == "(":
            first, last = source.start_of_operand(at - 2), source.partner[at + 1]
            object_text = source.text[source.tokens[first].start : source.tokens[at - 2].end]
            arguments = source.text[source.tokens[at + 1].end : source.tokens[last].end]
            yield replace(source, first, last, f"split_{source.word(at)}({object_text}, {arguments}")


def off_by_one(source):
    """`+ 1` and `- 1` go, < and <= change places, so do > and >=, == and !=."""
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
    for at in source.code:
        text = source.word(at)
        if not source.tokens[at].spaced:
            continue
        if text in other:
            yield replace(source, at, at, other[text])
        if text in ("+", "-") and ONE.fullmatch(source.word(at + 1)) and source.word(at + 2) not in ("*", "/", "%"):
            yield Edit(source.tokens[at - 1].end, source.tokens[at + 1].end, "")


def while_to_if(source):
    """A loop with a condition runs once at most. Loops with a break or continue stay: an if has none."""
    for keyword, first, last in source.conditions():
        if source.word(keyword) == "if" or ends_do(source, keyword):
            continue
        begin, end = source.body_of(keyword)
        if any(source.word(at) in ("break", "continue") for at in range(begin, end)):
            continue
        if source.word(keyword) == "while":
            yield replace(source, keyword, keyword, "if")
        else:  # for (a; b; c) becomes if (a; b)
            head = source.text[source.tokens[keyword + 1].start : source.tokens[last].end]
            yield replace(source, keyword, source.partner[keyword + 1], f"if {head})")


def ends_do(source, keyword):
    """Whether a while ends a do loop."""
    return source.word(keyword) == "while" and source.word(source.partner[keyword + 1] + 1) == ";" and source.word(keyword - 1) == "}"


def negate_condition(source):
    """A condition of an if or a loop becomes its opposite. A lone == or != is left to off-by-one."""
    for _, first, last in source.conditions():
        inside = {source.word(at) for at in range(first, last + 1) if source.around[at] == source.around[first]}
        lone = not inside & {"||", "&&"}
        if lone and inside & {"==", "!="}:
            continue
        if source.word(first) == "!" and lone:
            yield replace(source, first, first, "")
        else:
            text = source.text[source.tokens[first].start : source.tokens[last].end]
            yield replace(source, first, last, f"!({text})")


def drop_operands(signs):
    """Each operand of a chain of these operators goes, once."""

    def edits(source):
        for at in source.code:
            if source.word(at) in signs and source.is_binary(at):
                first = source.operand_before(at)
                if source.word(first - 1) != source.word(at):  # else the operator before this one drops it
                    yield Edit(source.tokens[first].start, source.tokens[at + 1].start, "")
                yield Edit(source.tokens[at - 1].end, source.tokens[source.operand_after(at)].end, "")

    return edits


OPERATORS = {
    "weaken-order": weaken_order,
    "drop-fence": drop_calls(FENCES.__contains__),
    "drop-barrier": drop_calls(BARRIERS.__contains__),
    "drop-call": drop_calls(lambda name: name not in FENCES | BARRIERS),  # a give-back, a raise, a second look
    "split-update": split_update,
    "off-by-one": off_by_one,
    "while-to-if": while_to_if,
    "negate-condition": negate_condition,
    "drop-operand": drop_operands({"&&", "||"}),
    "drop-mask": drop_operands({"&", "|"}),
}
