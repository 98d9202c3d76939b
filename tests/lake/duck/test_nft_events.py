"""Events of NFTs: by actions, and by the states of sales where no action tells."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.lake.chain import commit_made
from tests.lake.rows import make_table
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES

Row = tuple[str, dict[str, Any]]
OWNER, BUYER, CONTRACT, ITEM = (digit * 32 for digit in (b"\x33", b"\xef", b"\x5a", b"\xcd"))
SALE = {"full_price": "2000000000", "marketplace_fee": "100000000", "royalty_amount": "30000000"}
AUCTION = {"last_bid": "3000000001", "mp_fee_factor": 5, "mp_fee_base": 100, "royalty_fee_base": 0}


def make_row(table: str, **values: object) -> Row:
    """Return a table and a row of it, about the item or, if given, another account."""
    made = make_table(table, 1, 1, rows=1).to_pylist()[0]
    own = {"workchain": 0, "account": ITEM, "now": 1_700_000_000, "item": f"0:{ITEM.hex().upper()}"}
    own |= {"end_utime": 1_700_000_000, "nft_workchain": 0, "nft": ITEM, "success": True} | values
    return table, made | own


def move(old: bytes, new: bytes, lt: int, *, aborted: bool = False) -> Row:
    ends = {"old_owner": old, "new_owner": new}
    places = {f"{name}_workchain": -1 if end == OWNER else 0 for name, end in ends.items()}
    own = {"lt": lt, "tx_hash": bytes([lt]) * 32, "aborted": aborted}
    return make_row("nft_transfers", **ends, **places, **own)


def sale(**details: object) -> Row:
    own = {"nft_owner_workchain": -1, "nft_owner": OWNER, "details": json.dumps(details)}
    return make_row("nft_sales", account=CONTRACT, **own)


def reported(event: str, *, success: bool = True) -> Row:
    own = {"trace_id": bytes(32), "buyer": f"0:{BUYER.hex().upper()}", "price": 1_350_000_000}
    own |= {"seller": f"-1:{OWNER.hex().upper()}", "sale": f"0:{CONTRACT.hex()}", "end_lt": 7}
    return make_row("nft_sales_events", event=event, success=success, **own)


LISTED, SOLD = move(OWNER, CONTRACT, 5), move(CONTRACT, BUYER, 6)
TRACE = make_row("transaction_traces", hash=b"\6" * 32, lt=6, trace_id=bytes(32))
DONE, ENDED = sale(**SALE, is_complete=True), sale(**AUCTION, end_flag=True)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            (DONE, LISTED, SOLD, move(BUYER, OWNER, 9)),
            [("listed", None, "2", "0.1", "0.03"), ("sold", BUYER, "2", "0.1", "0.03")],
        ),
        ((DONE, move(CONTRACT, OWNER, 6)), [("cancelled", None, None, None, None)]),
        (
            (ENDED, LISTED, SOLD, move(CONTRACT, BUYER, 8, aborted=True)),
            [("auctioned", None, None, None, None), ("sold", BUYER, "3.000000001", "0.15", None)],
        ),
        (
            (sale(**SALE, is_complete=False), SOLD, reported("auction_bid")),
            [("bid", BUYER, "1.35", None, None)],
        ),
        (
            (DONE, SOLD, TRACE, reported("nft_purchase"), reported("dns_purchase", success=False)),
            [("sold", BUYER, "1.35", "0.1", "0.03")],
        ),
    ],
    ids=["a sale", "back to the owner", "an auction", "not completed", "reported by an action"],
)
def test_events(tmp_path: Path, rows: tuple[Row, ...], expected: list[tuple[Any, ...]]) -> None:
    tables = {
        table: pa.Table.from_pylist([row for own, row in rows if own == table], each.arrow)
        for table, each in TABLES.items()
    }
    commit_made(tmp_path, 1, 2, tables, day="2023-11-14")
    question = f"""select event, buyer_id, price, marketplace_fee, royalty from v_nft_events
        where item_id = unhex('{ITEM.hex()}') order by lt"""  # noqa: S608 - ours
    sold = """select 'sold', buyer_id, price, marketplace_fee, royalty from v_nft_sales
        where seller_label = 'Elector'"""
    lake = connect(open_snapshot(tmp_path), statement=f"{question}; {sold}")
    found = lake.execute(question).fetchall()
    assert found == [
        (event, buyer, *(amount and Decimal(amount) for amount in amounts))
        for event, buyer, *amounts in expected
    ]
    assert lake.execute(sold).fetchall() == [row for row in found if row[0] == "sold"]
