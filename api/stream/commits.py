"""Reads the rows of one commit's blocks in chunks, however old the commit is.

They come from the files that the commit added, or, after these were compacted and removed, from the
files of the newest snapshot.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from tonlake.lake import schema
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import read_commit, read_state
from tonlake.lake.schema import MESSAGES, TABLES, TRACES, TRANSACTIONS
from tonlake.lake.schema.action import ACTIONS
from tonlake.lake.schema.transaction import ACCOUNT_STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import Commit, DataFile

Row = dict[str, Any]

CHUNK_TRANSACTIONS = 2_000
"""Approximate transactions per chunk."""

KEPT_CHUNKS, KEPT_COMMITS = 2, 256
"""Cached chunks, whose rows all types of events are made from, and cached commits."""

_SEQNO_COLUMNS = {TRACES.name: "mc_seqno_end", ACTIONS.name: "mc_seqno"}
_LEFT_OUT = {TRANSACTIONS.name: ("boc", "time"), MESSAGES.name: ()}


class Chunk(NamedTuple):
    """Masterchain blocks ``first..last`` of a commit."""

    commit: int
    first: int
    last: int


class CommitRows:
    """Reads the rows of commits from the files of a lake; ``read`` is for one thread at a time."""

    def __init__(self, lake_dir: Path) -> None:
        """Take the folder; nothing is read yet."""
        self._lake_dir = lake_dir
        self._lock = threading.Lock()
        self._commits: OrderedDict[int, Commit] = OrderedDict()
        self._chunks: OrderedDict[Chunk, dict[str, list[Row]]] = OrderedDict()

    def find_undone(self, number: int) -> Range | None:
        """Return the blocks that a commit removed from the lake, or None if it is not an undo.

        Raises:
            LakeCorrupt: the log is damaged.
        """
        commit = self._find_commit(number)
        return (commit.first_mc_seqno, commit.last_mc_seqno) if commit.undone else None

    def list_chunks(self, number: int) -> list[Chunk]:
        """Return the blocks that a commit added as chunks, in order; [] if it added none.

        Raises:
            LakeCorrupt: the log is damaged.
        """
        commit = self._find_commit(number)
        if not commit.has_blocks:
            return []
        first, last = commit.first_mc_seqno, commit.last_mc_seqno
        rows = sum(file.rows for file in commit.added if file.table == TRANSACTIONS.name)
        step = max(1, (last - first + 1) * CHUNK_TRANSACTIONS // max(rows, CHUNK_TRANSACTIONS))
        return [
            Chunk(number, start, min(start + step - 1, last))
            for start in range(first, last + 1, step)
        ]

    def _find_commit(self, number: int) -> Commit:
        with self._lock:
            commit = self._commits.get(number)
            if commit is None:
                commit, _digest = read_commit(self._lake_dir, number)
                self._commits[number] = commit
                while len(self._commits) > KEPT_COMMITS:
                    self._commits.popitem(last=False)
            return commit

    def read(self, chunk: Chunk, table: str) -> list[Row]:
        """Return the rows of a table for the blocks of ``chunk``, in the order of its files.

        Rows never change, so those of the last chunks are cached.

        Raises:
            LakeCorrupt: a file or the log is damaged.
        """
        tables = self._chunks.setdefault(chunk, {})
        self._chunks.move_to_end(chunk)
        while len(self._chunks) > KEPT_CHUNKS:
            self._chunks.popitem(last=False)
        if table not in tables:
            tables[table] = self._read_table(chunk, table)
        return tables[table]

    def _read_table(self, chunk: Chunk, table: str) -> list[Row]:
        own = _list_own(self._find_commit(chunk.commit), table)
        if all((self._lake_dir / file.path).exists() for file in own):
            try:
                return list(self._read_files(own, chunk))
            except LakeCorrupt:
                # The file may just have been removed: then the newest snapshot does not list it.
                newest = self._list_newest(chunk, table)
                if any(file in newest for file in own):
                    raise
        column = _name_seqno(table)
        undone = [
            range(one.first_mc_seqno, one.last_mc_seqno + 1)
            for one in read_state(self._lake_dir).undoings
            if one.commit > chunk.commit
        ]
        # Rows now at the seqnos of undone blocks belong to other blocks.
        return [
            row
            for row in self._read_files(self._list_newest(chunk, table), chunk)
            if not any(row[column] in gone for gone in undone)
        ]

    def _list_newest(self, chunk: Chunk, table: str) -> list[DataFile]:
        """Return the files of the newest snapshot that may have rows of the blocks."""
        found = []
        for file in read_state(self._lake_dir).files:
            if file.table == table:
                place = read_place(file.path)
                if not place.is_open and place.first <= chunk.last and place.last >= chunk.first:
                    found.append(file)
        return found

    def _read_files(self, files: Sequence[DataFile], chunk: Chunk) -> Iterator[Row]:
        for file in files:
            columns = TABLES[file.table].names
            if file.table in _LEFT_OUT:
                columns = tuple(name for name in columns if name not in _LEFT_OUT[file.table])
            seqno = pc.field(_name_seqno(file.table))
            where = (seqno >= chunk.first) & (seqno <= chunk.last)
            place = read_place(file.path)
            is_whole = chunk.first <= max(1, place.first) and chunk.last >= place.last
            if is_whole and place.first > 1:  # a file that begins at 1 also has the zero state
                yield from read_rows(self._lake_dir, file, columns).to_pylist()
            else:
                yield from read_rows(self._lake_dir, file, columns, where).to_pylist()


def _name_seqno(table: str) -> str:
    return _SEQNO_COLUMNS.get(table, "mc_seqno")


def _list_own(commit: Commit, table: str) -> list[DataFile]:
    """Return the files of a table with the rows of the commit's own blocks."""
    span = commit.first_mc_seqno, commit.last_mc_seqno
    return [
        file for file in commit.added if file.table == table and read_place(file.path)[:2] == span
    ]


class Sources(NamedTuple):
    """The rows that transactions are rendered from, by hash; states by account and hash."""

    rows: dict[bytes, Row]
    messages: dict[bytes, list[Row]]
    states: dict[tuple[int, bytes, bytes], Row]


def read_sources(reader: CommitRows, chunk: Chunk) -> Sources:
    """Return the rows that the transactions of ``chunk`` are rendered from.

    Raises:
        LakeCorrupt: a file or the log is damaged.
    """
    rows = {row["hash"]: row for row in reader.read(chunk, schema.TRANSACTIONS.name)}
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in rows}
    for message in reader.read(chunk, schema.MESSAGES.name):
        messages[message["tx_hash"]].append(message)
    states = {
        (row["workchain"], row["account"], row["hash"]): row
        for row in reader.read(chunk, ACCOUNT_STATES.name)
    }
    return Sources(rows, messages, states)


def place_of(row: Row) -> tuple[int, int, bytes]:
    """Return the sort key of transactions."""
    return row["lt"], row["workchain"], row["account"]
