"""Trees of cells: out of memory and by query they are the same."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import lake.cells
from lake.cells import open_cells
from lake.errors import LakeCorrupt
from lake.settings import LakeSettings
from lake.snapshot import open_snapshot
from queries.cells import find_cell_trees
from queries.reader import Reader

if TYPE_CHECKING:
    from pathlib import Path


def _roots(reader: Reader) -> list[bytes]:
    rows = reader.rows("v3/accounts_by_balance", limit=1000)
    states = reader.rows(
        "v3/accounts",
        workchains=[row["workchain"] for row in rows],
        accounts=[row["account"] for row in rows],
    )
    return [row[name] for row in states for name in ("code_hash", "data_hash") if row[name]]


def test_both_ways_find_the_same_cells(demo_lake: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    connection = snapshot.connect()
    asked = Reader(snapshot, connection)
    kept = Reader(snapshot, connection, cells=open_cells(snapshot, LakeSettings()))
    roots = _roots(asked)
    assert len(roots) > 60
    for wanted in (roots, [], [bytes(32)], [b"\xff" * 32, roots[0]]):
        found = find_cell_trees(kept, wanted)
        assert found == find_cell_trees(asked, wanted)
        assert found.keys() >= set(wanted) - {bytes(32), b"\xff" * 32}
    assert all(kid in found for _cell, kids in found.values() for kid in kids)


def test_many_cells_and_damaged_ones_are_left_to_queries(demo_lake: Path, tmp_path: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    assert open_cells(snapshot, LakeSettings(cells_in_memory=10)) is None
    copy = tmp_path / "lake"
    shutil.copytree(demo_lake, copy)
    sound = open_cells(open_snapshot(copy), LakeSettings())
    file = next((copy / "state_cells").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert open_cells(open_snapshot(copy), LakeSettings()) is None
    assert sound is not None
    with pytest.raises(LakeCorrupt, match="state_cells/"):
        sound.read_trees([bytes(32)])


def test_a_file_is_read_once(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake.cells, "_kept", lake.cells._Kept())
    real, read = lake.cells.read_rows, []

    def count(*arguments: object) -> object:
        read.append(arguments)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.cells, "read_rows", count)
    for _ in range(3):
        store = open_cells(open_snapshot(demo_lake), LakeSettings())
        assert store is not None
        store.read_trees([bytes(32)])
    assert len(read) == len(open_snapshot(demo_lake).files["state_cells"])
