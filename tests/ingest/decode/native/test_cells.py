"""The extension parses, hashes and writes bags of cells like the Python reference."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.damage import flip_any, throw
from tests.ingest.decode.cell.samples import GENERIC, INDEXED, INDEXED_CRC, trees, write_form
from tests.ingest.decode.cell.test_fuzz import list_seeds, mutate
from tests.ingest.networks import Network
from tonlake.ingest.decode.cell import build
from tonlake.ingest.decode.cell import tree as cell_tree
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.decode.cell.writer import canonical_order, serialize_single
from tonlake.ingest.decode.native import hash_root
from tonlake.ingest.errors import BocError

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

LEVELS = range(4)
CASES = 3000
WRITTEN = 30
MAX_BYTES = 600
"""Larger bags of the demo take longer and show nothing else."""


def describe(bag: bytes) -> Any:
    """Return all that a parsed bag shows of its cells, or the words of its error."""
    try:
        tree = parse_boc(bag)
        shown = [tree.cells, tree.links, tree.roots, tree.stored_hashes]
        return [*shown, _list_digests(tree), _list_bags(parse_boc(bag))]
    except BocError as error:
        return str(error)


def _list_digests(tree: CellTree) -> list[tuple[bytes, int]]:
    places = [(cell, level) for cell in range(tree.count) for level in LEVELS]
    return [(tree.hash(*place), tree.depth(*place)) for place in places]


def _list_bags(tree: CellTree) -> list[bytes]:
    """Write the last cells, each as a whole and its second half."""
    last = range(max(0, tree.count - WRITTEN), tree.count)
    whole = [(cell, tree.bit_length(cell), 0) for cell in last if tree.kind(cell) == ORDINARY]
    halves = [(cell, bits // 2, len(tree.links[cell]) // 2) for cell, bits, _ref in whole]
    return build.serialize_rests(tree, whole + halves)


def compare(bag: bytes) -> Any:
    """Describe a bag with and without the extension; return what both show."""
    found = describe(bag)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_tree, "NATIVE", None)
        patch.setattr(build, "NATIVE", None)
        assert describe(bag) == found
    return found


@given(
    trees(),
    st.sampled_from([GENERIC, INDEXED, INDEXED_CRC]),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_sound_bags(
    made: tuple[CellTree, int],
    magic: bytes,
    width: int,
    stored: bool,  # noqa: FBT001 - drawn
    crc: bool,  # noqa: FBT001 - drawn
) -> None:
    tree, root = made
    cells, twins = canonical_order(tree, [root])
    order = sorted({*cells, *twins}, reverse=True)  # a child has a lower number
    bag = write_form(
        tree, order, [root], magic=magic, width=width, offset_width=4, hashes=stored, crc=crc
    )
    assert not isinstance(compare(bag), str)
    if magic == INDEXED_CRC or (magic == GENERIC and crc):
        assert isinstance(compare(bag[:-1] + bytes([bag[-1] ^ 1])), str)


def hash_in_python(bag: bytes) -> bytes | None:
    """Return the root hash of a bag with one root, None if it is damaged."""
    with suppress(BocError):
        tree = parse_boc(bag, check_crc=False)
        return tree.hash(tree.roots[0]) if len(tree.roots) == 1 else None
    return None


def test_damaged_bags(demo: Network) -> None:
    columns = ("transactions", "boc"), ("messages", "body"), ("messages", "init_state")
    bags = {bag for table, name in columns for bag in demo.tables[table][name].to_pylist() if bag}
    seeds = list_seeds(), sorted(bag for bag in bags if len(bag) <= MAX_BYTES)
    found = []
    for dice in throw(CASES, 7):
        bag = dice.choice(dice.choice(seeds))
        bag = mutate(bag, dice) if dice.randrange(3) else flip_any(bag, dice)
        assert hash_root(bag) == hash_in_python(bag), bag.hex()
        found.append(isinstance(compare(bag), str))
    assert 0 < sum(found) < len(found)


def test_bags_of_a_network(network: Network) -> None:
    bags = [block.data for bundle in network.bundles[::50] for block in bundle.blocks]
    assert bags
    assert all(not isinstance(compare(bag), str) for bag in bags)


def test_what_is_no_bytes() -> None:
    assert NATIVE.parse(b"", 1) is None
    assert NATIVE.hashes(b"\xb5\xee\x9c\x72") is None
    with pytest.raises(TypeError):
        NATIVE.parse("text", 1)
    with pytest.raises(TypeError):
        NATIVE.hashes("text")
    bag = serialize_single(b"\0\2\1")
    assert NATIVE.bags(bag, [(0, 8, 0), (0, 9, 0)], 1) == [bag, bag]
    assert not any(NATIVE.bags(bag, [rest], 1) for rest in ((1, 8, 0), (0, 8, 1)))
    for rests in ([(0, 8)], [0], (0, 8, 0)):
        with pytest.raises(TypeError):
            NATIVE.bags(bag, rests, 1)
