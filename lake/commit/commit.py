"""Commits all tables of a range of masterchain blocks to the lake, all or nothing.

Data files are written under temporary names, synced and renamed; then their folders are synced.
``_log/<N>.json`` is a hard link to a synced temporary file, so it is created exclusively: the
commit exists from then on. The sweep removes what a crash leaves (``lake.maintenance.orphan``).

Derived rows, such as traces, are computed from the newest state before the lock is taken, and again
if the files of the lake changed meanwhile.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa

from tonlake.lake.errors import CommitConflict, LakeFull, RangeOverlap, RowsRejected
from tonlake.lake.file.datafile import (
    Changes,
    FilesAhead,
    Submit,
    list_unlisted,
    open_ahead,
    remove_files,
    write_changes,
)
from tonlake.lake.log.disk import (
    LOCK_FILE,
    QUEUE_FILE,
    begin_grace,
    hold_lock,
    make_folder,
    naming_full_disk,
    reach,
    sync_folder,
    write_file,
    write_temporary,
)
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.place import Derivation, Derive, NewFile, Place, list_replaced
from tonlake.lake.log.ranges import Range, overlaps
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import (
    LOG_FOLDER,
    Commit,
    LogReader,
    LogState,
    NetworkId,
    checkpoint_name,
    entry_name,
    join_networks,
    list_log,
    read_first,
)
from tonlake.lake.schema import TABLES, Table
from tonlake.lake.settings import LakeSettings

MC_SEQNO = "mc_seqno"
"""Columns with a row's masterchain block; derived rows that span blocks have none."""


def check_tables(tables: Mapping[str, pa.Table], mc_range: Range, day: str) -> dict[str, pa.Table]:
    """Return the tables that have rows, with exactly the schema's fields."""
    first, last = mc_range
    if not 1 <= first <= last:
        raise RowsRejected(f"{first}..{last} is not a range of masterchain blocks")
    if not is_day(day):
        raise RowsRejected(f"{day!r} is not a day; it must be YYYY-MM-DD")
    unknown = sorted(set(tables) - set(TABLES))
    if unknown:
        raise RowsRejected(f"the schema has no table {', '.join(unknown)}")
    checked = {
        name: check_rows(rows, TABLES[name]) for name, rows in tables.items() if rows.num_rows
    }
    # Rows of the zero state have mc_seqno 0 and come with the first masterchain block.
    lowest = 0 if first == 1 else first
    for name, rows in checked.items():
        if MC_SEQNO not in TABLES[name].names:
            continue
        seqnos = rows[MC_SEQNO].to_numpy()
        least, most = seqnos.min(), seqnos.max()
        if least < lowest or most > last:
            raise RowsRejected(
                f"rows of {name} are of masterchain blocks {least}..{most}, "
                f"but the range is {first}..{last}"
            )
    return checked


def check_rows(rows: pa.Table, table: Table) -> pa.Table:
    """Return the rows of one table with exactly the schema's fields."""
    if not rows.schema.equals(table.arrow):
        rows = _take_schema(rows, table)
    for at in table.required:
        if rows.column(at).null_count:
            name = f"{table.name}.{table.names[at]}"
            raise RowsRejected(f"{name} has NULLs, but the schema allows none")
    return rows


def _take_schema(rows: pa.Table, table: Table) -> pa.Table:
    """Return rows whose columns match, with the Arrow schema of the table."""
    if tuple(rows.column_names) != table.names:
        raise RowsRejected(
            f"rows of {table.name} have the columns {rows.column_names}, "
            f"but the schema has {list(table.names)}"
        )
    for values, field in zip(rows.columns, table.arrow, strict=True):
        if values.type != field.type:
            raise RowsRejected(f"{table.name}.{field.name} is {values.type}, not {field.type}")
    return pa.table(rows.columns, schema=table.arrow)


def is_day(text: str) -> bool:
    """Whether ``text`` is a day as ``YYYY-MM-DD``."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


CHECKPOINT_COMMITS = 100
"""A checkpoint is written after this many commits."""

KEPT_CHECKPOINTS = 10
"""The newest checkpoints to keep, and of older ones one in as many: each lists every live file, so
all together would soon be larger than the lake."""

_DEFAULTS = LakeSettings()

ATTEMPTS = 5
"""How often rows are derived while other commits interfere; only maintenance can."""


def commit_range(  # noqa: PLR0913 - one for each part of a commit
    lake_dir: Path,
    tables: Mapping[str, pa.Table],
    *,
    first_mc_seqno: int,
    last_mc_seqno: int,
    day: str,
    source: Mapping[str, str],
    network: NetworkId | None = None,
    settings: LakeSettings = _DEFAULTS,
    derive: Derive = lambda _state, _rows, _place: (),
    log: LogReader | None = None,
    submit: Submit | None = None,
    pack_rows: int = 0,
) -> Commit:
    """Add all rows of the masterchain blocks ``first_mc_seqno..last_mc_seqno``, both included.

    Missing tables count as empty, and a missing lake is created. Rows of the zero state, mc_seqno
    0, come with block 1. ``day`` is the UTC day (``YYYY-MM-DD``), ``source`` a fingerprint of the
    source. ``derive`` yields the rows derived from these, stage by stage; ``submit`` starts calls
    in other processes, which write large files. If no table has more than ``pack_rows`` rows, one
    file has all of them until the next compaction. Raises RowsRejected, RangeOverlap,
    NetworkMismatch, CommitConflict, LakeFull.
    """
    reach("commit.start")
    place = Place(first_mc_seqno, last_mc_seqno, day)
    rows = check_tables(tables, (place.first, place.last), day)
    make_folder(lake_dir / LOG_FOLDER)
    reader = log or LogReader(lake_dir)
    base = [NewFile(name, place, rows[name]) for name in sorted(rows)]
    with hold_lock(lake_dir / QUEUE_FILE), open_ahead(lake_dir, settings, submit) as ahead:
        ahead.begin(base)
        for _attempt in range(ATTEMPTS):
            expected = reader.read()
            _check_fit(expected, place, network)
            with Lease(lake_dir, expected.number):
                derived = _write_stages(derive(expected, rows, place), ahead)
            whole = derived._replace(files=[*base, *derived.files])
            ahead.wait()
            with hold_lock(lake_dir / LOCK_FILE):
                state = reader.read()
                if not still_holds(expected, state):
                    continue
                pack = None if any(len(file.rows) > pack_rows for file in whole.files) else place
                changes = write_changes(lake_dir, state, whole, settings, ahead, pack)
                commit = _describe(state, place, rows, changes, source, network)
                reader.follow(append_commit(lake_dir, state, commit))
                return commit
    raise give_up(lake_dir)


def _write_stages(stages: Iterable[Derivation], ahead: FilesAhead) -> Derivation:
    """Join the results of all stages; files of one are written while the next one runs."""
    files, removed = list[NewFile](), set[str]()
    for derived in stages:
        of_stage = [*derived.files]
        ahead.begin(of_stage)
        files += of_stage
        removed |= derived.removed
    return Derivation(files, frozenset(removed))


def still_holds(expected: LogState, state: LogState) -> bool:
    """Whether rows derived from ``expected`` are also valid for ``state``."""
    if state.digest == expected.digest:
        return True
    # A commit of index segments only changes no rows.
    return (state.files, state.undoings) == (expected.files, expected.undoings)


def give_up(lake_dir: Path) -> CommitConflict:
    """Return the error of a writer whose rows were outdated at every attempt."""
    return CommitConflict(
        f"{lake_dir / LOG_FOLDER}: other commits changed the lake during each of {ATTEMPTS} "
        "attempts to derive rows from it; run the same command again"
    )


def _describe(
    state: LogState,
    place: Place,
    rows: Mapping[str, pa.Table],
    changes: Changes,
    source: Mapping[str, str],
    network: NetworkId | None,
) -> Commit:
    known = (table[MC_SEQNO] for table in rows.values() if MC_SEQNO in table.column_names)
    return Commit(
        number=state.number + 1,
        first_mc_seqno=place.first,
        last_mc_seqno=place.last,
        day=place.day,
        added=changes.added,
        removed=changes.removed,
        source=dict(source),
        shards=_shard_ranges(rows.get("blocks")),
        zero_state=place.first == 1 and any(0 in seqnos.unique().to_pylist() for seqnos in known),
        network=network,
        previous=state.digest,
    )


def _check_fit(state: LogState, place: Place, network: NetworkId | None) -> None:
    for first, last in overlaps(state.ranges, (place.first, place.last)):
        raise RangeOverlap(
            f"masterchain blocks {place.first}..{place.last} cannot be committed: "
            f"the lake already has {first}..{last}; the same command again adds what is missing"
        )
    if place.first <= state.last_pruned:
        raise RangeOverlap(
            f"masterchain blocks {place.first}..{place.last} cannot be added: the lake is pruned "
            f"up to {state.last_pruned}; ingest older blocks into another lake"
        )
    join_networks(state.network, network)


def _shard_ranges(blocks: pa.Table | None) -> dict[str, Range]:
    if blocks is None:
        return {}
    names = ("workchain", "shard", "seqno")
    ranges: dict[str, Range] = {}
    for workchain, shard, seqno in zip(*(blocks[name].to_pylist() for name in names), strict=True):
        name = f"{workchain}:{shard & (1 << 64) - 1:016x}"
        first, last = ranges.get(name, (seqno, seqno))
        ranges[name] = min(first, seqno), max(last, seqno)
    return ranges


def append_commit(lake_dir: Path, state: LogState, commit: Commit) -> LogState:
    """Append a commit, whose files are written, under the caller's lock; replaced ones wait.

    Return the state after it.
    """
    segments = state.segments if commit.segments is None else commit.segments
    kept = {segment.path for segment in segments}
    dropped = {segment.path for segment in state.segments} - kept
    begin_grace(lake_dir, list_replaced(state, commit.removed) | dropped)
    after = state.add((commit, _write_entry(lake_dir, commit)))
    if commit.number % CHECKPOINT_COMMITS == 0:
        # The commit is durable. Without a checkpoint, readers only have to replay more entries.
        with suppress(LakeFull):
            final = lake_dir / LOG_FOLDER / checkpoint_name(after.number)
            write_file(final, encode_entry(after)[0], "checkpoint")
        if commit.number % (CHECKPOINT_COMMITS * KEPT_CHECKPOINTS) == 0:
            thin_checkpoints(lake_dir, commit.number)
    return after


def thin_checkpoints(lake_dir: Path, newest: int) -> None:
    """Remove most old checkpoints, but not the one that a shortened log begins with."""
    for number in {*list_surplus(list_log(lake_dir)[1], newest)} - {read_first(lake_dir)}:
        (lake_dir / LOG_FOLDER / checkpoint_name(number)).unlink(missing_ok=True)


def list_surplus(checkpoints: Iterable[int], newest: int) -> list[int]:
    """Return the numbers of the checkpoints that ``thin_checkpoints`` removes."""
    span = CHECKPOINT_COMMITS * KEPT_CHECKPOINTS
    return [number for number in checkpoints if number < newest - span and number % span]


def _write_entry(lake_dir: Path, commit: Commit) -> str:
    """Create the log entry exclusively and durably, and return its digest."""
    data, digest = encode_entry(commit)
    entry = lake_dir / LOG_FOLDER / entry_name(commit.number)
    try:
        _link_entry(write_temporary(entry, data, "log"), entry)
    except (OSError, LakeFull):
        remove_files(lake_dir, commit.added)
        raise
    except CommitConflict:
        # The entry of the other writer may list files of the same rows.
        remove_files(lake_dir, list_unlisted(commit.added, LogReader(lake_dir).read()))
        raise
    reach("log.unlinked")
    sync_folder(entry.parent)
    reach("log.folder_synced")
    return digest


def _link_entry(temporary: Path, entry: Path) -> None:
    try:
        with naming_full_disk(entry):
            os.link(temporary, entry)
        reach("log.linked")
    except FileExistsError as error:
        raise CommitConflict(
            f"another writer created {LOG_FOLDER}/{entry.name} at the same time: run the same "
            "command again, it continues after that commit"
        ) from error
    finally:
        # The entry exists by now or never will; the next sweep removes the leftover.
        with suppress(OSError):
            temporary.unlink()
