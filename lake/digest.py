"""Files against their digests: DuckDB does not notice a flipped bit in Parquet, so this does."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lake.errors import LakeCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from lake.log import DataFile

_THREADS = 2

_SPARE = 10_000
"""Files that are remembered beside those asked about last: each that is merged would stay."""

_Facts = tuple[int, int, str]
"""Size, modification time in ns, digest."""

_sound: dict[str, _Facts] = {}
"""Files that this process found sound, by their path."""


def find_damage(
    lake_dir: Path,
    files: Iterable[DataFile],
    *,
    trust_earlier: bool = False,
    on_file: Callable[[DataFile], None] = lambda _file: None,
) -> list[LakeCorrupt]:
    """Read every file and return an error for each that is not what was committed.

    Args:
        lake_dir: Folder of the lake.
        files: Files to read.
        trust_earlier: Skip files that this process found sound and nobody wrote to since.
        on_file: Called after each file.
    """
    root = lake_dir.absolute()
    listed = list(files)
    todo = []
    for file in listed:
        if trust_earlier and _is_known(f"{root}/{file.path}", file.sha256):
            on_file(file)
        else:
            todo.append(file)
    damage = []
    if todo:
        with ThreadPoolExecutor(_THREADS) as pool:
            for file, error in zip(todo, pool.map(partial(_check_file, root), todo), strict=True):
                on_file(file)
                if error is not None:
                    damage.append(error)
    if len(_sound) > 2 * len(listed) + _SPARE:
        _forget_others(f"{root}/{file.path}" for file in listed)
    return damage


def _is_known(path: str, sha256: str) -> bool:
    known = _sound.get(path)
    if known is None:
        return False
    try:
        facts = os.stat(path)  # noqa: PTH116 - asked of thousands of files at every commit
    except OSError:
        return False
    return known == (facts.st_size, facts.st_mtime_ns, sha256)


def _forget_others(paths: Iterable[str]) -> None:
    kept = {path: _sound[path] for path in paths if path in _sound}
    _sound.clear()
    _sound.update(kept)


def _check_file(root: Path, file: DataFile) -> LakeCorrupt | None:
    path = root / file.path
    try:
        facts = path.stat()
        if facts.st_size != file.bytes:
            return LakeCorrupt(file.path, f"it has {facts.st_size} bytes instead of {file.bytes}")
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return LakeCorrupt(file.path, f"it cannot be read ({error.strerror})")
    if digest != file.sha256:
        return LakeCorrupt(file.path, "its bytes do not give its digest")
    _sound[str(path)] = facts.st_size, facts.st_mtime_ns, file.sha256
    return None
