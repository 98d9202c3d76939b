"""Mainnet accounts: recorded states and deployments are detected by their recorded names."""

import base64
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tests.conftest import read_lines
from tests.patience import compose
from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.decode.block.state import StateAt, StateCells, Touched, make_row, read_account
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.rows import RowSet
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.record import load_interfaces, name_interfaces
from tonlake.ingest.derive.contract.session import GetMethodSession, NotRun
from tonlake.ingest.derive.contract.stack import GetMethod, load_address, parse_address
from tonlake.ingest.derive.contract.world import KnownAccount, KnownLake, Network, World
from tonlake.ingest.derive.tvm.support import LIBRARY_MISSING
from tonlake.lake.log.state import LogState

SETTINGS = compose(tvm={"wall_ms": 60_000})
SHARD = -(2**63)
NOW = 1_780_000_000
GLOBAL_VERSION = 13
Row = dict[str, Any]


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[Row]:
    return read_lines(shared / "data/accounts/mainnet_0_71398501_prestates.jsonl.zst")


def read_states(recorded: list[Row]) -> dict[str, pa.Table]:
    """Return the rows of a block after which accounts have the recorded states."""
    rows = RowSet()
    cells = StateCells(rows["state_cells"])
    for one in recorded:
        tree = parse_boc(base64.b64decode(one["shard_account_boc"]))
        start = tree.slice(tree.roots[0])
        cell, last_hash, lt = start.load_ref(), start.load_bytes(32), start.load_uint(64)
        assert tree.hash(cell).hex() == one["account_root_hash"]
        state = read_account(tree, cell, global_version=GLOBAL_VERSION)
        touched = Touched(parse_address(one["account"]).account, lt, last_hash, tree.hash(cell))
        at = StateAt(0, SHARD, 1, 1, NOW)
        rows["account_states"].append(make_row(tree, at, touched, state))
        cells.keep(tree, [(cell, 0)], 1)
    return rows.to_arrow()


@pytest.fixture(scope="module")
def world(recorded: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("no lake")
    with (
        closing(KnownLake(folder, SETTINGS)) as lake,
        closing(CellFinder(folder, SETTINGS)) as finder,
    ):
        yield World(lake, LogState(), finder, read_states(recorded))


@pytest.fixture(scope="module")
def session(world: World) -> GetMethodSession:
    return GetMethodSession(world, Network(world, 1), None)


def run(session: GetMethodSession, state: KnownAccount, method: str) -> list[Any] | None:
    """Return the stack that the code of an account leaves."""
    return session.answer(GetMethod(state.address, method), state, 1)


def test_every_state_gets_the_interface_of_its_code(
    recorded: list[Row], world: World, session: GetMethodSession
) -> None:
    """Wallets have their version, with the seqno and the key that their code returns."""
    found = list(ContractDetection(world, session, -239).detect(list(world.list_states()), 1))
    wallets = {state.address: finding for state, finding in found if finding.table == "wallets"}
    kinds = Counter(finding.fields["kind"] for finding in wallets.values())
    assert kinds == {
        "wallet_v5r1": 44,
        "wallet_v4r2": 33,
        "wallet_v3r2": 4,
        "wallet_highload_v3r1": 3,
        "wallet_v3r1": 1,
    }
    by_code = load_interfaces().by_code
    for state in world.list_states():
        assert state.code_hash is not None
        names = name_interfaces(state.code_hash, None)
        finding = wallets.get(state.address)
        assert (finding is None) == (state.code_hash not in by_code or "jetton" in str(names))
        if finding is None:
            continue
        assert names == [finding.fields["kind"]]
        for column, method in (
            ("seqno", "seqno"),
            ("public_key", "get_public_key"),
            ("wallet_id", "get_subwallet_id"),
        ):
            if not session.has_method(state.code_hash, method):
                continue
            answers = run(session, state, method)
            assert answers is not None
            known = finding.fields[column]
            size = 1 << 32
            wanted = int.from_bytes(known, "big") if column == "public_key" else known % size
            assert answers[0] % (size if column != "public_key" else 1 << 256) == wanted
    assert len(wallets) + 4 == len(recorded)


class Deployment(NamedTuple):
    """A recorded jetton wallet, and the hashes of its initial code and data."""

    record: Row
    state: KnownAccount


def read_deployments(shared: Path) -> tuple[list[Deployment], pa.Table]:
    """Return the jetton wallets whose deployment was recorded, and their cells."""
    rows = RowSet()
    cells = StateCells(rows["state_cells"])
    found: list[Deployment] = []
    for trace in read_lines(shared / "data/classifier/traces.jsonl.zst"):
        for transaction in trace["transactions"]:
            account, message = transaction["account"], transaction["in_msg"]
            record = trace["interfaces"].get(account, {}).get("JettonWallet")
            if record is None or not (message and message.get("init_state_boc")):
                continue
            tree = parse_boc(base64.b64decode(message["init_state_boc"]))
            address = parse_address(account)
            assert tree.hash(tree.roots[0]) == address.account
            code, data = tree.links[tree.roots[0]][:2]
            cells.keep(tree, [(code, 0), (data, 0)], 1)
            hashes = tree.hash(code), tree.hash(data)
            state = KnownAccount(*address, 1, 0, NOW, 10**9, None, *hashes)
            found.append(Deployment(record, state))
    return found, rows.to_arrow()["state_cells"]


def test_deployed_wallets_show_owner_and_master(shared: Path, tmp_path: Path) -> None:
    """Interfaces match initial states, except of codes in a library, which cannot run here."""
    deployments, cells = read_deployments(shared)
    answers_by = Counter[bool | None]()
    with (
        closing(KnownLake(tmp_path, SETTINGS)) as lake,
        closing(CellFinder(tmp_path, SETTINGS)) as finder,
    ):
        world = World(lake, LogState(), finder, {"state_cells": cells})
        late = GetMethodSession(world, Network(world, 2), None)
        whole = GetMethodSession(world, Network(world, 1), None)
        for record, state in deployments:
            world.load_cells([state.code_hash, state.data_hash])
            question = GetMethod(state.address, "get_wallet_data")
            try:
                stack = late.answer(question, state, 1)
            except NotRun as error:
                answers_by[str(error).startswith(LIBRARY_MISSING)] += 1
                assert whole.answer(question, state, 1) is None
                continue
            if stack is None:
                continue
            owner, jetton = (load_address(value.copy()) for value in stack[1:3])
            wanted = tuple(parse_address(record[name]) for name in ("owner", "jetton"))
            assert (owner, jetton) == wanted
            answers_by[None] += 1
    assert answers_by[None] > 10, answers_by
    assert answers_by[True] > 10, answers_by
    assert answers_by[False] == 0, answers_by
