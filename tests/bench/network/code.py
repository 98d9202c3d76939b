"""Genuine contract code, from the demo node, for the accounts of a synthetic network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.bench.blocks import read_packs, unpack_demo
from tonlake.ingest.decode.block.account import read_account
from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.block.state import iter_shard_accounts, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft_cell
from tonlake.ingest.decode.cell.exotic import ORDINARY
from tonlake.ingest.decode.cell.tree import CellTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WALLET_V3 = "84dafa449f98a6987789ba232358072bc0f76dc4524002a5d0918b9a75d2d599"
WALLET_V4 = "feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0"
WALLET_V5 = "20834b7b72b112147e1b2fb457b84e74d1a30f04f737d4f62a668e9552d2b72f"
JETTON_MASTER = "9a0f98dd6fbf225eef8165e4e64417ee931f7eea000653439e7b5dcdc0644cd6"
JETTON_WALLET = "beb0683ebeb8927fe9fc8ec0a18bc7dd17899689825a121eab46c5a3a860d0ce"
NEEDED = frozenset({WALLET_V3, WALLET_V4, WALLET_V5, JETTON_MASTER, JETTON_WALLET})


class Part(NamedTuple):
    """A tree of cells that many states share: code, or the content of a jetton."""

    tree: CellTree
    root: int

    @property
    def hash(self) -> bytes:
        """Hash of the cell."""
        return self.tree.hash(self.root)

    @property
    def depth(self) -> int:
        """Depth of the cell."""
        return self.tree.depth(self.root)


class Codes(NamedTuple):
    """Codes by their hash in hex, and the content of a jetton."""

    by_hash: dict[str, Part]
    content: Part
    plain: Part
    """Code of two bytes, which does nothing: that of contracts of no standard."""


def read_codes(scratch: Path) -> Codes:
    """Find the codes in the first states of the demo node that have them.

    Raises:
        ValueError: one of them is not there.
    """
    found: dict[str, Part] = {}
    content = None
    for tree, code, data in _iter_states(scratch):
        name = tree.hash(code).hex()
        if name == JETTON_MASTER and content is None and not tree.level_mask(data):
            content = _copy(tree, tree.refs(data)[0])
        if name in NEEDED and name not in found:
            found[name] = _copy(tree, code)
    if content is None or NEEDED - found.keys():
        raise ValueError(f"the demo node lacks codes: {sorted(NEEDED - found.keys())}")
    plain = CellTree()
    return Codes(found, content, Part(plain, CellBuilder(plain).store_uint(0xFF00, 16).end()))


def _iter_states(scratch: Path) -> Iterator[tuple[CellTree, int, int]]:
    """Yield code and data of each state whose code is in a block."""
    for raw in read_packs(unpack_demo(scratch)):
        tree = parse_boc(raw.data)
        state = tree.refs(read_parts(tree).state_update)[1]
        for entry in iter_shard_accounts(tree, read_state(tree, state).accounts):
            if tree.kind(entry.cell) != ORDINARY:
                continue
            account = read_account(tree, entry.cell)
            if account.code is None or account.data is None or tree.level_mask(account.code):
                continue
            yield tree, account.code, account.data


def _copy(tree: CellTree, cell: int) -> Part:
    own = CellTree()
    return Part(own, graft_cell(own, tree, cell))
