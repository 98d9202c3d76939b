"""Bags of transactions: rebuilt from rows, or an error that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tonlake.api.errors import status_of
from tonlake.api.v2.method.transaction import read_bags
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.queries.composed import Record


@pytest.fixture(scope="module")
def reader(demo_lake: Path) -> Reader:
    snapshot = open_snapshot(demo_lake)
    return Reader(snapshot, connect(snapshot))


def read_some(reader: Reader) -> list[Record]:
    keys = reader.rows(
        "v3/transaction_keys",
        hashes=[],
        excluded_accounts=[],
        excluded_workchains=[],
        limit=20,
    )
    found: list[Any] = reader.rows("v3/transactions", keys=keys)
    return found


def test_bags_have_the_hashes_of_their_transactions(reader: Reader) -> None:
    bags = read_bags(reader, read_some(reader))
    assert len(bags) == 20
    assert all(bag and parse_boc(bag).hash(0) == tx_hash for tx_hash, bag in bags.items())


def test_rows_that_do_not_give_their_hash_are_a_damaged_lake(reader: Reader) -> None:
    records = read_some(reader)
    row = next(record.row for record in records if record.row["recipe"] is not None)
    row["now"] += 1
    with pytest.raises(LakeCorrupt, match=row["hash"].hex()) as caught:
        read_bags(reader, records)
    assert caught.value.file in {file.path for file in reader.snapshot.files["transactions"]}
    assert status_of(caught.value) == 503
    row["mc_seqno"] = 10**9
    with pytest.raises(LakeCorrupt, match="lake file transactions:"):
        read_bags(reader, records)
