"""Reads the base rows of a segment, in parts that fit in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.file.values import item_bytes
from tonlake.lake.index.segment.contracts import INDEXED
from tonlake.lake.index.segment.places import PLACED
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS, STATE_COLUMNS, TRANSACTION_COLUMNS
from tonlake.lake.log.disk import TEMPORARY_PREFIX
from tonlake.lake.schema import TABLES, TRACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile

SOURCES: dict[str, tuple[str, ...]] = {
    "transactions": (
        *("workchain", "account", "lt", "hash", "now", "mc_seqno", "account_state_hash_after"),
        *TRANSACTION_COLUMNS,
    ),
    "messages": ("tx_account", "tx_hash", "mc_seqno", *MESSAGE_COLUMNS),
    "account_states": ("workchain", "account", "block_seqno", *STATE_COLUMNS),
    "transaction_traces": ("account", "hash", "mc_seqno", "trace_id", "parent_hash"),
}
"""Tables and columns that segments contain, in addition to complete traces, which span accounts."""

_ACCOUNT = {"messages": "tx_account"}
"""Column with a row's account, if it is not ``account``."""

_SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Compressed, because bodies and initial states repeat and filling more pages takes longer."""

_ROWS_AT_ONCE = 10_000
"""Rows of a file in memory at a time: with bodies, 20 MB of large blocks."""

Tables = dict[str, pa.Table]

Read = Callable[..., pa.Table]
"""Reads columns of a file, or all, like ``read_rows``."""


class Source(NamedTuple):
    """Files that may have rows of a range of masterchain blocks; a zero state belongs to block 1.

    All methods raise LakeCorrupt if a file is missing or damaged.
    """

    lake_dir: Path
    files: Sequence[DataFile]
    mc_range: Range
    read: Read = read_rows

    def read_all(self) -> Tables:
        """Return the base rows as one part."""
        found: dict[str, list[pa.Table]] = {name: [] for name in SOURCES}
        for file in self._list_base():
            found[file.table].append(self._read_base(file))
        return {
            name: tables[0] if len(tables) == 1 else pa.concat_tables(tables or [_empty(name)])
            for name, tables in found.items()
        }

    def read_parts(self, part_rows: int, folder: Path) -> Iterator[Tables]:
        """Yield the base rows in parts of about ``part_rows`` transactions.

        Parts are cut by the account's first byte. Rows are spilled by part to a temporary folder
        in ``folder``.
        """
        rows = sum(file.rows for file in self.files if file.table == "transactions")
        count = min(256, -(-rows // part_rows))
        if count <= 1:
            yield self.read_all()
            return
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=folder) as name:
            spill = Path(name)
            with ExitStack() as stack:
                sinks = {
                    (table, part): stack.enter_context(
                        pa.ipc.new_file(
                            spill / f"{table}-{part}", _empty(table).schema, options=_SPILLED
                        )
                    )
                    for table in SOURCES
                    for part in range(count)
                }
                for file in self._list_base():
                    for rows in self._stream_base(file):
                        _spread(rows, file.table, count, sinks)
            for part in range(count):
                yield {table: _read_spilled(spill / f"{table}-{part}") for table in SOURCES}

    def read_ended(self) -> pa.Table:
        """Return the complete traces that end in the range."""
        files = [file for file in self.files if file.table == TRACES.name]
        found = [
            _cut(self.read(self.lake_dir, file), "mc_seqno_end", self.mc_range) for file in files
        ]
        return pa.concat_tables(found or [TRACES.empty])

    def read_contracts(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of contracts and transfers with the table's name, table by table."""
        for name in INDEXED:
            for file in self.files:
                if file.table == name:
                    rows = _cut(self.read(self.lake_dir, file), "mc_seqno", self._seqnos)
                    if rows.num_rows:
                        yield name, rows

    def read_places(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the hashes that rows are found by, and their blocks, with the table's name."""
        for file in self.files:
            if file.table in PLACED:
                columns = "mc_seqno", *PLACED[file.table]
                rows = self.read(self.lake_dir, file, columns)
                yield file.table, _cut(rows, "mc_seqno", self._seqnos)

    def _list_base(self) -> list[DataFile]:
        return [file for file in self.files if file.table in SOURCES]

    def _read_base(self, file: DataFile) -> pa.Table:
        return _cut(self.read(self.lake_dir, file, SOURCES[file.table]), "mc_seqno", self._seqnos)

    def _stream_base(self, file: DataFile) -> Iterator[pa.Table]:
        """Yield base rows of a file in batches."""
        if file.rows <= _ROWS_AT_ONCE:
            yield self._read_base(file)
            return
        for rows in stream_rows(self.lake_dir, file, _ROWS_AT_ONCE, SOURCES[file.table]):
            yield _cut(rows, "mc_seqno", self._seqnos)

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


def _spread(
    rows: pa.Table,
    table: str,
    count: int,
    sinks: Mapping[tuple[str, int], pa.RecordBatchWriter],
) -> None:
    places = bytes(first * count // 256 for first in range(256))
    accounts = item_bytes(rows[_ACCOUNT.get(table, "account")])
    chosen = bytes(accounts[::32]).translate(places)
    parts = pa.Array.from_buffers(pa.uint8(), len(chosen), [None, pa.py_buffer(chosen)])
    together = rows.take(pc.sort_indices(parts))  # a stable sort keeps the order in a part
    start = 0
    for part in range(count):
        held = chosen.count(part)
        sinks[table, part].write_table(together.slice(start, held))
        start += held


def _read_spilled(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _empty(table: str) -> pa.Table:
    fields = TABLES[table].arrow
    return pa.schema([fields.field(name) for name in SOURCES[table]]).empty_table()
