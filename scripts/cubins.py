# SPDX-License-Identifier: Apache-2.0
"""What is in a cubin, as far as the checks ask: functions with their registers and whom they call, and variables. A cubin is an
ELF file; binary utilities know nothing of the two sections of NVIDIA's that say so."""

import pathlib
import struct

REGISTERS = 0x2F  # the attribute of .nv.info that holds a function's symbol and its registers
OF_SYMBOL_AND_SIZE = 4  # the format of such an attribute: a size, then that many bytes


class Cubin:
    """symbols    name, type (2 is a function, 1 a variable), section, address and size of each
    registers  {symbol: registers} of each function and kernel; symbols are indices
    calls      {symbol: symbols that it calls}
    kernels    symbols that the host can launch"""

    def __init__(self, path):
        self._bytes = pathlib.Path(path).read_bytes()
        if self._bytes[:4] != b"\x7fELF":
            raise ValueError(f"{path} is no cubin")
        self._read_sections()
        self._read_symbols()
        self._read_registers()
        self.calls = {}
        for caller, callee in struct.iter_unpack("<ii", b"".join(self._contents(".nv.callgraph"))):
            self.calls.setdefault(caller, set()).add(callee)

    def name(self, symbol):
        return self.symbols[symbol]["name"]

    def reached_from(self, names):
        """The functions in this cubin that the functions of these names call, directly or not, and they themselves."""
        found, left = set(), [i for i, symbol in enumerate(self.symbols) if symbol["name"] in names]
        while left:
            symbol = left.pop()
            if symbol in self.registers and symbol not in found:
                found.add(symbol)
                left += self.calls.get(symbol, ())
        return found

    def undefined(self):
        return sorted({symbol["name"] for symbol in self.symbols if symbol["section"] == 0 and symbol["name"]})

    def section_size(self, index):
        return self._sections[index][2]

    def _read_sections(self):
        table, = struct.unpack_from("<Q", self._bytes, 40)
        entry, count, names = struct.unpack_from("<HHH", self._bytes, 58)
        raw = [struct.unpack_from("<IIQQQQII", self._bytes, table + i * entry) for i in range(count)]
        start = raw[names][4]
        # name, offset, size, type, link
        self._sections = [(self._text(start + r[0]), r[4], r[5], r[1], r[6]) for r in raw]

    def _read_symbols(self):
        self.symbols, self.kernels = [], set()
        for _, offset, size, kind, link in self._sections:
            if kind != 2:
                continue
            for at in range(offset, offset + size, 24):
                name, info, other, section, address, length = struct.unpack_from("<IBBHQQ", self._bytes, at)
                if other & 0x10:
                    self.kernels.add(len(self.symbols))
                text = self._text(self._sections[link][1] + name)
                self.symbols.append(
                    {"name": text, "type": info & 15, "section": section, "address": address, "size": length}
                )

    def _read_registers(self):
        self.registers = {}
        for section in self._contents(".nv.info"):
            at = 0
            while at < len(section):
                form, attribute, size = struct.unpack_from("<BBH", section, at)
                if form == OF_SYMBOL_AND_SIZE and attribute == REGISTERS:
                    symbol, registers = struct.unpack_from("<II", section, at + 4)
                    self.registers[symbol] = registers
                at += 4 + (size if form == OF_SYMBOL_AND_SIZE else 0)

    def _contents(self, name):
        """The bytes of each section of this name."""
        return [self._bytes[at : at + size] for found, at, size, kind, _ in self._sections if found == name]

    def _text(self, at):
        return self._bytes[at : self._bytes.index(b"\0", at)].decode()
