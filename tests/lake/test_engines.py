"""Other engines read the lake's files, and its Delta tables, and get the same rows as DuckDB."""

# ruff: noqa: PLC0415, S608 - engines may be missing; names and paths are the test's own
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.commit.delta import publish
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.prune import prune_lake
from tonlake.lake.maintenance.undo import undo_after
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # engines warn about each other's versions
]

SUMS = {
    "transactions": ("total_fees", "lt"),
    "messages": ("value", "fwd_fee"),
    "account_states": ("last_trans_lt", "mc_seqno"),
    "blocks": ("tx_count", "seqno"),
    "jetton_wallets": ("balance", "lt"),
    "traces": ("transactions", "end_lt"),
}
"""Two columns of some tables; amounts of jettons are decimals, and some values are NULL. Sums that
are beyond 64 bits, as that of all balances, are right in DuckDB alone; and dask, by way of pandas,
reads no table with lists of hashes, as actions are."""

Sums = tuple[int, ...]
"""Rows, and the sum of each column."""


def sum_pyarrow(files: list[str], columns: tuple[str, ...]) -> Sums:
    table = ds.dataset(files).to_table(columns=list(columns))
    return (table.num_rows, *(int(pc.sum(table[name]).as_py()) for name in columns))


def sum_polars(files: list[str], columns: tuple[str, ...]) -> Sums:
    import polars as pl

    sums = pl.scan_parquet(files).select(pl.len(), *(pl.col(name).sum() for name in columns))
    return tuple(map(int, sums.collect().row(0)))


def sum_datafusion(files: list[str], columns: tuple[str, ...]) -> Sums:
    import datafusion
    from datafusion import functions as f

    frames = [datafusion.SessionContext().read_parquet(file) for file in files]
    counted = f.count(datafusion.literal(1)).alias("n")
    parts = [
        frame.aggregate([], [counted, *(f.sum(datafusion.col(name)) for name in columns)])
        for frame in frames
    ]
    rows = [tuple(part.to_arrow_table().to_pylist()[0].values()) for part in parts]
    return tuple(int(sum(row[at] for row in rows)) for at in range(len(columns) + 1))


def sum_daft(files: list[str], columns: tuple[str, ...]) -> Sums:
    import daft

    frame = daft.read_parquet(files)
    sums = frame.agg(*(daft.col(name).sum() for name in columns)).to_pydict()
    return (frame.count_rows(), *(int(sums[name][0]) for name in columns))


def sum_dask(files: list[str], columns: tuple[str, ...]) -> Sums:
    import dask.dataframe as dd

    frame = dd.read_parquet(files, columns=list(columns))
    sums = frame.sum().compute()
    return (len(frame), *(int(sums[name]) for name in columns))


def sum_chdb(files: list[str], columns: tuple[str, ...]) -> Sums:
    import chdb

    sums = ", ".join(f"sum({name})" for name in columns)
    rows = [
        chdb.query(f"select count(), {sums} from file('{file}', Parquet)", "CSV").bytes()
        for file in files
    ]
    parts = [tuple(map(int, row.decode().strip().split(","))) for row in rows]
    return tuple(sum(part[at] for part in parts) for at in range(len(columns) + 1))


ENGINES: dict[str, Callable[[list[str], tuple[str, ...]], Sums]] = {
    "pyarrow": sum_pyarrow,
    "polars": sum_polars,
    "datafusion": sum_datafusion,
    "daft": sum_daft,
    "dask": sum_dask,
    "chdb": sum_chdb,
}


@pytest.fixture(scope="module")
def expected(demo_lake: Path) -> dict[str, Sums]:
    connection = connect(open_snapshot(demo_lake))
    found: dict[str, Sums] = {}
    for table, (one, other) in SUMS.items():
        row: Any = connection.execute(
            f"select count(*), sum({one}), sum({other}) from {table}"
        ).fetchone()
        found[table] = tuple(map(int, row))
    assert all(rows for rows, *_ in found.values())
    return found


@pytest.mark.parametrize("table", SUMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_same_sums(
    demo_lake: Path, expected: dict[str, Sums], engine: str, table: str
) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed: make long does it where there is a wheel")
    files = [str(demo_lake / file.path) for file in open_snapshot(demo_lake).files[table]]
    assert ENGINES[engine](files, SUMS[table]) == expected[table]


def count_deltalake(lake: Path, table: str, version: int) -> int:
    from deltalake import DeltaTable

    return int(DeltaTable(lake / table, version=version).to_pyarrow_table().num_rows)


def count_polars(lake: Path, table: str, version: int) -> int:
    import polars as pl

    return int(pl.scan_delta(str(lake / table), version=version).collect().height)


def count_datafusion(lake: Path, table: str, version: int) -> int:
    import datafusion
    from deltalake import DeltaTable

    context = datafusion.SessionContext()
    context.register_table("found", DeltaTable(lake / table, version=version))
    return sum(batch.num_rows for batch in context.sql("select * from found").collect())


def count_chdb(lake: Path, table: str, version: int) -> int:
    import chdb

    text = (
        f"select count() from (select * from deltaLakeLocal('{lake / table}') "
        f"settings delta_lake_snapshot_version = {version})"
    )
    return int(chdb.query(text, "CSV").bytes())


def count_duckdb(lake: Path, table: str, version: int) -> int:
    spec = find_spec("duckdb_extension_delta")
    assert spec is not None
    assert spec.origin is not None
    (extension,) = Path(spec.origin).parent.glob("extensions/*/delta.duckdb_extension")
    text = (
        f"load '{extension}'; "
        f"select count(*) as n from (from delta_scan('{lake / table}', version = {version}))"
    )
    command = ["duckdb", "-json", "-c", text]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return int(json.loads(done.stdout)[0]["n"])


DELTA_ENGINES: dict[str, Callable[[Path, str, int], int]] = {
    "deltalake": count_deltalake,
    "polars": count_polars,
    "datafusion": count_datafusion,
    "chdb": count_chdb,
    "duckdb_extension_delta": count_duckdb,
}


@pytest.fixture(scope="module")
def changed_lake(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo lake after an undo, a prune, a commit and a compaction, each published."""
    lake = tmp_path_factory.mktemp("changed") / "lake"
    shutil.copytree(demo_lake, lake)
    settings = LakeSettings()
    undo_after(lake, 200, settings, max_mc_blocks=100, source={}, reopen=lambda *_: ())
    prune_lake(lake, 100, settings)
    day = read_state(lake).by_table["blocks"][0].path.split("/")[1].removeprefix("day=")
    for first in (201, 211):
        commit_rows(lake, first, first + 9, day=day, network=None)
        publish(LogReader(lake), settings)
    compact_lake(lake, settings)
    before = Path.cwd()
    os.chdir(lake.parent)  # chdb reads below the working directory only
    yield lake
    os.chdir(before)


@pytest.mark.parametrize("engine", DELTA_ENGINES)
def test_an_engine_reads_every_version_of_every_delta_table(
    changed_lake: Path, engine: str
) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed: make long does it where there is a wheel")
    for table in TABLES:
        versions = sorted((changed_lake / table / "_delta_log").glob("*[0-9].json"))
        for version, path in enumerate(versions):
            info = json.loads(path.read_text().partition("\n")[0])["commitInfo"]
            files = read_state(changed_lake, info["tonlakeCommit"]).by_table.get(table, ())
            rows = sum(file.rows for file in files)
            assert DELTA_ENGINES[engine](changed_lake, table, version) == rows, (table, version)
