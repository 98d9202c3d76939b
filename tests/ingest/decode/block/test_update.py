"""Account states from Merkle updates: complete, equal to the node's, and whole without it."""

from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from tests.ingest.networks import Network, Row, find_cells
from tonlake.ingest.assemble.currency import CurrencyRegistry
from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundle, decode_bundles, decode_in_python
from tonlake.ingest.decode.block.header import read_header, read_parts
from tonlake.ingest.decode.block.state import (
    NONEXIST_HASH,
    CellAt,
    StateCells,
    Touched,
    decode_update,
    iter_cells,
    read_account,
    read_state_sides,
)
from tonlake.ingest.decode.cell.boc import CellTree, parse_boc
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.decode.wholestate import decode_states
from tonlake.ingest.errors import DecodeError
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.celldb import open_celldb

CHAIN = "mainnet_mc_2660_2690"


def _last_states(rows: list[Row]) -> dict[tuple[int, bytes], Row]:
    ordered = sorted(rows, key=lambda row: (row["mc_seqno"], row["block_seqno"]))
    return {(row["workchain"], row["account"]): row for row in ordered}


def test_every_touched_account_has_its_state(network: Network) -> None:
    """One row per account and block, with the state hash that its last transaction names."""
    last: dict[tuple[Any, ...], Row] = {}
    for tx in sorted(network.rows("transactions"), key=lambda tx: int(tx["lt"])):
        key = tx["workchain"], tx["account"], tx["shard"], tx["block_seqno"]
        last[key] = tx
    states = [row for row in network.rows("account_states") if row["mc_seqno"]]
    assert len(states) == len(last)
    for state in states:
        key = state["workchain"], state["account"], state["shard"], state["block_seqno"]
        tx = last[key]
        assert state["hash"] == tx["account_state_hash_after"]
        assert (state["last_trans_lt"], state["last_trans_hash"]) == (tx["lt"], tx["hash"])
        assert state["account_status"] == tx["end_status"]
        assert state["utime"] == tx["now"]
        assert state["mc_seqno"] == tx["mc_seqno"]


def test_last_states_equal_the_node_s_answers(network: Network, tmp_path: Path) -> None:
    tables = dict(network.tables)
    tables["account_states"] = CurrencyRegistry(CellFinder(tmp_path, IngestSections())).complete(
        tables | {"state_cells": _join(network)}
    )
    rows = network.zero["account_states"].to_pylist() + tables["account_states"].to_pylist()
    last = _last_states(rows)
    facts = network.facts("accounts")
    for fact in facts:
        workchain, account = fact["address"].split(":")
        if not fact["tx_count"] and fact["status"] == "nonexist":
            assert (int(workchain), bytes.fromhex(account)) not in last
            continue
        row = last[int(workchain), bytes.fromhex(account)]
        assert row["account_status"] == fact["status"]
        assert str(row["balance"]) == fact["balance"]
        assert row["last_trans_lt"] == fact["last_trans_lt"]
        assert row["last_trans_hash"].hex() == fact["last_trans_hash"]
        for name in ("code_hash", "data_hash", "frozen_hash"):
            assert (row[name].hex() if row[name] else None) == fact.get(name), name
        assert row["extra_currencies"] == _currencies(fact)
        _check_storage(row, fact)
    assert len(facts) == network.summary["counts"]["accounts"]


def _join(network: Network) -> pa.Table:
    return pa.concat_tables([network.zero["state_cells"], network.tables["state_cells"]])


def _currencies(fact: dict[str, Any]) -> str | None:
    amounts = fact.get("extra_currencies")
    if not amounts:
        return None
    return "{" + ",".join(f'"{key}":"{amounts[key]}"' for key in sorted(amounts, key=int)) + "}"


def _check_storage(row: Row, fact: dict[str, Any]) -> None:
    if fact["status"] == "nonexist":
        assert row["storage_cells"] is None
        return
    assert row["storage_cells"] == fact["used_cells"]
    assert row["storage_bits"] == fact["used_bits"]
    assert row["storage_last_paid"] == fact["last_paid"]
    assert row["storage_last_trans_lt"] == fact["account_last_trans_lt"]
    due = row["storage_due_payment"]
    assert (None if due is None else str(due)) == fact["due_payment"]


def test_every_state_is_complete_without_the_node(network: Network) -> None:
    """No cell under any state of any block refers to a cell that is not kept."""
    cells = network.cells
    for _, refs in cells.values():
        for ref in refs:
            assert ref in cells
    for row in network.rows("account_states"):
        assert row["hash"] in cells or row["hash"] == NONEXIST_HASH
        for name in ("code_hash", "data_hash", "library_hash"):
            assert row[name] is None or row[name] in cells


def test_states_put_together_have_their_hashes(network: Network) -> None:
    rows = [row for row in network.rows("account_states") if row["hash"] != NONEXIST_HASH]
    for row in rows[:: 1 + len(rows) // 500]:
        tree = parse_boc(assemble_boc(row["hash"], network.cells))
        root = tree.roots[0]
        assert tree.hash(root) == row["hash"]
        state = read_account(tree, root)
        assert state.account_status == row["account_status"]
        assert state.balance == row["balance"]
        for cell, column in ((state.code, "code_hash"), (state.data, "data_hash")):
            assert (None if cell is None else tree.hash(cell)) == row[column]
            if cell is not None:
                part = parse_boc(assemble_boc(row[column], network.cells))
                assert part.hash(part.roots[0]) == row[column]


def test_the_node_has_the_very_same_cells(network: Network) -> None:
    with closing(open_celldb(network.db)) as celldb:
        for cell_hash, (packed, refs) in network.cells.items():
            record = celldb.get(cell_hash)
            assert record is not None
            assert (record.body, record.children) == (packed, refs)


class _Watched(StateCells):
    """Remembers which cells were pruned."""

    pruned: ClassVar[set[bytes]] = set()

    def keep(self, tree: CellTree, roots: Iterable[CellAt], mc_seqno: int) -> set[bytes]:
        pruned = super().keep(tree, roots, mc_seqno)
        _Watched.pruned |= pruned
        return pruned


@pytest.mark.parametrize(
    ("shard", "seqno"), [(1 << 63, 152), (0xC << 60, 634), (0xC << 60, 653), (1 << 63, 1280)]
)
def test_a_cell_out_of_the_shard_s_own_queue_is_kept(
    main: Network, monkeypatch: pytest.MonkeyPatch, shard: int, seqno: int
) -> None:
    """The update prunes it though no account had it: the node saw it in the queue before."""
    raw = next(
        raw
        for bundle in main.bundles
        for raw in bundle.blocks
        if (raw.id.workchain, raw.id.shard % 2**64, raw.id.seqno) == (0, shard, seqno)
    )
    tree = parse_boc(raw.data)
    old, _ = tree.refs(read_parts(tree).state_update)
    accounts = [(state.accounts, 0) for state in read_state_sides(tree, old)]
    known = {tree.hash(cell, depth) for cell, depth in iter_cells(tree, accounts)}
    monkeypatch.setattr("tonlake.ingest.decode.block.block.StateCells", _Watched)
    monkeypatch.setattr(_Watched, "pruned", set())
    bundle = McBundle(1, (raw,))
    kept = find_cells(decode_in_python((bundle,)))
    assert kept == find_cells(decode_bundle(bundle))
    assert len(_Watched.pruned - known) == 1
    assert _Watched.pruned - known <= kept.keys()


def test_blocks_on_a_complete_state_give_later_states(shared: Path) -> None:
    """Mainnet: state 2659 and the blocks after it give every account of states 2670 and 2690."""
    folder = shared / "data" / "chains" / CHAIN
    start = _read_state(folder, 2659)
    bundles = [_read_bundle(folder, seqno) for seqno in range(2660, 2691)]
    tables = decode_bundles(bundles)
    rows = start["account_states"].to_pylist() + tables["account_states"].to_pylist()
    cells = find_cells(start) | find_cells(tables)
    for seqno in (2670, 2690):
        expected = _read_state(folder, seqno)
        last = _last_states([row for row in rows if row["mc_seqno"] <= seqno])
        for row in expected["account_states"].to_pylist():
            mine = last.pop((row["workchain"], row["account"]))
            ours = {name: mine[name] for name in mine if not _is_place(name)}
            assert ours == {name: row[name] for name in row if not _is_place(name)}
            assert assemble_boc(row["hash"], cells)
        assert all(row["account_status"] == "nonexist" for row in last.values())
        assert find_cells(expected).keys() <= cells.keys()
    assert not tables["libraries"].num_rows


def _is_place(name: str) -> bool:
    return name in {"mc_seqno", "block_seqno", "utime", "extra_currencies"}


def _read_state(folder: Path, seqno: int) -> dict[str, pa.Table]:
    return decode_states([parse_boc((folder / f"state_{seqno}.boc").read_bytes())], mc_seqno=seqno)


def _read_bundle(folder: Path, seqno: int) -> McBundle:
    data = (folder / f"{seqno}.boc").read_bytes()
    tree = parse_boc(data)
    block_id = BlockId(-1, -(1 << 63), seqno, tree.hash(tree.roots[0]), sha256(data).digest())
    return McBundle(seqno, (RawBlock(block_id, data),))


def test_a_touched_account_without_a_state_is_an_error(demo: Network) -> None:
    tree = parse_boc(demo.bundles[0].blocks[0].data)
    rows = RowSet()
    touched = [Touched(b"\3" * 32, 1, b"\4" * 32, b"\5" * 32)]
    with pytest.raises(DecodeError, match=r"account -1:0303.* but the update has none"):
        decode_update(
            tree, read_header(tree), 1, touched, rows, StateCells(rows.table("state_cells"))
        )
