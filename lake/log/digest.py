"""Verifies files against their digests, because DuckDB does not notice bit rot in Parquet."""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.state import DataFile
from tonlake.lake.system import drop_cached_pages

if TYPE_CHECKING:
    from tonlake.lake.log.snapshot import Snapshot

_THREADS = 2
_FEW_BYTES = 1 << 20
"""Files up to this size are read without threads, which take longer to start."""

_SPARE = 2_000
"""Checked files to remember beyond twice the largest lake; merged files would pile up."""

_Facts = tuple[int, int, int]
"""Size, mtime and ctime in ns."""


class _Sound:
    """Files that this process verified, by path; the most recently queried ones are last."""

    def __init__(self) -> None:
        self.facts: dict[str, tuple[_Facts, str]] = {}
        """What a file was like when it had a digest."""
        self._most = 0

    def knows(self, root: str, file: DataFile, seen: dict[str, _Facts | None]) -> bool:
        """Whether the file is as verified; ``seen`` has the facts of files looked at just now."""
        path = f"{root}/{file.path}"
        known = self.facts.get(path)
        if known is None:
            return False
        if file.stored not in seen:
            seen[file.stored] = _look(f"{root}/{file.stored}")
        self.facts[path] = self.facts.pop(path, known)
        return known == (seen[file.stored], file.sha256)

    def forget(self, listed: int) -> None:
        """Forget the least recently checked files; keep twice the most checked at once."""
        self._most = max(self._most, listed)
        surplus = len(self.facts) - 2 * self._most - _SPARE
        for path in list(islice(self.facts, max(0, surplus))):
            self.facts.pop(path, None)


def _look(path: str) -> _Facts | None:
    try:
        facts = os.stat(path)  # noqa: PTH116 - called for thousands of files at every commit
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


_sound = _Sound()


def find_damage(
    lake_dir: Path,
    files: Iterable[DataFile],
    *,
    trust_earlier: bool = False,
    on_file: Callable[[DataFile], None] = lambda _file: None,
) -> list[LakeCorrupt]:
    """Read every file, and return an error for each one that is not as it was committed.

    With ``trust_earlier``, skip files that this process verified and that did not change since.
    """
    root = str(lake_dir.absolute())
    listed = list(files)
    todo: list[DataFile] = []
    seen: dict[str, _Facts | None] = {}
    for file in listed:
        if trust_earlier and _sound.knows(root, file, seen):
            on_file(file)
        else:
            todo.append(file)
    damage = []
    for file, error in zip(todo, _check_files(root, todo), strict=True):
        on_file(file)
        if error is not None:
            damage.append(error)
    _sound.forget(len(listed))
    return damage


def find_changed(root: str, files: Iterable[DataFile], *, gone: bool = False) -> list[DataFile]:
    """Return the files below the path ``root`` that changed since they were verified.

    Those that are gone are left out by default: who has one open still reads verified bytes.
    """
    seen: dict[str, _Facts | None] = {}
    changed = [file for file in files if not _sound.knows(root, file, seen)]
    return [file for file in changed if gone or os.path.exists(f"{root}/{file.stored}")]  # noqa: PTH110


def _check_files(root: str, files: Sequence[DataFile]) -> Iterator[LakeCorrupt | None]:
    """Yield the error of each file, or None; threads read the large ones meanwhile."""
    check = partial(_check_file, root)
    with ThreadPoolExecutor(_THREADS) as pool:  # starts no thread before the first ``submit``
        large = {file.path: pool.submit(check, file) for file in files if file.bytes > _FEW_BYTES}
        for file in files:
            yield large[file.path].result() if file.path in large else check(file)


def _check_file(root: str, file: DataFile) -> LakeCorrupt | None:
    path, stored = f"{root}/{file.path}", f"{root}/{file.stored}"
    try:
        facts = os.stat(stored)  # noqa: PTH116 - building a Path takes as long as reading the file
        size = min(max(0, facts.st_size - file.offset), file.bytes) if file.pack else facts.st_size
        if size != file.bytes:
            text = f"it has {size} bytes instead of {file.bytes}{file.where}"
            return LakeCorrupt(file.path, text)
        with open(stored, "rb", buffering=0) as stream:  # noqa: PTH123 - as above
            stream.seek(file.offset)
            if file.pack or file.bytes <= _FEW_BYTES:  # at once, without a buffer of 256 KiB
                digest = hashlib.sha256(stream.read(file.bytes)).hexdigest()
            else:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return LakeCorrupt.unreadable(file.path, error, file.where)
    if digest != file.sha256:
        _sound.facts.pop(path, None)
        return LakeCorrupt(file.path, f"its bytes{file.where} do not match its digest")
    looked = facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
    _sound.facts[path] = looked, file.sha256
    return None


LOG = logging.getLogger("tonlake.lake")

_IDLE_S = 1.0
"""Pause while there is no snapshot, and the minimum between two rounds."""


class Recheck:
    """A thread that rereads every file of the newest snapshot once per period, evenly spread."""

    def __init__(self, newest: "Callable[[], Snapshot | None]", period_s: float) -> None:
        """Take ``newest``, which returns the open snapshot or None; a period of 0 means never."""
        self._newest, self._period_s = newest, period_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.checked_files = self.damaged_files = 0

    def start(self) -> None:
        """Start, unless the period is 0."""
        if self._period_s > 0 and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recheck", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current file."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            for pause_s in self.check_round():
                if self._stopped.wait(pause_s):
                    return
            self._stopped.wait(_IDLE_S)

    def check_round(self) -> Iterator[float]:
        """Check the newest snapshot's files that still exist; yield the pause before each."""
        snapshot = self._newest()
        if snapshot is None:
            return
        files = [file for group in snapshot.sound_files().values() for file in group]
        files += snapshot.segments
        size = sum(file.bytes for file in files) or 1
        for file in files:
            yield self._period_s * file.bytes / size
            self._check(snapshot, file)

    def _check(self, snapshot: "Snapshot", file: DataFile) -> None:
        try:
            with (snapshot.lake_dir / file.stored).open("rb", buffering=0) as stream:
                drop_cached_pages(stream.fileno())  # the next read is from disk
        except FileNotFoundError:
            return
        except OSError as error:
            damage = [LakeCorrupt.unreadable(file.path, error, file.where)]
        else:
            damage = find_damage(snapshot.lake_dir, [file])
        self.checked_files += 1
        for found in damage:
            self.damaged_files += 1
            snapshot.watch.damaged = True
            LOG.error("recheck: %s", found)
