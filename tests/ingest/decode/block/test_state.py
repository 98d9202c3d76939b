"""Tops of shard states, whole and on both sides of an update."""

import base64
import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.conftest import read_lines
from tests.ingest.hashmaps import build_currencies, build_hashmap, store_hashmap
from tests.ingest.networks import Cells, Network, Row, bundle_of, find_cells
from tests.ingest.updates import end_proof, end_pruned, end_update, iter_cells, make_update, prune
from tonlake.ingest.assemble.statecell import CellFinder, CurrencyRegistry
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundle, decode_bundles, decode_in_python
from tonlake.ingest.decode.block.header import read_header, read_parts
from tonlake.ingest.decode.block.state import (
    NONEXIST,
    NONEXIST_HASH,
    CellAt,
    ParsedAccount,
    StateAt,
    StateCells,
    Touched,
    decode_update,
    iter_shard_accounts,
    make_row,
    read_account,
    read_config,
    read_library_changes,
    read_state,
    read_state_sides,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.tree import LIBRARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import Row as RowTuple
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.decode.wholestate import decode_states
from tonlake.ingest.errors import BocError, DecodeError, IngestError, MissingCell
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.celldb import open_celldb
from tonlake.lake.schema import ACCOUNT_STATES

SPLIT_STATE = 0x5F327DA5


def test_both_states_before_a_merge(main: Network) -> None:
    """The old side of a block after a merge is a split_state of the blocks it names."""
    merged = {
        (fact["workchain"], fact["shard"], fact["seqno"])
        for fact in main.facts("blocks")
        if fact["after_merge"]
    }
    blocks = [raw for bundle in main.bundles for raw in bundle.blocks]
    blocks = [raw for raw in blocks if (raw.id.workchain, raw.id.shard, raw.id.seqno) in merged]
    assert len(blocks) == main.summary["counts"]["blocks_after_merge"]
    for raw in blocks:
        tree = parse_boc(raw.data, check_crc=False)
        old, new = tree.links[read_parts(tree).state_update]
        left, right = read_state_sides(tree, old)
        half = (raw.id.shard & -raw.id.shard) >> 1
        assert (left.shard, right.shard) == (_sign(raw.id.shard - half), _sign(raw.id.shard + half))
        assert max(left.seqno, right.seqno) == raw.id.seqno - 1
        assert read_state(tree, new).seqno == raw.id.seqno


def _sign(shard: int) -> int:
    return (shard + 2**63) % 2**64 - 2**63


def test_nested_split_states_are_refused() -> None:
    builder = CellBuilder()
    cell = builder.store_uint(SPLIT_STATE, 32).end()
    for _ in range(1000):
        outer = CellBuilder(builder.tree).store_uint(SPLIT_STATE, 32)
        cell = outer.store_ref(cell).store_ref(cell).end()
    with pytest.raises(DecodeError, match="shard state"):
        read_state_sides(builder.tree, cell)


def test_a_zero_state_of_a_workchain(demo: Network) -> None:
    tree = parse_boc(next((demo.db / "archive" / "states").glob("zerostate_0_*")).read_bytes())
    state = read_state(tree, tree.roots[0])
    assert (state.workchain, state.shard, state.seqno) == (0, -(2**63), 0)
    assert list(iter_shard_accounts(tree, state.accounts)) == []
    assert read_config(tree, state) is None


AT = StateAt(0, -(1 << 63), 7, 9, 1_700_000_000)
COINS = LT = st.integers(0, 2**63 - 1)
HASH = st.binary(min_size=32, max_size=32)


def _store_address(builder: CellBuilder, form: str, data: st.DataObject, depths: range) -> None:
    anycast = data.draw(st.none() | st.sampled_from(depths))
    builder.store_uint(0b10 if form == "std" else 0b11, 2).store_bit(anycast is not None)
    if anycast is not None:
        builder.store_uint(anycast, 5).store_uint(0, anycast)
    if form == "std":
        builder.store_int(-1, 8).store_bytes(bytes(range(32)))
    else:
        bits = data.draw(st.integers(0, 64))
        builder.store_uint(bits, 9).store_int(5, 32).store_uint(0, bits)


def _build_parts(tree: CellTree, state: ParsedAccount, data: st.DataObject) -> ParsedAccount:
    """Give an active state some code, data and library cells."""
    cells = st.none() | st.binary(max_size=20)
    parts = {}
    for name in ("code", "data", "library"):
        content = data.draw(cells)
        if content is not None:
            parts[name] = CellBuilder(tree).store_bytes(content).end()
    return msgspec.structs.replace(state, **parts)


def _store_state(builder: CellBuilder, state: ParsedAccount) -> None:
    if state.account_status == "uninit":
        builder.store_uint(0, 2)
    elif state.account_status == "frozen":
        assert state.frozen_hash is not None
        builder.store_uint(1, 2).store_bytes(state.frozen_hash)
    else:
        builder.store_bit(1)
        builder.store_bit(state.fixed_prefix_length is not None)
        if state.fixed_prefix_length is not None:
            builder.store_uint(state.fixed_prefix_length, 5)
        builder.store_bit(state.special_tick is not None)
        if state.special_tick is not None and state.special_tock is not None:
            builder.store_bit(state.special_tick).store_bit(state.special_tock)
        for cell in (state.code, state.data, state.library):
            builder.store_maybe_ref(cell)


def _build_account(
    tree: CellTree,
    state: ParsedAccount,
    extra: tuple[str, int],
    data: st.DataObject,
    depths: range = range(1, 31),
) -> int:
    builder = CellBuilder(tree).store_bit(1)
    _store_address(builder, data.draw(st.sampled_from(["std", "var"])), data, depths)
    assert state.storage_cells is not None
    assert state.storage_bits is not None
    assert state.storage_last_paid is not None
    assert state.storage_last_trans_lt is not None
    builder.store_var_uint(state.storage_cells, 3).store_var_uint(state.storage_bits, 3)
    form, value = extra
    if form == "public_cells":
        builder.store_var_uint(value, 3)
    elif form == "dict_hash":
        builder.store_uint(1, 3).store_uint(value, 256)
    else:
        builder.store_uint(0, 3)
    builder.store_uint(state.storage_last_paid, 32)
    builder.store_bit(state.storage_due_payment is not None)
    if state.storage_due_payment is not None:
        builder.store_coins(state.storage_due_payment)
    builder.store_uint(state.storage_last_trans_lt, 64).store_coins(state.balance)
    builder.store_maybe_ref(state.extra_currencies)
    _store_state(builder, state)
    try:
        return builder.end()
    except BocError:  # an account whose every field is as long as can be fits in no cell
        reject()


@st.composite
def states(draw: st.DrawFn) -> ParsedAccount:
    """Draw the fields of an account that exists, without its cells."""
    status = draw(st.sampled_from(["uninit", "frozen", "active"]))
    ticks = draw(st.none() | st.tuples(st.booleans(), st.booleans()))
    is_active = status == "active"
    return ParsedAccount(
        status,
        balance=draw(COINS),
        frozen_hash=draw(HASH) if status == "frozen" else None,
        fixed_prefix_length=draw(st.none() | st.integers(0, 31)) if is_active else None,
        special_tick=ticks[0] if ticks and is_active else None,
        special_tock=ticks[1] if ticks and is_active else None,
        storage_cells=draw(st.integers(0, 2**48 - 1)),
        storage_bits=draw(st.integers(0, 2**48 - 1)),
        storage_last_paid=draw(st.integers(0, 2**32 - 1)),
        storage_due_payment=draw(st.none() | COINS),
        storage_last_trans_lt=draw(LT),
    )


EXTRAS = st.one_of(
    st.just(("none", 0)),
    st.tuples(st.just("public_cells"), st.integers(1, 2**40)),
    st.tuples(st.just("dict_hash"), st.integers(0, 2**256 - 1)),
)


def draw_account(tree: CellTree, data: st.DataObject) -> int:
    """Return an Account cell of any form, or with an anycast depth that cannot be."""
    state = _build_parts(tree, data.draw(states()), data)
    return _build_account(tree, state, data.draw(EXTRAS), data, range(32))


@given(states(), EXTRAS, st.dictionaries(st.integers(0, 2**32 - 1), COINS), st.data())
def test_every_form_reads_back(
    state: ParsedAccount, extra: tuple[str, int], currencies: dict[int, int], data: st.DataObject
) -> None:
    builder = CellBuilder()
    tree = builder.tree
    if state.account_status == "active":
        state = _build_parts(tree, state, data)
    if currencies:
        root = build_currencies(tree, currencies)
        state = msgspec.structs.replace(state, extra_currencies=root)
    cell = _build_account(tree, state, extra, data)
    version = {"public_cells": 10, "dict_hash": 11}.get(extra[0])
    assert read_account(tree, cell, global_version=version) == state
    if state.account_status == "active":  # the end of its cell says which version it is of
        assert read_account(tree, cell) == state
    row = _make_dict(tree, cell, state)
    amounts = {str(key): str(amount) for key, amount in sorted(currencies.items())}
    assert json.loads(row["extra_currencies"] or "{}") == amounts
    assert (row["extra_currencies_hash"] is None) == (not currencies)
    for column, part in (("code_hash", state.code), ("data_hash", state.data)):
        assert row[column] == (None if part is None else tree.hash(part))


def _make_dict(tree: CellTree, cell: int, state: ParsedAccount) -> dict[str, Any]:
    """Make the row as Arrow takes it."""
    row = make_row(tree, AT, Touched(bytes(32), 5, b"\1" * 32, tree.hash(cell)), state)
    schema = ACCOUNT_STATES.arrow
    arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
    made: dict[str, Any] = pa.Table.from_arrays(arrays, schema=schema).to_pylist()[0]
    return made


def test_account_none_is_the_state_of_a_missing_account() -> None:
    builder = CellBuilder().store_bit(0)
    cell = builder.end()
    assert read_account(builder.tree, cell) == NONEXIST
    assert builder.tree.hash(cell) == NONEXIST_HASH
    row = _make_dict(builder.tree, cell, NONEXIST)
    assert (row["account_status"], row["balance"], row["code_hash"]) == ("nonexist", 0, None)


@given(states(), st.data())
def test_bits_left_over_are_refused(state: ParsedAccount, data: st.DataObject) -> None:
    tree = CellBuilder().tree
    cell = _build_account(tree, state, ("none", 0), data)
    longer = CellBuilder(tree).store_slice(tree.slice(cell)).store_bit(1).end()
    with pytest.raises(IngestError):
        read_account(tree, longer)


@given(st.binary(max_size=120), st.integers(0, 4))
def test_any_cell_is_read_or_refused(content: bytes, kids: int) -> None:
    builder = CellBuilder()
    leaf = CellBuilder(builder.tree).end()
    builder.store_bytes(content)
    for _ in range(kids):
        builder.store_ref(leaf)
    cell = builder.end()
    try:
        state = read_account(builder.tree, cell)
    except IngestError:
        return
    assert state.account_status in {"uninit", "frozen", "active", "nonexist"}


def test_recorded_accounts_decode_to_their_recorded_fields(shared: Path) -> None:
    path = shared / "data" / "accounts" / "mainnet_0_71398501_prestates.jsonl.zst"
    lines = read_lines(path)
    for line in lines:
        tree = parse_boc(base64.b64decode(line["shard_account_boc"]))
        entry = tree.slice(tree.roots[0])
        cell, last_hash, last_lt = entry.load_ref(), entry.load_bytes(32), entry.load_uint(64)
        row = _make_dict(tree, cell, read_account(tree, cell))
        expected = line["expected"]
        assert tree.hash(cell).hex() == line["account_root_hash"]
        assert last_lt == expected["last_trans_lt"]
        assert last_hash.hex() == expected["last_trans_hash"]
        assert str(row["balance"]) == expected["balance"]
        assert row["account_status"] == expected["status"]
        assert row["code_hash"] == base64.b64decode(expected["code_hash"])
        assert row["data_hash"] == base64.b64decode(expected["data_hash"])
    assert len(lines) == 89


MAX_MERKLE_DEPTH = 2
KINDS = ("plain", "fork", "library", "proof", "update", "pruned")


class _Grower:
    """Draws a tree of cells as a state may hold it: Merkle cells, pruned branches below them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.tree = CellBuilder().tree
        self.left = 30

    def grow(self, depth: int, kinds: tuple[str, ...] = KINDS) -> int:
        self.left -= 1
        allowed = [kind for kind in kinds if self._fits(kind, depth)]
        kind = self.draw(st.sampled_from(allowed))
        tree = self.tree
        if kind == "library":
            content = self.draw(st.binary(min_size=32, max_size=32))
            return CellBuilder(tree).store_uint(LIBRARY, 8).store_bytes(content).end(exotic=True)
        if kind == "proof":
            return end_proof(tree, self.grow(depth + 1))
        if kind == "update":
            return end_update(tree, self.grow(depth + 1), self.grow(depth + 1))
        if kind == "pruned":
            mask = self.draw(st.integers(1, (1 << depth) - 1))
            count = mask.bit_count()
            hashes = st.lists(st.binary(min_size=32, max_size=32), min_size=count, max_size=count)
            depths = st.lists(st.integers(0, 100), min_size=count, max_size=count)
            return end_pruned(tree, mask, self.draw(hashes), self.draw(depths))
        builder = CellBuilder(tree).store_bytes(self.draw(st.binary(max_size=3)))
        for _ in range(self.draw(st.integers(1, 4)) if kind == "fork" else 0):
            builder.store_ref(self.grow(depth))
        return builder.end()

    def _fits(self, kind: str, depth: int) -> bool:
        if kind == "pruned":
            return depth > 0
        if kind in {"proof", "update"}:
            return depth < MAX_MERKLE_DEPTH and self.left > 0
        return kind != "fork" or self.left > 0


@st.composite
def whole_states(draw: st.DrawFn) -> tuple[CellTree, int]:
    """Draw a whole state: a tree of level 0 whose root has children."""
    grower = _Grower(draw)
    root = grower.grow(0, ("fork", "proof", "update"))
    return grower.tree, root


def _keep(tree: CellTree, root: int) -> tuple[Cells, set[bytes]]:
    rows: list[RowTuple] = []
    pruned = StateCells(rows).keep(tree, [(root, 0)], 1)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (row[2], row[3]) for row in rows}, pruned


@given(whole_states(), st.data())
def test_two_updates_give_the_complete_state(
    state: tuple[CellTree, int], data: st.DataObject
) -> None:
    """What one update prunes and another shows comes together to the very bytes of the state."""
    tree, root = state
    places = [at for at in iter_cells(tree, [(root, 0)]) if at[0] != root]
    cut = data.draw(st.sets(st.sampled_from(places), min_size=1))
    shown = prune(tree, (root, 0), cut, {})
    assert tree.hash(shown, 0) == tree.hash(root)
    proof = end_proof(tree, shown)
    block = parse_boc(serialize_boc(tree, [proof]))
    cells, pruned = _keep(block, block.links[block.roots[0]][0])
    earlier, _ = _keep(tree, root)
    assert pruned <= earlier.keys()
    for cell_hash in cells.keys() & earlier.keys():
        assert cells[cell_hash] == earlier[cell_hash]
    assert cells.keys() <= earlier.keys()
    if pruned - cells.keys():
        with pytest.raises(MissingCell):
            assemble_boc(tree.hash(root), cells)
    # Only what the update prunes is taken from before, and all that hangs on it.
    missing = {at for at in places if tree.hash(at[0]) in pruned}
    below = {tree.hash(cell) for cell, _ in iter_cells(tree, missing)}
    together = {key: earlier[key] for key in below} | cells
    assert assemble_boc(tree.hash(root), together) == serialize_boc(tree, [root])


def test_the_same_pruned_cell_is_of_the_update_or_of_the_state() -> None:
    """At depth 0 a branch of level 1 was cut by the update, under a Merkle proof it is state."""
    tree = CellBuilder().tree
    branch = end_pruned(tree, 1, [b"\7" * 32], [3])
    proof = end_proof(tree, branch)
    root = CellBuilder(tree).store_ref(branch).store_ref(proof).end()
    cells, pruned = _keep(tree, root)
    assert pruned == {b"\7" * 32}
    assert tree.hash(branch) in cells
    assert cells[tree.hash(proof)] == (tree.cells[proof], [tree.hash(branch)])
    assert cells[tree.hash(root, 0)] == (b"\2\0", [b"\7" * 32, tree.hash(proof)])


def test_a_cell_is_kept_once_for_all_blocks() -> None:
    builder = CellBuilder().store_uint(5, 8)
    cell = builder.end()
    rows: list[RowTuple] = []
    cells = StateCells(rows)
    cells.keep(builder.tree, [(cell, 0)], 1)
    cells.keep(builder.tree, [(cell, 0), (cell, 0)], 2)
    assert rows == [(builder.tree.hash(cell), 1, b"\0\2\5", [])]


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
    cells = pa.concat_tables([each["state_cells"] for each in (network.zero, tables)])
    tables["account_states"] = CurrencyRegistry(CellFinder(tmp_path, IngestSections())).complete(
        tables | {"state_cells": cells}
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
    old, _ = tree.links[read_parts(tree).state_update]
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
    bundles = [bundle_of((folder / f"{seqno}.boc").read_bytes()) for seqno in range(2660, 2691)]
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


def test_a_touched_account_without_a_state_is_an_error(demo: Network) -> None:
    tree = parse_boc(demo.bundles[0].blocks[0].data)
    rows = RowSet()
    touched = [Touched(b"\3" * 32, 1, b"\4" * 32, b"\5" * 32)]
    with pytest.raises(DecodeError, match=r"account -1:0303.* but the update has none"):
        decode_update(tree, read_header(tree), 1, touched, rows, StateCells(rows["state_cells"]))


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
