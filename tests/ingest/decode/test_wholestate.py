"""Whole states branch by branch: the same rows however they are split, in C and in Python."""

from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.ingest.networks import Network, find_cells, read_zero_states
from tests.ingest.statefiles import write_states
from tonlake.ingest.blocks import ZeroState
from tonlake.ingest.decode import wholestate
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import Loaded, PackedCells, assemble_boc
from tonlake.ingest.errors import BlockCorrupt, DecodeError
from tonlake.ingest.source.node import statefile
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.statefile import NamedStates, OpenState, StateFiles
from tonlake.lake.schema import TABLES as SCHEMA

LAST = 99
BRANCH_ACCOUNTS = 6


@pytest.fixture(scope="module")
def made(
    demo_node: Path, named: NamedStates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenState]:
    """The state of a shard, in a file."""
    target = tmp_path_factory.mktemp("states") / "node"
    write_states(demo_node, target, LAST)
    with StateFiles(target).open(named, named.states[-1]) as opened:
        yield opened


@pytest.fixture(scope="module")
def made_celldb(demo_node: Path, named: NamedStates) -> Iterator[OpenState]:
    """The same state, in celldb."""
    with (
        closing(CellDb(demo_node / "celldb")) as celldb,
        statefile.CellDbStates(celldb).open(named, named.states[-1]) as opened,
    ):
        yield opened


@pytest.fixture
def small_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wholestate, "BRANCH_ACCOUNTS", BRANCH_ACCOUNTS)
    monkeypatch.setattr(wholestate, "_SAMPLED", 4)


def read_all(
    opened: OpenState, branches: list[wholestate.Branch], **options: Any
) -> list[dict[str, Any]]:
    """Return the rows of all accounts by account."""
    at, rows = opened.top.describe(LAST), []
    for branch in branches:
        for each, loaded in wholestate.load_branch(opened.parts[0].store, branch):
            given: dict[str, Any] = {"skip": (), "only_active": False} | options
            count, tables = wholestate.decode_accounts(each, loaded, at, **given)
            found = tables["account_states"].to_pylist()
            assert count == len(found) or options
            rows += found
    return rows


@pytest.mark.usefixtures("small_branches")
def test_a_branch_has_few_accounts_wherever_it_is_cut(made: OpenState) -> None:
    (part,) = made.parts
    branches = wholestate.cut_branches(part.store, part.accounts)
    ends = [each.ends for each in branches]
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
    rows = read_all(made, branches)
    assert rows == read_all(made, [part.accounts])
    assert len(rows) == len({row["account"] for row in rows}) == 50
    assert rows == sorted(rows, key=lambda row: row["account"])
    assert BRANCH_ACCOUNTS / 3 < len(rows) / len(branches) < BRANCH_ACCOUNTS * 2


def test_a_branch_that_memory_cannot_hold_is_read_in_parts(
    made: OpenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = made.parts
    whole = read_all(made, [part.accounts])
    monkeypatch.setattr(wholestate, "MAX_CELLS", 100)
    parts = list(wholestate.load_branch(part.store, part.accounts))
    assert len(parts) > 3
    assert max(len(loaded.handles) for _, loaded in parts) <= 100
    assert read_all(made, [part.accounts]) == whole


def decode_both(
    store: PackedCells, branch: wholestate.Branch, opened: OpenState, **options: Any
) -> tuple[wholestate.Tables, wholestate.Tables]:
    loaded = Loaded(store, [branch.cell])
    at = opened.top.describe(LAST)
    count, ours = wholestate.decode_accounts(branch, loaded, at, **options)
    expected, theirs = wholestate._decode_slowly(branch, loaded, at, **options)
    assert count == expected
    return ours, theirs


@pytest.mark.usefixtures("small_branches")
@pytest.mark.parametrize("only_active", [False, True])
def test_the_extension_gives_the_rows_of_python(made: OpenState, *, only_active: bool) -> None:
    (part,) = made.parts
    for branch in wholestate.cut_branches(part.store, part.accounts)[:5]:
        some = [row["account"] for row in read_all(made, [branch])[::7]]
        for skip in ([], some):
            options = {"skip": skip, "only_active": only_active}
            ours, theirs = decode_both(part.store, branch, made, **options)
            assert ours == theirs


def test_celldb_gives_the_rows_of_a_file(made: OpenState, made_celldb: OpenState) -> None:
    rows = read_all(made_celldb, [made_celldb.parts[0].accounts])
    assert rows == read_all(made, [made.parts[0].accounts])


def test_zero_states_are_what_the_first_blocks_start_from(network: Network) -> None:
    states = {state.workchain: state.root_hash for state in read_zero_states(network.db)}
    first = {h.workchain: old for h, old in network.headers if h.seqno == 1}
    assert states == first


def test_zero_state_rows(network: Network) -> None:
    tables = network.zero
    assert set(tables) == set(wholestate.TABLES)
    for name, table in tables.items():
        assert table.schema == SCHEMA[name].arrow
        assert set(table["mc_seqno"].to_pylist()) <= {0}
    cells = find_cells(tables)
    rows = tables["account_states"].to_pylist()
    assert rows
    for row in rows:
        assert (row["block_seqno"], row["last_trans_lt"]) == (0, 0)
        assert row["last_trans_hash"] == bytes(32)
        assert assemble_boc(row["hash"], cells)


def test_accounts_of_zero_states_are_the_first_orig_states(network: Network) -> None:
    """The first transaction of such an account starts from the very hash of the zero state."""
    first = {}
    for tx in sorted(network.rows("transactions"), key=lambda tx: -int(tx["lt"])):
        first[tx["workchain"], tx["account"]] = tx["account_state_hash_before"]
    zero = {
        (row["workchain"], row["account"]): row["hash"]
        for row in network.zero["account_states"].to_pylist()
    }
    common = zero.keys() & first.keys()
    assert common
    assert {key: zero[key] for key in common} == {key: first[key] for key in common}


def test_a_persistent_state_keeps_last_transactions(shared: Path) -> None:
    path = shared / "data" / "chains" / "mainnet_mc_2660_2690" / "state_2690.boc"
    tables = wholestate.decode_states([parse_boc(path.read_bytes())], mc_seqno=2690)
    rows = tables["account_states"].to_pylist()
    assert {row["mc_seqno"] for row in rows} == {2690}
    assert {row["block_seqno"] for row in rows} == {2690}
    assert max(row["last_trans_lt"] for row in rows) < 2988000012
    config = {row["param"]: row for row in tables["config_params"].to_pylist()}
    assert {0, 1, 15, 34} <= config.keys()
    assert config[34]["utime"] == 1573830322


def test_wrong_hashes_are_named(demo: Network) -> None:
    state = read_zero_states(demo.db)[0]
    broken = msgspec.structs.replace(state, data=state.data[:-1] + b"\0")
    with pytest.raises(BlockCorrupt, match=r"\(-1,zerostate\).*file hash"):
        wholestate.decode_zero_states([broken])
    broken = msgspec.structs.replace(state, root_hash=bytes(32))
    with pytest.raises(BlockCorrupt, match="root hash"):
        wholestate.decode_zero_states([broken])


def test_a_block_is_no_state(demo: Network) -> None:
    data = demo.bundles[0].blocks[0].data
    tree = parse_boc(data)
    state = ZeroState(-1, tree.hash(tree.roots[0]), sha256(data).digest(), data)
    with pytest.raises(DecodeError, match="shard state: constructor tag 11ef55aa"):
        wholestate.decode_zero_states([state])


def test_a_part_of_a_state_is_refused(demo: Network) -> None:
    tree = parse_boc(demo.bundles[0].blocks[0].data)
    update = tree.links[tree.roots[0]][2]
    tree.roots = [tree.links[update][1]]
    with pytest.raises(DecodeError, match="so it is incomplete"):
        wholestate.decode_states([tree], mc_seqno=1)
