"""The base rows that a segment is made of, in parts that fit into memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.segment.contracts import INDEXED
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS, STATE_COLUMNS, TRANSACTION_COLUMNS
from tonlake.lake.log.disk import TEMPORARY_PREFIX
from tonlake.lake.schema import TABLES, TRACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.lake.log.state import DataFile, Range

SOURCES: dict[str, tuple[str, ...]] = {
    "transactions": (
        *("workchain", "account", "lt", "hash", "now", "mc_seqno", "account_state_hash_after"),
        *TRANSACTION_COLUMNS,
    ),
    "messages": ("tx_account", "tx_hash", "mc_seqno", *MESSAGE_COLUMNS),
    "account_states": ("workchain", "account", "block_seqno", *STATE_COLUMNS),
    "transaction_traces": ("account", "hash", "mc_seqno", "trace_id", "parent_hash"),
}
"""Tables and columns that segments are made of; and complete traces, which belong to no account."""

_ACCOUNT = {"messages": "tx_account"}
"""Name of the column that has a row's account, where it is not ``account``."""

Tables = dict[str, pa.Table]


class Read(Protocol):
    """Reads columns of a file, or all, as ``read_rows`` does."""

    def __call__(
        self, lake_dir: Path, file: DataFile, columns: Sequence[str] | None = None, /
    ) -> pa.Table:
        """Return the rows."""


def read_source(
    lake_dir: Path, file: DataFile, mc_range: Range, read: Read = read_rows
) -> pa.Table:
    """Return those rows of a file that lie in the range; a zero state belongs to block 1.

    Raises:
        LakeCorrupt: the file is missing or damaged.
    """
    rows = read(lake_dir, file, SOURCES[file.table])
    return _cut(rows, "mc_seqno", _with_zero_state(mc_range))


def _with_zero_state(mc_range: Range) -> Range:
    first, last = mc_range
    return (0 if first == 1 else first), last


def _cut(rows: pa.Table, column: str, mc_range: Range) -> pa.Table:
    """Return the rows whose block is in the range: mostly all, as a file is of few commits."""
    first, last = mc_range
    seqnos = rows[column]
    least, most = pc.min_max(seqnos).as_py().values()
    if least is None or (first <= least and most <= last):
        return rows
    return rows.filter(pc.and_(pc.greater_equal(seqnos, first), pc.less_equal(seqnos, last)))


def gather_ended(
    lake_dir: Path, files: Sequence[DataFile], mc_range: Range, read: Read = read_rows
) -> pa.Table:
    """Return the complete traces that end in the range.

    Raises:
        LakeCorrupt: a file is missing or damaged.
    """
    found = [
        _cut(read(lake_dir, file), "mc_seqno_end", mc_range)
        for file in files
        if file.table == TRACES.name
    ]
    return pa.concat_tables(found or [TRACES.empty])


def gather_contracts(
    lake_dir: Path, files: Sequence[DataFile], mc_range: Range, read: Read = read_rows
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of contracts and moves file by file, with the table's name: table by table.

    Raises:
        LakeCorrupt: a file is missing or damaged.
    """
    for name in INDEXED:
        for file in files:
            if file.table == name:
                rows = _cut(read(lake_dir, file), "mc_seqno", _with_zero_state(mc_range))
                if rows.num_rows:
                    yield name, rows


def gather_all(
    lake_dir: Path, files: Sequence[DataFile], mc_range: Range, read: Read = read_rows
) -> Tables:
    """Return the rows of the files as one part."""
    found: dict[str, list[pa.Table]] = {name: [] for name in SOURCES}
    for file in files:
        if file.table in SOURCES:
            found[file.table].append(read_source(lake_dir, file, mc_range, read))
    return {
        name: tables[0] if len(tables) == 1 else pa.concat_tables(tables or [_empty(name)])
        for name, tables in found.items()
    }


def gather_parts(
    lake_dir: Path, files: Sequence[DataFile], mc_range: Range, part_rows: int, folder: Path
) -> Iterator[Tables]:
    """Yield the rows in parts of about ``part_rows`` transactions, cut by the account's first byte.

    Rows on their way from files to parts wait in a folder of their own below ``folder``.
    """
    rows = sum(file.rows for file in files if file.table == "transactions")
    count = min(256, -(-rows // part_rows))
    if count <= 1:
        yield gather_all(lake_dir, files, mc_range)
        return
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=folder) as name:
        spill = Path(name)
        with ExitStack() as stack:
            sinks = {
                (table, part): stack.enter_context(
                    pa.ipc.new_file(spill / f"{table}-{part}", _empty(table).schema)
                )
                for table in SOURCES
                for part in range(count)
            }
            for file in files:
                if file.table in SOURCES:
                    _spread(read_source(lake_dir, file, mc_range), file.table, count, sinks)
        for part in range(count):
            yield {table: _read_spilled(spill / f"{table}-{part}") for table in SOURCES}


def _spread(
    rows: pa.Table,
    table: str,
    count: int,
    sinks: Mapping[tuple[str, int], pa.RecordBatchWriter],
) -> None:
    places = bytes(first * count // 256 for first in range(256))
    accounts = rows[_ACCOUNT.get(table, "account")].combine_chunks()
    start = accounts.offset * 32
    data = memoryview(accounts.buffers()[1])[start : start + len(accounts) * 32]
    chosen = bytes(data[::32]).translate(places)
    parts = pa.Array.from_buffers(pa.uint8(), len(chosen), [None, pa.py_buffer(chosen)])
    for part in range(count):
        sinks[table, part].write_table(rows.filter(pc.equal(parts, part)))


def _read_spilled(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _empty(table: str) -> pa.Table:
    fields = TABLES[table].arrow
    return pa.schema([fields.field(name) for name in SOURCES[table]]).empty_table()
