"""Scans give the same rows as SQL, in chain order, on genuine networks too."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tonlake
from tests.api.scan.selections import draw, watch_index
from tests.conftest import unpack
from tests.lake.chain import Chain, commit_chain
from tonlake.api.settings import Settings
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.index.answer import ends
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.scan import rows
from tonlake.lake.schema import MESSAGES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.api.scan.selections import Asked
    from tonlake.api.python.lake import Lake

# ruff: noqa: S608 - statements of names that are written here
ORDER = "mc_seqno, tx_lt, tx_workchain, tx_account, direction, msg_index"


def compare(lake: Lake, asked: Asked) -> int:
    """Compare a scan with SQL, and return the number of rows."""
    batches = list(lake.scan(asked.table, **asked.options))
    scanned = pa.concat_tables(batch.rows.arrow() for batch in batches)
    expected = lake.sql(asked.statement, **asked.values).arrow()
    assert scanned.num_rows == expected.num_rows, asked
    assert scanned.to_pylist() == expected.to_pylist(), asked
    assert batches[-1].height == asked.options["stop"]
    return int(scanned.num_rows)


def test_random_scans_equal_sql(demo_lake: Path) -> None:
    lake, chance = tonlake.open(demo_lake), random.Random(1)  # noqa: S311 - no secret
    found = [compare(lake, draw(chance, lake)) for _ in range(60)]
    assert sum(1 for count in found if count) > 20, "filters leave something to compare"


@pytest.mark.long
@pytest.mark.parametrize("name", ["localnet-db.tar.zst", "celldb-v2/localnet-celldbv2.tar.zst"])
def test_500_random_scans_of_the_shared_networks_equal_sql(
    shared: Path, tmp_path: Path, name: str
) -> None:
    """Half of them on each network."""
    with closing(open_node(unpack(shared / "node" / name, tmp_path / "node"))) as source:
        span = Span(source.first_mc_seqno(), source.last_mc_seqno())
        ingest(source, tmp_path / "lake", span, Settings())
    lake, chance = tonlake.open(tmp_path / "lake"), random.Random(4)  # noqa: S311 - no secret
    found = [compare(lake, draw(chance, lake)) for _ in range(250)]
    assert sum(1 for count in found if count) > 80, "filters leave something to compare"


def test_several_tables_give_what_each_gives(demo_lake: Path) -> None:
    lake, chance = tonlake.open(demo_lake), random.Random(3)  # noqa: S311 - no secret
    found = 0
    for _ in range(20):
        drawn = {asked.table: asked for asked in (draw(chance, lake) for _ in range(4))}
        span = next(iter(drawn.values())).options
        between = {"start": span["start"], "stop": span["stop"]}
        chosen = {
            name: {key: asked.options[key] for key in ("where", "columns")}
            for name, asked in drawn.items()
        }
        joint = list(lake.scan(chosen, **between))
        assert joint[-1].height == between["stop"]
        rows = pa.concat_tables(batch.rows.arrow() for batch in joint)
        assert rows.num_rows == sum(rows[name].length() - rows[name].null_count for name in chosen)
        heights = rows["mc_seqno"].to_pylist()
        assert heights == sorted(heights)
        for name, options in chosen.items():
            alone = list(lake.scan(name, **options, **between))
            expected = [row for batch in alone for row in batch.rows.arrow().to_pylist()]
            given = [row for batch in joint for row in batch.table(name).arrow().to_pylist()]
            assert given == expected, (name, options, between)
            found += len(expected)
    assert found > 1000


KEYS = {
    "transactions": ("account", "hash", "aborted"),
    "messages": (
        *("tx_account", "tx_hash", "msg_hash", "opcode", "body_hash", "source", "destination"),
        "direction",
    ),
}


def test_selective_scans_use_the_index(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, chance = tonlake.open(demo_lake), random.Random(2)  # noqa: S311 - no secret
    answered = watch_index(monkeypatch)
    monkeypatch.setattr(rows, "ROWS_PER_RECORD", 8)  # the lake is small
    found = [compare(lake, draw(chance, lake, KEYS)) for _ in range(200)]
    assert sum(answered) > 60, "few of them concern no more than an 8th of the rows"
    assert sum(1 for count in found if count) > 60, "filters leave something to compare"


def test_messages_between_segments_are_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(3)
    for first in range(1, 31, 3):
        commit_chain(tmp_path, chain, first, first + 2)
    rebuild_index(tmp_path, max_rows=1)
    lake = tonlake.open(tmp_path)
    assert len(open_snapshot(tmp_path).segments) > 5
    monkeypatch.setattr(rows, "ROWS_PER_RECORD", 1)
    monkeypatch.setattr(ends, "CHUNK_MESSAGES", 5)
    # In a block of the made-up chain a message may be consumed at the time at which it is sent.
    at_once = lake.sql("select msg_hash from messages group by msg_hash, tx_lt having count(*) > 1")
    left_out = {row[0] for row in at_once.fetchall()}
    hash_at = MESSAGES.names.index("msg_hash")
    hashes = [row[0] for row in lake.sql("select distinct body_hash from messages").fetchall()]
    body, found = f"body_hash = unhex('{hashes[0].hex()}')", 0
    for opcode in (0, 0x0F8A7EA5, -1):
        for where, condition in (
            ({"opcode": opcode}, f"opcode = {opcode}"),
            ({"opcode": [opcode, 0]}, f"opcode in ({opcode}, 0)"),
            ([{"opcode": opcode}, {"body_hash": hashes[0]}], f"opcode = {opcode} or {body}"),
        ):
            statement = f"select * exclude (day) from messages where {condition} order by {ORDER}"
            expected = lake.sql(statement).fetchall()
            scanned = [row for batch in lake.scan("messages", where) for row in batch.rows]
            expected = [row for row in expected if row[hash_at] not in left_out]
            assert [row for row in scanned if row[hash_at] not in left_out] == expected
            found += len(expected)
    assert found > 100
