"""A cache of one table of the lake by key, for a process that goes on committing to it.

Opening a lake takes far longer than a query, and commits mostly need keys of earlier commits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from tonlake.lake.duck.connection import connect
from tonlake.lake.log.place import list_files
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import merge_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from tonlake.lake.log.state import Commit, LogState, Range, Undoing
    from tonlake.lake.settings import LakeSettings

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Ask = Callable[["DuckDBPyConnection", set[Key]], Mapping[Key, Value]]
"""Queries a lake for the values of some keys; unknown keys are left out."""


class Memory(Generic[Key, Value]):
    """Values by key out of one table; no more than twice ``most`` are held."""

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, table: str, ask: Ask[Key, Value], *, most: int
    ) -> None:
        """Begin with nothing; the lake need not be there yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._table = table
        self._ask = ask
        self._most = most
        self._asked: dict[Key, Value | None] = {}
        self._recent: dict[Key, Value] = {}
        self._connection: DuckDBPyConnection | None = None
        self._number = 0
        self._content: tuple[tuple[Range, ...], tuple[Undoing, ...]] = ((), ())
        self._paths: set[str] = set()

    def close(self) -> None:
        """Close the lake."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._asked |= self._recent
        self._recent.clear()
        self._forget_oldest()

    def find(self, keys: set[Key], state: LogState) -> dict[Key, Value]:
        """Return the values of keys in a lake; unknown keys are left out."""
        self._follow(state)
        found: dict[Key, Value] = {}
        unknown: set[Key] = set()
        for key in keys:
            if key in self._recent:
                found[key] = self._recent[key]
            elif key in self._asked:
                value = self._asked[key] = self._asked.pop(key)
                if value is not None:
                    found[key] = value
            else:
                unknown.add(key)
        if unknown and state.number:
            new = self._ask(self._open(state), unknown)
            self._asked |= {key: new.get(key) for key in unknown}
            self._forget_oldest()
            found |= new
        return found

    def learn(self, values: Mapping[Key, Value], commit: Commit) -> None:
        """Add the values of a commit made on top of the state last queried."""
        ranges, undoings = self._content
        new = (commit.first_mc_seqno, commit.last_mc_seqno)
        self._content = merge_ranges((*ranges, new)), undoings
        self._paths |= {file.path for file in commit.added if file.table == self._table}
        for key in values:
            self._asked.pop(key, None)
        self._recent |= values
        if len(self._recent) > self._most:
            self.close()

    def _follow(self, state: LogState) -> None:
        """Drop what other processes changed; close files that were merged or are unknown."""
        if state.number == self._number:
            return
        self._number = state.number
        content = state.ranges, state.undoings
        if content != self._content:
            self.close()
            self._asked.clear()
            self._content = content
        paths = {file.path for file in list_files(state, self._table)}
        if paths != self._paths:
            self.close()
            self._paths = paths

    def _open(self, state: LogState) -> DuckDBPyConnection:
        if self._connection is None:
            self.close()
            snapshot = Snapshot(self._lake_dir, state)
            self._connection = connect(snapshot, self._settings, tables=[self._table])
        return self._connection

    def _forget_oldest(self) -> None:
        for key in list(islice(self._asked, max(0, len(self._asked) - self._most))):
            del self._asked[key]
