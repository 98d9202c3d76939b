"""Files against their digests: DuckDB does not notice a flipped bit in Parquet, so this does."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lake.errors import LakeCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from lake.log import DataFile

_THREADS = 2

_sound: set[tuple[str, int, int, str]] = set()
"""Files that this process found sound: path, size, modification time in ns, digest."""


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
    damage = []

    def check(file: DataFile) -> tuple[DataFile, LakeCorrupt | None]:
        return file, _check_file(lake_dir, file, trust_earlier=trust_earlier)

    with ThreadPoolExecutor(_THREADS) as pool:
        for file, error in pool.map(check, files):
            on_file(file)
            if error is not None:
                damage.append(error)
    return damage


def _check_file(lake_dir: Path, file: DataFile, *, trust_earlier: bool) -> LakeCorrupt | None:
    path = lake_dir / file.path
    try:
        facts = path.stat()
        seen = (str(path.absolute()), facts.st_size, facts.st_mtime_ns, file.sha256)
        if trust_earlier and seen in _sound:
            return None
        if facts.st_size != file.bytes:
            return LakeCorrupt(file.path, f"it has {facts.st_size} bytes instead of {file.bytes}")
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return LakeCorrupt(file.path, f"it cannot be read ({error.strerror})")
    if digest != file.sha256:
        return LakeCorrupt(file.path, "its bytes do not give its digest")
    _sound.add(seen)
    return None
