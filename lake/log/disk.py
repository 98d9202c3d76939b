"""Writes files that survive a crash: under a temporary name, synced, then renamed."""

import errno
import fcntl
import hashlib
import os
import secrets
import signal
import stat
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedRandom, FileIO
from pathlib import Path
from typing import Self

from tonlake.lake.errors import LakeFull
from tonlake.lake.system import sync

VARIABLE = "TONLAKE_CRASH_AT"

_passes: Counter[str] = Counter()


def reach(point: str) -> None:
    """Mark the named point; die here with SIGKILL if the environment asks for it."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    name, _, count = setting.partition(":")
    if name != point:
        return
    _passes[point] += 1
    if _passes[point] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)


TEMPORARY_PREFIX = ".tmp-"
"""A leading dot hides unfinished files from every engine that lists folders."""

LOCK_FILE = "_log/lock"
"""Held while a writer commits or sweeps, so that neither removes the other's files."""

QUEUE_FILE = "_log/queue"
"""Held by a writer from before it derives rows until it has committed, so writers take turns.

Maintenance and sweeps do not wait for it. ``LOCK_FILE`` is taken inside it, for the commit only.
"""

HELD_FILE = "held"
"""In a temporary folder: held while its process lives, so that a sweep sees that it is in use."""

_MAX_HELD = 64
"""Most files kept open until they are synced."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turn "no space", "over quota" and "file too large" into LakeFull with the file's name."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise LakeFull(
            f"no room to write {path} ({error.strerror}); all earlier commits are intact: "
            "free some space or raise the limit, then run the same command again"
        ) from error


def write_temporary(final: Path, data: bytes | memoryview, crash_name: str) -> Path:
    """Write and sync ``data`` next to ``final`` under a temporary name, and return that path."""
    temporary, stream = _write_unsynced(final, data, crash_name)
    try:
        with stream, naming_full_disk(final):
            _sync_stream(stream, crash_name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _write_unsynced(final: Path, data: bytes | memoryview, crash_name: str) -> tuple[Path, FileIO]:
    """Write a temporary file; remove it on any failure."""
    temporary = final.parent / f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    with naming_full_disk(final):
        stream = temporary.open("xb", buffering=0)
        try:
            reach(f"{crash_name}.created")
            rest = memoryview(data)
            while rest:
                rest = rest[stream.write(rest) :]
            reach(f"{crash_name}.written")
        except BaseException:
            stream.close()
            temporary.unlink(missing_ok=True)
            raise
    return temporary, stream


def _sync_stream(stream: FileIO, crash_name: str) -> None:
    sync(stream.fileno())
    reach(f"{crash_name}.synced")


class NewFiles:
    """Files written one after the other, then all synced, then renamed: 18 in 59 ms, not 84."""

    def __init__(self, crash_name: str) -> None:
        """Start without files; ``crash_name`` is the prefix of their crash points."""
        self._crash_name = crash_name
        self._held: deque[tuple[Path, Path, FileIO | None]] = deque()

    def write(self, final: Path, data: bytes | memoryview) -> None:
        """Write a file under a temporary name."""
        temporary, stream = _write_unsynced(final, data, self._crash_name)
        self._held.append((temporary, final, stream))
        if len(self._held) >= _MAX_HELD:
            self.finish()

    def adopt(self, final: Path, temporary: Path) -> None:
        """Take over a file that is already synced under a temporary name."""
        self._held.append((temporary, final, None))

    def finish(self) -> None:
        """Sync all files and rename them to their final names; folders are not synced."""
        while self._held:
            temporary, final, stream = self._held[0]
            with naming_full_disk(final):
                if stream is not None:
                    _sync_stream(stream, self._crash_name)
                    stream.close()
                temporary.replace(final)
            reach(f"{self._crash_name}.renamed")
            self._held.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files that were not renamed, continuing if one cannot be removed."""
        with ExitStack() as undo:
            for temporary, _final, stream in self._held:
                undo.callback(temporary.unlink, missing_ok=True)
                if stream is not None:
                    undo.callback(stream.close)


def write_file(final: Path, data: bytes, crash_name: str) -> None:
    """Write one file durably, including its name in the folder."""
    with NewFiles(crash_name) as files:
        files.write(final, data)
        files.finish()
    sync_folder(final.parent)


@contextmanager
def open_temporary(folder: Path, crash_name: str) -> Iterator[tuple[BufferedRandom, Path]]:
    """Yield a new file and its temporary path; at the end, remove it unless it was renamed."""
    path = folder / f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with naming_full_disk(path), path.open("x+b") as stream:
            reach(f"{crash_name}.created")
            yield stream, path
    finally:
        path.unlink(missing_ok=True)


def seal_file(stream: BufferedRandom, crash_name: str) -> str:
    """Sync a file, and return its SHA-256 in hex."""
    reach(f"{crash_name}.written")
    stream.flush()
    sync(stream.fileno())
    reach(f"{crash_name}.synced")
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def begin_grace(lake_dir: Path, paths: Iterable[str]) -> None:
    """Start the sweep's grace period now, because readers may still use an earlier snapshot."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.utime(lake_dir / path)


_durable: set[tuple[str, int]] = set()
"""Path and inode of the folders whose names this process has synced."""


def make_folder(folder: Path) -> None:
    """Create a folder and its parents durably; sync an existing one, too, the first time."""
    with suppress(FileNotFoundError):
        if (str(folder), folder.stat().st_ino) in _durable:
            return
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    with naming_full_disk(folder):
        with suppress(PermissionError):  # no writer of this lake creates an unreadable folder
            sync_folder(at.parent)
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)
    _durable.add((str(folder), folder.stat().st_ino))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (``fsync``)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming_full_disk(folder):
            sync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(folders: Iterable[Path]) -> None:
    """Sync each folder once, one after the other; threads are no faster."""
    for folder in sorted(set(folders)):
        sync_folder(folder)


@contextmanager
def hold_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on a file; yield False if another holds it and ``wait`` is False."""
    with naming_full_disk(path):
        opened = path.open("ab")
    with opened as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def temporary_folder(lake_dir: Path) -> Iterator[Path]:
    """Yield a new folder in the log's; if its process is killed, the next sweep removes it."""
    log = lake_dir / Path(LOCK_FILE).parent
    with ExitStack() as stack:
        with hold_lock(lake_dir / LOCK_FILE):  # no sweep finds it before it is held
            name = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=log)
            )
            stack.enter_context(hold_lock(Path(name, HELD_FILE)))
        yield Path(name)


@contextmanager
def unfinished(final: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``final`` at the end; for a link or device, itself."""
    special = os.path.lexists(final) and not stat.S_ISREG(final.lstat().st_mode)
    path = final if special else final.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{final.name}")
    try:
        yield path
        if not special:
            path.replace(final)
    except BaseException as error:
        if not special:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            # Writing to an open file names none.
            named = {str(path), None} if error.errno in _NO_ROOM else {str(path)}
            if error.filename in named:
                error.filename = str(final)
        raise
