"""Bags of transactions, and those that an earlier version left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from tonlake.api.errors import NotDerived
from tonlake.api.v2.transaction import read_bags
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.index.segment.declared import Record


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
    assert all(parse_boc(bag).hash(0) == tx_hash for tx_hash, bag in bags.items())


def test_a_transaction_without_a_bag_is_refused_with_the_cure() -> None:
    """As in a lake of schema version 2."""
    record = Mock(row={"hash": b"\xab" * 32, "lt": 1})
    reader = Mock(rows=Mock(return_value=[{"hash": b"\xab" * 32, "boc": None}]))
    with pytest.raises(NotDerived, match=r"(ab){32} without its bag .* into a new lake"):
        read_bags(reader, [record])
