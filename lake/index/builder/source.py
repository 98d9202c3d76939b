"""Reads the rows of a segment from the data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.segment.declared import INDEXED, MESSAGE_COLUMNS, STATE_COLUMNS
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile

SOURCES = frozenset({*INDEXED, "transaction_traces"})
"""Tables that segments are built from."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "transactions": tuple(name for name in TABLES["transactions"].names if name != "time"),
    "messages": ("tx_hash", "mc_seqno", *MESSAGE_COLUMNS),
    "account_states": ("workchain", "account", "block_seqno", *STATE_COLUMNS),
    "transaction_traces": ("hash", "mc_seqno", "trace_id", "parent_hash"),
}
"""The columns that are read, if not all."""

Read = Callable[..., pa.Table]
"""Reads columns of a file, or all, like ``read_rows``."""


class Source(NamedTuple):
    """Files that may have rows of a range of blocks; a zero state belongs to block 1."""

    lake_dir: Path
    files: Sequence[DataFile]
    mc_range: Range
    read: Read = read_rows

    def read_table(self, name: str) -> pa.Table:
        """Return the rows of a table; of traces, those that end in the range.

        Raises:
            LakeCorrupt: a file is missing or damaged.
        """
        columns = _COLUMNS.get(name)
        column = "mc_seqno_end" if name == "traces" else "mc_seqno"
        found = [
            _cut(self.read(self.lake_dir, file, columns), column, self._seqnos)
            for file in self.files
            if file.table == name
        ]
        if not found:
            fields = TABLES[name].arrow
            return pa.schema([fields.field(each) for each in columns or fields.names]).empty_table()
        return found[0] if len(found) == 1 else pa.concat_tables(found)

    @property
    def _seqnos(self) -> Range:
        first, last = self.mc_range
        return (0 if first == 1 else first), last


def _cut(rows: pa.Table, column: str, mc_range: Range) -> pa.Table:
    """Return the rows with blocks in the range: usually all, as a file has few commits."""
    first, last = mc_range
    seqnos = rows[column]
    least, most = pc.min_max(seqnos).as_py().values()
    if least is None or (first <= least and most <= last):
        return rows
    return rows.filter(pc.and_(pc.greater_equal(seqnos, first), pc.less_equal(seqnos, last)))
