"""Extra currencies omitted by blocks: filled in from the same commit, and from the lake."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.facts import ask
from tests.ingest.hashmaps import build_currencies
from tests.patience import compose
from tonlake.ingest.assemble.statecell import CellFinder, CurrencyRegistry
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import STATE_CELLS

STATES = pa.schema(
    [
        pa.field("extra_currencies", pa.string()),
        pa.field("extra_currencies_hash", pa.binary(32)),
    ]
)


def _build_cells(amounts: dict[int, int]) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the root hash of a dictionary, and its cells as rows."""
    tree = CellBuilder().tree
    root = build_currencies(tree, amounts)
    rows = []
    for cell in range(tree.count):
        packed, refs = pack_cell(tree, cell)
        rows.append({"hash": tree.hash(cell), "mc_seqno": 1, "cell": packed, "refs": refs})
    return tree.hash(root), rows


def _complete(
    book: CurrencyRegistry,
    states: list[tuple[str | None, bytes | None]],
    cells: list[dict[str, Any]],
) -> list[str | None]:
    rows = [dict(zip(STATES.names, state, strict=True)) for state in states]
    tables = {
        "account_states": pa.Table.from_pylist(rows, STATES),
        "state_cells": pa.Table.from_pylist(cells, STATE_CELLS.arrow),
    }
    texts: list[str | None] = book.complete(tables)["extra_currencies"].to_pylist()
    return texts


def test_rows_are_filled_from_the_cells_of_the_commit(tmp_path: Path) -> None:
    root, cells = _build_cells({7: 1, 239: 2**200, 2**32 - 1: 5})
    book = CurrencyRegistry(CellFinder(tmp_path, IngestSections()))
    text = f'{{"7":"1","239":"{2**200}","{2**32 - 1}":"5"}}'
    states = [(None, root), (None, None), ('{"1":"2"}', b"\1" * 32)]
    assert _complete(book, states, cells) == [text, None, '{"1":"2"}']
    # The next commit of the same run need not bring the cells again.
    assert _complete(book, [(None, root)], []) == [text]


def test_unknown_parents_stay_open(tmp_path: Path) -> None:
    root, cells = _build_cells({1: 1, 2: 2, 3: 3})
    book = CurrencyRegistry(CellFinder(tmp_path, IngestSections()))
    inner = [row for row in cells if row["hash"] == root]
    assert _complete(book, [(None, root)], inner) == [None]
    assert _complete(book, [(None, root)], cells) == ['{"1":"1","2":"2","3":"3"}']


@pytest.fixture(scope="module")
def node(genuine: Callable[[str], tuple[Path, Path]]) -> Path:
    """A node whose accounts have extra currencies."""
    return genuine("celldb-v2")[0]


def _bring(node: Path, lake_dir: Path, span: Span) -> None:
    settings = compose(ingest={"mc_blocks_per_commit": 64, "detect_contracts": False})
    with closing(open_node(node)) as source:
        ingest(source, lake_dir, span, settings)


def _count(lake_dir: Path) -> list[tuple[bool, int, int]]:
    """Return the rows with a dictionary, and those that show it, before and after block 200."""
    return ask(
        lake_dir,
        "select mc_seqno > 200, count(*), count(extra_currencies) from account_states "
        "where extra_currencies_hash is not null group by all order by all",
    )


def test_a_later_run_finds_them_in_the_lake(node: Path, tmp_path: Path) -> None:
    for span in (Span(1, 200), Span(201, 500)):
        _bring(node, tmp_path, span)
    rows = _count(tmp_path)
    assert [late for late, *_ in rows] == [False, True]
    assert all(count == filled for _, count, filled in rows)


def test_an_earlier_range_completes_later_ones(node: Path, tmp_path: Path) -> None:
    _bring(node, tmp_path, Span(201, 500))
    ((_, count, filled),) = _count(tmp_path)
    assert filled < count
    rebuild_index(tmp_path)
    _bring(node, tmp_path, Span(1, 200))
    assert all(count == filled for _, count, filled in _count(tmp_path))
    # The look-ups of the rows are rebuilt.
    assert read_state(tmp_path).segments == ()
    rebuild_index(tmp_path)
    assert not verify_lake(tmp_path).damage
    number = read_state(tmp_path).number
    _bring(node, tmp_path, Span(1, 500))
    assert read_state(tmp_path).number == number
