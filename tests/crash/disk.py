"""Records the file operations of a program in a folder, and injects faults.

It replaces for a time the calls of ``pathlib`` and ``os`` that open files for writing, write, sync,
or change names. Writes that bypass it are found by comparing the folder with the operations.
"""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import msgspec

Kind = Literal["create", "write", "cut", "sync", "rename", "link", "remove", "folder", "mark"]

_OPEN, _REPLACE, _UNLINK, _MKDIR, _LINK, _FSYNC = (
    *(Path.open, Path.replace, Path.unlink, Path.mkdir),
    *(os.link, os.fsync),
)


class Operation(msgspec.Struct, frozen=True):
    """One operation on a path relative to the folder; ``mark`` is a label set by the test."""

    kind: Kind
    path: str
    target: str = ""
    at: int = 0
    data: bytes = b""


class Died(BaseException):
    """The process is dead: nothing that it still tries takes effect."""


class Disk:
    """Operations below one folder, in order; the ``fail_at``-th fails.

    With ``death`` neither it nor any later one happens. Otherwise the disk is full: a write fails
    after half its bytes, as do operations that need space, until ``free`` is called.
    """

    def __init__(
        self, folder: Path, *, fail_at: int | None = None, death: bool = False, sync: bool = False
    ) -> None:
        assert folder.is_absolute(), "descriptors name whole paths"
        self.folder = folder
        self.operations: list[Operation] = []
        self._fail_at, self._death, self._sync = fail_at, death, sync
        self._dead = False

    def mark(self, word: str) -> None:
        """Note a promise made to the caller."""
        self.operations.append(Operation("mark", word))

    def free(self) -> None:
        """Free space again."""
        self._fail_at = None

    @contextmanager
    def watch(self) -> "Iterator[Disk]":
        """Replace the system's calls while the block runs."""
        changes: dict[str, Callable[..., Any]] = {
            "pathlib.Path.open": self._open,
            "pathlib.Path.replace": self._rename,
            "pathlib.Path.rename": self._rename,
            "pathlib.Path.unlink": self._unlink,
            "pathlib.Path.mkdir": self._mkdir,
            "os.link": self._link,
            "os.fsync": self._fsync,
        }
        with ExitStack() as patches:
            for name, change in changes.items():
                patches.enter_context(mock.patch(name, _unbind(change)))
            yield self

    def name(self, path: Path) -> str | None:
        """Return a path relative to the folder, or None if it is outside."""
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else None

    def note(self, operation: Operation, *, room: bool = True) -> None:
        """Record an operation, unless it is the one that fails."""
        done = sum(one.kind != "mark" for one in self.operations)
        failing = self._fail_at is not None and done >= self._fail_at
        if self._dead or (failing and self._death):
            self._dead = True
            raise Died
        if failing and room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), operation.path)
        self.operations.append(operation)

    def _open(self, path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        name = self.name(path)
        if name is None or not set(mode) & set("wxa+"):
            return _OPEN(path, mode, *args, **options)
        assert "b" in mode, "the lake writes bytes alone"
        if not path.exists():
            self.note(Operation("create", name))
        raw = WatchedFile(self, path, name, mode.replace("b", ""))
        if options.get("buffering") == 0:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def _rename(self, path: Path, to: Path) -> Path:
        name, target = self.name(path), self.name(to)
        if name is not None:
            assert target is not None, "nothing leaves the folder"
            self.note(Operation("rename", name, target))
        return _REPLACE(path, to)

    def _unlink(self, path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        name = self.name(path)
        if name is not None and path.exists():
            self.note(Operation("remove", name), room=False)
        _UNLINK(path, missing_ok)

    def _mkdir(self, path: Path, *args: Any, **options: Any) -> None:
        name = self.name(path)
        if name is not None and not path.exists() and path.parent.exists():
            self.note(Operation("folder", name))
        _MKDIR(path, *args, **options)

    def _link(self, path: Path, to: Path) -> None:
        name, target = self.name(path), self.name(to)
        if name is not None:
            assert target is not None, "nothing leaves the folder"
            if not to.exists():
                self.note(Operation("link", name, target))
        _LINK(path, to)

    def _fsync(self, descriptor: int) -> None:
        name = self.name(Path(f"/proc/self/fd/{descriptor}").readlink())
        if name is not None:
            self.note(Operation("sync", name))
        if name is None or self._sync:
            _FSYNC(descriptor)


def _unbind(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that a class does not bind as a method."""
    return lambda *args, **options: method(*args, **options)  # noqa: PLW0108 - that is the point


class WatchedFile(io.FileIO):
    """A file whose writes are recorded; one that runs out of space writes half its bytes."""

    def __init__(self, disk: Disk, path: Path, name: str, mode: str) -> None:
        self._disk, self._name = disk, name
        super().__init__(path, mode)

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        at = self.tell()
        try:
            self._disk.note(Operation("write", self._name, at=at, data=bytes(view)))
        except OSError:
            if len(view) > 1:
                super().write(view[: len(view) // 2])
            raise
        written = super().write(view)
        assert written == len(view)
        return written

    def truncate(self, size: int | None = None, /) -> int:
        self._disk.note(Operation("cut", self._name, at=self.tell() if size is None else size))
        return super().truncate(size)
