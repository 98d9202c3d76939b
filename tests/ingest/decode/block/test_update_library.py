"""Public libraries: published, changed and removed, seen through updates as the node makes them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_hashmap, store_hashmap
from tests.ingest.networks import Network
from tests.ingest.updates import make_update
from tonlake.ingest.decode.block.state import read_library_changes
from tonlake.ingest.decode.cell.boc import CellTree
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import assemble_boc

Libraries = dict[int, tuple[int, ...]]
"""Number of a library -> its publishers."""


def test_the_published_library(main: Network, frozen: Network) -> None:
    for network in (main, frozen):
        librarian = next(
            contract for contract in network.summary["contracts"] if contract["kind"] == "librarian"
        )
        (row,) = network.rows("libraries")
        assert row["present"]
        assert [f"-1:{account.hex()}" for account in row["publishers"]] == [librarian["address"]]
        assert assemble_boc(row["hash"], network.cells)


def _build_library(tree: CellTree, number: int) -> int:
    """Build a library of two cells: with children it can be pruned."""
    leaf = CellBuilder(tree).store_uint(number, 32).end()
    return CellBuilder(tree).store_uint(number, 16).store_ref(leaf).end()


def _store_library(number: int, publishers: tuple[int, ...]) -> Callable[[CellBuilder], object]:
    def store(builder: CellBuilder) -> None:
        builder.store_uint(0, 2).store_ref(_build_library(builder.tree, number))
        store_hashmap(builder, dict.fromkeys(publishers, lambda _: None), 256)

    return store


def _build_state(tree: CellTree, seqno: int, libraries: Libraries) -> int:
    """Build a masterchain state with nothing but public libraries."""
    entries = {
        int.from_bytes(tree.hash(_build_library(tree, number)), "big"): _store_library(
            number, publishers
        )
        for number, publishers in libraries.items()
    }
    root = build_hashmap(tree, entries, 256) if entries else None
    totals = CellBuilder(tree).store_uint(seqno, 128)
    for _ in range(2):
        totals.store_coins(0).store_bit(0)
    totals.store_maybe_ref(root).store_bit(0)
    empty = CellBuilder(tree).end()
    state = CellBuilder(tree).store_uint(0x9023AFE2, 32).store_int(-239, 32)
    state.store_uint(0, 8).store_int(-1, 32).store_uint(0, 64).store_uint(seqno, 32)
    state.store_uint(0, 32 + 32 + 64 + 32).store_ref(empty).store_bit(0).store_ref(empty)
    return state.store_ref(totals.end()).store_bit(0).end()


def _changes(before: Libraries, after: Libraries, *, pruned: bool) -> list[tuple[int, bool]]:
    """Return the libraries that changed, as number and presence; checks publishers and cells."""
    tree = CellBuilder().tree
    old, new = _build_state(tree, 1, before), _build_state(tree, 2, after)
    if pruned:
        old, new = make_update(tree, old, new)
    rows, contents = read_library_changes(tree, old, new, 2)
    numbers = {tree.hash(_build_library(tree, n)): n for n in before.keys() | after.keys()}
    found = []
    for mc_seqno, key, present, publishers in rows:
        assert mc_seqno == 2
        number = numbers[key]
        wanted = sorted(after[number]) if present else []
        assert [int.from_bytes(publisher, "big") for publisher in publishers] == wanted
        found.append((number, present))
    assert [tree.hash(cell, 0) for cell in contents] == [row[1] for row in rows if row[2]]
    return sorted(found)


PUBLISHERS = st.sets(st.integers(1, 5), min_size=1, max_size=2).map(tuple)
LIBRARIES = st.dictionaries(st.integers(1, 12), PUBLISHERS, max_size=6)


def _expect(before: Libraries, after: Libraries) -> list[tuple[int, bool]]:
    changed = [(n, True) for n in after if set(before.get(n, ())) != set(after[n])]
    return sorted(changed + [(n, False) for n in before if n not in after])


@given(LIBRARIES, LIBRARIES)
def test_whole_states_show_every_change(before: Libraries, after: Libraries) -> None:
    assert _changes(before, after, pruned=False) == _expect(before, after)


@given(LIBRARIES, LIBRARIES)
def test_updates_show_all_that_is_published(before: Libraries, after: Libraries) -> None:
    """Of a removed library an update may show nothing; a library that stays is never removed."""
    found = _changes(before, after, pruned=True)
    expected = _expect(before, after)
    assert {change for change in expected if change[1]} <= set(found)
    assert {change for change in found if not change[1]} <= set(expected)
