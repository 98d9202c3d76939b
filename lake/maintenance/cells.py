"""Finds the state cells from before a border that states after it still use.

A cell is stored once, with the block that added it, and later states refer to it. A cell of a
pruned block stays if a remaining state, a newer cell or a library reaches it.
"""

from __future__ import annotations

import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import TEMPORARY_PREFIX
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import LOG_FOLDER, LogState
from tonlake.lake.schema import ACCOUNT_STATES, LIBRARIES, STATE_CELLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from tonlake.lake.log.state import DataFile
    from tonlake.lake.settings import LakeSettings

_READ = (ACCOUNT_STATES.name, LIBRARIES.name, STATE_CELLS.name)

_OLD = """
create table old_cells as
select hash, refs
from state_cell_copies
where mc_seqno < $border
"""
_ROOTS = """
create table frontier as
select distinct hash
from old_cells
where hash in (
    select unnest([code_hash, data_hash, library_hash, extra_currencies_hash])
    from account_states
    union all
    select hash from libraries
    union all
    select unnest(refs) from state_cell_copies where mc_seqno >= $border
)
"""
_REACHED = "create table reached as from frontier"
_CHILDREN = """
create or replace table frontier as
select hash from old_cells
where hash in (
    select unnest(refs) from old_cells where hash in (from frontier)
)
except
from reached
"""
_COUNT = "select count(*) from frontier"
_ADD = "insert into reached from frontier"
_STAYING = """
select hash, mc_seqno, cell, refs
from state_cell_copies
where mc_seqno < $border and hash in (from reached)
"""


def find_used_cells(
    lake_dir: Path, files: Sequence[DataFile], border: int, settings: LakeSettings
) -> Iterator[pa.Table]:
    """Yield the rows of ``state_cells`` from before a border that are still used, unordered.

    ``files`` are all files of cells, and those of the remaining account states and libraries.
    DuckDB spills data beyond its memory limit to a folder beside the log.

    Raises:
        LakeCorrupt: one of the files is damaged.
        LakeFull: no room.
    """
    for damage in find_damage(lake_dir, files, trust_earlier=True):
        raise damage
    snapshot = Snapshot(lake_dir, LogState(files=tuple(files)))
    with (
        _naming_shortage(lake_dir),
        tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=lake_dir / LOG_FOLDER) as spill,
        closing(connect(snapshot, settings, tables=_READ, spill=Path(spill))) as connection,
    ):
        _reach_cells(connection, border)
        staying = connection.sql(_STAYING, params={"border": border})
        for batch in staying.to_arrow_reader(settings.row_group_rows):
            yield pa.Table.from_batches([batch]).cast(STATE_CELLS.arrow)


@contextmanager
def _naming_shortage(lake_dir: Path) -> Iterator[None]:
    """Turn DuckDB's out-of-memory and disk-full errors into LakeFull."""
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise LakeFull(
            f"no room to find the state cells in use in {lake_dir} ({error}); nothing was pruned: "
            "free some space or raise [lake] duckdb_memory_mib, then run the same command again"
        ) from error


def _reach_cells(connection: DuckDBPyConnection, border: int) -> None:
    """Fill the table ``reached`` with the hashes of used old cells, level by level."""
    connection.execute(_OLD, {"border": border})
    connection.execute(_ROOTS, {"border": border})
    connection.execute(_REACHED)
    while True:
        connection.execute(_CHILDREN)
        if connection.execute(_COUNT).fetchall() == [(0,)]:
            return
        connection.execute(_ADD)
