"""Decodes message cells to columns of ``messages`` from ``msg_hash`` on.

TL-B: message$_, int_msg_info$0, ext_in_msg_info$10, ext_out_msg_info$11, StateInit. Hashes are
those of the cells as stored; an inline body or StateInit becomes a cell of its own. For positions
in cells see module ``currency``.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.decode.block.currency import (
    INT64_MAX,
    read_address,
    read_extra_currencies,
    read_grams,
    sign_int32,
)
from tonlake.ingest.decode.cell.build import append_cell, pack_head
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree

Message = tuple[Any, ...]

EXTRA_FLAGS_VERSION = 12
"""Global version from which int_msg_info has extra_flags in place of ihr_fee."""

_EXOTIC_BIT = 8
_OPCODE_BITS = 32
_NO_BITS_NO_REFS = b"\x00\x00"


class _Content(NamedTuple):
    """A body or StateInit as a cell of its own."""

    hash: bytes
    depth: int
    boc: bytes


_EMPTY = _Content(sha256(_NO_BITS_NO_REFS).digest(), 0, serialize_single(_NO_BITS_NO_REFS))


class MessageDecoder:
    """Decodes the messages of one tree; each cell is decoded once.

    ``global_version`` determines the meaning of the field before fwd_fee of an internal message.
    """

    def __init__(self, tree: CellTree, global_version: int | None) -> None:
        """Prepare for the messages of ``tree``, none of which has pruned descendants."""
        self._tree = tree
        self._has_extra_flags = (global_version or 0) >= EXTRA_FLAGS_VERSION
        self._known: dict[int, Message] = {}

    def decode(self, cell: int) -> Message:
        """Return the columns of a message cell; raise ValueError or IndexError if it is short."""
        known = self._known.get(cell)
        if known is None:
            known = self._known[cell] = self._decode(cell)
        return known

    def _decode(self, cell: int) -> Message:
        tree = self._tree
        value, bits = tree.bits(cell)
        children = tree.links[cell]
        ref = 0
        if not value >> (bits - 1) & 1:
            info, ref, left = self._read_int_info(children, value, bits)
        elif value >> (bits - 2) & 1:
            info, left = _read_ext_out_info(value, bits - 2)
        else:
            info, left = _read_ext_in_info(value, bits - 2)
        init_hash, init_boc, ref, left = self._read_init(children, ref, value, left)
        body, opcode = self._read_body(children, ref, value, left)
        hash_norm = _normalize(body, value, bits) if info[0] == "ext_in" else None
        return (tree.hash(cell), hash_norm, *info, opcode, body.hash, body.boc, init_hash, init_boc)

    def _read_int_info(
        self, children: tuple[int, ...], value: int, left: int
    ) -> tuple[Message, int, int]:
        """Read int_msg_info; return columns kind to import_fee, next reference and position."""
        left -= 4
        flags = value >> left
        source_kind, source_workchain, source, left = read_address(value, left)
        destination_kind, destination_workchain, destination, left = read_address(value, left)
        amount, left = read_grams(value, left)
        left -= 1
        currencies, ref = None, 0
        if value >> left & 1:
            currencies, ref = read_extra_currencies(self._tree, children[0]), 1
        ihr_fee, left = read_grams(value, left)
        extra_flags = None
        if self._has_extra_flags:
            ihr_fee, extra_flags = 0, ihr_fee
        fwd_fee, left = read_grams(value, left)
        left -= 96
        created = value >> left
        return (
            (
                "int",
                source_workchain,
                source,
                source_kind,
                destination_workchain,
                destination,
                destination_kind,
                amount,
                currencies,
                fwd_fee,
                ihr_fee,
                extra_flags,
                created >> 32 & 0xFFFFFFFFFFFFFFFF,
                created & 0xFFFFFFFF,
                bool(flags & 4),
                bool(flags & 2),
                bool(flags & 1),
                None,
            ),
            ref,
            left,
        )

    def _read_init(
        self, children: tuple[int, ...], ref: int, value: int, left: int
    ) -> tuple[bytes | None, bytes | None, int, int]:
        """Read ``init:(Maybe (Either StateInit ^StateInit))``."""
        left -= 1
        if not value >> left & 1:
            return None, None, ref, left
        left -= 1
        if value >> left & 1:
            init = self._take(children[ref])
            return init.hash, init.boc, ref + 1, left
        end = left - 1
        if value >> end & 1:  # fixed_prefix_length:(Maybe (## 5))
            end -= 5
        end -= 1
        if value >> end & 1:  # special:(Maybe TickTock)
            end -= 2
        end -= 3  # code, data, library: Maybe ^
        last = ref + (value >> end & 7).bit_count()
        if last > len(children):
            raise IndexError(last)
        bits = left - end
        init = self._build(value >> end & ((1 << bits) - 1), bits, children[ref:last])
        return init.hash, init.boc, last, end

    def _read_body(
        self, children: tuple[int, ...], ref: int, value: int, left: int
    ) -> tuple[_Content, int | None]:
        """Read ``body:(Either X ^X)``; return it and its first 32 bits, None if it is shorter."""
        left -= 1
        if not value >> left & 1:
            opcode = None
            if left >= _OPCODE_BITS:
                opcode = sign_int32(value >> (left - _OPCODE_BITS) & 0xFFFFFFFF)
            return self._build(value & ((1 << left) - 1), left, children[ref:]), opcode
        cell = children[ref]
        head = self._tree.cells[cell]
        opcode = None
        if not head[0] & _EXOTIC_BIT and self._tree.bit_length(cell) >= _OPCODE_BITS:
            opcode = int.from_bytes(head[2:6], "big", signed=True)
        return self._take(cell), opcode

    def _take(self, cell: int) -> _Content:
        tree = self._tree
        return _Content(tree.hash(cell), tree.depth(cell), serialize_boc(tree, (cell,)))

    def _build(self, value: int, bits: int, children: tuple[int, ...]) -> _Content:
        if children:
            return self._take(append_cell(self._tree, value, bits, children))
        if not bits:
            return _EMPTY
        head = pack_head(0, value, bits)
        return _Content(sha256(head).digest(), 0, serialize_single(head))


def _read_ext_in_info(value: int, left: int) -> tuple[Message, int]:
    """Read ext_in_msg_info after its tag; return columns kind to import_fee, and the position."""
    source_kind, _, _, left = read_address(value, left)
    destination_kind, workchain, destination, left = read_address(value, left)
    import_fee, left = read_grams(value, left)
    fee = import_fee if import_fee <= INT64_MAX else None
    columns = ("ext_in", None, None, source_kind, workchain, destination, destination_kind)
    return (*columns, *(None,) * 10, fee), left


def _read_ext_out_info(value: int, left: int) -> tuple[Message, int]:
    """Read ext_out_msg_info after its tag; return columns kind to import_fee, and the position."""
    source_kind, workchain, source, left = read_address(value, left)
    destination_kind, _, _, left = read_address(value, left)
    left -= 96
    created = value >> left
    lt, at = created >> 32 & 0xFFFFFFFFFFFFFFFF, created & 0xFFFFFFFF
    columns = ("ext_out", workchain, source, source_kind, None, None, destination_kind)
    return (*columns, *(None,) * 5, lt, at, *(None,) * 4), left


def _normalize(body: _Content, value: int, left: int) -> bytes:
    """Return the hash of an external message in its normalized form (TEP-467).

    ext_in_msg_info$10, src addr_none$00, dest unchanged, import_fee 0, no init, body in a ref.
    """
    _, _, _, start = read_address(value, left - 2)
    _, _, _, end = read_address(value, start)
    bits = start - end
    destination = value >> end & ((1 << bits) - 1)
    # Four bits of import_fee, one of init, one for the body in a reference.
    head = pack_head(1, (0b1000 << bits | destination) << 6 | 1, 4 + bits + 6)
    return sha256(head + body.depth.to_bytes(2, "big") + body.hash).digest()
