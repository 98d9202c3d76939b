"""Whole cells from a lake: rebuilt with the right hash, or reported as missing."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core.boc import Cell

from tests.lake.opened import open_views
from tonlake.api.chain import cells
from tonlake.api.chain.cells import add_checksum, read_cell_trees
from tonlake.api.settings import Settings
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.packs import PackSource
from tonlake.ingest.span import Span
from tonlake.lake.cache import Cache
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.reader import Reader


def _open(lake: Path, number: int | None = None) -> Reader:
    return Reader(snapshot := open_snapshot(lake, number), open_views(snapshot))


def _all_bodies(reader: Reader) -> set[bytes]:
    rows = reader.rows("v3/accounts_by_balance", limit=1000)
    accounts = reader.rows(
        "v3/accounts",
        workchains=[row["workchain"] for row in rows],
        accounts=[row["account"] for row in rows],
    )
    return {row[name] for row in accounts for name in ("code_hash", "data_hash")} - {None}


@pytest.fixture(scope="module")
def reader(demo_lake: Path) -> Reader:
    return _open(demo_lake)


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_KEPT", Cache(10_000, cells._KEPT._weigh))


@pytest.mark.usefixtures("empty_cache")
def test_every_body_is_read_to_its_end(reader: Reader) -> None:
    wanted = _all_bodies(reader)
    assert len(wanted) > 60
    whole = read_cell_trees(reader, [*wanted, None])
    assert whole.keys() == wanted
    for cell_hash, boc in whole.items():
        tree = parse_boc(boc)
        assert tree.hash(tree.roots[0]) == cell_hash
        assert Cell.one_from_boc(boc).hash == cell_hash
    assert read_cell_trees(reader, wanted) == whole


@pytest.mark.usefixtures("empty_cache")
def test_the_same_cells_in_the_past(reader: Reader) -> None:
    """Every state of every account at every block has complete code and data."""
    rows = reader.ask("select distinct code_hash, data_hash from account_states", {}).to_pylist()
    wanted = {each for row in rows for each in row.values()} - {None}
    assert len(wanted) > 300
    assert read_cell_trees(reader, wanted).keys() == wanted


@pytest.mark.usefixtures("empty_cache")
def test_what_is_missing_is_left_out_even_if_known_later(demo_node: Path, tmp_path: Path) -> None:
    with closing(PackSource(demo_node / "archive" / "packages" / "arch0000")) as source:
        ingest(source, tmp_path, Span(200, 238), Settings())
        early = _open(tmp_path)
        wanted = _all_bodies(early)
        partial = read_cell_trees(early, wanted)
        assert partial.keys() < wanted
        ingest(source, tmp_path, Span(1, 199), Settings())
    late = _open(tmp_path)
    whole = read_cell_trees(late, wanted)
    assert partial.keys() < whole.keys()
    assert read_cell_trees(_open(tmp_path, 1), wanted) == partial


@pytest.mark.usefixtures("empty_cache")
def test_cached_trees_stay_within_their_bytes() -> None:
    keys = [(Path(), bytes([number])) for number in range(20)]
    for key in keys:
        for _ in range(2):
            cells._KEPT.put(key, (1, bytes(1000)))
    assert [key for key in keys if cells._KEPT.get(key)] == keys[-7:]
    cells._KEPT.put((Path(), b""), (1, bytes(20_000)))
    assert cells._KEPT.weight == 0


def test_an_unknown_hash(reader: Reader) -> None:
    assert read_cell_trees(reader, [bytes(32)]) == {}
    assert read_cell_trees(reader, []) == {}


@given(st.binary(max_size=100), st.integers(0, 20))
def test_a_checksum_is_added_once(data: bytes, depth: int) -> None:
    builder = CellBuilder().store_bytes(data)
    cell = builder.end()
    for _ in range(depth):
        cell = CellBuilder(builder.tree).store_ref(cell).end()
    plain = serialize_boc(builder.tree, [cell])
    checked = add_checksum(plain)
    assert add_checksum(checked) == checked
    assert Cell.one_from_boc(checked).hash == builder.tree.hash(cell)
    assert len(checked) == len(plain) + 4
