"""Generates valid random rows of any table from its schema."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.commit.commit import commit_range
from tonlake.lake.log.state import Commit, DataFile, NetworkId
from tonlake.lake.schema import TABLES, Column

SHARD = -(2**63)

MAKERS: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "int8": lambda rng: rng.randrange(-128, 128),
    "int32": lambda rng: rng.randrange(-(2**31), 2**31),
    "int64": lambda rng: rng.randrange(-(2**63), 2**63),
    "hash": lambda rng: rng.randbytes(32),
    "bytes": lambda rng: rng.randbytes(rng.randrange(40)),
    "text": lambda rng: rng.choice(("ord", "active", "int", "")),
    "json": lambda rng: f'{{"{rng.randrange(2**32)}":"{rng.randrange(2**62)}"}}',
    "amount": lambda rng: rng.randrange(10**38),
    "time": lambda rng: rng.randrange(0, 4 * 10**15),
    "hashes": lambda rng: [rng.randbytes(32) for _ in range(rng.randrange(3))],
    "ints": lambda rng: [rng.randrange(-(2**31), 2**31) for _ in range(rng.randrange(3))],
    "texts": lambda rng: [f"0:{rng.randrange(100)}" for _ in range(rng.randrange(3))],
}


def make_value(rng: random.Random, column: Column) -> object:
    """Return a random value of a column; a fifth of the values of a nullable column are NULL."""
    if column.nullable and rng.random() < 0.2:
        return None
    return MAKERS[column.type](rng)


def make_table(name: str, first: int, last: int, *, seed: int = 0, rows: int = 20) -> pa.Table:
    """Generate ``rows`` rows of one table, in the masterchain blocks ``first..last``."""
    rng = random.Random(f"{name} {first} {last} {seed}")  # noqa: S311 - no secret, but a seed
    table = TABLES[name]
    made = [
        {column.name: make_value(rng, column) for column in table.columns}
        | {"mc_seqno": rng.randint(first, last)}
        for _ in range(rows)
    ]
    return pa.Table.from_pylist(made, schema=table.arrow)


def make_tables(
    first: int, last: int, *, seed: int = 0, rows: int = 20, names: Iterable[str] = tuple(TABLES)
) -> dict[str, pa.Table]:
    """Generate rows of tables; ``blocks`` has the masterchain blocks themselves, in one shard."""
    return {
        name: make_blocks(first, last, seed=seed)
        if name == "blocks"
        else make_table(name, first, last, seed=seed, rows=rows)
        for name in names
    }


def make_blocks(first: int, last: int, *, seed: int = 0) -> pa.Table:
    """Generate a row of ``blocks`` for each of the masterchain blocks ``first..last``."""
    count = last - first + 1
    blocks = make_table("blocks", first, last, seed=seed, rows=count)
    seqnos = pa.array(range(first, last + 1), pa.int64())
    fixed = {
        "workchain": pa.array([-1] * count, pa.int32()),
        "shard": pa.array([SHARD] * count, pa.int64()),
        "seqno": seqnos,
        "mc_seqno": seqnos,
    }
    columns = [fixed.get(column, blocks[column]) for column in blocks.column_names]
    return pa.table(columns, schema=blocks.schema)


def commit_rows(lake_dir: Path, first: int, last: int, **options: Any) -> Commit:
    """Commit random rows of ``first..last``, and of a day that follows from ``first``."""
    names = options.pop("tables", tuple(TABLES))
    made = make_tables(
        first, last, seed=options.pop("seed", 0), rows=options.pop("rows", 20), names=names
    )
    defaults: dict[str, Any] = {
        "day": f"2024-01-{1 + first % 28:02}",
        "source": {"kind": "random"},
        "network": NetworkId(-239),
    }
    return commit_range(
        lake_dir, made, first_mc_seqno=first, last_mc_seqno=last, **(defaults | options)
    )


def file_bytes(lake_dir: Path) -> dict[str, bytes]:
    """Return every file of a lake by its relative path."""
    return {
        str(path.relative_to(lake_dir)): path.read_bytes()
        for path in sorted(lake_dir.rglob("*"))
        if path.is_file()
    }


def flip_value(path: Path, value: bytes) -> None:
    """Flip a bit that changes a value in any file: in plain files, to one of the same type."""
    data = path.read_bytes()
    assert value in data
    path.write_bytes(data.replace(value, bytes([value[0] ^ 1]) + value[1:]))


def commit_days(lake: Path) -> None:
    """Commit random rows of nine days, with a hole, without traces."""
    names = tuple(TABLES.keys() - {"traces", "open_edges", "transaction_traces", "action_ranges"})
    for day, first in enumerate((1, 6, 11, 21, 26, 31, 36, 41, 46), 1):
        commit_rows(lake, first, first + 4, tables=names, day=f"2024-01-{day:02}")


def write_old_file(lake: Path, lacking: str) -> tuple[DataFile, DataFile]:
    """Write a file of an older schema, without one column, and a file of the current one."""
    files = []
    for version in (0, 1):
        rows = make_table("shard_blocks", 1, 9, rows=3)
        path = f"shard_blocks/day=2024-01-0{version + 1}/{version}.parquet"
        (lake / path).parent.mkdir(parents=True)
        pq.write_table(rows if version else rows.drop_columns([lacking]), lake / path)
        files.append(DataFile(path, "shard_blocks", 3, 1, "", version))
    return files[0], files[1]
