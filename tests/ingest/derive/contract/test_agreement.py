"""Rows of transfers and burns against actions: where there is one, there is the other."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Address, Cell, begin_cell

from tonlake.ingest.command.action import classify_recording, read_traces
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.protocol import jetton, nft
from tonlake.ingest.derive.body.body import decode_message_body
from tonlake.ingest.derive.contract.transfer import read_move
from tonlake.ingest.errors import BocError, BodyError
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

TRANSFER, BURN, NFT_TRANSFER = 0x0F8A7EA5, 0x595F07BC, 0x5FCC3D14
OWNER = Address((0, b"\x11" * 32))
CONTRADICTIONS = """
    with acting as (select type, success, unnest(tx_hashes) as tx_hash from actions)
    select count(*)
    from {table}
    where not aborted and tx_hash not in (select tx_hash from acting where type in ({types}))
"""
WITHOUT_ROW = """
    select type, count(*)
    from actions
    where
        type = '{type}'
        and success
        and not list_has_any(tx_hashes, (select coalesce(list(tx_hash), []) from {table}))
    group by type
"""
TYPES = {
    "jetton_transfers": "jetton_transfer",
    "jetton_burns": "jetton_burn",
    "nft_transfers": "nft_transfer",
}
CONTAINING = {
    "jetton_transfers": (
        *("jetton_swap", "dex_deposit_liquidity", "dex_withdraw_liquidity"),
        "stake_withdrawal_request",
    ),
    "jetton_burns": ("dex_withdraw_liquidity", "stake_withdrawal"),
    "nft_transfers": (),
}
"""Actions of protocols that a transfer or burn is a part of."""


def count_contradictions(lake_dir: Path) -> tuple[int, list[object]]:
    """Return the number of rows, and those without an action or actions without a row."""
    connection = connect(open_snapshot(lake_dir))
    rows, found = 0, list[object]()
    for table, kind in TYPES.items():
        rows += connection.table(table).count("*").fetchall()[0][0]
        types = ", ".join(f"'{each}'" for each in (kind, *CONTAINING[table]))
        missing = connection.sql(CONTRADICTIONS.format(table=table, types=types)).fetchall()
        found += [(table, count) for (count,) in missing if count]
        found += connection.sql(WITHOUT_ROW.format(table=table, type=kind)).fetchall()
    return rows, found


def test_the_demo_has_no_contradiction(demo_lake: Path) -> None:
    rows, found = count_contradictions(demo_lake)
    assert rows > 30
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["node/localnet-db", "node/celldb-v2/localnet-celldbv2", "node-2026/localnet4-db"]
)
def test_networks_have_no_contradiction(ingest_network: Callable[[str], Path], name: str) -> None:
    assert count_contradictions(ingest_network(name))[1] == []


def test_a_reported_burn_has_its_row(shared: Path) -> None:
    path = shared / "data" / "reports" / "04-burn-amount-only" / "trace.jsonl"
    (line,) = map(json.loads, classify_recording(path))
    (burn,) = (action for action in line["actions"] if action["type"] == "jetton_burn")
    assert (burn["amount"], burn["success"]) == (250000000000, True)
    ((_key, trace, _interfaces),) = read_traces(path)
    (boc,) = (
        each.in_msg.boc
        for each in trace.transactions
        if each.in_msg is not None and each.in_msg.opcode == BURN
    )
    assert boc is not None
    row = read_move(BURN, boc)
    assert row is not None
    assert row["amount"] == 250000000000
    decoded = decode_message_body(boc, external_in=False)
    assert decoded.own_name == "jetton_burn"
    assert decoded.value is not None
    assert decoded.value["amount"]["value"] == "250000000000"


ADDRESSES = st.sampled_from(["std", "none", "extern", "anycast", "cut"])
CUTS = st.sampled_from([None, *range(0, 1000, 7)])


def build(opcode: int, addresses: list[str], cut: int | None, *, has_refs: bool) -> Cell:
    """Build a body of a token, which may end early or miss what its bits promise."""
    body = begin_cell().store_uint(opcode, 32).store_uint(1, 64)
    if opcode != NFT_TRANSFER:
        body = body.store_coins(5)
    for kind in addresses:
        if kind == "std":
            body = body.store_address(OWNER)
        elif kind == "none":
            body = body.store_uint(0, 2)
        elif kind == "extern":
            body = body.store_uint(1, 2).store_uint(9, 9).store_uint(3, 9)
        elif kind == "anycast":
            body = body.store_bits("101").store_uint(3, 5).store_uint(5, 3).store_uint(0, 264)
        else:
            body = body.store_bits("1001")
    body = body.store_bit(1)
    if has_refs:
        body = body.store_ref(begin_cell().end_cell())
    body = body.store_coins(7).store_bit(0).end_cell()
    bits = body.bits.to01()
    kept = bits if cut is None else bits[: max(96, len(bits) - cut)]
    result = begin_cell().store_bits(kept)
    for ref in body.refs:
        result = result.store_ref(ref)
    cell: Cell = result.end_cell()
    return cell


@given(
    opcode=st.sampled_from([TRANSFER, NFT_TRANSFER]),
    addresses=st.lists(ADDRESSES, min_size=2, max_size=2),
    cut=CUTS,
    has_refs=st.booleans(),
)
def test_a_transfer_is_read_by_both_or_by_none(
    *, opcode: int, addresses: list[str], cut: int | None, has_refs: bool
) -> None:
    boc = build(opcode, addresses, cut, has_refs=has_refs).to_boc()
    message = Message(msg_hash=b"", source="", destination="", boc=boc)
    row = read_move(opcode, boc)
    try:
        if opcode == TRANSFER:
            action = jetton.read_transfer(message)
            shown = action.amount, action.forward_amount
        else:
            item = nft.read_transfer(message)
            shown = 0, item.forward_amount
    except (BodyError, BocError):
        assert row is None
        return
    assert row is not None
    forward = "forward_ton_amount" if opcode == TRANSFER else "forward_amount"
    assert shown == (row.get("amount", 0), row[forward])


@given(addresses=st.lists(ADDRESSES, max_size=1), cut=CUTS, has_refs=st.booleans())
def test_a_burn_with_an_amount_has_a_row(
    *, addresses: list[str], cut: int | None, has_refs: bool
) -> None:
    boc = build(BURN, addresses, cut, has_refs=has_refs).to_boc()
    message = Message(msg_hash=b"", source="", destination="", boc=boc)
    row = read_move(BURN, boc)
    try:
        amount = message.arguments().skip(64).coins()
    except BocError:
        assert row is None
        return
    assert row is not None
    assert row["amount"] == amount
