"""Reads message bodies field by field, in the form in which actions show the values."""

from __future__ import annotations

import base64
from typing import Any

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import ORDINARY
from tonlake.ingest.decode.cell.writer import serialize_depth_first
from tonlake.ingest.derive.body.codec import ENCRYPTED_OPCODE, TEXT_OPCODE, read_words
from tonlake.ingest.errors import BocError, BodyError

OPCODE_BITS = 32
_NONE, _EXTERN, _STD, _VAR = range(4)


class Body(CellSlice):
    """A cursor in a cell of a body; reads past its end raise CellUnderflow."""

    __slots__ = ()

    uint, signed = CellSlice.load_uint, CellSlice.load_int
    bit, coins = CellSlice.load_bit, CellSlice.load_coins

    def hex(self, bits: int) -> str:
        """Read bits as lowercase hexadecimal digits."""
        return f"{self.uint(bits):0{bits // 4}x}"

    def take(self, *kinds: int | str) -> list[Any]:
        """Read several fields: for an integer that many bits, signed if negative.

        A word is a method of this class, such as ``coins`` or ``address``.
        """
        return [
            getattr(self, kind)()
            if isinstance(kind, str)
            else self.uint(kind)
            if kind > 0
            else self.signed(-kind)
            for kind in kinds
        ]

    def show(self, **kinds: int | str) -> dict[str, Any]:
        """Read several fields like ``take``, by name."""
        return dict(zip(kinds, self.take(*kinds.values()), strict=True))

    def peek_opcode(self) -> int | None:
        """Return the next 32 bits; None if there are fewer."""
        return self.peek_uint(OPCODE_BITS) if self.bits_left >= OPCODE_BITS else None

    def address(self) -> str | None:
        """Read an account: None for addr_none and addr_extern, BodyError for addr_var."""
        if self.copy().uint(2) == _VAR:
            raise BodyError("an addr_var where the address of an account is required")
        return self.any_address()

    def any_address(self) -> str | None:
        """Read a MsgAddress that contracts do not check: None for all but addr_std."""
        kind = self.uint(2)
        if kind == _NONE:
            return None
        if kind == _EXTERN:
            self.skip(self.uint(9))
            return None
        if self.bit():
            self.skip(self.uint(5))
        if kind == _VAR:
            self.skip(self.uint(9) + 32)
            return None
        workchain = self.signed(8)
        return f"{workchain}:{self.uint(256):064X}"

    @property
    def is_empty(self) -> bool:
        """Whether an ordinary cell has no unread data."""
        return not (self.bits_left or self.refs_left or self._is_exotic)

    @property
    def _is_exotic(self) -> bool:
        return self.tree.kind(self.cell) != ORDINARY

    def child(self) -> Body:
        """Read a reference: a cursor at the start of the child, at the end if it is exotic."""
        tree, cell = self.tree, self.load_ref()
        if tree.kind(cell) == ORDINARY:
            return Body(tree, cell)
        end = Body.at(tree, cell, 0, 0)
        end.ref = len(tree.links[cell])
        return end

    def maybe_ref(self) -> Body | None:
        """Read ``Maybe ^Cell``."""
        return self.child() if self.bit() else None

    def either_ref(self) -> Body:
        """Read ``Either Cell ^Cell``: the child, or the rest of this cell.

        Contracts forward it without parsing: if the child is missing, the result is empty.
        """
        if not self.bits_left or not self.bit():
            return self.copy()
        return self.child() if self.refs_left else self.copy().skip(self.bits_left)

    def response_address(self) -> str | None:
        """Read the address for excesses, None if the body ends before it."""
        return self.any_address() if self.bits_left else None

    def response(self) -> tuple[str | None, Body | None]:
        """Read response_destination and custom_payload of tokens; a body may end before them."""
        address = self.response_address()
        has_payload = bool(self.bits_left) and self.bit() and self.refs_left
        return address, self.child() if has_payload else None

    def forward_amount(self) -> int:
        """Read the amount that tokens forward, 0 if the body ends before it."""
        return self.coins() if self.bits_left else 0

    def hash(self) -> bytes:
        """Return the hash of a cell with the unread data."""
        return self.tree.hash(CellBuilder(self.tree).store_slice(self).end())

    def boc(self, *, crc32c: bool = True) -> str:
        """Return the unread data as a bag of cells in base64, by default with its CRC."""
        tree = self.tree
        root = self.cell if self._is_exotic else CellBuilder(tree).store_slice(self).end()
        return base64.b64encode(serialize_depth_first(tree, root, crc32c=crc32c)).decode()

    def snake(self) -> bytes:
        """Read the bytes to the end of the cell and of the chain of its first children."""
        return read_words(self.copy())


def read_body(boc: bytes | None) -> Body:
    """Return a cursor at the root of a bag of cells; raise BodyError if it is lost."""
    if boc is None:
        raise BodyError("the body of the message is lost")
    tree = parse_boc(boc)
    return Body(tree, tree.roots[0])


def read_comment(payload: Body) -> tuple[str | None, bool]:
    r"""Return the comment in a payload (None if absent), and whether it is encrypted.

    Text is UTF-8 after opcode 0; invalid bytes become ``\xNN``. Encrypted text is the base64 of the
    data after 2167da4b.
    """
    opcode = payload.peek_opcode()
    if opcode not in {TEXT_OPCODE, ENCRYPTED_OPCODE}:
        return None, False
    is_encrypted = opcode == ENCRYPTED_OPCODE
    try:
        data = payload.copy().skip(OPCODE_BITS).snake()
    except BocError:
        return None, is_encrypted
    if is_encrypted:
        return base64.b64encode(data).decode(), True
    return data.decode(errors="backslashreplace").replace("\0", ""), False
