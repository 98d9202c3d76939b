"""Files with blocks on both sides of a border, written again without those beyond it.

Every row of a lake belongs to one masterchain block, so that of each file those stay that a
commit which ended at the border would have brought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.log.disk import sync_folder
from tonlake.lake.log.place import read_place
from tonlake.lake.maintenance.compact import write_stream
from tonlake.lake.schema import TABLES, TRACES
from tonlake.lake.schema.action import ACTION_RANGES, ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tonlake.lake.log.state import DataFile
    from tonlake.lake.settings import LakeSettings

_MC_SEQNO = {TRACES.name: "mc_seqno_end"}
"""Column that says a row's masterchain block, where it is not ``mc_seqno``."""


def cut_files(
    lake_dir: Path, files: Sequence[DataFile], last_kept: int, settings: LakeSettings
) -> list[DataFile]:
    """Write the files of one place again without rows of blocks after ``last_kept``.

    They stand at the place that ends there. A file of which no row stays has no successor.

    Raises:
        LakeCorrupt: a file is missing or damaged.
        LakeFull: no room.
    """
    made: list[DataFile] = []
    for file in files:
        if file.table == ACTION_RANGES.name:
            pieces = iter([_cut_ranges(lake_dir, file, files, last_kept)])
        else:
            pieces = _keep_before(lake_dir, file, last_kept, settings)
        place = read_place(file.path)._replace(last=last_kept)
        written = write_stream(lake_dir, TABLES[file.table], place, pieces, file.rows, settings)
        if written.rows:
            made.append(written)
        else:
            (lake_dir / written.path).unlink()
    for folder in sorted({(lake_dir / file.path).parent for file in made}):
        sync_folder(folder)
    return made


def _keep_before(
    lake_dir: Path, file: DataFile, last_kept: int, settings: LakeSettings
) -> Iterator[pa.Table]:
    column = _MC_SEQNO.get(file.table, "mc_seqno")
    for rows in stream_rows(lake_dir, file, settings.row_group_rows):
        yield rows.filter(pc.less_equal(rows[column], last_kept))


def _cut_ranges(
    lake_dir: Path, file: DataFile, files: Sequence[DataFile], last_kept: int
) -> pa.Table:
    """Return what is classified: of a range that spans the border, as much as stays."""
    found: list[dict[str, Any]] = []
    for row in read_rows(lake_dir, file).to_pylist():
        if row["last_mc_seqno"] > last_kept >= row["first_mc_seqno"]:
            span = (row["first_mc_seqno"], last_kept)
            row |= {
                "last_mc_seqno": last_kept,
                "traces": _count(lake_dir, files, TRACES.name, span),
                "actions": _count(lake_dir, files, ACTIONS.name, span),
            }
        if row["last_mc_seqno"] <= last_kept:
            found.append(row)
    return pa.Table.from_pylist(found, schema=ACTION_RANGES.arrow)


def _count(lake_dir: Path, files: Sequence[DataFile], table: str, span: tuple[int, int]) -> int:
    """Return how many rows of a table lie in a span of masterchain blocks."""
    column = _MC_SEQNO.get(table, "mc_seqno")
    inside = (pc.field(column) >= span[0]) & (pc.field(column) <= span[1])
    return sum(
        read_rows(lake_dir, file, (column,), inside).num_rows
        for file in files
        if file.table == table
    )
