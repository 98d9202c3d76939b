"""Newest states of accounts as the segments of a lake have them, for a writer at the lake's end.

A writer asks for the states of accounts before its blocks. Files of ``account_states`` do not show
which accounts they have, so without an index each of them would be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.builder.place import is_readable, lacks_baseline, range_of
from tonlake.lake.index.segment.file import map_segment
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.index.segments import Segments
from tonlake.lake.log.digest import find_damage

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from tonlake.lake.account import AccountId
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import LogState


class Newest(NamedTuple):
    """The newest state of an account that a segment has.

    ``utime`` is None where the segment has no transaction of it, as of accounts of a zero state.
    """

    state: Any
    utime: int | None


class NewestStates:
    """The sound segments of a lake, open."""

    def __init__(self, lake_dir: Path) -> None:
        """Open nothing yet; the lake need not be there."""
        self._lake_dir = lake_dir
        self._open: dict[str, Segment] = {}
        self._segments = Segments(())

    def open(self, state: LogState) -> list[Range]:
        """Open the segments of a lake, and return the masterchain blocks that they cover.

        The digest of each segment is checked once; one that is damaged covers nothing.
        """
        listed = [
            segment
            for segment in state.segments
            if NATIVE and is_readable(segment) and not lacks_baseline(state, segment)
        ]
        new = [segment for segment in listed if segment.path not in self._open]
        damaged = {error.file for error in find_damage(self._lake_dir, new, trust_earlier=True)}
        self._open = {
            segment.path: self._open.get(segment.path)
            or Segment(map_segment(self._lake_dir, segment.path))
            for segment in listed
            if segment.path not in damaged
        }
        self._segments = Segments(self._open.values())
        return [range_of(segment) for segment in listed if segment.path in self._open]

    def find(self, accounts: Collection[AccountId]) -> dict[AccountId, Newest]:
        """Return the newest states that the segments have; accounts without one are left out."""
        asked = list(accounts)
        states = self._segments.newest_states(asked)
        return {
            account: Newest(state, _find_utime(self._segments, account, state))
            for account, state in zip(asked, states, strict=True)
            if state is not None
        }


def _find_utime(segments: Segments, account: AccountId, state: Any) -> int | None:  # noqa: ANN401 - a row
    """Return the time of the block of a state: that of its last transaction, which is there too."""
    for segment in segments.segments:
        if segment.first_mc_seqno <= max(1, state.mc_seqno) <= segment.last_mc_seqno:
            number = segment.find_account(account)
            if number is not None:
                start, end = segment.rows_of(number)
                if start < end and segment.lt[end - 1] == state.last_trans_lt:
                    utime: int = segment.now[end - 1]
                    return utime
    return None
