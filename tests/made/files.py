"""Generates a lake of many small files, like one that followed a node for months.

A *place* is a range of masterchain blocks with one file in each of ``TABLES_MADE``. Its blocks were
committed one by one and then merged by compaction; the files before the merge have been swept, so
only the log names them. The product's own writer appends the entries, and files hold genuine rows
under their own digests. The same arguments give the same bytes.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.made.rows import FIRST_DAY_UTIME, LT_SPAN, SHARD, ZERO
from tonlake.lake.commit.commit import append_commit
from tonlake.lake.file.writer import encode_parquet
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.disk import make_folder
from tonlake.lake.log.network import Network
from tonlake.lake.log.place import Place, path_at
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import LOG_FOLDER, Commit, DataFile, LogState
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLES_MADE = (
    *("blocks", "transactions", "messages", "account_states", "state_cells"),
    *("transaction_traces", "traces", "interfaces", "wallets", "message_bodies"),
)
PLACES_A_DAY = 25
ACCOUNTS = 1_000
CODES = 100
NETWORK = Network(-239)
DAY_S = 86_400

_SETTINGS = LakeSettings()
_EMPTY: dict[str, Any] = {"bool": False, "hash": ZERO, "bytes": b"", "text": "", "hashes": []}
_CONSTANT: dict[str, Any] = {
    "workchain": 0,
    "tx_workchain": 0,
    "shard": SHARD,
    "global_id": NETWORK.global_id,
    "account_status": "active",
    "state": "complete",
    "transactions": 1,
    "messages": 1,
    "direction": "in",
    "kind": "ext_in",
    "source_kind": "none",
    "destination_kind": "std",
    "descr": "ord",
    "orig_status": "active",
    "end_status": "active",
    "version": 1,
}
_SEQNOS = frozenset({"mc_seqno", "mc_seqno_start", "mc_seqno_end", "block_seqno", "seqno"})
_LTS = frozenset({"lt", "tx_lt", "start_lt", "end_lt", "last_trans_lt", "created_lt"})
_UTIMES = frozenset({"now", "utime", "gen_utime", "start_utime", "end_utime"})
_HASHED = {
    "account": ("account", ACCOUNTS),
    "tx_account": ("account", ACCOUNTS),
    "destination": ("account", ACCOUNTS),
    "code_hash": ("code", CODES),
    **dict.fromkeys(("hash", "tx_hash", "trace_id", "last_trans_hash"), ("transaction", 0)),
    **dict.fromkeys(("msg_hash", "in_msg_hash", "external_hash"), ("message", 0)),
    "body_hash": ("body", 0),
    "data_hash": ("data", 0),
}
"""Columns of hashes: what is hashed beside the number of the block, taken modulo the second."""


class ManyFiles:
    """The layout of a lake with a given number of files and commits."""

    def __init__(self, files: int, commits: int) -> None:
        """Take the number of live files and of log entries, at least one of both per place."""
        self.places = max(1, files // len(TABLES_MADE))
        self.commits = max(self.places, commits)

    def count_commits(self, place: int) -> int:
        """Return the commits of a place: one per block, and a merge where there are several."""
        return self.commits * (place + 1) // self.places - self.commits * place // self.places

    def make(self, lake_dir: Path) -> LogState:
        """Write the lake and its index, which is one more commit; return its state."""
        make_folder(lake_dir / LOG_FOLDER)
        log = LogReader(lake_dir)
        before = ZERO
        for place, seqno in self._list_starts():
            blocks = max(1, self.count_commits(place) - 1)
            at = Place(seqno, seqno + blocks - 1, day_of(place))
            is_last = place == self.places - 1
            files = [
                _write_file(lake_dir, name, at, make_rows(name, at, place, before, is_last=is_last))
                for name in TABLES_MADE
            ]
            before = _hash("block", at.last)
            _append_place(lake_dir, log, at, files)
        rebuild_index(lake_dir)
        return log.read()

    def _list_starts(self) -> Iterator[tuple[int, int]]:
        """Yield every place with its first masterchain block."""
        seqno = 1
        for place in range(self.places):
            yield place, seqno
            seqno += max(1, self.count_commits(place) - 1)


def day_of(place: int) -> str:
    """Return the UTC day of a place."""
    return str(datetime.fromtimestamp(_start_of(place), UTC).date())


def _start_of(place: int) -> int:
    return FIRST_DAY_UTIME + place // PLACES_A_DAY * DAY_S + place % PLACES_A_DAY * 3_000


def _append_place(lake_dir: Path, log: LogReader, at: Place, files: list[DataFile]) -> None:
    """Append the commits of a place to the log."""
    if at.first == at.last:
        _append(lake_dir, log, at, files)
        return
    gone: list[str] = []
    for seqno in range(at.first, at.last + 1):
        mine = [_describe_swept(file, Place(seqno, seqno, at.day)) for file in files]
        gone += (file.path for file in mine)
        _append(lake_dir, log, Place(seqno, seqno, at.day), mine)
    _append(lake_dir, log, Place(1, at.last, at.day), files, tuple(sorted(gone)))


def _append(
    lake_dir: Path,
    log: LogReader,
    at: Place,
    added: list[DataFile],
    removed: tuple[str, ...] = (),
) -> None:
    state = log.read()
    commit = Commit(
        number=state.number + 1,
        first_mc_seqno=at.first,
        last_mc_seqno=at.last,
        day=at.day,
        added=tuple(added),
        removed=removed,
        source={"kind": "generated"},
        network=NETWORK,
        previous=state.digest,
        has_blocks=not removed,
    )
    append_commit(lake_dir, state, commit)


def _describe_swept(file: DataFile, at: Place) -> DataFile:
    """Return a file of one block that the merge into ``file`` replaced."""
    digest = hashlib.sha256(f"{file.table} {at.first}".encode()).hexdigest()
    path = path_at(file.table, at, digest)
    return DataFile(path, file.table, 1, file.bytes, digest, SCHEMA_VERSION)


def _write_file(lake_dir: Path, name: str, at: Place, rows: pa.Table) -> DataFile:
    data = encode_parquet(rows, TABLES[name], _SETTINGS)
    sha256 = hashlib.sha256(data).hexdigest()
    path = path_at(name, at, sha256)
    make_folder((lake_dir / path).parent)
    (lake_dir / path).write_bytes(data)
    return DataFile(path, name, rows.num_rows, data.size, sha256, SCHEMA_VERSION)


def make_rows(
    name: str, at: Place, place: int, before: bytes = ZERO, *, is_last: bool = False
) -> pa.Table:
    """Return one row of a table for each masterchain block of a place.

    The lake's last block has a root hash of zeros, so that any chain can follow it.
    """
    seqnos = range(at.first, at.last + 1)
    utimes = [_start_of(place) + number for number in range(len(seqnos))]
    columns = []
    for column in TABLES[name].columns:
        known = column.name
        values: list[Any]
        if name == "blocks" and known == "workchain":
            values = [-1] * len(seqnos)
        elif known in _SEQNOS:
            values = list(seqnos)
        elif known in _LTS:
            values = [seqno * LT_SPAN for seqno in seqnos]
        elif known in _UTIMES:
            values = utimes
        elif known == "time":
            values = [utime * 1_000_000 for utime in utimes]
        elif known == "root_hash":
            values = [_hash("block", seqno) for seqno in seqnos]
            values[-1] = ZERO if is_last else values[-1]
        elif known == "prev_root_hash":
            values = [before, *(_hash("block", seqno) for seqno in seqnos[:-1])]
        elif known in _HASHED:
            what, modulo = _HASHED[known]
            values = [_hash(what, seqno % modulo if modulo else seqno) for seqno in seqnos]
        else:
            empty = None if column.nullable else _EMPTY.get(column.type, 0)
            values = [_CONSTANT.get(known, empty)] * len(seqnos)
        columns.append(pa.array(values, column.arrow.type))
    return pa.table(columns, schema=TABLES[name].arrow)


def _hash(what: str, number: int) -> bytes:
    return hashlib.sha256(f"{what} {number}".encode()).digest()
