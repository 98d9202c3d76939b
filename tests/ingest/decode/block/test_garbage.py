"""Blocks and states with wrong cells raise only this package's errors."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.networks import Network, read_zero_states
from tonlake.ingest.decode.block.config import config_rows
from tonlake.ingest.decode.block.header import read_header, read_shard_tops
from tonlake.ingest.decode.block.state import StateCells, Touched, decode_update
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, MERKLE_UPDATE, PRUNED, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.decode.wholestate import TABLES, decode_states
from tonlake.ingest.errors import IngestError


def _twist(data: bytes, draw: st.DataObject) -> CellTree:
    """Change data or children of some cells, then set all levels and Merkle hashes right."""
    tree = parse_boc(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        cell = draw.draw(st.integers(0, tree.count - 1))
        head = tree.cells[cell]
        if len(head) > 3 and not head[0] & 8:
            at = draw.draw(st.integers(2, len(head) - 2))
            tree.cells[cell] = head[:at] + bytes((draw.draw(st.integers(0, 255)),)) + head[at + 1 :]
        kids = tree.links[cell]
        tree.links[cell] = tuple(draw.draw(st.permutations(kids)))
    return _mend(tree)


def _mend(tree: CellTree) -> CellTree:
    """Rewrite the cells from the last to the first, so that only their meaning is wrong."""
    made = type(tree)()
    places: dict[int, int] = {}
    for cell in range(tree.count - 1, -1, -1):
        kids = tuple(places[kid] for kid in tree.links[cell])
        head, kind, mask = tree.cells[cell], tree.kind(cell), 0
        for kid in kids:
            mask |= made.level_mask(kid)
        if kind == PRUNED:
            mask = head[3]
        elif kind in (MERKLE_PROOF, MERKLE_UPDATE):
            mask >>= 1
            hashes = b"".join(made.hash(kid, 0) for kid in kids)
            depths = b"".join(made.depth(kid, 0).to_bytes(2, "big") for kid in kids)
            head = head[:3] + hashes + depths
        places[cell] = made.append(bytes((head[0] & 0x1F | mask << 5,)) + head[1:], kids)
    return parse_boc(serialize_boc(made, [places[root] for root in tree.roots]))


@pytest.mark.parametrize("mc_seqno", [1, 130])
@given(st.data())
def test_twisted_blocks(demo: Network, mc_seqno: int, data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(demo.bundles[mc_seqno].blocks))
    tree = _twist(raw.data, data)
    accounts = st.sampled_from([row["account"] for row in demo.rows("account_states")[:60]])
    touched = [Touched(data.draw(accounts), 1, bytes(32), bytes(32))]
    rows = RowSet()
    with suppress(IngestError):
        header = read_header(tree)
        with suppress(IngestError):
            read_shard_tops(tree)
        with suppress(IngestError):
            config_rows(tree, 1, 2)
        decode_update(tree, header, 1, [], rows, StateCells(rows.table("state_cells")))
        decode_update(tree, header, 1, touched, rows, StateCells(rows.table("state_cells")))


@given(st.data())
def test_twisted_states(demo: Network, data: st.DataObject) -> None:
    state = data.draw(st.sampled_from(read_zero_states(demo.db)))
    tree = _twist(state.data, data)
    with suppress(IngestError):
        tables = decode_states([tree], mc_seqno=0)
        assert set(tables) == set(TABLES)
