"""Generates a lake of many small files, like one that followed a node for months.

A *place* is a range of masterchain blocks with one file in each of ``TABLES_MADE``. Its blocks were
committed one by one and then merged by compaction; only the log names the files before the merge.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tests.lake.rows import make_tables
from tests.made.rows import FIRST_DAY_UTIME
from tonlake.lake.commit.commit import append_commit
from tonlake.lake.file.writer import encode_parquet
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.disk import make_folder
from tonlake.lake.log.place import Place, path_at
from tonlake.lake.log.state import LOG_FOLDER, Commit, DataFile, LogReader, LogState, NetworkId
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.settings import LakeSettings

TABLES_MADE = (
    *("blocks", "transactions", "messages", "account_states", "state_cells"),
    *("transaction_traces", "traces", "interfaces", "wallets", "message_bodies"),
)
PLACES_A_DAY = 25
NETWORK = NetworkId(-239)
DAY_S = 86_400

_SETTINGS = LakeSettings()


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
        for place, seqno in self._list_starts():
            blocks = max(1, self.count_commits(place) - 1)
            at = Place(seqno, seqno + blocks - 1, day_of(place))
            rows = make_tables(at.first, at.last, rows=blocks, names=TABLES_MADE)
            files = [_write_file(lake_dir, name, at, made) for name, made in rows.items()]
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
