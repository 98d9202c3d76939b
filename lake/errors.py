"""What can go wrong in a lake.

LakeError
├── SettingsError         a setting has an unknown name or a bad value
├── LakeMisplaced         DuckDB cannot take the path of the lake's folder
├── LakeNotFound          the folder holds no lake, or a lake without any commit
├── SnapshotNotFound      the commit asked for is not in the log
├── LakeCorrupt           a file is missing, or its bytes are not those that were committed
│   └── TableLacking      the lake is a copy without this table
├── LakeTooNew            a later version of this program has written to the lake
├── CommitError           a commit was refused; the lake is as it was before
│   ├── RowsRejected      the rows do not fit the schema or the range
│   ├── NetworkMismatch   the rows come from another network than the lake's
│   ├── RangeOverlap      the lake has some of these masterchain blocks already
│   ├── CommitConflict    another writer took the next place in the log
│   ├── UndoRefused       blocks of another chain cannot be taken out of the lake
│   ├── PruneRefused      no block would stay
│   └── LakeFull          the file system has no room for a file
├── PieceRefused          a folder is no export, or one that this version cannot take
├── StorageError          object storage, or a web server, cannot be reached or refuses
├── SourceRefused         what a source sends is not a sound lake, or not the one copied before
├── ScanError             a scan that cannot be carried out
│   ├── CursorRefused     text that is no cursor, or one of another lake
│   └── BlocksLacking     the lake has not the blocks to be scanned
├── EngineError           Apache Spark is not installed, or failed
├── TableInvalid          a table of a person's own cannot be added, or does not exist
└── QueryError            a person's SQL cannot be answered
"""

from __future__ import annotations

import errno
import os

RESTORE = "restore it from a copy, or ingest into a new lake"
PERMIT = "give the user that runs tonlake access to it, with chown or chmod"
_ALLOW_FILES = "allow more open files (ulimit -n)"
_ADVICE = {
    errno.EACCES: PERMIT,
    errno.EPERM: PERMIT,
    errno.EMFILE: _ALLOW_FILES,
    errno.ENFILE: _ALLOW_FILES,
}


def advise(error: OSError) -> str:
    """Return what to do about an error of the system; "" where its text has to do."""
    return _ADVICE.get(error.errno or 0, "")


class LakeError(Exception):
    """Root of every error of this package."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it as it is: a constructor takes other values than the text that it makes."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SettingsError(LakeError):
    """A setting has an unknown name or a bad value; the message names the nearest valid one."""


class LabelsInvalid(SettingsError):
    """Labels or stablecoins that the settings name cannot be read; the message shows where."""

    def __init__(self, place: str, reason: str) -> None:
        """Take the file and row, or the setting, and what is wrong there."""
        super().__init__(f"{place}: {reason}")


class LakeMisplaced(LakeError):
    """DuckDB cannot take the path of the lake's folder; the message has advice."""


class LakeNotFound(LakeError):
    """The folder holds no lake, or a lake without any commit."""


class SnapshotNotFound(LakeError):
    """The commit asked for is not in the log."""


class LakeCorrupt(LakeError):
    """A file is missing or unreadable, or its bytes are not those that were committed."""

    def __init__(self, file: str, reason: str, advice: str = RESTORE) -> None:
        """Name the damaged ``file``, relative to the lake, how that shows and what to do."""
        self.file = file
        self.reason = reason
        self.advice = advice
        super().__init__(f"lake file {file}: {reason}; {advice}")

    @classmethod
    def unreadable(cls, file: str, error: OSError) -> LakeCorrupt:
        """Return the error of a file that cannot be read: a missing right is no damage."""
        text = os.strerror(error.errno) if error.errno else error
        return cls(file, f"it cannot be read ({text})", advise(error) or RESTORE)


class TableLacking(LakeCorrupt):
    """The lake is a copy without this table."""

    def __init__(self, table: str) -> None:
        """Name the table."""
        super().__init__(table, "this lake is a copy without that table")
        self.args = (
            f"this lake is a copy without the table {table}: pull it, or all, into a new lake",
        )


class LakeTooNew(LakeError):
    """A later version of this program has written to the lake; ``file`` is relative to it."""

    def __init__(self, file: str, found: str, known: int) -> None:
        """Name the file, what it has, and the newest of that which is known here."""
        super().__init__(
            f"{file} has {found}, and this version of tonlake reads up to {known}: the lake was "
            "written by a later version; install that one or a newer one"
        )
        self.file = file


class CommitError(LakeError):
    """A commit was refused; the lake is as it was before."""


class RowsRejected(CommitError):
    """The rows do not fit the schema of their table, or lie outside the range committed."""


class NetworkMismatch(CommitError):
    """The rows come from another network than the lake's."""


class RangeOverlap(CommitError):
    """The lake has some of these masterchain blocks already."""


class CommitConflict(CommitError):
    """Another writer took the next place in the log; reading the log again shows its range."""


class UndoRefused(CommitError):
    """Blocks that are no part of the chain any more cannot be taken out of the lake."""


class PruneRefused(CommitError):
    """Nothing was pruned, as no block would stay."""


class LakeFull(CommitError):
    """The file system has no room for a file of the lake."""


class PieceRefused(LakeError):
    """A folder is no export of a lake, or one that this version cannot take."""


class StorageError(LakeError):
    """Object storage or a web server cannot be reached, refuses, or has no such bucket."""


class SourceRefused(LakeError):
    """What the source of a copy sends is not a sound lake, or not the one copied before."""

    def __init__(self, file: str, reason: str) -> None:
        """Name the file, relative to the source, and what is wrong with it."""
        self.file = file
        super().__init__(f"the source's file {file!r}: {reason}; the copy stays as it is")


class ScanError(LakeError):
    """A scan cannot be carried out."""


class CursorRefused(ScanError):
    """Text is no cursor of a scan, or one of another lake."""


class BlocksLacking(ScanError):
    """The lake has not the masterchain blocks that are to be scanned."""


class EngineError(LakeError):
    """Apache Spark is not installed, or failed; the message has advice, or its error."""


class TableInvalid(LakeError):
    """A table of a person's own cannot be added, or does not exist."""


class QueryError(LakeError):
    """A person's SQL cannot be answered."""
