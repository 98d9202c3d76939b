"""Contracts derived again: the same bytes for any order in which ranges were ingested."""

from contextlib import closing
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from tests.ingest.whole import ingest_node
from tests.patience import compose
from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.derivation import ContractFinder, open_finder
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope, Span
from tonlake.ingest.spread import Spread
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.file.rows import read_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.log.place import list_places, read_place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import CONTRACT_TABLES, TABLES

NAMES = {table.name for table in CONTRACT_TABLES}
SMALL = compose(ingest={"mc_blocks_per_commit": 100})
SPANS = (Span(1, 60), Span(61, 120))


def list_files(lake_dir: Path) -> set[str]:
    """Return the paths of the contract files; they contain digests."""
    return {file.path for file in read_state(lake_dir).files if file.table in NAMES}


def bring(node: Path, lake_dir: Path, *spans: Span, settings: IngestSections = SMALL) -> None:
    """Ingest ranges of a node into a lake, one run each."""
    for span in spans:
        ingest_node(node, lake_dir, settings, span.first, span.last)


@pytest.fixture(scope="module")
def in_order(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake_dir = tmp_path_factory.mktemp("in-order")
    bring(demo_node, lake_dir, *SPANS)
    return lake_dir


def test_a_rebuild_changes_nothing(in_order: Path) -> None:
    files = list_files(in_order)
    assert len(files) > 10
    done: list[tuple[int, int]] = []
    scope = Scope(on_range=lambda *counts: done.append(counts))
    assert rebuild("contracts", in_order, SMALL, scope) is None
    assert done == [(1, 2), (2, 2)]
    assert list_files(in_order) == files


def test_ranges_out_of_order_give_the_same(demo_node: Path, in_order: Path, tmp_path: Path) -> None:
    bring(demo_node, tmp_path, *reversed(SPANS))
    assert list_files(tmp_path) == list_files(in_order)


def test_a_lake_without_contracts_gets_them_later(
    demo_node: Path, in_order: Path, tmp_path: Path
) -> None:
    settings = msgspec.structs.replace(
        SMALL, ingest=msgspec.structs.replace(SMALL.ingest, detect_contracts=False)
    )
    bring(demo_node, tmp_path, *SPANS, settings=settings)
    assert list_files(tmp_path) == set()
    commit = rebuild("contracts", tmp_path, settings)
    assert commit is not None
    assert {file.path for file in commit.added} == list_files(in_order) == list_files(tmp_path)


class Parts(Spread):
    """This process, which derives all parts sequentially."""

    def __init__(self, count: int) -> None:
        self.count = count


def test_parts_of_the_accounts_give_the_same(
    demo_node: Path, in_order: Path, tmp_path: Path
) -> None:
    bring(demo_node, tmp_path, SPANS[0])
    state, place = read_state(tmp_path), list_places(read_state(in_order))[1]
    files = [file for file in read_state(in_order).files if read_place(file.path) == place]
    rows = {file.table: read_rows(in_order, file) for file in files if file.table not in NAMES}

    def derive(count: int) -> dict[str, pa.Table]:
        with (
            closing(CellFinder(tmp_path, SMALL)) as cells,
            closing(ContractFinder(tmp_path, SMALL, cells)) as finder,
            closing(open_finder(tmp_path, SMALL)),
        ):
            finder.spread = Parts(count)
            found = finder(state, rows, place).files
            return {file.table: sort_rows(file.rows, TABLES[file.table]) for file in found}

    whole = derive(1)
    assert whole.keys() == NAMES
    assert sum(each.num_rows > 0 for each in whole.values()) > 3
    for count in (2, 7, 256):
        assert derive(count) == whole


def test_no_lake(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFound):
        rebuild("contracts", tmp_path, SMALL)
