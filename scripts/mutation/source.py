# SPDX-License-Identifier: Apache-2.0
"""A header as the operators see it: the bodies of its device functions, and the statements, conditions and operands in them.

Device functions are those that WARPHEAP_DEVICE, WARPHEAP_HOST_DEVICE or WARPHEAP_COLD marks. Assertions, constants, yield points of
schedules and checks of a quiet heap are left out: no thread runs another step because of them.
"""

import bisect
import dataclasses

from .lexer import CLOSING, OPENING, pair_brackets, tokens_of

MARKS = {"WARPHEAP_DEVICE", "WARPHEAP_HOST_DEVICE", "WARPHEAP_COLD"}
NO_CALL = {"return", "if", "for", "while", "do", "switch", "case", "break", "continue", "using", "static_cast", "else", "goto"}
ASSERTIONS = {"WARPHEAP_ASSERT", "WARPHEAP_POINT", "static_assert"}
INSPECTIONS = "check_"  # how the names of functions begin that look at a quiet structure
# How tightly binary operators bind; those of one level are taken from left to right.
LEVEL = {
    **dict.fromkeys((",", ";"), 0),
    **dict.fromkeys(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "?", ":"), 1),
    "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6,
    **dict.fromkeys(("==", "!="), 7),
    **dict.fromkeys(("<", ">", "<=", ">="), 8),
}  # fmt: skip
AMBIGUOUS = {"<", ">", "&", "&&"}  # brackets of templates, addresses and references too


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    first: int  # token of its first parameter's bracket
    last: int  # token of the bracket that closes its body


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.partner, self.around = pair_brackets(self.tokens)
        self.functions = list(self._find_functions())
        self.lines = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
        left_out = self._left_out()
        self.code = [
            index
            for function in self.functions
            for index in range(function.first, function.last + 1)
            if index not in left_out
        ]

    def word(self, index):
        """The text of a token; empty beyond the ends."""
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def place(self, offset):
        """(line, column), both from 1."""
        line = bisect.bisect_right(self.lines, offset)
        return line, offset - self.lines[line - 1] + 1

    def function_at(self, offset):
        """The innermost device function around an offset."""
        around = [f for f in self.functions if self.tokens[f.first].start <= offset <= self.tokens[f.last].end]
        return around[-1] if around else None

    def is_binary(self, index):
        """Whether a token is an operator between two operands."""
        token = self.tokens[index]
        return token.text in LEVEL and (token.text not in AMBIGUOUS or token.spaced)

    def skip_template_arguments(self, index, step):
        """From a bracket < (step 1) or > (step -1) of template arguments: the index of the bracket at their other end."""
        depth, at = 0, index
        while 0 <= at < len(self.tokens):
            text = self.tokens[at].text
            depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
            if depth * step <= 0:
                return at
            at += step
        return index

    def start_of_operand(self, index):
        """The first token of the postfix expression that ends at `index`: a name, call or braced object with its path."""
        at = index
        while True:
            if self.word(at) in CLOSING:
                at = self.partner[at] - 1
                if self.word(at) in CLOSING or (at >= 0 and self.tokens[at].kind == "word" and self.word(at) not in NO_CALL):
                    continue
                if self.word(at) not in (">", ">>"):
                    return at + 1
            if self.word(at) in (">", ">>"):
                at = self.skip_template_arguments(at, -1) - 1
            if self.word(at - 1) in (".", "->", "::"):
                at -= 2
                continue
            return at

    def operand_before(self, index):
        """The first token of the left operand of the operator at `index`."""
        level, at = LEVEL[self.word(index)], index - 1
        while at >= 0:
            text = self.word(at)
            ends_block = text == "}" and self.tokens[at + 1].kind == "word"
            if text in OPENING or text == "return" or ends_block or (self.is_binary(at) and LEVEL[text] <= level):
                return at + 1
            at = self.partner[at] - 1 if text in CLOSING else at - 1
        return 0

    def operand_after(self, index):
        """The last token of the right operand of the operator at `index`."""
        level, at = LEVEL[self.word(index)], index + 1
        while at < len(self.tokens):
            text = self.word(at)
            if text in CLOSING or (self.is_binary(at) and LEVEL[text] <= level):
                return at - 1
            at = self.partner[at] + 1 if text in OPENING else at + 1
        return len(self.tokens) - 1

    def calls(self):
        """(first token, token of the semicolon) of each statement that is a call and nothing else."""
        for index in self.code:
            if self.tokens[index].kind != "word" or not self._begins_statement(index):
                continue
            if self.word(index) in NO_CALL | ASSERTIONS:
                continue
            at = index + 1
            while self.word(at) in (".", "->", "::", "(", "[", "{", "<"):
                if self.word(at) in (".", "->", "::"):
                    at += 2
                elif self.word(at) == "<":
                    if self.tokens[at].spaced:
                        break
                    at = self.skip_template_arguments(at, 1) + 1
                else:
                    at = self.partner[at] + 1
            if self.word(at) == ";" and self.word(at - 1) == ")":
                yield index, at

    def conditions(self):
        """(token of the keyword, first token, last token) of each condition of an if, while or for; no declarations."""
        for index in self.code:
            keyword = self.word(index)
            if keyword not in ("if", "while", "for") or self.word(index + 1) != "(":
                continue
            first, last = index + 2, self.partner[index + 1] - 1
            semicolons = [at for at in range(first, last + 1) if self.word(at) == ";" and self.around[at] == index + 1]
            if keyword == "for":
                if len(semicolons) != 2:
                    continue
                first, last = semicolons[0] + 1, semicolons[1] - 1
            elif semicolons:
                first = semicolons[-1] + 1
            declares = any(self.word(at) == "=" and self.around[at] == index + 1 for at in range(first, last + 1))
            if first <= last and not declares:
                yield index, first, last

    def body_of(self, keyword):
        """(first token, last token) of what a loop or an if at this keyword runs."""
        first = self.partner[keyword + 1] + 1
        if self.word(first) == "{":
            return first, self.partner[first]
        at = first
        while self.word(at) != ";":
            at = self.partner[at] + 1 if self.word(at) in OPENING else at + 1
        return first, at

    def _begins_statement(self, index):
        before = self.word(index - 1)
        if self.around[index] is None or self.word(self.around[index]) != "{":
            return False
        if before == ")":
            opening = self.partner[index - 1]
            return self.word(opening - 1) in ("if", "while", "for", "constexpr")
        return before in (";", "{", "}", "else", "do", "WARPHEAP_NO_UNROLL")

    def _find_functions(self):
        """Each device function that has a body here."""
        for index, token in enumerate(self.tokens):
            if token.text not in MARKS:
                continue
            at, name = index + 1, ""
            while self.word(at) not in ("(", ";", "{", "}", "="):
                at += 1
                if self.word(at - 1) == "operator":  # operator(), operator== and their kin
                    end = at + 2 if self.word(at) == "(" else at + 1
                    name, at = "operator" + "".join(self.word(part) for part in range(at, end)), end
            if self.word(at) != "(":
                continue
            first, name = at, name or self.word(at - 1)
            at = self.partner[at] + 1
            while self.word(at) not in (";", "{", ":", "=", "") or (self.word(at) == ":" and self.word(at + 1) == ":"):
                at = self.partner[at] + 1 if self.word(at) == "(" else at + 1
            if self.word(at) == ":":  # initialisers of members, each with its brackets
                at += 1
                while True:
                    while self.word(at) not in ("(", "{"):
                        at += 1
                    at = self.partner[at] + 1
                    if self.word(at) != ",":
                        break
            if self.word(at) == "{" and not name.startswith(INSPECTIONS):
                yield Function(name, first, self.partner[at])

    def _left_out(self):
        """Tokens of assertions, of constants, and of conditions that the compiler decides."""
        left_out = set()
        for index, token in enumerate(self.tokens):
            if token.text in ASSERTIONS and self.word(index + 1) == "(":
                left_out.update(range(index, self.partner[index + 1] + 1))
            if token.text != "constexpr":
                continue
            if self.word(index - 1) == "if":
                left_out.update(range(index, self.partner[index + 1] + 1))
                continue
            at = index + 1
            while self.word(at) not in ("(", "=", "{", ";", ""):
                at += 1
            if self.word(at) in ("=", "{"):
                while self.word(at) not in (";", ""):
                    at = self.partner[at] + 1 if self.word(at) in OPENING else at + 1
                left_out.update(range(index, at))
        return left_out
