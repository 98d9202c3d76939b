"""Transactions: every kind and phase, and invalid ones."""

import base64
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.decode.block.samples import DESCRIPTIONS, STATUSES, Columns, Fields
from tests.ingest.hashmaps import build_hashmap
from tests.ingest.updates import end_pruned
from tonlake.ingest.decode.block.transaction import (
    BlockPlace,
    TransactionDecoder,
    decode_transaction,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.schema import TRANSACTIONS

NOW = 1_700_000_000


def store_transaction(
    to: Fields,
    description: int,
    *,
    in_msg: int | None = None,
    out_msgs: tuple[int, ...] = (),
    now: int = NOW,
    out_count: int | None = None,
) -> int:
    """Write a transaction around a description; its own columns are added to ``to``."""
    tree = to.tree
    to.columns |= {"now": now, "outmsg_cnt": len(out_msgs)}
    to.builder.store_uint(7, 4)
    to.hash("account")
    to.uint("lt", 64)
    to.hash("prev_trans_hash")
    to.uint("prev_trans_lt", 64)
    to.builder.store_uint(now, 32)
    to.builder.store_uint(len(out_msgs) if out_count is None else out_count, 15)
    for name in ("orig_status", "end_status"):
        to.columns[name] = to.draw(st.sampled_from(STATUSES))
        to.builder.store_uint(STATUSES.index(to.columns[name]), 2)
    outs = {at: (lambda leaf, m=m: leaf.store_ref(m)) for at, m in enumerate(out_msgs)}
    messages = CellBuilder(tree).store_maybe_ref(in_msg)
    messages.store_maybe_ref(build_hashmap(tree, outs, 15) if outs else None)
    to.builder.store_ref(messages.end())
    to.currencies("total_fees", "total_fees_extra_currencies")

    def store_update(inner: Fields) -> None:
        inner.builder.store_uint(0x72, 8)
        inner.hash("account_state_hash_before")
        inner.hash("account_state_hash_after")

    to.child(store_update)
    return to.builder.store_ref(description).end()


@st.composite
def transactions(draw: st.DrawFn, *, plain: bool = False) -> tuple[bytes, Columns]:
    """A transaction of any kind as a bag, and every column that is not NULL."""
    tree = CellTree()
    kind = "ord" if plain else draw(st.sampled_from(sorted(DESCRIPTIONS)))
    tag, bits, store = DESCRIPTIONS[kind]
    inner = Fields(draw, tree)
    inner.builder.store_uint(tag, bits)
    store(inner)
    to = Fields(draw, tree)
    cell = store_transaction(to, inner.builder.end())
    columns = to.columns | inner.columns | {"descr": kind, "hash": tree.hash(cell)}
    bag = serialize_boc(tree, [cell])
    return bag, columns | {"time": datetime(2023, 11, 14, 22, 13, 20)}  # noqa: DTZ001


@settings(max_examples=150, deadline=None)
@given(transactions())
def test_every_kind_and_phase(sample: tuple[bytes, Columns]) -> None:
    bag, columns = sample
    row, messages = decode_transaction(bag)
    assert row == dict.fromkeys(TRANSACTIONS.names) | columns | {"boc": bag}
    assert messages == []


@settings(max_examples=50, deadline=None)
@given(transactions(), st.integers(0, 10**9))
def test_a_transaction_cut_short_is_refused(sample: tuple[bytes, Columns], at: int) -> None:
    bag, _ = sample
    tree = parse_boc(bag)
    victim = at % tree.count
    value, bits = tree.bits(victim)
    cut = CellTree()
    places: dict[int, int] = {}
    for cell in range(tree.count - 1, -1, -1):
        data = (value >> 8, bits - 8) if cell == victim and bits > 8 else tree.bits(cell)
        places[cell] = append_cell(cut, *data, tuple(places[kid] for kid in tree.links[cell]))
    bag = serialize_boc(cut, [places[0]])
    with suppress(DecodeError):  # a cut need not show: what follows the last field is not read
        assert decode_transaction(bag)[0]["hash"] == cut.hash(places[0])


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_wrong_cells_are_refused(data: st.DataObject) -> None:
    tree = CellTree()
    message = append_cell(tree, 0, 8, ())
    unknown = append_cell(tree, 0b1000, 4, ())
    tick = Fields(data.draw, tree)
    DESCRIPTIONS["storage"][2](tick)
    good = CellBuilder(tree).store_uint(1, 4).store_slice(tree.slice(tick.builder.end())).end()
    cases = [
        ({"description": unknown}, "unknown kind 1000"),
        ({"description": good, "out_count": 1}, "out messages"),
        ({"description": good, "in_msg": message}, "ends too early"),
        ({"description": end_pruned(tree, 1, [bytes(32)], [0])}, "pruned"),
    ]
    for arguments, reason in cases:
        to = Fields(data.draw, tree)
        cell = store_transaction(to, **arguments)  # type: ignore[arg-type]
        with pytest.raises(DecodeError, match=reason):
            decode_transaction(serialize_boc(tree, [cell]))
    with pytest.raises(DecodeError, match="tag is not 0111"):
        decode_transaction(serialize_boc(tree, [append_cell(tree, 0, 1000, (good, good, good))]))
    with pytest.raises(DecodeError, match="2 roots"):
        decode_transaction(serialize_boc(tree, [message, good]))
    with pytest.raises(BocError):
        decode_transaction(b"")


@given(st.data())
@settings(max_examples=5, deadline=None)
def test_numbers_too_large_for_the_lake_name_the_transaction(data: st.DataObject) -> None:
    tree = CellTree()
    storage = CellBuilder(tree).store_uint(1, 4).store_coins(1 << 63).store_uint(0, 2).end()
    to = Fields(data.draw, tree)
    cell = store_transaction(to, storage)
    assert decode_transaction(serialize_boc(tree, [cell]))[0]["storage_fees_collected"] == 1 << 63
    rows = RowSet()
    decoded = TransactionDecoder(tree, BlockPlace(0, 1, 2, 3), None).decode(cell)
    row = list(decoded.row)
    for name in ("lt", "prev_trans_lt"):
        row[TRANSACTIONS.names.index(name)] = 5
    rows["transactions"].append(tuple(row))
    account = to.columns["account"].hex()
    with pytest.raises(
        DecodeError, match=f"storage_fees_collected of workchain 0, account {account}"
    ):
        rows.to_arrow()


@pytest.mark.parametrize(("now", "flags"), [(1_762_991_999, None), (1_762_992_000, 0)])
def test_version_12_is_assumed_since_mainnet_has_it(
    pairs: list[dict[str, Any]], now: int, flags: int | None
) -> None:
    boc = next(pair["boc"] for pair in pairs if pair["v3"]["in_msg"]["value"] is not None)
    tree = parse_boc(base64.b64decode(boc))
    value, bits = tree.bits(tree.roots[0])
    place = bits - 676  # behind tag, account, lt, and hash and lt of the transaction before
    value += now - (value >> place & 0xFFFFFFFF) << place
    root = append_cell(tree, value, bits, tree.links[tree.roots[0]])
    _row, (received, *_) = decode_transaction(serialize_boc(tree, [root]))
    assert received["extra_flags"] == flags
