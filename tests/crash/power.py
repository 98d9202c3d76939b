"""Enumerates the states of a disk after a power loss that a log of operations allows.

A file has at least the contents of its last sync; a folder has at least the names of its last sync.
Later changes may be present or not, each change of a name independently and in any order; and
unsynced bytes may be present, cut short, or zeros. Files and folders are the things (``Thing``)
that names refer to.
"""

import hashlib
import os
import random
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from tests.crash.disk import Operation

Unsynced = Literal["lost", "kept", "torn", "zeros"]


class File:
    """A file: its bytes, the synced ones, and an end within them for a torn write."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = data

    def show(self, unsynced: Unsynced) -> bytes:
        """Return the bytes after the loss."""
        if self.data == self.synced or unsynced == "lost":
            return self.synced
        if unsynced == "kept":
            return bytes(self.data)
        common = len(self.synced) if self.data.startswith(self.synced) else 0
        if unsynced == "torn":
            return bytes(self.data[: (common + len(self.data)) // 2])
        return bytes(self.data[:common]) + bytes(len(self.data) - common)


class Elsewhere(bytes):
    """The path of a file whose bytes are meant."""


class Kept(File):
    """A file that existed before and is never written to: its bytes stay in place."""

    def __init__(self, path: Path) -> None:
        """Take the path of the bytes."""
        super().__init__()
        self.path = path

    def show(self, unsynced: Unsynced) -> bytes:  # noqa: ARG002 - all of it was synced
        """Return the path of the bytes."""
        return Elsewhere(os.fsencode(self.path))


class Folder:
    """A folder: its names, the synced names, and every change since."""

    def __init__(self) -> None:
        self.names: dict[str, Thing] = {}
        self.synced: dict[str, Thing] = {}
        self.changes: list[Change] = []

    def change(self, change: "Change") -> None:
        """Change names now; nothing is synced."""
        change.apply(self.names)
        self.changes.append(change)

    def sync(self) -> None:
        """Make the names durable."""
        self.synced = dict(self.names)
        self.changes = []


Thing = File | Folder


class Change(NamedTuple):
    """Names that a folder gains, and one it loses, at once."""

    added: dict[str, Thing]
    removed: str | None = None

    def apply(self, names: dict[str, Thing]) -> None:
        """Apply the change."""
        if self.removed is not None:
            names.pop(self.removed, None)
        names.update(self.added)


class Loss(NamedTuple):
    """The extent of a power loss: changes of names, and bytes; ``dice`` decides for ``some``."""

    names: Literal["all", "none", "some"]
    bytes: Unsynced | Literal["some"]
    dice: random.Random | None = None


WORST = Loss("all", "lost")
CERTAIN = (
    WORST,
    *(Loss("none", unsynced) for unsynced in ("lost", "kept", "torn", "zeros")),
)
"""Losses without dice; the second is that names arrive before the bytes of their files."""

Tree = dict[str, bytes]
"""Files and their bytes by path; a path that ends with a stroke is a folder."""


class Medium:
    """A disk that executes operations one by one."""

    def __init__(self) -> None:
        """Begin with an empty folder."""
        self.root = Folder()
        self.marks: list[str] = []

    @classmethod
    def of_folder(cls, folder: Path) -> "Medium":
        """Take an existing folder, all of it synced; bytes of its files are not read."""
        medium = cls()
        medium.root = _list_folder(folder)
        return medium

    def do(self, operation: Operation) -> None:
        """Execute the next operation."""
        kind, path = operation.kind, operation.path
        if kind == "mark":
            self.marks.append(path)
        elif kind in {"create", "folder"}:
            made: Thing = Folder() if kind == "folder" else File()
            folder, name = self._locate(path)
            folder.change(Change({name: made}))
        elif kind in {"write", "cut"}:
            file = self._find(path)
            assert isinstance(file, File)
            assert not isinstance(file, Kept), f"{path} was there before and is written to"
            if kind == "cut":
                del file.data[operation.at :]
            else:
                file.data.extend(bytes(max(0, operation.at - len(file.data))))
                file.data[operation.at : operation.at + len(operation.data)] = operation.data
        elif kind == "sync":
            self._sync(path)
        else:
            self._name_anew(operation)

    def _sync(self, path: str) -> None:
        thing = self._find(path)
        if isinstance(thing, Folder):
            thing.sync()
        else:
            thing.synced = bytes(thing.data)

    def _name_anew(self, operation: Operation) -> None:
        folder, name = self._locate(operation.path)
        if operation.kind == "remove":
            folder.change(Change({}, name))
            return
        to, target = self._locate(operation.target)
        assert to is folder, "files are renamed and linked within their folder"
        thing = folder.names[name]
        folder.change(Change({target: thing}, name if operation.kind == "rename" else None))

    def _locate(self, path: str) -> tuple[Folder, str]:
        found = self._find(str(Path(path).parent))
        assert isinstance(found, Folder)
        return found, Path(path).name

    def _find(self, path: str) -> Thing:
        at: Thing = self.root
        for part in Path(path).parts:
            assert isinstance(at, Folder)
            at = at.names[part]
        return at

    def lose(self, loss: Loss) -> Tree:
        """Return the tree after the power loss."""
        return dict(_show(self.root, "", loss))


def _list_folder(path: Path) -> Folder:
    folder = Folder()
    for one in path.iterdir():
        folder.names[one.name] = _list_folder(one) if one.is_dir() else Kept(one)
    folder.sync()
    return folder


def _show(folder: Folder, prefix: str, loss: Loss) -> Iterator[tuple[str, bytes]]:
    names = dict(folder.synced)
    for change in folder.changes:
        if loss.names == "none" or (
            loss.names == "some" and loss.dice is not None and loss.dice.random() < 0.5
        ):
            change.apply(names)
    for name, thing in sorted(names.items()):
        if isinstance(thing, Folder):
            yield f"{prefix}{name}/", b""
            yield from _show(thing, f"{prefix}{name}/", loss)
        elif loss.bytes == "some":
            assert loss.dice is not None
            kind: Unsynced = loss.dice.choice(("lost", "kept", "torn", "zeros"))
            yield f"{prefix}{name}", thing.show(kind)
        else:
            yield f"{prefix}{name}", thing.show(loss.bytes)


def restore(folder: Path, tree: Tree) -> None:
    """Turn the folder into a tree; unchanged files keep their mtime."""
    for here in sorted(folder.rglob("*"), reverse=True):
        name = str(here.relative_to(folder))
        if here.is_dir():
            if f"{name}/" not in tree:
                here.rmdir()
        elif name not in tree:
            here.unlink()
    for name, data in sorted(tree.items()):
        here = folder / name
        if name.endswith("/"):
            here.mkdir(exist_ok=True)
        elif not isinstance(data, Elsewhere):
            here.unlink(missing_ok=True)
            here.write_bytes(data)
        elif not here.exists() or not here.samefile(os.fsdecode(data)):
            here.unlink(missing_ok=True)
            os.link(os.fsdecode(data), here)


class Shelf:
    """A folder that becomes one tree after another, from hard links to bytes written once."""

    def __init__(self, folder: Path) -> None:
        """Take a folder that does not exist yet."""
        self._bytes, self.target = folder / "bytes", folder / "tree"
        self._bytes.mkdir(parents=True)
        self.target.mkdir()
        self._now: Tree = {}

    def lay_out(self, tree: Tree) -> None:
        """Turn the folder into the tree."""
        for path in sorted(self._now.keys() - tree.keys(), reverse=True):
            here = self.target / path
            if path.endswith("/"):
                here.rmdir()
            else:
                here.unlink()
        for path in sorted(tree):
            if self._now.get(path) != tree[path]:
                self._put(self.target / path, tree[path], is_folder=path.endswith("/"))
        self._now = tree

    def _put(self, here: Path, data: bytes, *, is_folder: bool) -> None:
        if is_folder:
            here.mkdir()
            return
        kept = self._bytes / hashlib.sha256(data).hexdigest()
        if not kept.exists():
            kept.write_bytes(data)
        here.unlink(missing_ok=True)
        os.link(kept, here)


def list_losses(
    operations: Iterable[Operation], dice: int = 0, *, begin: int = 1, every: int = 1
) -> Iterator[tuple[str, Tree]]:
    """Yield, for one prefix in ``every`` from ``begin``, the last mark and what may be left."""
    medium = Medium()
    seen: set[int] = set()
    rng = random.Random(dice)  # noqa: S311 - a repeatable choice
    for done, operation in enumerate(operations, 1):
        medium.do(operation)
        if done < begin or (done - begin) % every:
            continue
        for loss in chain(CERTAIN, (Loss("some", "some", rng) for _ in range(dice))):
            tree = medium.lose(loss)
            mark = medium.marks[-1] if medium.marks else ""
            key = hash((mark, frozenset(tree.items())))
            if key not in seen:
                seen.add(key)
                yield mark, tree
