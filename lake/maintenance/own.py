"""Adds, refreshes and removes user-defined tables, without touching the log or a writer.

The rows of a table are the results of its statement over each UTC day or commit, each in a file. It
is rebuilt once the data files that the statement could read change.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

import duckdb
import msgspec

from tonlake.lake.duck.answer import ask, naming_the_fault, write_parquet
from tonlake.lake.duck.connection import NAMES_TAKEN, connect, list_tables
from tonlake.lake.duck.limit import WATCH
from tonlake.lake.duck.own import (
    DEFINITIONS_FILE,
    OWN_FOLDER,
    OWN_LOCK,
    OwnColumn,
    OwnPart,
    OwnState,
    OwnTable,
    check_name,
    read_definitions,
    read_own_state,
    write_definitions,
    write_own_state,
)
from tonlake.lake.duck.views import follow_views
from tonlake.lake.errors import LakeError, QueryError, TableInvalid
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import (
    begin_grace,
    hold_lock,
    make_folder,
    open_temporary,
    seal_file,
    sync_folder,
)
from tonlake.lake.log.place import read_place
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import DataFile, LogReader, check_lake
from tonlake.lake.process import Child, run_child, start_child
from tonlake.lake.schema import SCHEMA_VERSION
from tonlake.lake.settings import LakeSettings

PART_S = 600.0
"""Time limit of a table's statement for one day or commit, in seconds."""


def add_table(
    lake_dir: Path,
    table: OwnTable,
    settings: LakeSettings,
    on_part: Callable[[int, int], None] = lambda _done, _all: None,
) -> OwnState:
    """Add a table to a lake and fill it; ``on_part`` is called with the files done and of all."""
    with _hold(lake_dir):
        tables = read_definitions(lake_dir)
        check_name(table.name, NAMES_TAKEN | tables.keys())
        if not list_tables(table.sql):
            raise TableInvalid(f"the statement of {table.name} reads no table of the lake")
        state = _fill(lake_dir, table, settings, on_part)
        write_definitions(lake_dir, [*tables.values(), table])
        follow_views(lake_dir, settings)
    return state


def remove_table(lake_dir: Path, name: str, settings: LakeSettings) -> None:
    """Remove a table: its definition and its files."""
    with _hold(lake_dir):
        tables = read_definitions(lake_dir)
        find_table(tables, name)
        write_definitions(lake_dir, [each for each in tables.values() if each.name != name])
        if (folder := lake_dir / OWN_FOLDER / name).exists():  # a copy has none until a refresh
            shutil.rmtree(folder)
        follow_views(lake_dir, settings)


def find_table(tables: dict[str, OwnTable], name: str) -> OwnTable:
    """Return the definition of a table."""
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise TableInvalid(f"the lake has no user-defined table {name[:80]}; there are: {known}")
    return tables[name]


def refresh_tables(
    lake_dir: Path,
    settings: LakeSettings,
    name: str | None = None,
    on_part: Callable[[int, int], None] = lambda _done, _all: None,
) -> dict[str, OwnState]:
    """Refresh user-defined tables; one that fails keeps its rows and gets an ``error``."""
    if not read_definitions(lake_dir) and name is None:
        check_lake(lake_dir)
        return {}
    with _hold(lake_dir):
        tables = read_definitions(lake_dir)
        chosen = list(tables.values()) if name is None else [find_table(tables, name)]
        states = {table.name: _refresh(lake_dir, table, settings, on_part) for table in chosen}
        follow_views(lake_dir, settings)
        return states


def _refresh(
    lake_dir: Path, table: OwnTable, settings: LakeSettings, on_part: Callable[[int, int], None]
) -> OwnState:
    try:
        return _fill(lake_dir, table, settings, on_part)
    except (LakeError, OSError) as error:
        before = read_own_state(lake_dir, table.name)
        commit = open_snapshot(lake_dir, check_digests=False).number
        failed = msgspec.structs.replace(before, error=str(error), failed=commit)
        write_own_state(lake_dir, table.name, failed)
        return failed


@contextmanager
def _hold(lake_dir: Path) -> Iterator[None]:
    check_lake(lake_dir)
    make_folder(lake_dir / OWN_FOLDER)
    with hold_lock(lake_dir / OWN_LOCK):
        yield


def _fill(
    lake_dir: Path, table: OwnTable, settings: LakeSettings, on_part: Callable[[int, int], None]
) -> OwnState:
    """Rebuild the files of a table whose input has changed; the caller holds the lock."""
    snapshot = open_snapshot(lake_dir, check_digests=False)  # files are verified before use
    before = read_own_state(lake_dir, table.name)
    _sweep(lake_dir, table.name, before, settings.orphan_grace_s)
    inputs = _cut(snapshot, table)
    digests = {key: _digest(table, files) for key, files in inputs.items()}
    stale = [
        key
        for key, digest in digests.items()
        if key not in before.parts or before.parts[key].inputs != digest
    ]
    parts = {key: part for key, part in before.parts.items() if key in inputs}
    columns = before.columns
    for done, key in enumerate(stale, 1):
        part, columns = _make_part(snapshot, table, inputs[key], digests[key], settings)
        parts[key] = part
        on_part(done, len(stale))
    ordered = dict(sorted(parts.items()))
    state = OwnState(snapshot.number, columns, ordered)
    write_own_state(lake_dir, table.name, state)
    kept = {part.path for part in parts.values()}
    begin_grace(lake_dir, [part.path for part in before.parts.values() if part.path not in kept])
    return state


def _cut(snapshot: Snapshot, table: OwnTable) -> dict[str, list[DataFile]]:
    """Return the input files of each file of a table, by day or by place."""
    found: dict[str, list[DataFile]] = {}
    for name in list_tables(table.sql):
        if name in snapshot.damaged:
            raise snapshot.damaged[name]
        for file in snapshot.files[name]:
            place = read_place(file.path)
            found.setdefault(place.day if table.per == "day" else place.name, []).append(file)
    return found


def _digest(table: OwnTable, files: list[DataFile]) -> str:
    """Return the digest of everything that the rows of a file depend on."""
    text = "\n".join([str(SCHEMA_VERSION), table.sql, *sorted(file.path for file in files)])
    return hashlib.sha256(text.encode()).hexdigest()


def _make_part(
    snapshot: Snapshot, table: OwnTable, files: list[DataFile], inputs: str, settings: LakeSettings
) -> tuple[OwnPart, tuple[OwnColumn, ...]]:
    """Run the statement over some files only, and write its rows."""
    if settings.check_digests:
        for damage in find_damage(snapshot.lake_dir, files, trust_earlier=True):
            raise damage
    state = msgspec.structs.replace(snapshot.state, files=tuple(files))
    alone = Snapshot(snapshot.lake_dir, state)
    day = read_place(files[0].path).day
    folder = snapshot.lake_dir / OWN_FOLDER / table.name / f"day={day}"
    make_folder(folder)
    read = list_tables(table.sql)
    with (
        closing(connect(alone, settings, tables=read, statement=table.sql)) as connection,
        WATCH.limit(connection.interrupt, PART_S),
        naming_the_fault(alone),
        open_temporary(folder, "file") as (stream, temporary),
    ):
        batches = ask(connection, alone, table.sql)
        columns = _describe(connection, table.sql)
        rows = write_parquet(batches, stream)
        digest = seal_file(stream, "file")
        size = stream.tell()
        path = folder / f"{inputs[:16]}-{digest[:16]}.parquet"
        temporary.rename(path)
    sync_folder(folder)
    relative = path.relative_to(snapshot.lake_dir).as_posix()
    return OwnPart(day, inputs, relative, rows, size, digest), columns


def _describe(connection: duckdb.DuckDBPyConnection, statement: str) -> tuple[OwnColumn, ...]:
    """Return the columns of a statement."""
    relation = connection.sql(statement)
    names = [name.lower() for name in relation.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(f"a table needs distinct column names: {', '.join(twice)}")
    types = map(str, relation.types)
    return tuple(map(OwnColumn, relation.columns, types))


def _sweep(lake_dir: Path, name: str, state: OwnState, grace_s: int) -> None:
    """Remove files that have been out of the table for the grace period."""
    live = {lake_dir / part.path for part in state.parts.values()}
    oldest_s = time.time() - grace_s
    folder = lake_dir / OWN_FOLDER / name
    for path in [*folder.glob("day=*/*.parquet"), *folder.glob("day=*/.tmp-*")]:
        if path not in live and path.stat().st_mtime <= oldest_s:
            path.unlink()


POLL_S = 0.2
"""How often the process checks for a new commit or definition."""

RESTS = 4
"""Seconds of rest for every second of a refresh."""

LASTS_S = 3_600.0
"""The process is replaced after this time, to free the memory of its statements."""

PAUSE_S = 5.0
"""Pause before the process is restarted; doubled after every further failure."""

LONGEST_PAUSE_S = 640.0
"""Upper limit of that pause, for a statement that crashes the process every time."""

END_S = 5.0
"""Time to end before the process is killed; its files are complete or absent."""

NICENESS = 10
"""Lower priority than a follower, whose delay users notice."""


class Refresher:
    """Keeps the process running while the lake has user-defined tables."""

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, on_failure: Callable[[str], None]
    ) -> None:
        """Start nothing yet; ``on_failure`` is called with each failure unlike the last."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._on_failure = on_failure
        self._running: tuple[Child, threading.Thread] | None = None
        self._next_s = 0.0
        self._pause_s, self._exit_code = PAUSE_S, 0

    def wake(self) -> None:
        """Start the process if it is not running and there is work for it."""
        if self._running is not None:
            if self._running[0].process.poll() is None:
                return
            code = self._end(*self._running)
            if code and code != self._exit_code:
                self._on_failure(f"the refresher of user-defined tables ended with code {code}")
            is_again = bool(code and self._exit_code)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if is_again else PAUSE_S
            self._exit_code = code
            self._next_s = time.monotonic() + self._pause_s
        if time.monotonic() < self._next_s or not (self._lake_dir / DEFINITIONS_FILE).is_file():
            return
        try:
            child = start_child("tonlake.lake.maintenance.own", self._lake_dir)
            reader = threading.Thread(target=self._report, args=(child,), name="own tables")
            reader.daemon = True
            reader.start()
            self._running = child, reader
            child.send(self._settings)
        except OSError as error:
            self._on_failure(f"user-defined tables are not refreshed: {error}")
            self._next_s = time.monotonic() + PAUSE_S

    def close(self) -> None:
        """End the process; a table being refreshed keeps its previous rows."""
        if self._running is None:
            return
        process = self._running[0].process
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:  # DuckDB does not return before its statement ends
            process.kill()
        self._end(*self._running)

    def _end(self, child: Child, reader: threading.Thread) -> int:
        self._running = None
        code = child.process.wait()
        reader.join()
        child.requests.close()
        child.replies.close()
        return code

    def _report(self, child: Child) -> None:
        for line in child.replies:
            self._on_failure(msgspec.json.decode(line, type=str))


def main() -> NoReturn:
    """Run the process: read settings as a line of JSON, and write failures as such lines."""
    lake_dir = Path(sys.argv[1])
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=LakeSettings)
    os.nice(NICENESS)
    run_child(lambda: _keep_fresh(lake_dir, settings))


def _keep_fresh(lake_dir: Path, settings: LakeSettings) -> int:
    """Refresh after every commit and every change of definitions."""
    log, until_s = LogReader(lake_dir), time.monotonic() + LASTS_S
    seen: tuple[int, int] | None = None
    failures: list[str] = []
    reported: list[str] = []
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        try:
            now = log.find().number, (lake_dir / DEFINITIONS_FILE).stat().st_mtime_ns
            if now != seen:
                found = refresh_tables(lake_dir, settings)
                failures = [
                    f"table {name}: {one.error}" for name, one in found.items() if one.error
                ]
                seen = now
        except (LakeError, OSError) as error:
            failures = [str(error)]
        for text in failures:
            if text not in reported:
                sys.stdout.buffer.write(msgspec.json.encode(text) + b"\n")
        sys.stdout.buffer.flush()
        reported = failures
        time.sleep(max(POLL_S, RESTS * (time.monotonic() - began_s)))
    return 0


if __name__ == "__main__":
    main()
