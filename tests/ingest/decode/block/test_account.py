"""Account cells of every form: synthetic ones round-trip, recorded and invalid ones."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_hashmap
from tonlake.ingest.decode.block.state import (
    NONEXIST,
    NONEXIST_HASH,
    AccountState,
    StateAt,
    Touched,
    make_row,
    read_account,
)
from tonlake.ingest.decode.cell.boc import CellTree, parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.errors import BocError, IngestError
from tonlake.lake.schema import ACCOUNT_STATES

AT = StateAt(0, -(1 << 63), 7, 9, 1_700_000_000)
COINS = st.integers(0, 2**63 - 1)
LT = st.integers(0, 2**63 - 1)
HASH = st.binary(min_size=32, max_size=32)
OPTIONAL_COINS = st.none() | COINS


def _store_address(builder: CellBuilder, form: str, data: st.DataObject) -> None:
    anycast = data.draw(st.none() | st.integers(1, 30))
    builder.store_uint(0b10 if form == "std" else 0b11, 2).store_bit(anycast is not None)
    if anycast is not None:
        builder.store_uint(anycast, 5).store_uint(0, anycast)
    if form == "std":
        builder.store_int(-1, 8).store_bytes(bytes(range(32)))
    else:
        bits = data.draw(st.integers(0, 64))
        builder.store_uint(bits, 9).store_int(5, 32).store_uint(0, bits)


def _build_parts(tree: CellTree, state: AccountState, data: st.DataObject) -> AccountState:
    """Give an active state some code, data and library cells."""
    cells = st.none() | st.binary(max_size=20)
    parts = {}
    for name in ("code", "data", "library"):
        content = data.draw(cells)
        if content is not None:
            parts[name] = CellBuilder(tree).store_bytes(content).end()
    return AccountState(**{**_fields(state), **parts})


def _fields(state: AccountState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in AccountState.__struct_fields__}


def _store_state(builder: CellBuilder, state: AccountState) -> None:
    if state.account_status == "uninit":
        builder.store_uint(0, 2)
    elif state.account_status == "frozen":
        assert state.frozen_hash is not None
        builder.store_uint(1, 2).store_bytes(state.frozen_hash)
    else:
        builder.store_bit(1)
        builder.store_bit(state.fixed_prefix_length is not None)
        if state.fixed_prefix_length is not None:
            builder.store_uint(state.fixed_prefix_length, 5)
        builder.store_bit(state.special_tick is not None)
        if state.special_tick is not None and state.special_tock is not None:
            builder.store_bit(state.special_tick).store_bit(state.special_tock)
        for cell in (state.code, state.data, state.library):
            builder.store_maybe_ref(cell)


def _build_account(
    tree: CellTree, state: AccountState, extra: tuple[str, int], data: st.DataObject
) -> int:
    builder = CellBuilder(tree).store_bit(1)
    _store_address(builder, data.draw(st.sampled_from(["std", "var"])), data)
    assert state.storage_cells is not None
    assert state.storage_bits is not None
    assert state.storage_last_paid is not None
    assert state.storage_last_trans_lt is not None
    builder.store_var_uint(state.storage_cells, 3).store_var_uint(state.storage_bits, 3)
    form, value = extra
    if form == "public_cells":
        builder.store_var_uint(value, 3)
    elif form == "dict_hash":
        builder.store_uint(1, 3).store_uint(value, 256)
    else:
        builder.store_uint(0, 3)
    builder.store_uint(state.storage_last_paid, 32)
    builder.store_bit(state.storage_due_payment is not None)
    if state.storage_due_payment is not None:
        builder.store_coins(state.storage_due_payment)
    builder.store_uint(state.storage_last_trans_lt, 64).store_coins(state.balance)
    builder.store_maybe_ref(state.extra_currencies)
    _store_state(builder, state)
    return builder.end()


@st.composite
def states(draw: st.DrawFn) -> AccountState:
    """Draw the fields of an account that exists, without its cells."""
    status = draw(st.sampled_from(["uninit", "frozen", "active"]))
    ticks = draw(st.none() | st.tuples(st.booleans(), st.booleans()))
    is_active = status == "active"
    return AccountState(
        status,
        balance=draw(COINS),
        frozen_hash=draw(HASH) if status == "frozen" else None,
        fixed_prefix_length=draw(st.none() | st.integers(0, 31)) if is_active else None,
        special_tick=ticks[0] if ticks and is_active else None,
        special_tock=ticks[1] if ticks and is_active else None,
        storage_cells=draw(st.integers(0, 2**48 - 1)),
        storage_bits=draw(st.integers(0, 2**48 - 1)),
        storage_last_paid=draw(st.integers(0, 2**32 - 1)),
        storage_due_payment=draw(OPTIONAL_COINS),
        storage_last_trans_lt=draw(LT),
    )


EXTRAS = st.one_of(
    st.just(("none", 0)),
    st.tuples(st.just("public_cells"), st.integers(1, 2**40)),
    st.tuples(st.just("dict_hash"), st.integers(0, 2**256 - 1)),
)


@given(states(), EXTRAS, st.dictionaries(st.integers(0, 2**32 - 1), COINS), st.data())
def test_every_form_reads_back(
    state: AccountState, extra: tuple[str, int], currencies: dict[int, int], data: st.DataObject
) -> None:
    builder = CellBuilder()
    tree = builder.tree
    if state.account_status == "active":
        state = _build_parts(tree, state, data)
    if currencies:
        entries = {
            key: lambda cell, amount=amount: cell.store_var_uint(amount, 5)
            for key, amount in currencies.items()
        }
        dictionary = build_hashmap(tree, entries, 32)
        state = AccountState(**{**_fields(state), "extra_currencies": dictionary})
    try:
        cell = _build_account(tree, state, extra, data)
    except BocError:  # an account whose every field is as long as can be fits in no cell
        assume(condition=False)
    version = {"public_cells": 10, "dict_hash": 11}.get(extra[0])
    assert read_account(tree, cell, global_version=version) == state
    row = _make_dict(tree, cell, state)
    amounts = {str(key): str(amount) for key, amount in sorted(currencies.items())}
    assert json.loads(row["extra_currencies"] or "{}") == amounts
    assert (row["extra_currencies_hash"] is None) == (not currencies)
    for column, part in (("code_hash", state.code), ("data_hash", state.data)):
        assert row[column] == (None if part is None else tree.hash(part))


def _make_dict(tree: CellTree, cell: int, state: AccountState) -> dict[str, Any]:
    """Make the row as Arrow takes it."""
    row = make_row(tree, AT, Touched(bytes(32), 5, b"\1" * 32, tree.hash(cell)), state)
    schema = ACCOUNT_STATES.arrow
    arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
    made: dict[str, Any] = pa.Table.from_arrays(arrays, schema=schema).to_pylist()[0]
    return made


@given(states().filter(lambda state: state.account_status == "active"), st.data())
def test_without_a_version_the_end_of_the_cell_decides(
    state: AccountState, data: st.DataObject
) -> None:
    tree = CellBuilder().tree
    extra = data.draw(EXTRAS)
    cell = _build_account(tree, state, extra, data)
    assert read_account(tree, cell) == state


def test_account_none_is_the_state_of_a_missing_account() -> None:
    builder = CellBuilder().store_bit(0)
    cell = builder.end()
    assert read_account(builder.tree, cell) == NONEXIST
    assert builder.tree.hash(cell) == NONEXIST_HASH
    row = _make_dict(builder.tree, cell, NONEXIST)
    assert (row["account_status"], row["balance"], row["code_hash"]) == ("nonexist", 0, None)


@given(states(), st.data())
def test_bits_left_over_are_refused(state: AccountState, data: st.DataObject) -> None:
    tree = CellBuilder().tree
    cell = _build_account(tree, state, ("none", 0), data)
    longer = CellBuilder(tree).store_slice(tree.slice(cell)).store_bit(1).end()
    with pytest.raises(IngestError):
        read_account(tree, longer)


@given(st.binary(max_size=120), st.integers(0, 4))
def test_any_cell_is_read_or_refused(content: bytes, kids: int) -> None:
    builder = CellBuilder()
    leaf = CellBuilder(builder.tree).end()
    builder.store_bytes(content)
    for _ in range(kids):
        builder.store_ref(leaf)
    cell = builder.end()
    try:
        state = read_account(builder.tree, cell)
    except IngestError:
        return
    assert state.account_status in {"uninit", "frozen", "active", "nonexist"}


def test_recorded_accounts_decode_to_their_recorded_fields(shared: Path) -> None:
    path = shared / "data" / "accounts" / "mainnet_0_71398501_prestates.jsonl.zst"
    with pa.input_stream(str(path), compression="zstd") as stream:
        lines = stream.read().splitlines()
    for line in map(json.loads, lines):
        tree = parse_boc(base64.b64decode(line["shard_account_boc"]))
        entry = tree.slice(tree.roots[0])
        cell, last_hash, last_lt = entry.load_ref(), entry.load_bytes(32), entry.load_uint(64)
        row = _make_dict(tree, cell, read_account(tree, cell))
        expected = line["expected"]
        assert tree.hash(cell).hex() == line["account_root_hash"]
        assert (last_lt, last_hash.hex()) == (
            expected["last_trans_lt"],
            expected["last_trans_hash"],
        )
        assert str(row["balance"]) == expected["balance"]
        assert row["account_status"] == expected["status"]
        assert row["code_hash"] == base64.b64decode(expected["code_hash"])
        assert row["data_hash"] == base64.b64decode(expected["data_hash"])
    assert len(lines) == 89
