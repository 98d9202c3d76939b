"""Reads a cell bit by bit and reference by reference; every read is checked."""

from typing import TYPE_CHECKING, Self

from tonlake.ingest.errors import CellUnderflow

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree

TAG_BITS = [(last & -last).bit_length() for last in range(256)]
"""Bits of the data from the completion tag on, by the last byte."""
_COINS_LENGTH_BITS = 4
EXOTIC_BIT = 8


class CellSlice:
    """A cursor in an ordinary cell, after ``ref`` references; CellUnderflow if it is too short."""

    __slots__ = ("bits_left", "cell", "ref", "tree", "value")

    def __init__(self, tree: "CellTree", cell: int) -> None:
        """Start at the first bit and reference of ``cell``; raise BocError if it is exotic."""
        head = tree.cells[cell]
        value, bits = int.from_bytes(head[2:], "big"), len(head) - 2 << 3
        if head[1] & 1:  # completed with a one and zeroes
            tag = TAG_BITS[head[-1]]
            value, bits = value >> tag, bits - tag
        if head[0] & EXOTIC_BIT:
            value, bits = tree.bits(cell)
        self.value, self.bits_left = value, bits
        self.tree = tree
        self.cell = cell
        self.ref = 0

    @classmethod
    def at(cls, tree: "CellTree", cell: int, value: int, left: int, ref: int = 0) -> Self:
        """Return a cursor ``left`` bits before the end of a cell with the bits ``value``."""
        start = cls.__new__(cls)
        start.tree = tree
        start.cell = cell
        start.ref = ref
        start.bits_left = left
        start.value = value
        return start

    @property
    def pos(self) -> int:
        """Number of bits read so far."""
        return self.tree.bit_length(self.cell) - self.bits_left

    @property
    def refs_left(self) -> int:
        """Number of references not read yet."""
        return len(self.tree.links[self.cell]) - self.ref

    def copy(self) -> Self:
        """Return a second cursor at the same position."""
        return self.at(self.tree, self.cell, self.value, self.bits_left, self.ref)

    def bits(self) -> tuple[int, int]:
        """Return all bits of the cell as an integer, and how many of them are left."""
        return self.value, self.bits_left

    def load_uint(self, bits: int) -> int:
        """Read an unsigned integer of ``bits`` bits."""
        left = self.bits_left - bits
        if left < 0:
            self._refuse(f"{bits} bits")
        self.bits_left = left
        return self.value >> left & ((1 << bits) - 1)

    def peek_uint(self, bits: int) -> int:
        """Return an unsigned integer without advancing."""
        if bits > self.bits_left:
            self._refuse(f"{bits} bits")
        return self.value >> (self.bits_left - bits) & ((1 << bits) - 1)

    def load_int(self, bits: int) -> int:
        """Read a signed integer (two's complement) of ``bits`` bits."""
        value = self.load_uint(bits)
        return value - (1 << bits) if bits and value >> (bits - 1) else value

    def load_bit(self) -> bool:
        """Read one bit."""
        return self.load_uint(1) == 1

    def load_bytes(self, count: int) -> bytes:
        """Read ``count`` bytes, not necessarily aligned."""
        return self.load_uint(count * 8).to_bytes(count, "big")

    def load_var_uint(self, length_bits: int) -> int:
        """Read VarUInteger n, whose length field has ``length_bits`` = bit_length(n - 1) bits."""
        return self.load_uint(self.load_uint(length_bits) * 8)

    def load_coins(self) -> int:
        """Read Grams (VarUInteger 16), in nanoton."""
        return self.load_var_uint(_COINS_LENGTH_BITS)

    def load_ref(self) -> int:
        """Read a reference; return the index of the child cell."""
        links = self.tree.links[self.cell]
        if self.ref >= len(links):
            self._refuse("a reference")
        self.ref += 1
        return links[self.ref - 1]

    def load_maybe_ref(self) -> int | None:
        """Read ``Maybe ^X``; return the child cell or None."""
        return self.load_ref() if self.load_bit() else None

    def skip(self, bits: int) -> Self:
        """Skip ``bits`` bits; return the cursor itself."""
        if bits > self.bits_left:
            self._refuse(f"{bits} bits")
        self.bits_left -= bits
        return self

    def end(self) -> None:
        """Skip whatever is left."""
        self.bits_left = 0
        self.ref = len(self.tree.links[self.cell])

    def _refuse(self, needed: str) -> None:
        raise CellUnderflow(
            f"cell {self.cell} has {self.bits_left} bits and {self.refs_left} references left, "
            f"but {needed} are needed"
        )
