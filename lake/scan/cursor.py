"""Cursors of a scan: everything up to a masterchain block, as of a commit of the lake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.errors import CursorRefused, LakeError
from tonlake.lake.log.state import read_commit

if TYPE_CHECKING:
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Snapshot

_DIGITS = 16
_CURSOR = re.compile(rf"([0-9]{{1,12}})-([1-9][0-9]{{0,11}})-([0-9a-f]{{0,{_DIGITS}}})")


class Cursor(msgspec.Struct, frozen=True):
    """All rows up to a masterchain block were returned, as they were in a commit of the lake.

    ``digest`` is a prefix of the digest of the commit's log entry, which identifies the lake.
    """

    height: int
    commit: int
    digest: str

    def __str__(self) -> str:
        """Return the text that ``parse_cursor`` reads."""
        return f"{self.height}-{self.commit}-{self.digest}"


def make_cursor(snapshot: Snapshot, height: int) -> Cursor:
    """Return the cursor after a masterchain block of a snapshot."""
    return Cursor(height, snapshot.number, snapshot.state.digest[:_DIGITS])


def parse_cursor(text: str) -> Cursor:
    """Parse a cursor as written by ``str``.

    Raises:
        CursorRefused: it is malformed.
    """
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise CursorRefused(f"{text[:80]!r} is not a cursor of a scan, such as each batch has")
    return Cursor(int(match[1]), int(match[2]), match[3])


def check_cursor(cursor: Cursor, snapshot: Snapshot) -> None:
    """Check a cursor against the log of a lake.

    Raises:
        CursorRefused: it is of another lake, or of a later commit.
    """
    advice = "start again at a masterchain block, with from"
    if cursor.commit > snapshot.number:
        raise CursorRefused(
            f"cursor {cursor} is of commit {cursor.commit}, but the lake has {snapshot.number}"
            f" commits: wait for it, or {advice}"
        )
    try:
        known = _find_digest(cursor.commit, snapshot)
    except LakeError as error:
        raise CursorRefused(f"cursor {cursor} cannot be checked ({error}): {advice}") from error
    if known[:_DIGITS] != cursor.digest:
        raise CursorRefused(f"cursor {cursor} is of another lake: {advice}")


def _find_digest(commit: int, snapshot: Snapshot) -> str:
    if commit == snapshot.number:
        return snapshot.state.digest
    return read_commit(snapshot.lake_dir, commit)[1]


def find_undone(cursor: Cursor, snapshot: Snapshot) -> Range | None:
    """Return the masterchain blocks up to the cursor that were undone since; None if none were."""
    firsts = [
        one.first_mc_seqno
        for one in snapshot.undoings
        if one.commit > cursor.commit and one.first_mc_seqno <= cursor.height
    ]
    return (min(firsts), cursor.height) if firsts else None
