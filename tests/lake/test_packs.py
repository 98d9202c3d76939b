"""Small commits whose tables share one file are read like any other, and end as the same files."""

from pathlib import Path

import duckdb
import pytest

import tonlake
from tests.commands import run
from tests.damage import flip_file
from tests.lake.rows import commit_rows
from tonlake.lake.commit.delta import find_differences, publish
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.duck.connection import VIEWED_TABLES, Database, connect
from tonlake.lake.duck.remote import RemoteViews
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogReader, read_state
from tonlake.lake.maintenance import compact
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import Damage, verify_lake
from tonlake.lake.settings import LakeSettings
from tonlake.lake.storage.storage import open_storage

VIEWS = " ".join(VIEWED_TABLES)
NOW = LakeSettings(orphan_grace_s=0, replaced_grace_s=0, build_index=False, compact_commits=2)


def make_lake(folder: Path, pack_rows: int) -> Path:
    """Make a lake of a larger and three small commits, of which the last is of another day."""
    commit_rows(folder, 1, 3, day="2024-01-01")
    for at, day in ((4, 1), (5, 1), (6, 2)):
        commit_rows(folder, at, at, rows=4, day=f"2024-01-0{day}", pack_rows=pack_rows)
    return folder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make_lake(tmp_path / "plain", 3)


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return make_lake(tmp_path / "packed", 4)


def list_packs(lake: Path) -> list[str]:
    return sorted(path.relative_to(lake).as_posix() for path in lake.rglob("*.arrows"))


def list_rows(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the rows of every view over files, in any order."""
    rows = {view: connection.execute(f"from {view}").fetchall() for view in VIEWED_TABLES}
    return {view: sorted(map(repr, listed)) for view, listed in rows.items()}


def test_rows_in_packs_are_those_of_files_in_every_way(plain: Path, packed: Path) -> None:
    assert (len(list_packs(packed)), len(list_packs(plain))) == (3, 0)
    expected = list_rows(connect(open_snapshot(plain), statement=VIEWS))
    snapshot, storage = open_snapshot(packed), open_storage(packed)
    assert list_rows(connect(snapshot, statement=VIEWS)) == expected
    assert list_rows(RemoteViews(snapshot, storage, NOW).connection) == expected
    views = Database(packed, NOW).open(snapshot)
    views.provide(VIEWS)
    assert list_rows(views.lend(snapshot)) == expected
    for name in ("transactions", "messages"):
        mine, other = (tonlake.open(lake).table(name).collect() for lake in (packed, plain))
        assert mine.schema == other.schema
        assert sorted(map(repr, mine.rows())) == sorted(map(repr, other.rows()))


@pytest.mark.parametrize("depth", ["all", "tail", "packs"])
def test_packs_become_files(plain: Path, packed: Path, depth: compact.Depth) -> None:
    for lake in (plain, packed):
        compact.compact_lake(lake, NOW, depth=depth)
    live = read_state(packed).files
    assert not any(file.pack for file in live)
    assert depth == "packs" or {*live} == {*read_state(plain).files}
    assert verify_lake(packed).damage == []
    assert ".arrows" in {path.suffix for path in sweep_orphans(packed, NOW)}
    assert list_packs(packed) == []
    assert list_rows(connect(open_snapshot(packed), statement=VIEWS)) == list_rows(
        connect(open_snapshot(plain), statement=VIEWS)
    )


def test_damage_in_a_pack_is_that_of_one_table(packed: Path) -> None:
    file = next(file for file in read_state(packed).files if file.pack and file.offset)
    pack = packed / file.pack
    flip_file(pack, file.offset + 9)
    assert list(open_snapshot(packed).damaged) == [file.table]
    assert [damage.file for damage in verify_lake(packed).damage] == [file.path]
    with pytest.raises(LakeCorrupt, match=f"{file.pack} from byte {file.offset} do not match"):
        read_rows(packed, file)
    pack.write_bytes(pack.read_bytes()[: file.offset])
    assert f"it has 0 bytes instead of {file.bytes}" in str(open_snapshot(packed).damaged)


def test_bytes_after_a_pack_are_reported(packed: Path) -> None:
    pack = packed / list_packs(packed)[0]
    whole = pack.read_bytes()
    pack.write_bytes(whole + b"more")
    reason = f"it has {len(whole) + 4} bytes instead of {len(whole)}"
    assert verify_lake(packed).damage == [Damage(list_packs(packed)[0], reason)]


def test_a_pack_stays_while_rows_of_it_are_live(packed: Path) -> None:
    state = read_state(packed)
    kept, *gone = (file for file in state.files if file.pack)
    with hold_lock(packed / LOCK_FILE):
        commit_maintenance(packed, state, removed=[file.path for file in gone])
    assert {path.suffix for path in sweep_orphans(packed, NOW)} == {".arrows"}
    assert list_packs(packed) == [kept.pack]
    assert read_rows(packed, kept).num_rows == kept.rows


def test_tools_that_read_parquet_learn_how_far_it_goes(packed: Path) -> None:
    publish(LogReader(packed), NOW)
    assert list(find_differences(packed)) == []
    version = (packed / "blocks/_delta_log" / f"{0:020}.json").read_text()
    assert '"tonlakeMcSeqno":3' in version
    assert ".arrow" not in version
    run("views", "--lake", packed, catch_exceptions=False)
    with duckdb.connect(packed / "catalog.duckdb", read_only=True) as catalog:
        assert catalog.execute("select mc_seqno from lake_snapshot").fetchall() == [(6,)]
    assert list_packs(packed)  # for readers of earlier snapshots
    assert not any(file.pack for file in read_state(packed).files)
    assert list(find_differences(packed)) == []
