"""A synthetic network reads like a real one: contracts, traces and actions are found."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import duckdb
import pytest

import tonlake
from tests.bench.chain import NETWORK, Chain, ChainWriter, Moulds
from tests.bench.network.block import NetworkBlocks
from tests.bench.network.code import read_codes
from tests.bench.network.traffic import (
    JETTON_TRANSFERS,
    JETTONS,
    JETTONS_COMMENTED,
    SWAPS,
    TRANSFERS,
    Network,
)
from tests.bench.template import Place
from tonlake.api.settings import Settings
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundles, decode_in_python
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.maintenance.verify import verify_lake

if TYPE_CHECKING:
    from pathlib import Path

MC_BLOCKS = 12


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, tvm: None) -> Path:  # noqa: ARG001 - it is run
    folder = tmp_path_factory.mktemp("network")
    with closing(ChainWriter(folder / "node", Chain(Moulds(folder), NETWORK))) as writer:
        written = sum(writer.append() for _ in range(MC_BLOCKS))
    with closing(open_node(folder / "node")) as source:
        report = ingest(source, folder / "lake", Span(1, MC_BLOCKS), Settings())
    assert not report.holes
    assert report.rows["transactions"] == written
    return folder / "lake"


def _rows(lake: Path, table: str) -> duckdb.DuckDBPyRelation:
    return duckdb.read_parquet(str(lake / table / "*/*.parquet"))


def _count(lake: Path, table: str, condition: str) -> int:
    return len(_rows(lake, table).filter(condition))


def test_lake_is_sound_and_accounts_come_back(lake: Path) -> None:
    assert not verify_lake(lake).damage
    transactions = _rows(lake, "transactions")
    accounts = transactions.aggregate("count(distinct account)").fetchall()[0][0]
    linked = duckdb.execute(
        "select count(*) from transactions as later join transactions as earlier"
        " on later.account = earlier.account and later.prev_trans_hash = earlier.hash"
        " and later.prev_trans_lt = earlier.lt"
        " and later.account_state_hash_before = earlier.account_state_hash_after"
    ).fetchall()[0][0]
    assert linked == len(transactions) - accounts
    assert 100 < accounts < len(transactions) / 4


def test_bags_follow_from_rows_as_those_of_a_node(lake: Path) -> None:
    assert not _count(lake, "transactions", "recipe is null or boc is not null")


def test_every_trace_is_complete_and_every_act_an_action(lake: Path) -> None:
    assert not _count(lake, "traces", "state <> 'complete'")
    for kind, count in (
        ("jetton_swap", SWAPS * MC_BLOCKS),
        ("jetton_transfer", JETTON_TRANSFERS * MC_BLOCKS),
        ("jetton_mint", 2 * JETTONS),
    ):
        assert _count(lake, "actions", f"type = '{kind}' and success") == count
    assert _count(lake, "actions", "type = 'ton_transfer' and success") >= TRANSFERS * MC_BLOCKS
    assert not _count(lake, "actions", "not success")


def test_comments_of_jetton_transfers_are_read_in_both_forms(lake: Path) -> None:
    found = tonlake.open(lake).sql(
        "select count(comment), count(*) from v_jetton_transfers where comment is null"
        " or comment similar to 'order [0-9]+'"
    )
    commented, transfers = found.fetchall()[0]
    assert transfers >= JETTON_TRANSFERS * MC_BLOCKS
    assert (
        JETTONS_COMMENTED / 2 < commented / (JETTON_TRANSFERS * MC_BLOCKS) < 2 * JETTONS_COMMENTED
    )


def test_jettons_are_verified_by_their_masters(lake: Path) -> None:
    masters = _rows(lake, "jetton_masters").aggregate("count(distinct account)").fetchall()
    assert masters[0][0] == JETTONS
    sent = _rows(lake, "messages").filter(f"opcode = {0x178D4519} and direction = 'in'")
    taken = sent.aggregate("count(distinct destination)").fetchall()[0][0]
    known = _rows(lake, "jetton_wallets").aggregate("count(distinct account)").fetchall()[0][0]
    assert known == taken > 2 * JETTONS


def test_both_decoders_agree_and_the_seed_decides(tmp_path: Path) -> None:
    codes = read_codes(tmp_path)
    blocks = []
    for _ in range(2):
        mould, link = NetworkBlocks(Network(codes, seed=5), -239, 10**6), None
        raws = []
        for number in (1, 2):
            raw, link = mould.copy(Place(number, number, 1_700_000_000 + number, link))
            raws.append(raw)
        blocks.append(raws)
    assert blocks[0] == blocks[1]
    bundles = [McBundle(number, (raw,)) for number, raw in enumerate(blocks[0], 1)]
    assert decode_bundles(bundles) == decode_in_python(bundles)
    other, _link = NetworkBlocks(Network(codes, seed=6), -239, 10**6).copy(
        Place(1, 1, 1_700_000_001, None)
    )
    assert other != blocks[0][0]
