"""Decodes message cells to columns of ``messages`` from ``msg_hash`` on, and the fields in them.

TL-B: message$_, int_msg_info$0, ext_in_msg_info$10, ext_out_msg_info$11, StateInit; Grams, other
VarUIntegers, CurrencyCollection, MsgAddress. Hashes are those of the cells as stored; an inline
body or StateInit becomes a cell of its own.

Fields are read from the bits of a cell as one integer. A position is ``left``, the number of bits
after it: reading n bits decreases it by n, and then ``value >> left`` ends with them. Past the end
of the cell ``left`` is negative, and shifting by it is a ValueError; a missing reference is an
IndexError. ``TransactionDecoder.decode`` turns both into DecodeError, so the hot path needs no
checks of its own.
"""

from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.decode.cell.build import append_cell, pack_head
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single
from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema import MESSAGES

INT64_MAX = (1 << 63) - 1
_CURRENCY_ID_BITS = 32
_AMOUNT_LENGTH_BITS = 5


def read_grams(value: int, left: int) -> tuple[int, int]:
    """Read Grams (VarUInteger 16); return nanoton and the new position."""
    left -= 4
    bits = (value >> left & 15) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def read_maybe_grams(value: int, left: int) -> tuple[int | None, int]:
    """Read ``Maybe Grams``; return nanoton or None, and the new position."""
    left -= 1
    return read_grams(value, left) if value >> left & 1 else (None, left)


def read_var_uint(value: int, left: int, length_bits: int) -> tuple[int, int]:
    """Read another VarUInteger, whose length field has ``length_bits`` bits."""
    left -= length_bits
    bits = (value >> left & ((1 << length_bits) - 1)) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def sign_int32(value: int) -> int:
    """Return an unsigned 32-bit integer as a signed one."""
    return value - (1 << 32) if value >> 31 else value


def read_extra_currencies(tree: CellTree, root: int) -> str | None:
    """Return an ExtraCurrencyCollection as JSON, ids ascending, amounts as strings."""
    amounts = {
        str(currency): str(amount.load_var_uint(_AMOUNT_LENGTH_BITS))
        for currency, amount in iter_hashmap(tree, root, _CURRENCY_ID_BITS)
    }
    return msgspec.json.encode(amounts).decode()


Address = tuple[str, int | None, bytes | None, int]
"""Constructor (std, none, extern or var), workchain and account, and the new position.

The account is None for none and extern, and for var unless it has 256 bits: to the node, such an
address is the same as std (``extract_std_address``).
"""

_STD_BITS, _ACCOUNT_BITS = 267, 256
_STD_WORKCHAIN_BITS, _VAR_WORKCHAIN_BITS = 8, 32
_MASK_256 = (1 << 256) - 1
_MAX_ANYCAST_DEPTH = 30
_PLAIN_STD = 0b100
_NONE, _EXTERN, _STD = 0, 1, 2


def read_address(value: int, left: int) -> Address:
    """Read any MsgAddress that is not the last field of its cell."""
    if value >> (left - 3) & 7 == _PLAIN_STD:
        left -= _STD_BITS
        number = value >> left
        workchain = number >> 256 & 0xFF
        account = (number & _MASK_256).to_bytes(32, "big")
        return "std", workchain - (workchain >> 7 << 8), account, left
    left -= 2
    tag = value >> left & 3
    if tag == _NONE:
        return "none", None, None, left
    if tag == _EXTERN:
        left -= 9
        return "extern", None, None, left - (value >> left & 0x1FF)
    return _read_internal(value, left, is_std=tag == _STD)


def _read_internal(value: int, left: int, *, is_std: bool) -> Address:
    left -= 1
    depth = prefix = 0
    if value >> left & 1:
        left -= 5
        depth = value >> left & 31
        if not 0 < depth <= _MAX_ANYCAST_DEPTH:
            raise DecodeError(f"anycast address with a prefix of {depth} bits")
        left -= depth
        prefix = value >> left & ((1 << depth) - 1)
    kind, workchain_bits = "std", _STD_WORKCHAIN_BITS
    if not is_std:
        kind, workchain_bits = "var", _VAR_WORKCHAIN_BITS
        left -= 9
        length = value >> left & 0x1FF
        if length != _ACCOUNT_BITS:
            return kind, None, None, left - workchain_bits - length
    left -= workchain_bits + _ACCOUNT_BITS
    number = value >> left
    workchain = number >> _ACCOUNT_BITS & ((1 << workchain_bits) - 1)
    workchain -= workchain >> (workchain_bits - 1) << workchain_bits
    rest = _ACCOUNT_BITS - depth
    account = (number & ((1 << rest) - 1) | prefix << rest).to_bytes(32, "big")
    return kind, workchain, account, left


Message = tuple[Any, ...]

_COLUMNS = MESSAGES.names[MESSAGES.names.index("msg_hash") :]

EXTRA_FLAGS_VERSION = 12
"""Global version from which int_msg_info has extra_flags in place of ihr_fee."""

_OPCODE_BITS = 32
_NO_BITS_NO_REFS = b"\x00\x00"


class _Content(NamedTuple):
    """A body or StateInit as a cell of its own."""

    hash: bytes
    depth: int
    boc: bytes


_EMPTY = _Content(sha256(_NO_BITS_NO_REFS).digest(), 0, serialize_single(_NO_BITS_NO_REFS))


class MessageDecoder:
    """Decodes the messages of one tree, each once; version 12 changed the field before fwd_fee."""

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

    def decode_row(self, cell: int) -> dict[str, Any]:
        """Return the columns of a message cell by name; raise as ``decode``."""
        return dict(zip(_COLUMNS, self.decode(cell), strict=True))

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
        if not head[0] & EXOTIC_BIT and self._tree.bit_length(cell) >= _OPCODE_BITS:
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
    _, _, _, start = read_address(value, left - 2)
    _, _, _, end = read_address(value, start)
    bits = start - end
    return normalize(value >> end & ((1 << bits) - 1), bits, body.depth, body.hash)


def normalize(destination: int, bits: int, depth: int, body_hash: bytes) -> bytes:
    """Return the hash of an external message in its normalized form (TEP-467).

    ext_in_msg_info$10, src addr_none$00, dest unchanged, import_fee 0, no init, body in a ref.
    """
    # Four bits of import_fee, one of init, one for the body in a reference.
    head = pack_head(1, (0b1000 << bits | destination) << 6 | 1, 4 + bits + 6)
    return sha256(head + depth.to_bytes(2, "big") + body_hash).digest()
