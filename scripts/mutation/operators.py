# SPDX-License-Identifier: Apache-2.0
"""The faults that the tool injects. Each operator finds the places of a source where its fault can be injected."""

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


class WeakenOrder:
    """A memory order becomes the next weaker one, or each of two."""

    name = "weaken-order"
    weaker = {
        "acquire": ["relaxed"],
        "release": ["relaxed"],
        "acq_rel": ["acquire", "release"],
        "fenced": ["relaxed"],
        "seq_cst": ["acq_rel"],
    }

    def edits(self, source):
        for at in source.code:
            if source.word(at - 2) == "order" and source.word(at - 1) == "::":
                for order in self.weaker.get(source.word(at), []):
                    yield replace(source, at, at, order)


class DropFence:
    """full_fence() and release_fence() go."""

    name = "drop-fence"

    def edits(self, source):
        for first, end in source.calls():
            if called(source, end) in FENCES:
                yield replace(source, first, end, ";")


class DropBarrier:
    """sync_warp() and sync_block() go."""

    name = "drop-barrier"

    def edits(self, source):
        for first, end in source.calls():
            if called(source, end) in BARRIERS:
                yield replace(source, first, end, ";")


class DropCall:
    """Any other statement that is a call goes: a give-back, a raise, a second look."""

    name = "drop-call"

    def edits(self, source):
        for first, end in source.calls():
            if called(source, end) not in FENCES | BARRIERS:
                yield replace(source, first, end, ";")


class SplitUpdate:
    """A read-modify-write becomes a load and a store of the value that it would have stored (split.hpp)."""

    name = "split-update"

    def edits(self, source):
        for at in source.code:
            if source.word(at) in UPDATES and source.word(at - 1) == "." and source.word(at + 1) == "(":
                first, last = source.start_of_operand(at - 2), source.partner[at + 1]
                object_text = source.text[source.tokens[first].start : source.tokens[at - 2].end]
                arguments = source.text[source.tokens[at + 1].end : source.tokens[last].end]
                yield replace(source, first, last, f"split_{source.word(at)}({object_text}, {arguments}")


class OffByOne:
    """`+ 1` and `- 1` go, < and <= change places, so do > and >=, == and !=."""

    name = "off-by-one"
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

    def edits(self, source):
        for at in source.code:
            text = source.word(at)
            if not source.tokens[at].spaced:
                continue
            if text in self.other:
                yield replace(source, at, at, self.other[text])
            if text in ("+", "-") and ONE.fullmatch(source.word(at + 1)) and source.word(at + 2) not in ("*", "/", "%"):
                yield Edit(source.tokens[at - 1].end, source.tokens[at + 1].end, "")


class WhileToIf:
    """A loop with a condition runs once at most. Loops with a break or continue stay: an if has none."""

    name = "while-to-if"

    def edits(self, source):
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


class NegateCondition:
    """A condition of an if or a loop becomes its opposite. A lone == or != is left to off-by-one."""

    name = "negate-condition"

    def edits(self, source):
        for _, first, last in source.conditions():
            inside = [source.word(at) for at in range(first, last + 1) if source.around[at] == source.around[first]]
            lone = "||" not in inside and "&&" not in inside and ("==" in inside or "!=" in inside)
            if lone:
                continue
            if source.word(first) == "!" and "||" not in inside and "&&" not in inside:
                yield replace(source, first, first, "")
            else:
                text = source.text[source.tokens[first].start : source.tokens[last].end]
                yield replace(source, first, last, f"!({text})")


def drop_operands(source, signs):
    """Each operand of a chain of these operators goes, once."""
    for at in source.code:
        if source.word(at) in signs and source.is_binary(at):
            first = source.operand_before(at)
            if source.word(first - 1) != source.word(at):  # else the operator before this one drops it
                yield Edit(source.tokens[first].start, source.tokens[at + 1].start, "")
            yield Edit(source.tokens[at - 1].end, source.tokens[source.operand_after(at)].end, "")


class DropOperand:
    """One operand of && or || goes."""

    name = "drop-operand"

    def edits(self, source):
        yield from drop_operands(source, {"&&", "||"})


class DropMask:
    """One operand of & or | goes."""

    name = "drop-mask"

    def edits(self, source):
        yield from drop_operands(source, {"&", "|"})


def called(source, semicolon):
    """The name of the function that a call statement calls last."""
    return source.word(source.partner[semicolon - 1] - 1)


def ends_do(source, keyword):
    """Whether a while ends a do loop."""
    return source.word(keyword) == "while" and source.word(source.partner[keyword + 1] + 1) == ";" and source.word(keyword - 1) == "}"


OPERATORS = [WeakenOrder(), DropFence(), DropBarrier(), DropCall(), SplitUpdate(), OffByOne(), WhileToIf(),
             NegateCondition(), DropOperand(), DropMask()]  # fmt: skip
