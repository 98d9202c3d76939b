"""The extension composes the same segments as plain Python, byte for byte."""

from __future__ import annotations

import io
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.rows import make_traces
from tests.lake.chain import Chain
from tests.lake.index.reference.segment import Reference
from tonlake.lake.index.builder.compose import Composer
from tonlake.lake.index.builder.gather import SOURCES, Source
from tonlake.lake.index.segment import shape
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TABLES, TRACES

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.schema import Column

Tables = dict[str, pa.Table]
MAX_INT = (1 << 63) - 1
MAX_AMOUNT = 10**38 - 1

EDGES: dict[str, tuple[Any, ...]] = {
    "bool": (False, True),
    "int8": (0, 1, -1, 127, -128),
    "int32": (0, 1, -1, 63, 64, 0x0F8A7EA5, (1 << 31) - 1, -(1 << 31)),
    "int64": (0, 1, -1, 64, 1 << 62, MAX_INT, -MAX_INT - 1, 400_000),
    "hash": (bytes(32), b"\x01" * 32, b"\x01" * 8 + b"\x02" * 24, b"\xff" * 32),
    "bytes": (
        *(b"", b"abc", b"abcd", b"twelve bytes", b"eleven byte", bytes(32), b"\x01" * 32),
        *(bytes(3) + b"\x0f\x8a\x7e\xa5", bytes(61) + b"\x0f\x8a\x7e\xa5", b"long" * 100),
    ),
    "text": ("in", "out", "", "active", "\N{GEM STONE}"),
    "json": ("", "{}", '{"1":"\N{GEM STONE} and more"}'),
    "amount": (0, 1, -1, 1 << 63, MAX_AMOUNT, -MAX_AMOUNT),
    "time": (0,),
}
"""Values near the limits of their encodings, and few, so that they come again."""


def value_of(rng: random.Random, column: Column) -> object:
    return None if column.nullable and rng.random() < 0.3 else rng.choice(EDGES[column.type])


def make_part(rng: random.Random, accounts: list[bytes], rows: int) -> Tables:
    """Return random rows: of few accounts and hashes, related or not."""
    hashes = [*EDGES["hash"], *(rng.randbytes(32) for _ in range(rows))]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SOURCES}
    for name, listed in found.items():
        for number in range(rng.randrange(rows + 1)):
            row = {column.name: value_of(rng, column) for column in TABLES[name].columns}
            row |= {
                column.name: rng.choice(hashes)
                for column in TABLES[name].columns
                if column.type == "hash" and row[column.name] is not None and rng.random() < 0.7
            }
            names = {"account", "tx_account"} & row.keys()
            listed.append(row | dict.fromkeys(names, rng.choice(accounts)))
            if name == "transactions":
                # Rows of one account have different times, which order them.
                listed[-1] |= {"lt": number * 1000 + rng.randrange(9), "now": rng.randrange(99)}
                listed[-1]["mc_seqno"] = rng.randrange(9)
                if rng.random() < 0.5:
                    listed[-1]["account_state_hash_before"] = hashes[0]
    return {name: as_table(name, rows) for name, rows in found.items()}


def as_table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TABLES[name].arrow)


def split(table: pa.Table, rng: random.Random) -> pa.Table:
    """Return a table in several batches that begin in the middle of buffers."""
    cuts = sorted({0, table.num_rows, *(rng.randrange(table.num_rows + 1) for _ in range(2))})
    pieces = [table.slice(start, end - start) for start, end in pairwise(cuts)]
    return pa.concat_tables(pieces) if pieces else table


def compose_both(
    parts: list[Tables], ended: pa.Table, max_remembered: int, max_numbered: int
) -> tuple[bytes, bytes]:
    """Return a segment composed by the extension, and by the reference."""
    stream = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape, "_REMEMBERED", max_remembered)
        patch.setattr(shape, "_MAX_NUMBERED", max_numbered)
        composer = Composer(stream)
    reference = Reference(max_remembered, max_numbered)
    for part in parts:
        composer.add_part(part)
        reference.add_part(part)
    composer.finish((1, 9), ended)
    return stream.getvalue(), reference.finish((1, 9), ended)


limits = {"max_remembered": st.integers(0, 40), "max_numbered": st.integers(0, 5)}


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), rows=st.integers(0, 25), **limits)
def test_any_rows_give_the_same_bytes(
    seed: int, rows: int, max_remembered: int, max_numbered: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
    accounts = sorted({*EDGES["hash"], *(rng.randbytes(32) for _ in range(3))})
    halves = accounts[:3], accounts[3:]
    parts = [make_part(rng, half, rows) for half in halves]
    traces = [
        {column.name: value_of(rng, column) for column in TRACES.columns} | {"trace_id": trace_id}
        for trace_id in {bytes(32), *parts[0]["transactions"]["hash"].to_pylist()}
    ]
    pieces = [{name: split(table, rng) for name, table in part.items()} for part in parts]
    found, expected = compose_both(pieces, as_table("traces", traces), max_remembered, max_numbered)
    assert found == expected


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), last=st.integers(1, 30), **limits)
def test_chains_give_the_same_bytes(
    seed: int, last: int, max_remembered: int, max_numbered: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
    rows = Chain(seed).make(1, last)
    rows["transaction_traces"] = trace(rows["transactions"], rng)
    part = {name: split(rows[name], rng) for name in SOURCES}
    ended = make_traces(rows["transactions"])
    found, expected = compose_both([part], ended, max_remembered, max_numbered)
    assert found == expected


def trace(transactions: pa.Table, rng: random.Random) -> pa.Table:
    """Return traces of transactions: in their own segment, in another, or in none."""
    hashes = [*transactions["hash"].to_pylist(), bytes(32), b"\xee" * 32]
    names = ("workchain", "account", "lt", "hash", "mc_seqno")
    rows = [
        row
        | {
            "trace_id": rng.choice(hashes),
            "parent_hash": rng.choice([None, *hashes]),
            "edge": rng.choice((None, "ext", "ord")),
        }
        for row in transactions.select(names).to_pylist()
        if rng.random() < 0.9
    ]
    return as_table("transaction_traces", rows)


def test_an_account_with_many_states_gives_the_same_bytes() -> None:
    rows = Chain(5, accounts=1).make(1, 60)
    rows["transaction_traces"] = TABLES["transaction_traces"].empty
    found, expected = compose_both([rows], TRACES.empty, 1000, 1000)
    assert found == expected


@pytest.mark.parametrize("part_rows", [100_000, 200])
def test_a_genuine_network_gives_the_same_bytes(
    demo_lake: Path, tmp_path: Path, part_rows: int
) -> None:
    files = read_state(demo_lake).files
    source = Source(demo_lake, files, (1, 1 << 31))
    stream = io.BytesIO()
    composer, reference = Composer(stream), Reference(shape._REMEMBERED, shape._MAX_NUMBERED)
    for part in source.read_parts(part_rows, tmp_path):
        composer.add_part(part)
        reference.add_part(part)
    ended, contracts = source.read_ended(), list(source.read_contracts())
    places = list(source.read_places())
    composer.finish((1, 9), ended, contracts, places)
    assert stream.getvalue() == reference.finish((1, 9), ended, contracts, places)
    assert len(contracts) > 3
    assert {name for name, _ in places} == {"blocks", "actions"}


@pytest.mark.parametrize("name", list(SOURCES))
def test_rows_of_another_schema_are_refused(name: str) -> None:
    rows = Chain(3).make(1, 3)
    rows["transaction_traces"] = TABLES["transaction_traces"].empty
    column = "tx_hash" if name == "messages" else "hash"
    table = rows[name]
    at = table.schema.get_field_index(column)
    texts = pa.array(["text"] * table.num_rows)
    for other, what in (
        (table.drop_columns([column]), "is missing"),
        (table.set_column(at, column, texts), "has another type"),
        (table.set_column(at, column, texts.dictionary_encode()), "has another type"),
    ):
        with pytest.raises(ValueError, match=what):
            Composer(io.BytesIO()).add_part(rows | {name: other})


def test_a_value_that_is_needed_is_not_null() -> None:
    rows = Chain(3).make(1, 3)
    rows["transaction_traces"] = TABLES["transaction_traces"].empty
    table = rows["messages"]
    at = table.schema.get_field_index("msg_hash")
    hashes = [None, *table["msg_hash"].to_pylist()[1:]]
    field = pa.field("msg_hash", pa.binary(32))
    rows["messages"] = table.set_column(at, field, pa.array(hashes, pa.binary(32)))
    with pytest.raises(ValueError, match="msg_hash of an index segment's rows lacks a value"):
        Composer(io.BytesIO()).add_part(rows)


def test_nothing_is_read_before_the_end_and_added_behind_it() -> None:
    composer = shape.open_composer()
    with pytest.raises(RuntimeError, match="not complete"):
        composer.copy("lt")
    composer.end(TRACES.empty)
    with pytest.raises(RuntimeError, match="takes no more rows"):
        composer.end(TRACES.empty)
    for read, error in ((composer.copy, KeyError), (composer.postings, ValueError)):
        with pytest.raises(error, match="other_name"):
            read("other_name")
