"""Contracts of the Tolk compiler, version 15: tables equal what the lite server answers."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tonlake.api.settings import Settings
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LAST = 1300
_SLICE = re.compile(r"<Slice 267\[([0-9A-F]{68})\]")

TABLES = {
    "get_jetton_data": ("jetton_masters", "total_supply", ("admin",)),
    "get_wallet_data": ("jetton_wallets", "balance", ("owner", "jetton")),
    "get_collection_data": ("nft_collections", "next_item_index", ("owner",)),
}
"""By get-method: the table, the column of its first integer, and those of its addresses."""


@pytest.fixture(scope="module")
def recorded(newest_node: Path, shared: Path) -> dict[str, Any]:  # noqa: ARG001 - skips
    path = shared / "node-2026" / "expected-contracts.json.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


@pytest.fixture(scope="module")
def ask(
    newest_node: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., list[Any]]]:
    lake_dir = tmp_path_factory.mktemp("newest-lake")
    with closing(open_node(newest_node)) as source:
        ingest(source, lake_dir, Span(1, LAST), Settings())
    with closing(connect(open_snapshot(lake_dir), LakeSettings())) as connection:
        yield lambda query, *values: connection.execute(query, values).fetchall()


def list_answers(recorded: dict[str, Any], method: str) -> Iterator[tuple[bytes, int, list[Any]]]:
    """Yield account, masterchain block, first integer and accounts of each recorded answer."""
    for moment in ("first", "second"):
        for contract in recorded[moment].values():
            answer = contract["get"].get(method)
            if answer is not None and answer["exit_code"] == 0:
                account = bytes.fromhex(contract["address"].partition(":")[2])
                number = int(answer["stack"].lstrip("[").partition(",")[0])
                slices = _SLICE.findall(answer["stack"])
                accounts = [(int(one, 16) >> 5 & (1 << 256) - 1).to_bytes(32) for one in slices]
                yield account, answer["mc"], [number, *accounts]


@pytest.mark.parametrize("method", TABLES)
def test_contract_tables_equal_the_get_methods(
    method: str, recorded: dict[str, Any], ask: Callable[..., list[Any]]
) -> None:
    table, number, owners = TABLES[method]
    count = 0
    for account, mc_seqno, wanted in list_answers(recorded, method):
        query = (
            f"select {number}, {', '.join(owners)} from {table} "  # noqa: S608 - names of ours
            "where account = ? and mc_seqno <= ? order by mc_seqno desc, lt desc limit 1"
        )
        (row,) = ask(query, account, mc_seqno)
        assert [int(row[0]), *row[1:]] == wanted[: len(row)]
        count += 1
    assert count > 0


def test_items_equal_the_get_method(
    recorded: dict[str, Any], ask: Callable[..., list[Any]]
) -> None:
    count = 0
    for account, mc_seqno, (_initialized, *accounts) in list_answers(recorded, "get_nft_data"):
        query = (
            "select collection, owner from nft_items where account = ? and mc_seqno <= ? "
            "order by mc_seqno desc, lt desc limit 1"
        )
        assert ask(query, account, mc_seqno) == [tuple(accounts)]
        count += 1
    assert count > 0


def test_transfers_are_named(ask: Callable[..., list[Any]]) -> None:
    counts = dict(ask("select type, count(*) from actions group by all"))
    assert counts["jetton_transfer"] == ask("select count(*) from jetton_transfers")[0][0] > 0
    assert counts["nft_transfer"] == ask("select count(*) from nft_transfers")[0][0] > 0
    assert counts["jetton_mint"] > 0
    assert counts["nft_mint"] > 0
