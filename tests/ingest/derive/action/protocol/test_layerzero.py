"""Records and packets of LayerZero, read back as written."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.action.scene import Cell
from tonlake.ingest.derive.action.protocol.layerzero import (
    PacketRecord,
    read_encoded_packet,
    read_packet,
    read_record,
)
from tonlake.ingest.errors import BodyError, IngestError

TYPES = {1: 0, 8: 3, 16: 4, 32: 5, 64: 6, 128: 7, 256: 8}
"""Type of a field by its bits."""
NO_FIELD, REFERENCE, FIELDS = 15, 9, 15
HEADER_BITS = 350


class Number(NamedTuple):
    """A field with a number of ``bits`` bits."""

    value: int
    bits: int


def write_record(cell: Cell, name: bytes, fields: Sequence[Number | Cell]) -> Cell:
    """Write a record with numbers in its root and cells behind references."""
    cell.uint(int.from_bytes(name.rjust(10, b"\0"), "big"), 80)
    offset, reference = HEADER_BITS, 0
    for field in fields:
        if isinstance(field, Number):
            cell.uint(TYPES[field.bits], 4).uint(0, 2).uint(offset, 10).uint(0, 2)
            offset += field.bits
        else:
            cell.uint(REFERENCE, 4).uint(0, 2).uint(0, 10).uint(reference, 2)
            reference += 1
    for _ in range(FIELDS - len(fields)):
        cell.uint(NO_FIELD, 4).uint(0, 14)
    for field in fields:
        if isinstance(field, Number):
            cell.uint(field.value, field.bits)
        else:
            cell.ref(field)
    return cell


def numbers() -> st.SearchStrategy[Number]:
    """Numbers of every width that fit."""
    return st.sampled_from(sorted(TYPES)).flatmap(
        lambda bits: st.integers(0, (1 << bits) - 1).map(lambda value: Number(value, bits))
    )


@given(
    st.binary(max_size=10).map(lambda name: name.lstrip(b"\0")),
    st.lists(numbers(), max_size=FIELDS).filter(
        lambda fields: HEADER_BITS + sum(field.bits for field in fields) <= 1023
    ),
)
def test_numbers_of_the_root_read_back(name: bytes, fields: list[Number]) -> None:
    record = PacketRecord(write_record(Cell(), name, fields).body())
    assert record.name == name
    assert [record.uint(number) for number in range(len(fields))] == [
        field.value for field in fields
    ]
    for number in range(len(fields), FIELDS):
        with pytest.raises(BodyError, match=f"no field {number}"):
            record.uint(number)


@given(st.integers(1, 3), st.integers(0, 100), numbers())
def test_a_number_may_lie_in_another_cell(place: int, offset: int, number: Number) -> None:
    cell = Cell().uint(0, 80)
    cell.uint(TYPES[number.bits], 4).uint(place, 2).uint(offset, 10).uint(0, 2)
    for _ in range(FIELDS - 1):
        cell.uint(NO_FIELD, 4).uint(0, 14)
    for child in range(4):
        inner = cell.child()
        if child == place:
            inner.uint(0, offset).uint(number.value, number.bits)
        cell.ref(inner)
    # Reference 0 is never the position of a number: 0 means the root itself.
    assert PacketRecord(cell.body()).uint(0) == number.value


def test_a_number_is_not_a_cell_and_vice_versa() -> None:
    cell = Cell()
    record = PacketRecord(write_record(cell, b"x", [Number(5, 8), cell.child()]).body())
    with pytest.raises(BodyError, match="field 0 of record b'x' is not a cell"):
        record.cell(0)
    with pytest.raises(BodyError, match="field 1 of record b'x' is not a number"):
        record.uint(1)


def test_a_packet_in_records() -> None:
    root = Cell()
    packet = root.child()
    path = write_record(
        packet.child(), b"path", [Number(1, 32), Number(2, 256), Number(3, 32), Number(4, 256)]
    )
    fields: list[Number | Cell] = [path, packet.child().text("hi"), Number(6, 64), Number(7, 256)]
    write_record(packet, b"Packet", fields)
    assert read_packet(read_record(root.ref(packet).body())) == {
        "src_eid": 1,
        "src_oapp": "0x2",
        "dst_eid": 3,
        "dst_oapp": "0x4",
        "nonce": 6,
        "guid": "0x7",
        "message": "0x6869",
    }


WIRE = bytes([1]) + b"".join(
    number.to_bytes(size, "big")
    for number, size in ((9, 8), (30_343, 4), (5, 32), (30_101, 4), (6, 32), (7, 32))
)


def write_snake(cell: Cell, data: bytes) -> Cell:
    """Write bytes into a chain of cells of up to 127."""
    cell.uint(int.from_bytes(data[:127], "big"), 8 * len(data[:127]))
    return cell.ref(write_snake(cell.child(), data[127:])) if data[127:] else cell


@given(st.binary(max_size=300))
def test_a_packet_in_wire_format(message: bytes) -> None:
    assert read_encoded_packet(write_snake(Cell(), WIRE + message).body()) == {
        "nonce": 9,
        "src_eid": 30_343,
        "src_oapp": "0x5",
        "dst_eid": 30_101,
        "dst_oapp": "0x6",
        "guid": "0x7",
        "message": "0x" + message.hex(),
    }


@given(st.integers(0, len(WIRE) - 1))
def test_a_truncated_packet_is_rejected(size: int) -> None:
    with pytest.raises(BodyError, match="truncated"):
        read_encoded_packet(write_snake(Cell(), WIRE[:size]).body())


@given(st.integers(0, HEADER_BITS - 1))
def test_a_cell_too_short_is_not_a_record(bits: int) -> None:
    with pytest.raises(IngestError):
        PacketRecord(Cell().uint(0, bits).body())
