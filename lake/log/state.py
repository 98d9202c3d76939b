"""The log of commits: the content of an entry, and the files and ranges live after it.

``_log/<N>.json`` is one commit; N counts from 1 without a gap. ``_log/<N>.checkpoint.json`` is the
state after commit N, so that readers need not replay all commits. Either is one JSON object with
the SHA-256 of its body, so that a damaged entry is never mistaken for a valid one. Nothing in the
log depends on the clock or the machine: the same rows give the same log.

A long log begins later: sweeps remove old entries, and it begins with the checkpoint N and entry N
(``lake.maintenance.orphan``). ``_log/first.json`` has that number, for sources that list no files.
"""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cached_property
from os.path import exists
from pathlib import Path
from typing import TypeVar

import msgspec

from tonlake.lake.errors import (
    LakeCorrupt,
    LakeMisplaced,
    LakeNotFound,
    NetworkMismatch,
    SnapshotNotFound,
)
from tonlake.lake.log.envelope import read_body
from tonlake.lake.log.ranges import Range, merge_ranges, subtract_ranges
from tonlake.lake.schema import SCHEMA_VERSION

Groups = dict[str, tuple["DataFile", ...]]
"""Files by table or by place; no group is empty."""


def name_table(path: str) -> str:
    """Return the table of a data file's path."""
    return path[: path.find("/")]


def name_place(path: str) -> str:
    """Return the name of the place in a data file's path, such as ``day=2026-11-23/1-500``."""
    return path[path.find("/") + 1 : path.rfind("-")]


def change_groups(
    before: Groups, removed: Collection[str], added: Iterable[DataFile], name: Callable[[str], str]
) -> Groups:
    """Return the groups without the ``removed`` paths, with ``added`` files appended."""
    found = dict(before)
    gone: defaultdict[str, set[str]] = defaultdict(set)
    for path in removed:
        gone[name(path)].add(path)
    for group, paths in gone.items():
        kept = leave_out(found.pop(group, ()), paths)
        if kept:
            found[group] = kept
    more: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in added:
        more[name(file.path)].append(file)
    for group, files in more.items():
        found[group] = (*found.get(group, ()), *files)
    return found


def find_paths(by_place: Groups, paths: Collection[str]) -> set[str]:
    """Return the ``paths`` that are live; only files at their places are compared."""
    named = {name_place(path) for path in paths}
    known = (file.path for place in named for file in by_place.get(place, ()))
    return {path for path in known if path in paths}


def sum_changes(commits: Iterable[Commit]) -> tuple[set[str], tuple[DataFile, ...]]:
    """Return the net change of consecutive commits: paths they remove, and files they add."""
    removed: set[str] = set()
    added: dict[str, DataFile] = {}
    for commit in commits:
        removed.update(path for path in commit.removed if added.pop(path, None) is None)
        added.update((file.path, file) for file in commit.added)
    return removed, tuple(added.values())


def leave_out(files: tuple[DataFile, ...], removed: Collection[str]) -> tuple[DataFile, ...]:
    """Return ``files`` without the ``removed`` paths, most of which are near the end."""
    missing, at = set(removed), len(files)
    while missing and at:
        at -= 1
        missing.discard(files[at].path)
    return files[:at] + tuple(file for file in files[at:] if file.path not in removed)


class NetworkId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The network of some rows; hashes are hex, and None if its zero state is unknown."""

    global_id: int
    zero_state_root_hash: str | None = None
    zero_state_file_hash: str | None = None


def join_networks(known: NetworkId | None, new: NetworkId | None) -> NetworkId | None:
    """Return the union of two descriptions of a network."""
    if known is None or new is None:
        return known or new
    joined = {}
    for name in NetworkId.__struct_fields__:
        old_value, new_value = getattr(known, name), getattr(new, name)
        if None not in (old_value, new_value) and old_value != new_value:
            raise NetworkMismatch(
                f"the lake has {name} {old_value} and the rows have {new_value}: "
                "rows of another network need a separate lake"
            )
        joined[name] = new_value if old_value is None else old_value
    return NetworkId(**joined)


LOG_FOLDER = "_log"
VIEWED_FILE = f"{LOG_FOLDER}/views.parquet"
"""Lists the files that views for other tools show, once `tonlake views` wrote them."""
FIRST_FILE = f"{LOG_FOLDER}/first.json"
"""Has the number of the first entry, unless that is 1."""

REPORTED_KIND = "dataset"
"""``kind`` in the source of a commit whose rows come from the public data set: they are reported by
others, and not decoded from blocks."""

PACK_FOLDER = "tail"
"""Folder of files with the rows of all tables; see ``DataFile``."""

SEGMENT_FOLDER = "lookups"
"""Folder of index segments; a segment's file is named ``<first>-<last>-<digest>.arrow``."""


class DataFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """One Parquet file of one table; ``path`` is relative to the lake, with forward slashes.

    An index segment is one as well, of the table ``lookups`` and with transactions as its rows. Its
    traces and contracts are valid as long as ``traces`` is the digest of the paths of their files.

    The rows of a small, fresh commit are not in files of their own: ``pack`` is the path of the one
    file that has those of all tables, an Arrow IPC stream for each, and ``offset`` where this one
    begins. ``path`` then is the name that no other rows have.
    """

    path: str
    table: str
    rows: int
    bytes: int
    sha256: str
    schema_version: int
    traces: str | None = None
    pack: str = ""
    offset: int = 0

    @property
    def stored(self) -> str:
        """The path of the file that has the bytes, relative to the lake."""
        return self.pack or self.path

    @property
    def where(self) -> str:
        """Where the bytes are if not in a file of their own, to be appended to a word."""
        return f" in {self.pack} from byte {self.offset}" if self.pack else ""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The full state that a lake begins with, unless it begins at the zero state.

    Its rows are of masterchain block ``mc_seqno``, the one before the lake's first. They were read
    from the state after ``state_mc_seqno``, the same block or a later one, without the accounts
    that blocks of the lake had touched by then. ``accounts`` is ``all`` or ``active``.
    """

    mc_seqno: int
    state_mc_seqno: int
    accounts: str


class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the log: a range of masterchain blocks with the files of all its tables.

    ``shards`` maps ``workchain:shard`` (shard as 16 hex digits) to the seqnos of its blocks;
    ``previous`` is the digest of the previous entry. A commit without blocks replaces files whose
    rows the lake already has. Its range is that of the lake; if it is ``undone``, its range is the
    blocks removed because they belong to an abandoned fork. ``segments`` are all index segments
    from this commit on, or None if they do not change. ``pruned`` are all pruned ranges from this
    commit on; only a commit that changes them has it. ``baseline`` is the baseline that this
    commit added.
    """

    number: int
    first_mc_seqno: int
    last_mc_seqno: int
    day: str
    added: tuple[DataFile, ...]
    removed: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION
    source: dict[str, str] = {}
    shards: dict[str, Range] = {}
    zero_state: bool = False
    network: NetworkId | None
    previous: str
    has_blocks: bool = True
    segments: tuple[DataFile, ...] | None = msgspec.field(default=None, name="runs")
    undone: bool = False
    pruned: tuple[Range, ...] | msgspec.UnsetType = msgspec.UNSET
    baseline: Baseline | msgspec.UnsetType = msgspec.UNSET


class Undoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A commit that removed masterchain blocks from the lake: its number, and their range."""

    commit: int
    first_mc_seqno: int
    last_mc_seqno: int


class LogState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The sum of the commits 1..``number``; ``digest`` is that of the last entry.

    Of ``pruned`` ranges the lake still has the kept rows: those that later blocks build on.
    """

    number: int = 0
    digest: str = ""
    files: tuple[DataFile, ...] = ()
    ranges: tuple[Range, ...] = ()
    network: NetworkId | None = None
    segments: tuple[DataFile, ...] = msgspec.field(default=(), name="runs")
    undoings: tuple[Undoing, ...] = ()
    pruned: tuple[Range, ...] | msgspec.UnsetType = msgspec.UNSET
    baseline: Baseline | msgspec.UnsetType = msgspec.UNSET
    reported: tuple[Range, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def reported_ranges(self) -> tuple[Range, ...]:
        """The ranges whose rows others reported: no hash of a block proves them."""
        return () if self.reported is msgspec.UNSET else self.reported

    @property
    def pruned_ranges(self) -> tuple[Range, ...]:
        """Ranges that the lake had before they were pruned, in order."""
        return () if self.pruned is msgspec.UNSET else self.pruned

    @property
    def last_pruned(self) -> int:
        """The last pruned masterchain block; 0 if none was pruned."""
        return self.pruned_ranges[-1][1] if self.pruned_ranges else 0

    @property
    def known_ranges(self) -> tuple[Range, ...]:
        """Ranges that account states are complete for: pruned, the baseline's block, the lake's."""
        at = () if self.baseline is msgspec.UNSET else ((self.baseline.mc_seqno,) * 2,)
        return merge_ranges((*self.pruned_ranges, *at, *self.ranges))

    @property
    def stored(self) -> set[str]:
        """The paths of the files that have the rows of ``files``, and of all index segments."""
        return {file.stored for files in (self.files, self.segments) for file in files}

    @cached_property
    def by_table(self) -> Groups:
        """The live files of each table, in the order of ``files``."""
        return change_groups({}, (), self.files, name_table)

    @cached_property
    def by_place(self) -> Groups:
        """The live files of each place; see ``lake.log.place``."""
        return change_groups({}, (), self.files, name_place)

    def add(self, *entries: tuple[Commit, str]) -> LogState:
        """Return the state after more commits, each with the digest of its entry."""
        if not entries:
            return self
        removed, added = sum_changes(commit for commit, _digest in entries)
        ranges, undoings, network = self.ranges, self.undoings, self.network
        segments, pruned, baseline = self.segments, self.pruned, self.baseline
        reported = self.reported_ranges
        for commit, _digest in entries:
            span = commit.first_mc_seqno, commit.last_mc_seqno
            if commit.has_blocks:
                ranges = merge_ranges((*ranges, span))
                if commit.source.get("kind") == REPORTED_KIND:
                    reported = merge_ranges((*reported, span))
            elif commit.undone:
                ranges = subtract_ranges(ranges, [span])
                reported = subtract_ranges(reported, [span])
                undoings = (*undoings, Undoing(commit.number, *span))
            if commit.pruned is not msgspec.UNSET:
                pruned = commit.pruned
                ranges = subtract_ranges(ranges, pruned)
            network = join_networks(network, commit.network)
            segments = segments if commit.segments is None else commit.segments
            baseline = baseline if commit.baseline is msgspec.UNSET else commit.baseline
        state = LogState(
            number=entries[-1][0].number,
            digest=entries[-1][1],
            files=leave_out(self.files, removed) + added,
            ranges=ranges,
            network=network,
            segments=segments,
            undoings=undoings,
            pruned=pruned,
            baseline=baseline,
            reported=reported or msgspec.UNSET,
        )
        names = {"by_table": name_table, "by_place": name_place}
        for name in names.keys() & self.__dict__:
            changed = change_groups(self.__dict__[name], removed, added, names[name])
            state.__dict__[name] = changed
        return state


class FirstEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The commit that a shortened log begins with; its checkpoint sums up all earlier ones."""

    number: int


def entry_name(number: int) -> str:
    """Return the file name of commit ``number``."""
    return f"{number}.json"


def checkpoint_name(number: int) -> str:
    """Return the file name of the checkpoint after commit ``number``."""
    return f"{number}.checkpoint.json"


def read_commit(lake_dir: Path, number: int) -> tuple[Commit, str]:
    """Return the commit and the digest of its entry."""
    return _read_numbered(lake_dir, entry_name(number), Commit, number)


def read_checkpoint(lake_dir: Path, number: int) -> LogState:
    """Read the checkpoint after commit ``number``."""
    return _read_numbered(lake_dir, checkpoint_name(number), LogState, number)[0]


_Body = TypeVar("_Body", Commit, LogState)


def _read_numbered(lake_dir: Path, name: str, kind: type[_Body], number: int) -> tuple[_Body, str]:
    file = f"{LOG_FOLDER}/{name}"
    body, digest = read_body(lake_dir, file, kind)
    if body.number != number:
        what = "commit" if kind is Commit else "the checkpoint of"
        raise LakeCorrupt(file, f"it is {what} {body.number}")
    return body, digest


def list_log(lake_dir: Path) -> tuple[list[int], list[int]]:
    """Return the numbers of all entries and of all checkpoints, both ascending."""
    folder = lake_dir / LOG_FOLDER  # may have tens of thousands of files
    return number_names(os.listdir(folder) if folder.is_dir() else [])  # noqa: PTH208


def number_names(names: Iterable[str]) -> tuple[list[int], list[int]]:
    """Return the numbers of the entries and checkpoints among file names, both ascending."""
    stems = [name[: -len(".json")] for name in names if name.endswith(".json")]
    marked = [stem[: -len(".checkpoint")] for stem in stems if stem.endswith(".checkpoint")]
    return sorted(_read_numbers(stems)), sorted(_read_numbers(marked))


def read_first(lake_dir: Path) -> int:
    """Return the commit that the log begins with; earlier entries are left of a sweep."""
    with suppress(LakeCorrupt):  # missing in most lakes; verify reports damage
        return read_body(lake_dir, FIRST_FILE, FirstEntry)[0].number
    return 1


def _read_numbers(names: Iterable[str]) -> list[int]:
    return [int(name) for name in names if name.isdecimal() and name[0] != "0" and name.isascii()]


def check_outside(lake_dir: Path) -> None:
    """Raise LakeMisplaced if a new lake in this folder would be inside another one."""
    with suppress(PermissionError):  # a folder above that is closed to us is no lake of ours
        if not (lake_dir / LOG_FOLDER).exists():
            for parent in lake_dir.resolve().parents:
                if (parent / FIRST_FILE).exists() or (parent / LOG_FOLDER / entry_name(1)).exists():
                    raise LakeMisplaced(f"{lake_dir} is inside the lake {parent}: name another")


def check_lake(lake_dir: Path) -> None:
    """Raise LakeNotFound if a folder has no commit."""
    if not list_log(lake_dir)[0]:
        raise refuse_folder(lake_dir)


def refuse_folder(lake_dir: Path) -> LakeNotFound:
    """Return the error for a folder without a lake; suggest a lake next to it of a similar name."""
    lakes = {log.parent.name for log in lake_dir.absolute().parent.glob(f"*/{LOG_FOLDER}")}
    near = difflib.get_close_matches(lake_dir.name, lakes - {lake_dir.name}, n=1)
    advice = f"did you mean {lake_dir.parent / near[0]}? " if near else ""
    return LakeNotFound(
        f"{lake_dir} holds no lake: no commit in {LOG_FOLDER}/; {advice}tonlake ingest makes one"
    )


def read_state(lake_dir: Path, number: int | None = None) -> LogState:
    """Return the state after a commit, or the last. Raises SnapshotNotFound, LakeCorrupt."""
    entries, checkpoints = list_log(lake_dir)
    if not entries:
        raise refuse_folder(lake_dir)
    if number is None:
        number = entries[-1]
    elif not (first := read_first(lake_dir)) <= number <= entries[-1]:
        raise SnapshotNotFound(f"{lake_dir} has commits {first} to {entries[-1]}, and no {number}")
    state = _nearest_checkpoint(lake_dir, [at for at in checkpoints if at <= number])
    return read_on(lake_dir, state, number)


def read_on(lake_dir: Path, state: LogState, number: int) -> LogState:
    """Return the state after commit ``number``, read on from ``state``, an earlier or equal one."""
    entries: list[tuple[Commit, str]] = []
    previous = state.digest
    for at in range(state.number + 1, number + 1):
        commit, digest = read_commit(lake_dir, at)
        if commit.previous != previous:
            file = f"{LOG_FOLDER}/{entry_name(at)}"
            raise LakeCorrupt(file, f"it does not follow entry {at - 1}")
        entries.append((commit, digest))
        previous = digest
    return state.add(*entries)


def _nearest_checkpoint(lake_dir: Path, checkpoints: list[int]) -> LogState:
    """Return the newest sound checkpoint; a damaged one only costs time, and verify reports it."""
    for number in reversed(checkpoints):
        try:
            return read_checkpoint(lake_dir, number)
        except LakeCorrupt:
            continue
    return LogState()


class LogReader:
    """Returns the newest state of a lake, reading only entries added since the last call."""

    def __init__(self, lake_dir: Path) -> None:
        self.lake_dir = lake_dir
        self._state = LogState()

    def read(self) -> LogState:
        """Return the state after the newest commit; commit 0 if there is no lake."""
        state = self._state
        if not state.number or not self._has(state.number):
            try:
                state = read_state(self.lake_dir)
            except LakeNotFound:
                state = LogState()
        newest = state.number
        while self._has(newest + 1):
            newest += 1
        self._state = read_on(self.lake_dir, state, newest)
        return self._state

    def follow(self, state: LogState) -> None:
        """Take the state after a commit just made: its entry need not be read."""
        self._state = state

    def find(self, number: int | None = None) -> LogState:
        """Return the state after commit ``number``, or after the newest commit."""
        state = self.read()
        if state.number and number in (None, state.number):
            return state
        return read_state(self.lake_dir, number)

    def _has(self, number: int) -> bool:
        # Called several times by every step of a follower.
        return exists(f"{self.lake_dir}/{LOG_FOLDER}/{entry_name(number)}")  # noqa: PTH110
