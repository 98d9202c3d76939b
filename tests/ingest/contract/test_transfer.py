"""Messages to jetton wallets and NFT items as rows, whatever their senders wrote."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ingest.cell.build import CellBuilder
from ingest.cell.writer import serialize_boc
from ingest.contract.transfer import make_moves
from lake.schema import MESSAGES
from lake.schema.contract import (
    JETTON_BURNS,
    JETTON_TRANSFERS,
    JETTON_WALLETS,
    NFT_ITEMS,
    NFT_TRANSFERS,
)

ACCOUNT, SENDER, TO, JETTON = (bytes([number] * 32) for number in range(1, 5))
TRANSFER, BURN, NFT_TRANSFER = 0x0F8A7EA5, 0x595F07BC, 0x5FCC3D14
PLAIN = (0b100 << 264 | int.from_bytes(TO, "big"), 267)
ADDRESSES = {
    "none": (0, 2),
    "extern": (0b01_000000011_101, 14),
    "var": (0b11_0_000000001 << 33 | 1, 45),
    "anycast": (0b10_1_00001_1 << 264 | 5, 273),
    "plain": PLAIN,
}
"""MsgAddress as a number and its bits: addr_extern of 3 bits, addr_var of 1, anycast of 1."""


def table_of(table: Any, **columns: object) -> pa.Table:
    """Return a table of one row; what is not given is null."""
    fields = [field.with_nullable(nullable=True) for field in table.arrow]
    return pa.Table.from_pylist([dict.fromkeys(table.names) | columns], pa.schema(fields))


def read(body: CellBuilder, table: Any) -> list[dict[str, Any]]:
    """Return the rows of a message to a wallet that is an item as well."""
    opcode = body.tree.slice(cell := body.end()).load_uint(32)
    message = table_of(
        MESSAGES,
        direction="in",
        opcode=opcode,
        body=serialize_boc(body.tree, [cell]),
        tx_workchain=0,
        tx_account=ACCOUNT,
        tx_lt=1,
        tx_hash=bytes(32),
        mc_seqno=1,
        now=1,
        source_workchain=0,
        source=SENDER,
    )
    own = {"workchain": 0, "account": ACCOUNT, "mc_seqno": 1}
    found = {
        JETTON_WALLETS.name: table_of(JETTON_WALLETS, **own, jetton_workchain=0, jetton=JETTON),
        NFT_ITEMS.name: table_of(NFT_ITEMS, **own, item_index="7"),
    }
    rows: list[dict[str, Any]] = make_moves({MESSAGES.name: message}, found)[table.name].to_pylist()
    return rows


def begin(opcode: int, response: tuple[int, int]) -> CellBuilder:
    """Return a body up to its custom payload."""
    body = CellBuilder().store_uint(opcode, 32).store_uint(9, 64)
    if opcode != NFT_TRANSFER:
        body.store_coins(500)
    if opcode != BURN:
        body.store_uint(*PLAIN)
    return body.store_uint(*response).store_bit(0)


@pytest.mark.parametrize("kind", ADDRESSES)
@pytest.mark.parametrize(
    ("opcode", "table"),
    [(TRANSFER, JETTON_TRANSFERS), (BURN, JETTON_BURNS), (NFT_TRANSFER, NFT_TRANSFERS)],
)
def test_excess_may_go_to_any_address(opcode: int, table: Any, kind: str) -> None:
    body = begin(opcode, ADDRESSES[kind])
    if opcode != BURN:
        body.store_coins(1).store_bit(0)
    (row,) = read(body, table)
    assert row["query_id"] is not None
    assert row["response_destination"] == (TO if kind == "plain" else None)


@pytest.mark.parametrize("is_linked", [False, True, None])
@pytest.mark.parametrize(
    ("opcode", "table"), [(TRANSFER, JETTON_TRANSFERS), (NFT_TRANSFER, NFT_TRANSFERS)]
)
def test_forward_payloads(opcode: int, table: Any, *, is_linked: bool | None) -> None:
    """None of them is looked at by the contract: not even a reference that is missing."""
    body = begin(opcode, PLAIN).store_coins(1)
    if is_linked is not None:
        body.store_bit(is_linked)
    (row,) = read(body, table)
    assert row["forward_payload"] is None
    assert row["forward_payload_inline"] is (None if is_linked is None else not is_linked)
