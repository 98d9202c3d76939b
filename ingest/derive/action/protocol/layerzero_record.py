"""Records of LayerZero's contracts: cells that say themselves where their fields are.

A record begins with its name (80 bits) and 15 field descriptors of 18 bits: type, cell, offset
and reference. Data follow at bit 350 of the root; a field may also lie in one of the root's
references. Source: the class library of LayerZero's contracts for TON, as their messages show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Columns
    from tonlake.ingest.derive.action.body import Body

_NAME_BITS, _FIELDS = 80, 15
_NO_FIELD, _REFERENCE = 15, 9
_WIDTHS = {0: 1, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128, 8: 256}
"""Bits of a field by its type."""


class _Field(NamedTuple):
    kind: int
    cell: int
    offset: int
    reference: int


class Record:
    """One record, read field by field; fields are numbered from 0."""

    def __init__(self, body: Body) -> None:
        """Read the header of a record at the start of a cell.

        Raises:
            CellUnderflow: the cell is too short to be one.
        """
        self._root = body.copy()
        head = body.copy()
        self.name = head.uint(_NAME_BITS).to_bytes(_NAME_BITS // 8, "big").lstrip(b"\0")
        self._fields = [
            _Field(head.uint(4), head.uint(2), head.uint(10), head.uint(2)) for _ in range(_FIELDS)
        ]

    def uint(self, number: int) -> int:
        """Return the number in a field.

        Raises:
            ActionUnreadable: the field is none, or no number.
        """
        field = self._find(number)
        bits = _WIDTHS.get(field.kind)
        if bits is None:
            raise ActionUnreadable(f"field {number} of record {self.name!r} holds no number")
        return self._place(field).skip(field.offset).uint(bits)

    def cell(self, number: int) -> Body:
        """Return the start of the cell that a field refers to; raises as ``uint``."""
        field = self._find(number)
        if field.kind != _REFERENCE:
            raise ActionUnreadable(f"field {number} of record {self.name!r} is no cell")
        return _child(self._place(field), field.reference)

    def record(self, number: int) -> Record:
        """Return the record that a field refers to; raises as ``uint``."""
        return Record(self.cell(number))

    def _find(self, number: int) -> _Field:
        field = self._fields[number]
        if field.kind == _NO_FIELD:
            raise ActionUnreadable(f"record {self.name!r} has no field {number}")
        return field

    def _place(self, field: _Field) -> Body:
        """Return the start of the cell in which a field lies."""
        return _child(self._root, field.cell) if field.cell else self._root.copy()


def _child(body: Body, number: int) -> Body:
    """Return the start of a reference of a cell, counted from 0."""
    at = body.copy()
    child = at.ref()
    for _ in range(number):
        child = at.ref()
    return child


def read_record(body: Body) -> Record:
    """Return the record that a message carries in its first reference."""
    return Record(body.copy().ref())


def read_packet(packet: Record) -> Columns:
    """Return the fields of a ``Packet``: path, message, nonce and guid."""
    path = packet.record(0)
    return {
        "src_oapp": hex(path.uint(1)),
        "dst_oapp": hex(path.uint(3)),
        "src_eid": path.uint(0),
        "dst_eid": path.uint(2),
        "nonce": packet.uint(2),
        "guid": hex(packet.uint(3)),
        "message": _show(packet.cell(1).snake()),
    }


def read_encoded_packet(body: Body) -> Columns:
    """Return the fields of a packet as it goes over the wire.

    Version (1 byte), nonce (8), source endpoint (4) and application (32), destination endpoint
    (4) and application (32), guid (32), message.
    """
    wire = body.snake()
    sizes = {"nonce": 8, "src_eid": 4, "src_oapp": 32, "dst_eid": 4, "dst_oapp": 32, "guid": 32}
    shown: Columns = {}
    at = 1
    for name, size in sizes.items():
        part, at = wire[at : at + size], at + size
        if len(part) < size:
            raise ActionUnreadable("a packet of LayerZero is cut off")
        number = int.from_bytes(part, "big")
        shown[name] = number if name in {"nonce", "src_eid", "dst_eid"} else hex(number)
    return shown | {"message": _show(wire[at:])}


def _show(data: bytes) -> str:
    return "0x" + data.hex()
