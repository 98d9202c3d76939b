"""The stage of bodies: a row for each different body of a commit."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode_body
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.body import decode_message_body
from tonlake.ingest.derive.body.codec import MAX_ITEMS
from tonlake.ingest.derive.body.derivation import COLUMNS, decode_bodies, derive_bodies
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES


def make_bag(number: int) -> bytes:
    """Build one of several bodies: known, unknown, empty and signed."""
    if number == 0:
        tree, cell = encode_body("text_comment", text="hello")
    elif number == 1:
        tree, cell = encode_body("excess", query_id="1")
    else:
        builder = CellBuilder().store_uint(number, (0, 8, 64, 608)[number - 2])
        tree, cell = builder.tree, builder.end()
    return serialize_boc(tree, [cell])


BAGS = [make_bag(number) for number in (0, 1, 3, 4, 5)]
MESSAGE = st.tuples(
    st.integers(0, len(BAGS)), st.sampled_from(["int", "ext_in", "ext_out"]), st.integers(1, 9)
)


def make_messages(drawn: list[tuple[int, str, int]]) -> pa.Table:
    """Build the columns of messages that bodies are decoded from; the last number means no body."""
    rows = []
    for which, kind, mc_seqno in drawn:
        bag = BAGS[which] if which < len(BAGS) else None
        tree = None if bag is None else parse_boc(bag)
        body_hash = bytes(32) if tree is None else tree.hash(tree.roots[0])
        rows.append({"body_hash": body_hash, "kind": kind, "mc_seqno": mc_seqno, "body": bag})
    fields = [MESSAGES.arrow.field(name) for name in COLUMNS]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@given(st.lists(MESSAGE, max_size=20))
def test_each_different_body_of_a_block_has_a_row(drawn: list[tuple[int, str, int]]) -> None:
    messages = make_messages(drawn)
    bodies = decode_bodies(messages)
    assert bodies.schema == MESSAGE_BODIES.arrow
    expected = {
        (row["body_hash"], row["kind"] == "ext_in", row["mc_seqno"]): row["body"]
        for row in messages.to_pylist()
        if row["body"] is not None
    }
    found = {tuple(row[name] for name in MESSAGE_BODIES.key): row for row in bodies.to_pylist()}
    assert len(found) == bodies.num_rows
    assert set(found) == set(expected)
    for key, body in expected.items():
        wanted = decode_message_body(body, external_in=key[1])
        assert found[key]["decoded_opcode"] == wanted.own_name
        assert found[key]["decoded"] == wanted.json


@given(st.lists(MESSAGE, max_size=20), st.integers(1, 9))
def test_rows_do_not_depend_on_the_commits(drawn: list[tuple[int, str, int]], cut: int) -> None:
    together = decode_bodies(make_messages(drawn)).to_pylist()
    apart = [
        row
        for part in ([m for m in drawn if m[2] < cut], [m for m in drawn if m[2] >= cut])
        for row in decode_bodies(make_messages(part)).to_pylist()
    ]
    assert sort(apart) == sort(together)


def sort(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(row[name] for name in MESSAGE_BODIES.key))


def test_a_commit_without_messages_has_no_bodies() -> None:
    made = derive_bodies(LogState(), {}, Place(1, 2, "2026-01-01"))
    assert [(file.table, file.rows.num_rows) for file in made.files] == [(MESSAGE_BODIES.name, 0)]
    assert not made.removed


def test_a_row_names_the_limit_that_was_met() -> None:
    tree = CellBuilder().tree
    out = CellBuilder(tree).end()
    for _ in range(MAX_ITEMS + 1):
        code = CellBuilder(tree).end()
        out = CellBuilder(tree).store_ref(out).store_uint(0xAD4DE08E, 32).store_ref(code).end()
    body = CellBuilder(tree).store_uint(0xAE42E5A4, 32).store_uint(1, 64).store_ref(out).end()
    row = {"body_hash": bytes(32), "kind": "int", "mc_seqno": 1}
    row["body"] = serialize_boc(tree, [body])
    schema = pa.schema([MESSAGES.arrow.field(name) for name in COLUMNS])
    [found] = decode_bodies(pa.Table.from_pylist([row], schema=schema)).to_pylist()
    assert found["decoded_opcode"] == "highload_v3_internal_request"
    limit = f"a list of the body has more than {MAX_ITEMS} items"
    assert json.loads(found["decoded"]) == {"@type": "undecoded", "limit": limit}
