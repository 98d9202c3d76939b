"""Members of pools: those of nominators, of Whales and of liquid staking, read from their data."""

from typing import Any

from tonlake.api.chain.configuration import decode_members
from tonlake.api.explorer.contract.fact import Fact
from tonlake.api.explorer.contract.terms import MAX_MEMBERS, list_members
from tonlake.api.explorer.words.body import unwrap
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc

TON = 10**9


def make_members(*stakes: tuple[int, int, int, int]) -> bytes:
    """Return members by account 1, 2 and so on: stake, and what waits, in nanoton."""
    tree = CellTree()

    def store(builder: CellBuilder, at: int) -> object:
        stake, withdraw, deposit, ready = stakes[at]
        builder.store_int(-7, 128).store_coins(stake).store_coins(withdraw).store_bit(0)
        return builder.store_coins(deposit).store_coins(ready)

    entries = [(at + 1, at) for at in range(len(stakes))]
    return serialize_boc(tree, [build_hashmap(tree, entries, 256, store)])


def test_members_of_a_whales_pool() -> None:
    found: Any = decode_members(make_members((5 * TON, 0, 0, 0), (TON, TON, 2 * TON, 1)))
    waiting = {"pending_deposit": "pending", "withdraw": "ready"}
    assert list_members(unwrap(found)["members"].items(), waiting) == [
        Fact("Member", "5 TON", ("0:" + "0" * 63 + "1",)),
        Fact("Member", "1 TON, 2 TON pending, 0.000000001 TON ready", ("0:" + "0" * 63 + "2",)),
    ]


def test_other_data_has_no_members() -> None:
    builder = CellBuilder().store_uint(0, 64)
    assert decode_members(serialize_boc(builder.tree, [builder.end()])) is None


def test_many_members_are_cut() -> None:
    found: Any = decode_members(make_members(*[(TON, 0, 0, 0)] * (MAX_MEMBERS + 5)))
    assert len(list_members(unwrap(found)["members"].items(), {})) == MAX_MEMBERS
    assert list_members([("ab", {"amount": "0 TON"})], {}) == [Fact("Member", "0 TON", ("0:AB",))]
