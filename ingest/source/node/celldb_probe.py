"""Reads a part of a celldb and ends: run as a child process, which may crash.

Exit code 0: readable; 1: not readable, the reason is the last line of stderr.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.celldb import CellDb

CELLS_PROBED = 10_000
STATES_PROBED = 100


def probe_celldb(folder: Path) -> None:
    """Read cells and states; cells lie by hash, so the first ones are a fair sample."""
    celldb = CellDb(folder)
    try:
        for cell_hash, _record in itertools.islice(celldb.cells(), CELLS_PROBED):
            celldb.get(cell_hash)
        for entry in itertools.islice(celldb.states(), STATES_PROBED):
            celldb.find_state(entry.block_id)
            celldb.get(entry.root_hash)
    finally:
        celldb.close()


if __name__ == "__main__":
    try:
        probe_celldb(Path(sys.argv[1]))
    except SourceError as error:
        sys.exit(str(error))
