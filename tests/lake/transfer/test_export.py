"""Parts of a lake are copied, verified and resumed, and give the same lake at the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.errors import LakeCorrupt, NetworkMismatch, PieceRefused, RangeOverlap
from tonlake.lake.log.network import Network
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings
from tonlake.lake.transfer.export import describe_piece, export_lake
from tonlake.lake.transfer.importing import SPANNING, import_piece
from tonlake.lake.transfer.manifest import MANIFEST, Days, encode_manifest, parse_days

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = LakeSettings()
DAY = Days("2024-01-17", "2024-01-17")
"""The second of the three days that the lake of these tests has."""


def data_files(lake_dir: Path) -> dict[str, bytes]:
    return {path: data for path, data in file_bytes(lake_dir).items() if path[0] != "_"}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-01-01..2024-02-03", Days("2024-01-01", "2024-02-03")),
        ("2024-01-01..", Days("2024-01-01", None)),
        ("..2024-01-01", Days(None, "2024-01-01")),
        ("..", Days()),
        ("2024-01-01", Days("2024-01-01", "2024-01-01")),
    ],
)
def test_days(text: str, days: Days) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize(
    "text", ["", "x", "2024-01-01..x", "2024-13-01", "2024-02-02..2024-02-01", "1..2", "2024-01"]
)
def test_no_days(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_days(text)


def test_a_whole_lake_arrives_as_it_was(read_lake: Path, tmp_path: Path) -> None:
    folder, copy = tmp_path / "piece", tmp_path / "copy"
    shown: list[tuple[int, int]] = []
    sent = export_lake(read_lake, folder, on_file=lambda done, total: shown.append((done, total)))
    assert sent.whole
    assert shown == [(at, sent.files) for at in range(1, sent.files + 1)]
    came = import_piece(folder, copy)
    assert (came.commits, came.files, came.rows, came.derive) == (3, sent.files, sent.rows, False)
    assert data_files(copy) == data_files(read_lake)
    old, new = read_state(read_lake), read_state(copy)
    assert (new.ranges, new.network, new.files) == (old.ranges, old.network, old.files)
    report = verify_lake(copy)
    assert (report.damage, report.orphans) == ([], [])
    assert import_piece(folder, copy).commits == 0


def test_days_of_a_lake(read_lake: Path, tmp_path: Path) -> None:
    folder, copy = tmp_path / "piece", tmp_path / "copy"
    sent = export_lake(read_lake, folder, DAY)
    assert (sent.ranges, sent.whole) == (((16, 20),), False)
    assert import_piece(folder, copy).derive
    assert read_state(copy).ranges == ((16, 20),)
    assert {path.split("/")[0] for path in data_files(copy)}.isdisjoint(SPANNING)
    export_lake(read_lake, folder, Days(None, "2024-01-02"))
    assert import_piece(folder, copy).ranges == ((1, 10),)
    assert read_state(copy).ranges == ((1, 10), (16, 20))
    assert verify_lake(copy).damage == []
    with pytest.raises(PieceRefused, match="none of these days: it holds 2024-01-02 to 2024-01-22"):
        export_lake(read_lake, folder, Days("2025-01-01", None))


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    commit_rows(tmp_path / "lake", 1, 10, tables=("blocks",))
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "piece"
    with pytest.raises(PieceRefused, match=f"^{place}/{MANIFEST} cannot be read: Not a directory$"):
        export_lake(tmp_path / "lake", place)


def test_an_export_goes_on_where_it_was_stopped(lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "piece"
    export_lake(lake, folder)
    whole = file_bytes(folder)
    (folder / MANIFEST).unlink()
    lost, torn = sorted(path for path in whole if path.endswith(".parquet"))[:2]
    (folder / lost).unlink()
    (folder / torn).write_bytes(b"")
    assert export_lake(lake, folder).copied_files == 2
    assert file_bytes(folder) == whole
    days = export_lake(lake, folder, DAY)
    assert days.copied_files == 0
    assert sum(1 for path in file_bytes(folder) if path != MANIFEST) == days.files


def test_an_import_goes_on_where_it_was_stopped(read_lake: Path, tmp_path: Path) -> None:
    folder, copy = tmp_path / "piece", tmp_path / "copy"
    export_lake(read_lake, folder)
    last = next(path for path in folder.rglob("16-20-*.parquet"))
    data = last.read_bytes()
    last.write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
    with pytest.raises(LakeCorrupt, match=r"16-20-.*its bytes do not match its digest"):
        import_piece(folder, copy)
    assert read_state(copy).ranges == ((1, 10),)
    last.write_bytes(data)
    assert import_piece(folder, copy).commits == 2
    assert data_files(copy) == data_files(read_lake)
    assert read_state(copy).ranges == read_state(read_lake).ranges


def test_a_damaged_lake_is_not_exported(lake: Path, tmp_path: Path) -> None:
    broken = next(lake.rglob("1-10-*.parquet"))
    broken.write_bytes(broken.read_bytes()[:-1])
    with pytest.raises(LakeCorrupt, match="its bytes do not match its digest"):
        export_lake(lake, tmp_path / "piece")
    assert not (tmp_path / "piece" / MANIFEST).exists()


def test_no_export_is_mixed_with_a_lake(lake: Path) -> None:
    files = file_bytes(lake)
    with pytest.raises(PieceRefused, match="holds a lake"):
        export_lake(lake, lake)
    assert file_bytes(lake) == files


def test_what_does_not_fit_is_refused(read_lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "piece"
    export_lake(read_lake, folder)
    commit_rows(tmp_path / "other", 1, 10, network=Network(-3))
    with pytest.raises(NetworkMismatch):
        import_piece(folder, tmp_path / "other")
    commit_rows(tmp_path / "part", 3, 5)
    with pytest.raises(RangeOverlap, match=r"1\.\.10 cannot be imported: the lake has 3\.\.5"):
        import_piece(folder, tmp_path / "part")
    with pytest.raises(PieceRefused, match="no export"):
        import_piece(tmp_path, tmp_path / "copy")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"format":1', b'"format":2', "damaged"),
        (b"{", b"[", "damaged, or was written by a later version"),
        (b"\n", b"x", "damaged"),
    ],
)
def test_a_damaged_manifest(
    read_lake: Path, tmp_path: Path, old: bytes, new: bytes, words: str
) -> None:
    folder = tmp_path / "piece"
    export_lake(read_lake, folder, DAY)
    path = folder / MANIFEST
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(PieceRefused, match=words):
        import_piece(folder, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "a//b", ".x/y", "a/b/c/d"])
def test_paths_that_lead_elsewhere(read_lake: Path, tmp_path: Path, path: str) -> None:

    manifest = describe_piece(read_lake, read_state(read_lake), Days())
    files = (msgspec.structs.replace(manifest.files[0], path=path), *manifest.files[1:])
    folder = tmp_path / "piece"
    folder.mkdir()
    (folder / MANIFEST).write_bytes(encode_manifest(msgspec.structs.replace(manifest, files=files)))
    with pytest.raises(PieceRefused, match="is not the path of a lake file"):
        import_piece(folder, tmp_path / "copy")


@pytest.mark.parametrize("changes", [{"last_mc_seqno": 0}, {"first_mc_seqno": -1}])
def test_blocks_that_no_chain_has(read_lake: Path, tmp_path: Path, changes: dict[str, int]) -> None:
    manifest = describe_piece(read_lake, read_state(read_lake), Days())
    wrong = msgspec.structs.replace(manifest.ranges[0], **changes)
    ranges = (wrong, *manifest.ranges[1:])
    folder = tmp_path / "piece"
    export_lake(read_lake, folder, Days())
    changed = msgspec.structs.replace(manifest, ranges=ranges)
    (folder / MANIFEST).write_bytes(encode_manifest(changed))
    with pytest.raises(PieceRefused, match="is not a range of masterchain blocks"):
        import_piece(folder, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
