"""Looks up the newest states of accounts in the segments of a lake, for a writer at its end.

A writer needs the states of accounts before its blocks. Files of ``account_states`` do not show
which accounts they contain, so without an index all of them would be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.builder.place import is_readable, lacks_baseline, range_of
from tonlake.lake.index.segment.file import SegmentFile, map_file
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.segment import AccountSegment
from tonlake.lake.log.digest import find_damage

if TYPE_CHECKING:
    from collections.abc import Collection
    from mmap import mmap
    from pathlib import Path

    from tonlake.lake.account import AccountId
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import LogState


class Newest(NamedTuple):
    """The newest state of an account in a segment.

    ``utime`` is None if the segment has no transaction of the account, as in a zero state.
    """

    state: Any
    utime: int | None


class NewestStates:
    """The sound segments of a lake, opened on demand."""

    def __init__(self, lake_dir: Path) -> None:
        """Open nothing yet; the lake need not exist."""
        self._lake_dir = lake_dir
        self._mapped: list[tuple[str, mmap]] = []
        self._open: dict[str, AccountSegment] = {}

    def open(self, state: LogState) -> list[Range]:
        """Take the segments of a lake, and return the masterchain blocks that they cover.

        The digest of each segment is checked once; a damaged segment covers nothing.
        """
        listed = [
            segment
            for segment in state.segments
            if NATIVE and is_readable(segment) and not lacks_baseline(state, segment)
        ]
        damaged = {error.file for error in find_damage(self._lake_dir, listed, trust_earlier=True)}
        sound = {each.path: range_of(each) for each in listed if each.path not in damaged}
        newest_first = sorted(sound, key=sound.__getitem__, reverse=True)
        # Unmap the pages of earlier maps: those of all segments grow with the chain.
        self._mapped = [(path, map_file(self._lake_dir, path)) for path in newest_first]
        self._open = {}
        return list(sound.values())

    def find(self, accounts: Collection[AccountId]) -> dict[AccountId, Newest]:
        """Return the newest states in the segments; accounts without one are left out."""
        found: dict[AccountId, Newest] = {}
        left = list(accounts)
        for path, mapped in self._mapped:
            if not left:
                break
            if path not in self._open:
                file = SegmentFile(mapped, path, AccountSegment.ARRAYS)
                self._open[path] = AccountSegment(file)
            segment = self._open[path]
            for account, state in zip(left, segment.newest_states(left), strict=True):
                if state is not None:
                    found[account] = Newest(state, _find_utime(segment, account, state))
            left = [account for account in left if account not in found]
        return found


def _find_utime(segment: AccountSegment, account: AccountId, state: Any) -> int | None:  # noqa: ANN401 - a row
    """Return the block time of a state: that of its last transaction, if the segment has it."""
    number = segment.find_account(account)
    if number is not None:
        start, end = segment.rows_of(number)
        if start < end and segment.lt[end - 1] == state.last_trans_lt:
            utime: int = segment.now[end - 1]
            return utime
    return None
