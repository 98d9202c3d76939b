"""Reads the log of a lake incrementally, from the newest entry of the last read."""

from os.path import exists
from pathlib import Path

from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.state import LOG_FOLDER, LogState, entry_name, read_on, read_state


class LogReader:
    """Returns the newest state of a lake, reading only entries added since the last call."""

    def __init__(self, lake_dir: Path) -> None:
        """Read nothing yet; the lake need not exist."""
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

    def find(self, number: int | None = None) -> LogState:
        """Return the state after commit ``number``, or after the newest commit."""
        state = self.read()
        if state.number and number in (None, state.number):
            return state
        return read_state(self.lake_dir, number)

    def _has(self, number: int) -> bool:
        # Called several times by every step of a follower.
        return exists(f"{self.lake_dir}/{LOG_FOLDER}/{entry_name(number)}")  # noqa: PTH110
