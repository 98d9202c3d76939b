"""Chains of repeated blocks are consistent, so that benchmarks on them do real work."""

from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from tests.made.chain import Chain, ChainWriter, Moulds
from tests.made.spots import set_bits
from tonlake.api.settings import Settings
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.maintenance.verify import verify_lake

MC_BLOCKS = 120
"""More than one package."""


@pytest.fixture(scope="module")
def chain_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chain")
    chain = Chain(Moulds(folder), "no such block: the demo node's", shard_blocks=2)
    with closing(ChainWriter(folder / "node", chain)) as writer:
        written = sum(writer.append() for _ in range(MC_BLOCKS))
    with closing(open_node(folder / "node")) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, MC_BLOCKS)
        report = ingest(source, folder / "lake", Span(1, MC_BLOCKS), Settings())
    assert not report.holes
    assert report.rows["blocks"] == 3 * MC_BLOCKS
    assert report.rows["transactions"] == written
    return folder / "lake"


def test_lake_of_a_chain_is_sound(chain_lake: Path) -> None:
    assert not verify_lake(chain_lake).damage


def test_every_transaction_is_one_of_its_own_and_follows_the_one_before(chain_lake: Path) -> None:
    rows = duckdb.read_parquet(str(chain_lake / "transactions/*/*.parquet"))
    hashes, accounts = rows.aggregate(
        "count(distinct hash), count(distinct (workchain, account))"
    ).fetchall()[0]
    assert hashes == len(rows)
    linked = duckdb.execute(
        "select count(*) from rows as later join rows as earlier on later.account = earlier.account"
        " and later.prev_trans_hash = earlier.hash and later.prev_trans_lt = earlier.lt"
        " and later.account_state_hash_before = earlier.account_state_hash_after"
    ).fetchall()[0][0]
    assert linked == len(rows) - accounts


def test_blocks_begin_where_blocks_do_and_nothing_waits_for_ever(chain_lake: Path) -> None:
    blocks = duckdb.read_parquet(str(chain_lake / "blocks/*/*.parquet"))
    assert len(blocks) == 3 * MC_BLOCKS
    odd = blocks.filter("start_lt % 1_000_000 <> 0")
    assert not len(odd)
    # Validators' messages have no sender: mistaken for others, each would be waited for.
    assert not list(chain_lake.glob("open_edges/*/*"))


def test_bits_around_those_overwritten_stay() -> None:
    data = bytearray(b"\xff" * 4)
    set_bits(data, 5, 20, 0)
    assert int.from_bytes(data, "big") == int("11111" + 20 * "0" + 7 * "1", 2)
