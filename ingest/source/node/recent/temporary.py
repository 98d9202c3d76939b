"""Reads ``files/packages``: hourly temporary packages of blocks that are not archived yet.

    temp.archive.<Unix time>.pack       blocks, proofs, signatures and candidates
    temp.archive.<Unix time>.index      RocksDB in the oldest layout of slices

They also have blocks that never became canonical.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.handle import (
    MASTERCHAIN_SHARD,
    pack_handle_prefix,
    unpack_handle_key,
)
from tonlake.ingest.source.node.rocks import CURRENT
from tonlake.ingest.source.node.slice import Slice
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.ingest.blocks import BlockId
    from tonlake.ingest.source.node.scratch import Scratch

TEMPORARY_FOLDER = "files/packages"
FOLLOWED = 2
"""How many of the newest packages are written to; two at the turn of an hour."""

_INDEX = re.compile(r"temp\.archive\.(\d{1,10})\.index")


class TemporaryPackage(Slice):
    """A temporary package with its index; ``id`` is its Unix time."""

    def list_mc_ids(self, mc_seqno: int) -> list[BlockId]:
        """Return the ids of all masterchain blocks with a seqno, canonical or not."""
        prefix = pack_handle_prefix(MASTERCHAIN, MASTERCHAIN_SHARD, mc_seqno)
        return [unpack_handle_key(key, self.store.name) for key, _ in self.store.scan(prefix)]

    def _index_name(self) -> str:
        return f"{TEMPORARY_FOLDER}/temp.archive.{self.id}.index"

    def _package_name(self, package: int, workchain: int, shard: int) -> str:
        del workchain, shard
        return f"{TEMPORARY_FOLDER}/temp.archive.{package}.pack"


class TemporaryPackages:
    """All temporary packages of a node, the newest first; unreadable ones are skipped."""

    def __init__(self, db_dir: Path, scratch: Scratch) -> None:
        """Open nothing yet."""
        self._db_dir = db_dir
        self._scratch = scratch
        self._open: dict[int, TemporaryPackage] = {}
        self._failed: set[int] = set()
        self._times: list[int] = []
        self._listed_ns: int | None = None

    def refresh(self) -> bool:
        """Catch up with open packages, and close those that the node deleted.

        Return whether anything changed.
        """
        times = self._list_times()
        changed = False
        for time in sorted(self._open, reverse=True):
            if time not in times:
                self._open.pop(time).close()
                changed = True
            elif time == times[0] or (changed and time in times[:FOLLOWED]):
                changed |= self._catch_up(time)
        return changed or any(time not in self._open.keys() | self._failed for time in times[:1])

    def _catch_up(self, time: int) -> bool:
        try:
            return self._open[time].catch_up()
        except SourceError:
            self._open.pop(time).close()
            return True

    def retry(self) -> None:
        """Let the next iteration try again to open packages that failed to open."""
        self._failed.clear()

    def __iter__(self) -> Iterator[TemporaryPackage]:
        """Yield the packages, opening them if necessary."""
        for time in self._list_times():
            if time in self._failed:
                continue
            if time not in self._open:
                try:
                    self._open[time] = TemporaryPackage(self._db_dir, time, self._scratch)
                except SourceError:
                    self._failed.add(time)
                    continue
            yield self._open[time]

    def close(self) -> None:
        """Close all packages."""
        while self._open:
            self._open.popitem()[1].close()

    def _list_times(self) -> list[int]:
        """Return the Unix times of the packages, newest first; list again if the folder changed."""
        folder = self._db_dir / TEMPORARY_FOLDER
        try:
            changed_ns = folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed_ns != self._listed_ns:
            found = (_INDEX.fullmatch(path.name) for path in folder.iterdir())
            times = sorted((int(match[1]) for match in found if match), reverse=True)
            # A rolled-back node leaves folders without files; a new folder gets its files in a
            # moment.
            self._times = [
                time for time in times if (folder / f"temp.archive.{time}.index" / CURRENT).exists()
            ]
            self._listed_ns = changed_ns if times == self._times else None
        return self._times
