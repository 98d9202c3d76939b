"""Scans give the same rows as SQL, in chain order, on genuine networks too."""

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonlake
from tests.api.scan.selections import Asked, draw
from tests.lake.rows import commit_rows
from tonlake.api.python.lake import Lake
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.log.state import DataFile
from tonlake.lake.scan import scanner
from tonlake.lake.scan.scanner import cut_span


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
    found = [compare(lake, draw(chance, lake)) for _ in range(40)]
    assert sum(1 for count in found if count) > 13, "filters leave something to compare"


@pytest.mark.long
@pytest.mark.parametrize("name", ["node/localnet-db", "node/celldb-v2/localnet-celldbv2"])
def test_500_random_scans_of_the_shared_networks_equal_sql(
    ingest_network: Callable[[str], Path], name: str
) -> None:
    """Half of them on each network."""
    lake, chance = tonlake.open(ingest_network(name)), random.Random(4)  # noqa: S311 - no secret
    found = [compare(lake, draw(chance, lake)) for _ in range(250)]
    assert sum(1 for count in found if count) > 80, "filters leave something to compare"


def test_several_tables_give_what_each_gives(demo_lake: Path) -> None:
    lake, chance = tonlake.open(demo_lake), random.Random(3)  # noqa: S311 - no secret
    found = 0
    for _ in range(12):
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
    assert found > 600


KEYS = {
    "transactions": ("account", "hash", "aborted"),
    "messages": (
        *("tx_account", "tx_hash", "msg_hash", "opcode", "body_hash", "source", "destination"),
        "direction",
    ),
}


def test_selective_scans_equal_sql(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, chance = tonlake.open(demo_lake), random.Random(2)  # noqa: S311 - no secret
    for name in ("READ_ROWS", "READ_VALUES"):
        monkeypatch.setattr(scanner, name, 1_000)  # many statements for a scan
    found = [compare(lake, draw(chance, lake, KEYS)) for _ in range(40)]
    assert sum(1 for count in found if count) > 13, "filters leave something to compare"


@pytest.mark.usefixtures("s3")
def test_a_lake_in_object_storage_gives_the_same(tmp_path: Path) -> None:
    folder, url = tmp_path / "lake", "s3://lakes/scanned"
    for first, last in ((1, 10), (16, 20)):
        commit_rows(folder, first, last)
    copy_lake(folder, url)
    here, there = tonlake.open(folder), tonlake.open(url)
    value = here.sql("select msg_hash from messages limit 1").fetchall()[0][0]
    for table, where in (("messages", None), ("messages", {"msg_hash": value.hex()})):
        columns = ["mc_seqno", "msg_hash", "transaction.compute_exit_code"]
        for stretch in ((1, 10), (16, 20)):
            span = dict(zip(("start", "stop"), stretch, strict=True))
            found, expected = (
                [
                    row
                    for batch in lake.scan(table, where, columns=columns, **span)
                    for row in batch.rows
                ]
                for lake in (there, here)
            )
            assert found == expected
        assert where or found


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 50_000)), max_size=9),
    st.tuples(st.integers(0, 45), st.integers(0, 45)).map(sorted),
)
def test_stretches_cover_a_span(files: list[tuple[int, int, int]], span: list[int]) -> None:
    listed = [
        DataFile(f"blocks/day=2024-01-01/{first}-{first + more}-00.parquet", "blocks", n, 1, "", 1)
        for first, more, n in files
        if first <= span[1] and span[0] <= first + more
    ]
    stretches = list(cut_span(listed, (span[0], span[1]), 10_000))
    assert [block for first, last in stretches for block in range(first, last + 1)] == [
        *range(span[0], span[1] + 1)
    ]
