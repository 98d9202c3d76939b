"""Columns of layouts against the decoded bodies of the lake."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode, read
from tests.ingest.derive.body.values import records
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.fields import describe_layout, read_tables
from tonlake.ingest.derive.body.record import OPCODE_BITS
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.signature import Layout
from tonlake.ingest.errors import BocError, BodyError, BodyLimit
from tonlake.lake.duck.body_table import BodyTable, add_tables
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

NAMES = sorted({each.name for layouts in load_scheme().layouts.values() for each in layouts})
OPCODES = sorted(load_scheme().layouts)
BODIES = """
    select distinct body_hash, decoded
    from message_bodies
    where not external_in and decoded is not null
"""
PAIRS = "select columns(*) from {name} where kind <> 'ext_in'"


def compare(lake_dir: Path) -> int:
    """Compare all shipped layouts' columns with the decoded bodies; return the value count."""
    connection = connect(open_snapshot(lake_dir))
    decoded = {row[0]: json.loads(row[1]) for row in connection.sql(BODIES).fetchall()}
    present = {value["@type"] for value in decoded.values()} & set(NAMES)
    tables = read_tables(sorted(present))
    misfits = add_tables(connection, tables)
    compared = 0
    for table in tables:
        rows = connection.sql(PAIRS.format(name=table.name)).to_arrow_table().to_pylist()
        of_name = {key for key, value in decoded.items() if value["@type"] == table.name}
        assert {row["body_hash"] for row in rows} >= of_name
        for row in rows:
            value = decoded[row["body_hash"]]
            if value["@type"] == table.name:
                compared += compare_row(table, row, value)
    assert all(count >= 0 for count in misfits.values())
    return compared


def compare_row(table: BodyTable, row: dict[str, Any], value: dict[str, Any]) -> int:
    if table.name == "text_comment":
        value = {"text": value["comment"]}
    names = {field.name for layout in table.layouts for field in layout.fields}
    given = {name: row[name] for name in names if not name.startswith("field_")}
    for name, found in given.items():
        assert matches(found, value.get(name)), (table.name, name, found, value.get(name))
    return len(given)


def matches(found: object, value: Any) -> bool:  # noqa: PLR0911 - one for each form
    """Return whether a typed value equals a value of decoded JSON."""
    if isinstance(found, str) and found[:1] in {"{", "["} and json.loads(found) == value:
        return True
    if isinstance(value, str):
        texts = [value, json.dumps(value), json.dumps(value, ensure_ascii=False)]
        if isinstance(found, int | Decimal):
            return int(value) == found
        return found in texts or (isinstance(found, bytes) and found == bytes.fromhex(value))
    if not isinstance(value, dict):
        return bool(found == value)
    kind = value.get("@type")
    if kind == "addr_std":
        return found == f"{value['workchain_id']}:{value['address']}"
    if kind in {"nothing_from_maybe", "addr_none", "addr_extern", "addr_var"}:
        return found is None
    inner = next(name for name in (*WRAPPERS, "") if name in value or not name)
    return bool(inner) and matches(found, value[inner])


WRAPPERS = ("cell_reference", "value", "text", "amount")
"""Fields that hold the value of a type with one field."""


def test_shipped_layouts_give_the_decoded_bodies(demo_lake: Path) -> None:
    assert compare(demo_lake) > 100


@pytest.mark.long
@pytest.mark.parametrize("name", ["node/localnet-db", "node/celldb-v2/localnet-celldbv2"])
def test_shipped_layouts_on_the_shared_networks(
    ingest_network: Callable[[str], Path], name: str
) -> None:
    assert compare(ingest_network(name)) > 1000


@given(st.data())
def test_fields_are_those_of_the_whole_body(data: st.DataObject) -> None:
    """For generated bodies of a layout, intact and with flipped bits, every field is equal."""
    opcode = data.draw(st.sampled_from(OPCODES))
    record = data.draw(st.sampled_from(load_scheme().layouts[opcode]))
    layout = Layout(record.name, opcode, record)
    builder = CellBuilder().store_uint(opcode, OPCODE_BITS)
    try:
        encode(record, data.draw(records(record)), builder)
        body = serialize_boc(builder.tree, [builder.end()])
    except (BocError, NotImplementedError):
        reject()
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    table = describe_layout(layout)
    bodies = pa.array([body, bytes(damaged), None, b"", body[:-1]], pa.binary())
    wanted = [read_whole(layout, each.as_py()) for each in bodies]
    assert table.fit(bodies).to_pylist() == [value is not None for value in wanted]
    fields = {field.name: field for field in table.fields}
    for part in (part for part in record.parts if part.name):
        for value, text in zip(wanted, fields[part.name].decode(bodies).to_pylist(), strict=True):
            if value is None or part.name not in value:
                assert text is None
            else:
                assert text.strip('"') == encode_json(value[part.name]).strip('"')


def encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def read_whole(layout: Layout, body: bytes | None) -> dict[str, Any] | None:
    try:
        tree = parse_boc(body or b"")
        source = tree.slice(tree.roots[0])
        if source.load_uint(OPCODE_BITS) != layout.opcode:
            return None
        value: dict[str, Any] = read(layout.record, source)
    except (BocError, BodyError, BodyLimit):
        return None
    return None if layout.record.is_whole and (source.bits_left or source.refs_left) else value
