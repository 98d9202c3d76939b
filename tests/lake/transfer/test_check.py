"""Hostile exports are refused before a byte is copied, at once, and by name."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tonlake.lake.errors import LakeCorrupt, PieceRefused
from tonlake.lake.log.network import Network
from tonlake.lake.storage.storage import open_storage
from tonlake.lake.transfer.export import export_lake
from tonlake.lake.transfer.importing import import_piece
from tonlake.lake.transfer.manifest import MANIFEST, Manifest, encode_manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPEATS = 2000
AT_ONCE_S = 5


@pytest.fixture
def folder(read_lake: Path, tmp_path: Path) -> Path:
    export_lake(read_lake, tmp_path / "piece")
    return tmp_path / "piece"


def read(folder: Path) -> Manifest:
    manifest = read_manifest(open_storage(folder))
    assert manifest is not None
    return manifest


def rewrite(folder: Path, **changes: Any) -> None:
    changed = msgspec.structs.replace(read(folder), **changes)
    (folder / MANIFEST).write_bytes(encode_manifest(changed))


def change_first(items: tuple[Any, ...], **changes: Any) -> tuple[Any, ...]:
    return (msgspec.structs.replace(items[0], **changes), *items[1:])


def assert_refused(folder: Path, words: str) -> None:
    copy = folder.parent / "copy"
    with pytest.raises(PieceRefused, match=words):
        import_piece(folder, copy)
    assert not copy.exists()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("_log/9.json", "is not the path of a lake file"),
        ("_log/day=2024-01-02/1-10-0123456789abcdef.parquet", "is not the path of a lake file"),
        ("lookups/1-30-0123456789abcdef.run", "is not the path of a lake file"),
        ("blocks/day=2024-01-02/1-10-0123456789abcdef.parquet", "is not the path of a lake file"),
        ("blocks/day=2024-01-02/1-10.parquet", "is not the path of a lake file"),
        ("views.sql", "is not the path of a lake file"),
    ],
)
def test_paths_follow_from_what_they_hold(folder: Path, path: str, words: str) -> None:
    rewrite(folder, files=change_first(read(folder).files, path=path))
    assert_refused(folder, words)


@pytest.mark.parametrize("last", [(1 << 63) - 1, (1 << 64) - 1, 1 << 32, 0, 20])
def test_spans_that_no_chain_has(folder: Path, last: int) -> None:
    rewrite(folder, ranges=change_first(read(folder).ranges, last_mc_seqno=last))
    assert_refused(folder, r"not a range of masterchain blocks|come after|does not have")


def test_spans_in_another_order(folder: Path) -> None:
    rewrite(folder, ranges=read(folder).ranges[::-1])
    assert_refused(folder, r"1\.\.10 come after 20|16\.\.20 come after 30")


@pytest.mark.parametrize(
    "changes",
    [
        {"day": "2024-02-31"},
        {"day": "20240102"},
        {"day": "../../.."},
        {"shards": {"0:8000000000000000": (5, 2)}},
        {"shards": {"0:8000000000000000": (0, 1 << 40)}},
        {"shards": {"../x": (1, 2)}},
    ],
)
def test_days_and_shards_that_are_none(folder: Path, changes: dict[str, Any]) -> None:
    rewrite(folder, ranges=change_first(read(folder).ranges, **changes))
    assert_refused(folder, r"not a day|not blocks of a shard")


@pytest.mark.parametrize("times", [2, REPEATS])
def test_a_file_listed_more_than_once(folder: Path, times: int) -> None:
    files = read(folder).files
    rewrite(folder, files=(*files, *files[:1] * (times - 1)))
    began_s = time.monotonic()
    assert_refused(folder, f"lists .* {times} times")
    assert time.monotonic() - began_s < AT_ONCE_S


def test_two_files_of_a_table_for_the_same_blocks(folder: Path) -> None:
    first = read(folder).files[0]
    digest = "0" * 64
    other = msgspec.structs.replace(
        first, sha256=digest, path=first.path.replace(first.sha256[:16], digest[:16])
    )
    rewrite(folder, files=(*read(folder).files, other))
    assert_refused(folder, f"lists 2 files of {first.table}")


@pytest.mark.parametrize(
    "changes",
    [{"bytes": 0}, {"bytes": -1}, {"rows": -1}, {"sha256": "x" * 64}, {"sha256": ""}],
)
def test_files_that_cannot_be(folder: Path, changes: dict[str, Any]) -> None:
    rewrite(folder, files=change_first(read(folder).files, **changes))
    assert_refused(folder, r"claims .* bytes|has no SHA-256")


def test_spans_without_their_blocks(folder: Path) -> None:
    files = read(folder).files
    rewrite(folder, files=tuple(file for file in files if file.table != "blocks"))
    assert_refused(folder, r"1\.\.10 of the export have only 0 blocks")


def test_files_of_other_blocks(folder: Path) -> None:
    rewrite(folder, ranges=read(folder).ranges[1:])
    assert_refused(folder, "is of blocks that the export does not have")


def test_hashes_of_a_network(folder: Path) -> None:
    rewrite(folder, network=Network(-239, zero_state_root_hash="../x"))
    assert_refused(folder, "not a hash of a zero state")


@pytest.mark.parametrize(("changes", "words"), [({"bytes": 9}, "bytes"), ({"rows": 9}, "rows")])
def test_claims_about_files_are_compared_with_them(
    folder: Path, changes: dict[str, int], words: str
) -> None:
    """The last file does not match, and no other is copied before that is detected."""
    files = read(folder).files
    lie = next(file for file in reversed(files) if file.table != "blocks")
    changed = msgspec.structs.replace(lie, **changes)
    rewrite(folder, files=tuple(changed if file == lie else file for file in files))
    with pytest.raises(LakeCorrupt, match=f"{lie.path}: it has .* {words} instead of 9"):
        import_piece(folder, folder.parent / "copy")
    assert not list((folder.parent / "copy").rglob("*.parquet"))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_pipes_folders_and_devices(folder: Path, make: Callable[[Path], None]) -> None:
    path = folder / read(folder).files[-1].path
    path.unlink()
    make(path)
    with pytest.raises(LakeCorrupt, match=r"cannot be read .*not a regular file"):
        import_piece(folder, folder.parent / "copy")
    assert not list((folder.parent / "copy").rglob("*.parquet"))
    (folder / MANIFEST).unlink()
    make(folder / MANIFEST)
    with pytest.raises(PieceRefused, match="not a regular file"):
        import_piece(folder, folder.parent / "other")


def test_missing_files_are_seen_first(folder: Path) -> None:
    path = read(folder).files[-1].path
    (folder / path).unlink()
    with pytest.raises(LakeCorrupt, match=f"{path}: it cannot be read"):
        import_piece(folder, folder.parent / "copy")
    assert not list((folder.parent / "copy").rglob("*.parquet"))


def test_a_file_that_is_no_parquet(folder: Path) -> None:
    path = folder / read(folder).files[-1].path
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(LakeCorrupt, match="not a Parquet file"):
        import_piece(folder, folder.parent / "copy")
