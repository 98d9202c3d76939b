"""Reads the operands of TVM instructions and shows them as Fift does."""

from __future__ import annotations

import re

import msgspec

from tonlake.ingest.derive.tvm.machine.code import WINDOW_BITS
from tonlake.ingest.errors import CellUnderflow

_NUMBERS = re.compile(r"[+-]?[0-9]+")


class Code(msgspec.Struct):
    """The bits and references still to be read."""

    value: int
    left: int
    refs: list[int]

    def take(self, bits: int) -> int:
        """Read an unsigned ``bits``-bit number; raise CellUnderflow if fewer bits are left."""
        if bits > self.left:
            raise CellUnderflow(f"{bits} bits needed, {self.left} left")
        self.left -= bits
        return self.value >> self.left & (1 << bits) - 1

    def take_signed(self, bits: int) -> int:
        """Read a ``bits``-bit number in two's complement."""
        value = self.take(bits)
        return value - (value >> bits - 1 << bits)

    def take_refs(self, count: int) -> list[int]:
        """Read ``count`` references; raise CellUnderflow if fewer are left."""
        if count > len(self.refs):
            raise CellUnderflow(f"{count} references needed, {len(self.refs)} left")
        taken, self.refs = self.refs[:count], self.refs[count:]
        return taken

    def peek(self) -> int:
        """Return the next ``WINDOW_BITS`` bits without consuming them."""
        if self.left >= WINDOW_BITS:
            return self.value >> self.left - WINDOW_BITS & (1 << WINDOW_BITS) - 1
        return (self.value & (1 << self.left) - 1) << WINDOW_BITS - self.left


_NIBBLES = {"tiny": 5, "most": 1}
"""Forms of four bits whose greatest values stand for the negative ones down to minus these."""


def write_bits(value: int, bits: int) -> str:
    """Format bits as Fift does: hex digits, then a tag bit and _ if the last digit is partial."""
    if not bits:
        return "x{}"
    value &= (1 << bits) - 1
    if rest := bits % 4:
        value, bits = (value << 1 | 1) << 3 - rest, bits + 4 - rest
        return f"x{{{value:0{bits // 4}X}_}}"
    return f"x{{{value:0{bits // 4}X}}}"


def read_operand(form: str, code: Code) -> str:
    """Return an operand that is a number or a register; ``form`` is a word of the table.

    Raises:
        CellUnderflow: the code ends inside the operand.
    """
    if form.startswith("="):
        return form[1:]
    if form in _NIBBLES:
        shift = _NIBBLES[form]
        return str((code.take(4) + shift) % 16 - shift)
    if form == "words":
        return str((code.take(3) + 1) * 32)
    if form == "long":
        return str(code.take_signed(8 * code.take(5) + 19))
    kind = form[0]
    bits, *more = map(int, _NUMBERS.findall(form))
    value = (code.take_signed if kind == "i" else code.take)(bits) + sum(more)
    if kind not in "sc":
        return str(value)
    return f"{kind}{value}" if value >= 0 else f"{kind}({value})"
