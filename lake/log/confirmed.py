"""Rows of blocks that are signed, but that no masterchain block has committed yet.

The follower keeps them in one file beside the log: an Arrow stream for each table, one after the
other. The file is not part of the lake: no commit lists it, it may be missing or old, and only
streams of events read it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.disk import unfinished

CONFIRMED_FILE = "_confirmed.arrow"
_TABLE, _COMMIT = b"table", b"commit"


class Confirmed(NamedTuple):
    """The rows of all signed blocks by table, as if they were committed after ``commit``."""

    commit: int
    tables: dict[str, pa.Table]


def write_confirmed(lake_dir: Path, commit: int, tables: Mapping[str, pa.Table]) -> None:
    """Replace the file."""
    with unfinished(lake_dir / CONFIRMED_FILE) as path, pa.OSFile(str(path), "wb") as sink:
        for name, rows in tables.items():
            about = {_TABLE: name.encode(), _COMMIT: str(commit).encode()}
            with pa.ipc.new_stream(sink, rows.schema.with_metadata(about)) as writer:
                writer.write_table(rows)


def remove_confirmed(lake_dir: Path) -> None:
    """Remove the file, if any."""
    (lake_dir / CONFIRMED_FILE).unlink(missing_ok=True)


def read_confirmed(lake_dir: Path) -> Confirmed:
    """Return the rows of the file; raise FileNotFoundError if there is none."""
    data = (lake_dir / CONFIRMED_FILE).read_bytes()
    source, commit, tables = pa.BufferReader(data), 0, dict[str, pa.Table]()
    try:
        while source.tell() < len(data):
            rows = pa.ipc.open_stream(source).read_all()
            commit = int(rows.schema.metadata[_COMMIT])
            tables[rows.schema.metadata[_TABLE].decode()] = rows
    except (pa.ArrowException, OSError) as error:
        raise LakeCorrupt(CONFIRMED_FILE, str(error)) from error
    return Confirmed(commit, tables)
