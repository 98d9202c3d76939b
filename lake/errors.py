"""Errors of the lake package."""

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
    """Return advice for an operating system error; "" if its own text must do."""
    return _ADVICE.get(error.errno or 0, "")


class LakeError(Exception):
    """Root of every error of this package."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without calling the constructor, whose parameters are not ``args``."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SettingsError(LakeError):
    """A setting has an unknown name or a bad value; the message names the nearest valid one."""


class LakeMisplaced(LakeError):
    """DuckDB cannot take the path of the lake's folder; the message has advice."""


class LakeNotFound(LakeError):
    """The folder holds no lake, or a lake without any commit."""


class SnapshotNotFound(LakeError):
    """The requested commit is not in the log."""


class LakeCorrupt(LakeError):
    """A file is missing or unreadable, or its bytes differ from those committed."""

    def __init__(self, file: str, reason: str, advice: str = RESTORE) -> None:
        """Take the damaged ``file``, relative to the lake, what is wrong with it, and advice."""
        self.file = file
        self.reason = reason
        self.advice = advice
        super().__init__(f"lake file {file}: {reason}; {advice}")

    def explain(self) -> str:
        """Return the reason, with the advice if it is not to restore the file."""
        return self.reason if self.advice == RESTORE else f"{self.reason}; {self.advice}"

    @classmethod
    def unreadable(cls, file: str, error: OSError, where: str = "") -> "LakeCorrupt":
        """Return the error of an unreadable file; missing permissions are not damage."""
        text = os.strerror(error.errno) if error.errno else error
        return cls(file, f"it cannot be read{where} ({text})", advise(error) or RESTORE)


class TableLacking(LakeCorrupt):
    """The lake is a copy without this table."""

    def __init__(self, table: str) -> None:
        super().__init__(table, "this lake is a copy without that table")
        self.args = (
            f"this lake is a copy without the table {table}: pull it, or all, into a new lake",
        )


class LakeTooNew(LakeError):
    """A later version of this program wrote to the lake; ``file`` is relative to it."""

    def __init__(self, file: str, found: str, known: int) -> None:
        super().__init__(
            f"{file} has {found}, and this version of tonlake reads up to {known}: the lake was "
            "written by a later version; install that one or a newer one"
        )
        self.file = file


class RowsRejected(LakeError):
    """The rows do not fit the schema of their table, or lie outside the range committed."""


class NetworkMismatch(LakeError):
    """The rows come from a network other than the lake's."""


class RangeOverlap(LakeError):
    """The lake already has some of these masterchain blocks."""


class CommitConflict(LakeError):
    """Another writer created the next log entry; reading the log again shows its range."""


class UndoRefused(LakeError):
    """Blocks of an abandoned fork cannot be removed from the lake."""


class PruneRefused(LakeError):
    """Nothing was pruned, because no block would be left."""


class LakeFull(LakeError):
    """The file system has no room for a file of the lake."""


class CopyRefused(LakeError):
    """A source holds no lake, or nothing of the selection, or the copy has another selection."""


class StorageError(LakeError):
    """Object storage or a web server is unreachable, refuses, or has no such bucket."""


class SourceRefused(LakeError):
    """The source of a copy sends a damaged lake, or not the one copied before."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        super().__init__(f"the source's file {file!r}: {reason}; the copy is unchanged")


class ScanError(LakeError):
    """A scan cannot run."""


class CursorRefused(ScanError):
    """Text is not a cursor of a scan, or is a cursor of another lake."""


class BlocksLacking(ScanError):
    """The lake does not have the masterchain blocks to scan."""


class EngineError(LakeError):
    """Apache Spark is not installed, or failed; the message has advice, or Spark's error."""


class TableInvalid(LakeError):
    """A user-defined table cannot be added, or does not exist."""


class QueryError(LakeError):
    """A user's SQL cannot be answered."""
