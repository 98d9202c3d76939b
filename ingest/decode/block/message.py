"""Decodes message cells: the columns of ``messages`` from ``msg_hash`` on, and the fields in them.

TL-B: message$_, int_msg_info$0, ext_in_msg_info$10, ext_out_msg_info$11, StateInit; Grams,
CurrencyCollection, MsgAddress. Hashes are those of the cells as stored; an inline body or StateInit
becomes a cell of its own.
"""

from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.decode.cell.build import append_cell, pack_head
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema import MESSAGES

INT64_MAX = (1 << 63) - 1
_CURRENCY_ID_BITS = 32
_AMOUNT_LENGTH_BITS = 5


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


def load_extra_currencies(cell: CellSlice) -> str | None:
    """Read an ExtraCurrencyCollection; return it as ``read_extra_currencies``, None if empty."""
    root = cell.load_maybe_ref()
    return None if root is None else read_extra_currencies(cell.tree, root)


Address = tuple[str, int | None, bytes | None]
"""Constructor (std, none, extern or var), workchain and account.

The account is None for none and extern, and for var unless it has 256 bits: to the node, such an
address is the same as std (``extract_std_address``).
"""

_ACCOUNT_BITS = 256
_STD_WORKCHAIN_BITS, _VAR_WORKCHAIN_BITS = 8, 32
_MAX_ANYCAST_DEPTH = 30
_NONE, _EXTERN, _STD = 0, 1, 2


def read_address(cell: CellSlice) -> Address:
    """Read any MsgAddress."""
    tag = cell.load_uint(2)
    if tag == _NONE:
        return "none", None, None
    if tag == _EXTERN:
        cell.skip(cell.load_uint(9))
        return "extern", None, None
    depth = prefix = 0
    if cell.load_bit():
        depth = cell.load_uint(5)
        if not 0 < depth <= _MAX_ANYCAST_DEPTH:
            raise DecodeError(f"anycast address with a prefix of {depth} bits")
        prefix = cell.load_uint(depth)
    kind, bits, workchain_bits = "std", _ACCOUNT_BITS, _STD_WORKCHAIN_BITS
    if tag != _STD:
        kind, bits, workchain_bits = "var", cell.load_uint(9), _VAR_WORKCHAIN_BITS
    workchain, number = cell.load_int(workchain_bits), cell.load_uint(bits)
    if bits != _ACCOUNT_BITS:
        return kind, None, None
    rest = _ACCOUNT_BITS - depth
    return kind, workchain, (number & (1 << rest) - 1 | prefix << rest).to_bytes(32, "big")


Message = tuple[Any, ...]

_COLUMNS = MESSAGES.names[MESSAGES.names.index("msg_hash") :]

EXTRA_FLAGS_VERSION = 12
"""Global version from which int_msg_info has extra_flags in place of ihr_fee."""

_OPCODE_BITS = 32


class _Content(NamedTuple):
    """A body or StateInit as a cell of its own."""

    hash: bytes
    depth: int
    boc: bytes


class MessageDecoder:
    """Decodes the messages of one tree, each once; version 12 changed the field before fwd_fee."""

    def __init__(self, tree: CellTree, global_version: int | None) -> None:
        """Prepare for the messages of ``tree``, none of which has pruned descendants."""
        self._tree = tree
        self._has_extra_flags = (global_version or 0) >= EXTRA_FLAGS_VERSION
        self._known: dict[int, Message] = {}

    def decode(self, cell: int) -> Message:
        """Return the columns of a message cell; raise DecodeError, or BocError if it is short."""
        known = self._known.get(cell)
        if known is None:
            known = self._known[cell] = self._decode(cell)
        return known

    def decode_row(self, cell: int) -> dict[str, Any]:
        """Return the columns of a message cell by name; raise as ``decode``."""
        return dict(zip(_COLUMNS, self.decode(cell), strict=True))

    def _decode(self, cell: int) -> Message:
        start = self._tree.slice(cell)
        if not start.load_bit():
            info = self._read_int_info(start)
        else:
            info = _read_ext_out_info(start) if start.load_bit() else _read_ext_in_info(start)
        init = self._read_init(start)
        body, opcode = self._read_body(start)
        hash_norm = _normalize(body, self._tree.slice(cell)) if info[0] == "ext_in" else None
        found = (self._tree.hash(cell), hash_norm, *info, opcode, body.hash, body.boc)
        return (*found, init.hash, init.boc) if init else (*found, None, None)

    def _read_int_info(self, cell: CellSlice) -> Message:
        """Read int_msg_info after its tag; return the columns kind to import_fee."""
        ihr_disabled, bounce, bounced = (cell.load_bit() for _ in range(3))
        source_kind, *source = read_address(cell)
        destination_kind, *destination = read_address(cell)
        amount, currencies = cell.load_coins(), load_extra_currencies(cell)
        ihr_fee, extra_flags = cell.load_coins(), None
        if self._has_extra_flags:
            ihr_fee, extra_flags = 0, ihr_fee
        return (
            *("int", *source, source_kind, *destination, destination_kind),
            *(amount, currencies, cell.load_coins(), ihr_fee, extra_flags),
            *(cell.load_uint(64), cell.load_uint(32)),
            *(ihr_disabled, bounce, bounced, None),
        )

    def _read_init(self, cell: CellSlice) -> _Content | None:
        """Read ``init:(Maybe (Either StateInit ^StateInit))``."""
        if not cell.load_bit():
            return None
        if cell.load_bit():
            return self._take(cell.load_ref())
        start = cell.copy()
        if cell.load_bit():  # fixed_prefix_length:(Maybe (## 5))
            cell.skip(5)
        if cell.load_bit():  # special:(Maybe TickTock)
            cell.skip(2)
        for _ in range(3):  # code, data, library: Maybe ^
            cell.load_maybe_ref()
        return self._build(start, start.bits_left - cell.bits_left, cell.ref)

    def _read_body(self, cell: CellSlice) -> tuple[_Content, int | None]:
        """Read ``body:(Either X ^X)``; return it and its first 32 bits, None if it is shorter."""
        if not cell.load_bit():
            has_opcode = cell.bits_left >= _OPCODE_BITS
            opcode = sign_int32(cell.peek_uint(_OPCODE_BITS)) if has_opcode else None
            return self._build(cell, cell.bits_left, None), opcode
        tree, child, opcode = self._tree, cell.load_ref(), None
        if tree.kind(child) == ORDINARY and tree.bit_length(child) >= _OPCODE_BITS:
            opcode = tree.slice(child).load_int(_OPCODE_BITS)
        return self._take(child), opcode

    def _take(self, cell: int) -> _Content:
        tree = self._tree
        return _Content(tree.hash(cell), tree.depth(cell), serialize_boc(tree, (cell,)))

    def _build(self, start: CellSlice, bits: int, last_ref: int | None) -> _Content:
        """Return a cell of its own with the next bits, and the references up to one."""
        children = self._tree.links[start.cell][start.ref : last_ref]
        return self._take(append_cell(self._tree, start.peek_uint(bits), bits, children))


def _read_ext_in_info(cell: CellSlice) -> Message:
    """Read ext_in_msg_info after its tag; return the columns kind to import_fee."""
    source_kind, *_ = read_address(cell)
    destination_kind, *destination = read_address(cell)
    import_fee = cell.load_coins()
    fee = import_fee if import_fee <= INT64_MAX else None
    columns = ("ext_in", None, None, source_kind, *destination, destination_kind)
    return (*columns, *(None,) * 10, fee)


def _read_ext_out_info(cell: CellSlice) -> Message:
    """Read ext_out_msg_info after its tag; return the columns kind to import_fee."""
    source_kind, *source = read_address(cell)
    destination_kind, *_ = read_address(cell)
    lt, at = cell.load_uint(64), cell.load_uint(32)
    columns = ("ext_out", *source, source_kind, None, None, destination_kind)
    return (*columns, *(None,) * 5, lt, at, *(None,) * 4)


def _normalize(body: _Content, cell: CellSlice) -> bytes:
    read_address(cell.skip(2))
    start = cell.copy()
    read_address(cell)
    bits = start.bits_left - cell.bits_left
    return normalize(start.load_uint(bits), bits, body.depth, body.hash)


def normalize(destination: int, bits: int, depth: int, body_hash: bytes) -> bytes:
    """Return the hash of an external message in its normalized form (TEP-467).

    ext_in_msg_info$10, src addr_none$00, dest unchanged, import_fee 0, no init, body in a ref.
    """
    # Four bits of import_fee, one of init, one for the body in a reference.
    head = pack_head(1, (0b1000 << bits | destination) << 6 | 1, 4 + bits + 6)
    return sha256(head + depth.to_bytes(2, "big") + body_hash).digest()
