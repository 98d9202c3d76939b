"""Files against their digests: DuckDB does not notice a flipped bit in Parquet, so this does."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from tonlake.lake.log.state import DataFile

_THREADS = 2
_FEW_BYTES = 1 << 20
"""A file of no more is read without threads, which take longer to start."""

_SPARE = 2_000
"""Files that are remembered beside those of the largest lake: each that is merged would stay."""

_Facts = tuple[int, int, int, str]
"""Size, times of modification and of change in ns, digest."""


class _Sound:
    """Files that this process found sound, by their path: those asked about last come last."""

    def __init__(self) -> None:
        self.facts: dict[str, _Facts] = {}
        self._most = 0

    def knows(self, path: str, sha256: str) -> bool:
        """Whether a file of this digest was found sound and has not changed since."""
        known = self.facts.get(path)
        if known is None:
            return False
        try:
            facts = os.stat(path)  # noqa: PTH116 - asked of thousands of files at every commit
        except OSError:
            return False
        self.facts[path] = self.facts.pop(path, known)
        return known == (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, sha256)

    def forget(self, listed: int) -> None:
        """Forget the files checked longest ago; twice the largest number checked at once stay."""
        self._most = max(self._most, listed)
        surplus = len(self.facts) - 2 * self._most - _SPARE
        for path in list(islice(self.facts, max(0, surplus))):
            self.facts.pop(path, None)


_sound = _Sound()


def find_damage(
    lake_dir: Path,
    files: Iterable[DataFile],
    *,
    trust_earlier: bool = False,
    on_file: Callable[[DataFile], None] = lambda _file: None,
) -> list[LakeCorrupt]:
    """Read every file and return an error for each that is not what was committed.

    With ``trust_earlier`` files are skipped that this process found sound and that have not
    changed since. ``on_file`` is called after each file.
    """
    root = lake_dir.absolute()
    listed = list(files)
    todo = []
    for file in listed:
        if trust_earlier and _sound.knows(f"{root}/{file.path}", file.sha256):
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


def find_changed(files: Iterable[tuple[str, DataFile]]) -> list[DataFile]:
    """Return the files that were written to since this process found them sound.

    Each comes with its absolute path. One that is gone is not returned: a process that has it
    open or mapped still reads what was sound.
    """
    return [
        file
        for path, file in files
        if not _sound.knows(path, file.sha256) and os.path.exists(path)  # noqa: PTH110 - as above
    ]


def _check_files(root: Path, files: Sequence[DataFile]) -> Iterator[LakeCorrupt | None]:
    """Yield what is wrong with each file; large ones are read by threads meanwhile."""
    check = partial(_check_file, str(root))
    with ThreadPoolExecutor(_THREADS) as pool:  # which starts a thread with the first of them
        large = {file.path: pool.submit(check, file) for file in files if file.bytes > _FEW_BYTES}
        for file in files:
            yield large[file.path].result() if file.path in large else check(file)


def _check_file(root: str, file: DataFile) -> LakeCorrupt | None:
    path = f"{root}/{file.path}"
    try:
        facts = os.stat(path)  # noqa: PTH116 - a Path for each takes as long as to read it
        if facts.st_size != file.bytes:
            return LakeCorrupt(file.path, f"it has {facts.st_size} bytes instead of {file.bytes}")
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - as above
            digest = _digest(stream, file.bytes)
    except OSError as error:
        return LakeCorrupt.unreadable(file.path, error)
    if digest != file.sha256:
        _sound.facts.pop(path, None)
        return LakeCorrupt(file.path, "its bytes do not give its digest")
    _sound.facts[path] = facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, file.sha256
    return None


def _digest(stream: FileIO, size: int) -> str:
    """Return the SHA-256 in hex; a small file is read at once, without a buffer of 256 KiB."""
    if size <= _FEW_BYTES:
        return hashlib.sha256(stream.read()).hexdigest()
    return hashlib.file_digest(stream, "sha256").hexdigest()
