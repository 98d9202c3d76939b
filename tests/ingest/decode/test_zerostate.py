"""Whole states: zero states, persistent ones, and refusals."""

from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from tests.ingest.networks import Network, find_cells, read_zero_states
from tonlake.ingest.blocks import ZeroState
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.wholestate import TABLES, decode_states, decode_zero_states
from tonlake.ingest.errors import BlockCorrupt, DecodeError
from tonlake.lake.schema import TABLES as SCHEMA


def test_zero_states_are_what_the_first_blocks_start_from(network: Network) -> None:
    states = {state.workchain: state.root_hash for state in read_zero_states(network.db)}
    first = {h.workchain: old for h, old in network.headers if h.seqno == 1}
    assert states == first


def test_zero_state_rows(network: Network) -> None:
    tables = network.zero
    assert set(tables) == set(TABLES)
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
    tables = decode_states([parse_boc(path.read_bytes())], mc_seqno=2690)
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
        decode_zero_states([broken])
    broken = msgspec.structs.replace(state, root_hash=bytes(32))
    with pytest.raises(BlockCorrupt, match="root hash"):
        decode_zero_states([broken])


def test_a_block_is_no_state(demo: Network) -> None:
    data = demo.bundles[0].blocks[0].data
    tree = parse_boc(data)
    state = ZeroState(-1, tree.hash(tree.roots[0]), sha256(data).digest(), data)
    with pytest.raises(DecodeError, match="shard state: constructor tag 11ef55aa"):
        decode_zero_states([state])


def test_a_part_of_a_state_is_refused(demo: Network) -> None:
    tree = parse_boc(demo.bundles[0].blocks[0].data)
    update = tree.refs(tree.roots[0])[2]
    tree.roots = [tree.refs(update)[1]]
    with pytest.raises(DecodeError, match="so it is incomplete"):
        decode_states([tree], mc_seqno=1)
