"""Verifies every file of a lake against its log, and the log itself.

Reports: log entries and checkpoints that are missing, damaged, or do not follow each other (the
newest entry is missed if a checkpoint or a Delta log names it); overlapping ranges; data files,
also of user-defined tables, that are missing, or whose bytes or row counts differ from those
committed; hand-off files (``views.sql``, ``catalog.duckdb``) that changed after they were written;
Delta logs that differ from the log.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.commit.delta import POSITION_FILE, Position, find_differences
from tonlake.lake.duck.own import list_own_files, read_definitions, read_own_state
from tonlake.lake.duck.views import find_changed
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.envelope import read_body
from tonlake.lake.log.place import list_stored
from tonlake.lake.log.ranges import Range, overlaps
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import (
    FIRST_FILE,
    LOG_FOLDER,
    Commit,
    DataFile,
    FirstEntry,
    LogState,
    checkpoint_name,
    entry_name,
    list_log,
    read_checkpoint,
    read_commit,
    read_first,
    read_state,
    refuse_folder,
)
from tonlake.lake.maintenance.orphan import list_orphans


class Damage(msgspec.Struct, frozen=True):
    """One file that is not as it was committed, relative to the lake, and the reason."""

    file: str
    reason: str


class VerifyReport(msgspec.Struct):
    """Counts of what was checked, all damage, and unused files.

    No hash of a block proves rows of masterchain blocks ``reported`` by the public data set.
    """

    commits: int
    files: int
    rows: int
    bytes: int
    damage: list[Damage]
    orphans: list[str]
    reported: tuple[Range, ...] = ()


def verify_lake(
    lake_dir: Path, on_file: Callable[[int, int], None] = lambda _done, _all: None
) -> VerifyReport:
    """Report all damage in the lake; ``on_file`` gets the number of files done and of all."""
    if not list_log(lake_dir)[0]:
        raise refuse_folder(lake_dir)
    with Lease(lake_dir, read_first(lake_dir)):  # no sweep removes entries meanwhile
        state, damage = _verify_entries(lake_dir)
    with Lease(lake_dir, state.number):
        return _verify_files(lake_dir, state, damage, on_file)


def _verify_files(
    lake_dir: Path, state: LogState, damage: list[Damage], on_file: Callable[[int, int], None]
) -> VerifyReport:
    own = _list_own(lake_dir, damage)
    files = (*state.files, *state.segments, *own)
    done = count(1)
    found = find_damage(lake_dir, files, on_file=lambda _file: on_file(next(done), len(files)))
    damage += [Damage(error.file, error.reason) for error in found]
    broken = {error.file for error in found}
    counted = (file for file in (*state.files, *own) if file.path not in broken)
    damage += _verify_rows(lake_dir, counted)
    damage += _verify_packs(lake_dir, state.files)
    damage += [Damage(file, reason) for file, reason in find_changed(lake_dir)]
    if not damage:  # what cannot be read has nothing to be compared with
        damage += [Damage(file, reason) for file, reason in find_differences(lake_dir)]
    orphans: list[Path] = []
    with suppress(LakeCorrupt):  # an unreadable entry may list them
        orphans = list_orphans(lake_dir, read_state(lake_dir))
    return VerifyReport(
        commits=state.number,
        files=len(files),
        rows=sum(file.rows for file in state.files),
        bytes=sum(file.bytes for file in files),
        damage=damage,
        orphans=[str(path.relative_to(lake_dir)) for path in orphans],
        reported=state.reported_ranges,
    )


def _verify_entries(lake_dir: Path) -> tuple[LogState, list[Damage]]:
    """Return the state after all readable entries, and the damage of the log."""
    entries, checkpoints = list_log(lake_dir)
    damage: list[Damage] = []
    state, first = LogState(), read_first(lake_dir)
    if (lake_dir / FIRST_FILE).exists():
        with _noting(damage):
            read_body(lake_dir, FIRST_FILE, FirstEntry)
    if first > 1:
        state = _verify_first(lake_dir, first, damage)
        checkpoints = [number for number in checkpoints if number > first]
    for number in range(1 if first == 1 else first + 1, entries[-1] + 1):
        with _noting(damage):
            commit, digest = read_commit(lake_dir, number)
            damage += _check_place(state, commit)
            state = state.add((commit, digest))
        if number in checkpoints:
            state = _check_checkpoint(lake_dir, number, state, damage)
    damage += _find_lost(lake_dir, max(checkpoints, default=0))
    return state, damage


def _find_lost(lake_dir: Path, named: int) -> Iterator[Damage]:
    """Yield the newest commit that a checkpoint or the Delta logs name, if the log ends before."""
    with suppress(LakeCorrupt):  # missing, or reported with the Delta logs
        named = max(named, read_body(lake_dir, POSITION_FILE, Position)[0].commit)
    if named > list_log(lake_dir)[0][-1]:
        reason = "it is missing, although a checkpoint or the Delta logs were written after it"
        yield Damage(f"{LOG_FOLDER}/{entry_name(named)}", reason)


def _verify_first(lake_dir: Path, first: int, damage: list[Damage]) -> LogState:
    """Return the checkpoint that a shortened log begins with, compared with its entry."""
    state = LogState()
    with _noting(damage):
        state = read_checkpoint(lake_dir, first)
        if read_commit(lake_dir, first)[1] != state.digest:
            reason = f"it is not of entry {first}"
            raise LakeCorrupt(f"{LOG_FOLDER}/{checkpoint_name(first)}", reason)
    return state


def _check_place(state: LogState, commit: Commit) -> Iterator[Damage]:
    file = f"{LOG_FOLDER}/{entry_name(commit.number)}"
    if state.number == commit.number - 1 and state.digest != commit.previous:
        yield Damage(file, "it does not follow the previous entry")
    if not commit.has_blocks:
        return
    mine = (commit.first_mc_seqno, commit.last_mc_seqno)
    for other in overlaps(state.ranges, mine):
        yield Damage(file, f"its range {mine[0]}..{mine[1]} overlaps {other[0]}..{other[1]}")


def _check_checkpoint(
    lake_dir: Path, number: int, state: LogState, damage: list[Damage]
) -> LogState:
    """Return the state to continue with, and add errors of a checkpoint to ``damage``."""
    try:
        checkpoint = read_checkpoint(lake_dir, number)
    except LakeCorrupt as error:
        if number in list_log(lake_dir)[1]:  # no writer has removed it meanwhile
            damage.append(Damage(error.file, error.reason))
        return state
    if damage:
        # It has the content of earlier entries that cannot be read any more.
        return checkpoint
    if checkpoint != state:
        file = f"{LOG_FOLDER}/{checkpoint_name(number)}"
        damage.append(Damage(file, "it is not the sum of the entries up to it"))
    return state


@contextmanager
def _noting(damage: list[Damage]) -> Iterator[None]:
    try:
        yield
    except LakeCorrupt as error:
        damage.append(Damage(error.file, error.reason))


def _list_own(lake_dir: Path, damage: list[Damage]) -> list[DataFile]:
    """Return the files of user-defined tables; add unreadable definitions to ``damage``."""
    files: list[DataFile] = []
    with _noting(damage):
        for table in read_definitions(lake_dir).values():
            with _noting(damage):
                files += list_own_files([(table, read_own_state(lake_dir, table.name))])
    return files


def _verify_packs(lake_dir: Path, files: Iterable[DataFile]) -> Iterator[Damage]:
    """Yield packs that are longer than committed; what is within was checked file by file."""
    for pack in list_stored(file for file in files if file.pack):
        with suppress(OSError):  # reported with its files
            size = (lake_dir / pack.path).stat().st_size
            if size > pack.bytes:
                yield Damage(pack.path, f"it has {size} bytes instead of {pack.bytes}")


def _verify_rows(lake_dir: Path, files: Iterable[DataFile]) -> list[Damage]:
    damage = []
    for file in files:
        try:
            if file.pack:
                rows = read_rows(lake_dir, file).num_rows
            else:
                rows = pq.read_metadata(lake_dir / file.path).num_rows
        except (OSError, pa.ArrowException) as error:
            damage.append(Damage(file.path, f"it is not a Parquet file ({error})"))
            continue
        if rows != file.rows:
            damage.append(Damage(file.path, f"it has {rows} rows instead of {file.rows}"))
    return damage
