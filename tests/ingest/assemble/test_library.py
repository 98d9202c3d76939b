"""Publishers of libraries, followed through the states of their accounts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.hashmaps import build_hashmap
from tonlake.ingest.assemble.statecell import CellFinder, LibraryRegistry
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.settings import IngestSections
from tonlake.lake.schema import LIBRARIES, STATE_CELLS
from tonlake.lake.settings import LakeSettings

STATES = pa.schema(
    [
        pa.field("workchain", pa.int32()),
        pa.field("account", pa.binary(32)),
        pa.field("mc_seqno", pa.int64()),
        pa.field("library_hash", pa.binary(32)),
    ]
)
ANN, BOB, EVE = (bytes([letter]) * 32 for letter in b"abe")
Change = tuple[int, bytes, bool, list[bytes]]


class _Chain:
    """Tables of one commit under construction."""

    def __init__(self) -> None:
        self.tree = CellBuilder().tree
        self.states: list[tuple[Any, ...]] = []
        self.changes: list[Change] = []

    def library(self, number: int) -> bytes:
        """Return the hash of a synthetic library."""
        return self.tree.hash(CellBuilder(self.tree).store_uint(number, 64).end())

    def hold(self, account: bytes, at: int, numbers: dict[int, bool], workchain: int = -1) -> None:
        """Give an account these libraries, each public or not, after block ``at``."""
        root = None
        if numbers:
            entries = {
                int.from_bytes(self.library(number), "big"): self._store(number, public=public)
                for number, public in numbers.items()
            }
            root = self.tree.hash(build_hashmap(self.tree, entries, 256))
        self.states.append((workchain, account, at, root))

    def _store(self, number: int, *, public: bool) -> Callable[[CellBuilder], object]:
        cell = CellBuilder(self.tree).store_uint(number, 64).end()
        return lambda builder: builder.store_bit(public).store_ref(cell)

    def tables(self) -> dict[str, pa.Table]:
        cells = {}
        for cell in range(self.tree.count):
            packed, refs = pack_cell(self.tree, cell)
            row = {"hash": self.tree.hash(cell), "mc_seqno": 1, "cell": packed, "refs": refs}
            cells[row["hash"]] = row
        states = [dict(zip(STATES.names, state, strict=True)) for state in self.states]
        changes = [dict(zip(LIBRARIES.names, change, strict=True)) for change in self.changes]
        return {
            "account_states": pa.Table.from_pylist(states, STATES),
            "libraries": pa.Table.from_pylist(changes, LIBRARIES.arrow),
            "state_cells": pa.Table.from_pylist(list(cells.values()), STATE_CELLS.arrow),
        }


@pytest.fixture
def chain() -> _Chain:
    return _Chain()


@pytest.fixture
def book(tmp_path: Path) -> LibraryRegistry:
    return LibraryRegistry(tmp_path, LakeSettings(), CellFinder(tmp_path, IngestSections()))


def _complete(book: LibraryRegistry, chain: _Chain, first: int, last: int) -> list[Change]:
    table = book.complete(chain.tables(), first, last)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_a_publisher_that_drops_its_library_removes_it(book: LibraryRegistry) -> None:
    chain = _Chain()
    one = chain.library(1)
    chain.changes = [(2, one, True, [ANN])]
    chain.hold(ANN, 2, {1: True})
    chain.hold(ANN, 4, {1: True, 2: False})
    assert _complete(book, chain, 1, 5) == [(2, one, True, [ANN])]
    later = _Chain()
    later.changes = [(6, BOB, True, [ANN])]
    later.states = [(-1, ANN, 6, chain.states[-1][-1])]  # a dictionary read before, without cells
    later.hold(EVE, 6, {})
    later.hold(ANN, 7, {})
    later.hold(ANN, 8, {})
    assert _complete(book, later, 6, 9) == [(6, BOB, False, []), (7, one, False, [])]
    assert _complete(book, _Chain(), 10, 12) == []


def test_a_library_stays_while_someone_publishes_it(chain: _Chain, book: LibraryRegistry) -> None:
    one = chain.library(1)
    chain.changes = [(2, one, True, [ANN, BOB])]
    chain.hold(ANN, 3, {1: False})
    chain.hold(BOB, 5, {})
    assert _complete(book, chain, 1, 5) == [
        (2, one, True, [ANN, BOB]),
        (3, one, True, [BOB]),
        (5, one, False, []),
    ]


def test_publishers_that_a_block_leaves_out_are_kept(chain: _Chain, book: LibraryRegistry) -> None:
    one = chain.library(1)
    chain.changes = [(2, one, True, [ANN, BOB]), (3, one, True, [EVE])]
    chain.hold(EVE, 3, {1: True})
    assert _complete(book, chain, 1, 3)[1] == (3, one, True, [ANN, BOB, EVE])


def test_a_removal_that_the_block_shows_is_there_once(chain: _Chain, book: LibraryRegistry) -> None:
    one = chain.library(1)
    chain.changes = [(2, one, True, [ANN]), (3, one, False, [])]
    chain.hold(ANN, 3, {})
    assert _complete(book, chain, 1, 3) == [(2, one, True, [ANN]), (3, one, False, [])]


def test_other_workchains_and_unknown_dictionaries_remove_nothing(book: LibraryRegistry) -> None:
    chain = _Chain()
    one = chain.library(1)
    chain.changes = [(2, one, True, [ANN])]
    chain.hold(ANN, 3, {}, workchain=0)
    chain.states.append((-1, ANN, 4, b"\7" * 32))
    assert _complete(book, chain, 1, 4) == [(2, one, True, [ANN])]
