"""Looks up the newest states of accounts in segments, as files do not show whose they have."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from tonlake.lake.account import AccountId
from tonlake.lake.index.builder.plan import is_readable, lacks_baseline, range_of
from tonlake.lake.index.segment.file import map_segment
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import LogState


class Newest(NamedTuple):
    """The newest state of an account, and its time unless the segment has no transaction of it."""

    state: Any
    utime: int | None


class NewestStates:
    """The sound segments of a lake; they stay open until the lake no longer has them."""

    def __init__(self, lake_dir: Path) -> None:
        self._lake_dir = lake_dir
        self._open: dict[str, Segment] = {}

    def open(self, state: LogState) -> list[Range]:
        """Take the sound segments of a lake, and return the masterchain blocks that they cover."""
        listed = [
            segment
            for segment in state.segments
            if is_readable(segment) and not lacks_baseline(state, segment)
        ]
        damaged = {error.file for error in find_damage(self._lake_dir, listed, trust_earlier=True)}
        sound = {each.path: range_of(each) for each in listed if each.path not in damaged}
        for segment in self._open.values():
            segment.unmap_pages()  # else those of all segments grow with the chain
        self._open = {
            path: self._open.get(path) or Segment(map_segment(self._lake_dir, path))
            for path in sorted(sound, key=sound.__getitem__, reverse=True)
        }
        return list(sound.values())

    def find(self, accounts: Collection[AccountId]) -> dict[AccountId, Newest]:
        """Return the newest states in the segments; accounts without one are left out."""
        found: dict[AccountId, Newest] = {}
        missing = list(accounts)
        for segment in self._open.values():
            if not missing:
                break
            for account, state in segment.newest_states(missing).items():
                found[account] = Newest(state, _find_utime(segment, account, state))
            missing = [account for account in missing if account not in found]
        return found


def _find_utime(segment: Segment, account: AccountId, state: Any) -> int | None:  # noqa: ANN401 - a row
    """Return the block time of a state: that of its last transaction, if the segment has it."""
    number = segment.accounts.find(account)
    rows = () if number is None else segment.accounts.transactions_of(number)
    if rows and segment.transactions.lt[rows[-1]] == state.last_trans_lt:
        return segment.transactions.now[rows[-1]]
    return None
