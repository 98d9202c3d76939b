"""Rows of messages to jetton wallets and NFT items, for any content from their senders."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.lake.chain import commit_made
from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.contract.derivation import ContractFinder
from tonlake.ingest.derive.contract.transfer import make_moves, select_moves
from tonlake.ingest.settings import IngestSections
from tonlake.lake.log.place import Place
from tonlake.lake.log.state import LogReader
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    JETTON_BURNS,
    JETTON_TRANSFERS,
    JETTON_WALLETS,
    MESSAGES,
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
    """Return a table of one row; missing values are null."""
    fields = [field.with_nullable(nullable=True) for field in table.arrow]
    return pa.Table.from_pylist([dict.fromkeys(table.names) | columns], pa.schema(fields))


def read(body: CellBuilder, table: Any) -> list[dict[str, Any]]:
    """Return the rows of a message to a wallet that is also an item."""
    opcode = body.tree.slice(cell := body.end()).load_uint(32)
    of_transaction = {"tx_workchain": 0, "tx_account": ACCOUNT, "tx_lt": 1, "tx_hash": bytes(32)}
    message = table_of(
        MESSAGES,
        **of_transaction,
        direction="in",
        opcode=opcode,
        body=serialize_boc(body.tree, [cell]),
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
    before = {name: rows.slice(0, 0) for name, rows in found.items()}
    moves = select_moves({MESSAGES.name: message})
    rows: list[dict[str, Any]] = make_moves(moves, found, before)[table.name].to_pylist()
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


def destroy(rows: dict[str, pa.Table], account: bytes, mc_seqno: int) -> dict[str, pa.Table]:
    """Return base rows in which an account no longer exists after a masterchain block."""
    states = rows[ACCOUNT_STATES.name].to_pylist()
    for row in states:
        if (row["account"], row["mc_seqno"]) == (account, mc_seqno):
            row |= {"account_status": "nonexist", "code_hash": None, "data_hash": None}
    return rows | {ACCOUNT_STATES.name: pa.Table.from_pylist(states, ACCOUNT_STATES.arrow)}


def cut(rows: dict[str, pa.Table], first: int, last: int) -> dict[str, pa.Table]:
    """Return the base rows of some masterchain blocks."""
    return {
        name: table.filter((pc.field("mc_seqno") >= first) & (pc.field("mc_seqno") <= last))
        for name, table in rows.items()
    }


def test_the_last_transfer_of_a_wallet_does_not_depend_on_commits(
    demo_rows: dict[str, pa.Table], tmp_path: Path
) -> None:
    """A wallet of the demo node is made to disappear after its last transfer."""
    whole = derive(tmp_path, demo_rows, 1)
    wallets = whole[JETTON_WALLETS.name].to_pylist()
    transfer = max(whole[JETTON_TRANSFERS.name].to_pylist(), key=lambda row: row["mc_seqno"])
    account, at = transfer["account"], transfer["mc_seqno"]
    assert any(row["account"] == account and row["mc_seqno"] < at for row in wallets)
    rows = destroy(demo_rows, account, at)

    together = derive(tmp_path, rows, 1)[JETTON_TRANSFERS.name].to_pylist()
    assert transfer in together
    day = str(rows["blocks"]["time"][0].as_py().date())
    for first, last in ((1, at - 5), (at - 4, at - 1)):
        commit_made(tmp_path, first, last, cut(rows, first, last), day=day)
    alone = derive(tmp_path, cut(rows, at, at), at)[JETTON_TRANSFERS.name].to_pylist()
    assert alone == [row for row in together if row["mc_seqno"] == at]
    # Messages to an account that no longer exists move nothing.
    earlier = destroy(
        rows,
        account,
        max(
            row["mc_seqno"] for row in wallets if row["account"] == account and row["mc_seqno"] < at
        ),
    )
    assert transfer not in derive(tmp_path / "none", earlier, 1)[JETTON_TRANSFERS.name].to_pylist()


def derive(lake_dir: Path, rows: dict[str, pa.Table], first: int) -> dict[str, pa.Table]:
    """Return the contract tables of a range on top of a lake."""
    settings = IngestSections()
    with (
        closing(CellFinder(lake_dir, settings)) as cells,
        closing(ContractFinder(lake_dir, settings, cells)) as finder,
    ):
        place = Place(first, first, "2026-01-01")
        made = finder(LogReader(lake_dir).read(), rows, place)
        return {file.table: file.rows for file in made.files}


@pytest.mark.parametrize("is_linked", [False, True, None])
@pytest.mark.parametrize(
    ("opcode", "table"), [(TRANSFER, JETTON_TRANSFERS), (NFT_TRANSFER, NFT_TRANSFERS)]
)
def test_forward_payloads(opcode: int, table: Any, *, is_linked: bool | None) -> None:
    """The contract parses none of them, not even a missing reference."""
    body = begin(opcode, PLAIN).store_coins(1)
    if is_linked is not None:
        body.store_bit(is_linked)
    (row,) = read(body, table)
    assert row["forward_payload"] is None
    assert row["forward_payload_inline"] is (None if is_linked is None else not is_linked)
