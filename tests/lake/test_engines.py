"""Other engines read the lake's files and get the same sums as DuckDB."""

# ruff: noqa: PLC0415, S608 - engines may be missing; names and paths are the test's own
from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
