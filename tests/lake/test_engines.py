"""Other engines read the lake's files, and its Delta tables, and get the same rows as DuckDB."""

# ruff: noqa: PLC0415, S608 - engines may be missing; names and paths are the test's own
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.commit.delta import publish
from tonlake.lake.duck.connection import VIEW_NAMES as VIEWS
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import LogReader, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.removal import prune_lake, undo_after
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings

pytestmark = [
    pytest.mark.usefixtures("pandas"),
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


def sum_arrow(table: pa.Table, columns: tuple[str, ...]) -> Sums:
    return (table.num_rows, *(int(pc.sum(table[name]).as_py() or 0) for name in columns))


def ask_sums(columns: tuple[str, ...], source: str) -> str:
    return f"select {', '.join(['count(*)', *(f'sum({name})' for name in columns)])} from {source}"


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


ENGINES: dict[str, Callable[[list[str], tuple[str, ...]], Sums]] = {
    "pyarrow": lambda files, names: sum_arrow(ds.dataset(files).to_table(list(names)), names),
    "daft": sum_daft,
    "dask": sum_dask,
}


def sum_ours(lake: Path, table: str, commit: int, columns: tuple[str, ...]) -> Sums:
    snapshot = Snapshot(lake, read_state(lake, commit))
    found = connect(snapshot, tables=[table]).sql(ask_sums(columns, VIEWS.get(table, table)))
    return tuple(int(value or 0) for value in found.fetchall()[0])


@pytest.mark.parametrize("table", SUMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_same_sums(demo_lake: Path, engine: str, table: str) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed: make long does it where there is a wheel")
    state = read_state(demo_lake)
    files = [str(demo_lake / file.path) for file in state.by_table[table]]
    expected = sum_ours(demo_lake, table, state.number, SUMS[table])
    assert ENGINES[engine](files, SUMS[table]) == expected


def read_deltalake(place: Path, version: int, columns: tuple[str, ...]) -> Sums:
    from deltalake import DeltaTable

    return sum_arrow(DeltaTable(place, version=version).to_pyarrow_table(), columns)


def read_polars(place: Path, version: int, columns: tuple[str, ...]) -> Sums:
    import polars as pl

    frame = pl.scan_delta(str(place), version=version).collect()
    return (frame.height, *(int(frame[name].sum()) for name in columns))


def read_datafusion(place: Path, version: int, columns: tuple[str, ...]) -> Sums:
    import datafusion
    from deltalake import DeltaTable

    context = datafusion.SessionContext()
    context.register_table("found", DeltaTable(place, version=version))
    (row,) = context.sql(ask_sums(columns, "found")).to_arrow_table().to_pylist()
    return tuple(int(value or 0) for value in row.values())


def read_chdb(place: Path, version: int, columns: tuple[str, ...]) -> Sums:
    import chdb

    settings = f"settings delta_lake_snapshot_version = {version}"
    source = f"(select * from deltaLakeLocal('{place}') {settings})"
    row = chdb.query(ask_sums(columns, source), "CSV").bytes().decode()
    return tuple(int(value) for value in row.strip().replace("\\N", "0").split(","))


def read_duckdb(place: Path, version: int, columns: tuple[str, ...]) -> Sums:
    spec = find_spec("duckdb_extension_delta")
    assert spec is not None
    assert spec.origin is not None
    (extension,) = Path(spec.origin).parent.glob("extensions/*/delta.duckdb_extension")
    text = ask_sums(columns, f"(from delta_scan('{place}', version = {version}))")
    command = ["duckdb", "-csv", "-noheader", "-c", f"load '{extension}'; {text}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return tuple(int(value or 0) for value in done.stdout.strip().split(","))


DELTA_ENGINES: dict[str, Callable[[Path, int, tuple[str, ...]], Sums]] = {
    "deltalake": read_deltalake,
    "polars": read_polars,
    "datafusion": read_datafusion,
    "chdb": read_chdb,
    "duckdb_extension_delta": read_duckdb,
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
            columns = ("mc_seqno",) if "mc_seqno" in TABLES[table].names else ()
            expected = sum_ours(changed_lake, table, info["tonlakeCommit"], columns)
            found = DELTA_ENGINES[engine](changed_lake / table, version, columns)
            assert found == expected, (table, version)
