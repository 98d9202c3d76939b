"""The cached state of a lake equals the lake, after commits, merges and undos by any process."""

import random
import sys
from contextlib import closing
from operator import gt
from pathlib import Path
from typing import Any

import msgspec
import pytest
from duckdb import DuckDBPyConnection

from tests.lake.chain import Chain, commit_chain, commit_made
from tests.patience import compose
from tonlake.ingest.assemble import statecell
from tonlake.ingest.assemble.statecell import FILES_ADDED, LakeCache
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogReader, LogState
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.removal import undo_after

Newest = dict[bytes, int]
SETTINGS = compose(lake={"compact_commits": 2})

NEWEST = """
select account, max(mc_seqno) from account_states
where account in (select unnest($accounts)) group by account
"""


def ask_newest(connection: DuckDBPyConnection, wanted: set[bytes]) -> Newest:
    return dict(connection.execute(NEWEST, {"accounts": sorted(wanted)}).fetchall())


def remember(lake: Path, ask: Any, *, most: int, lasts: bool = False) -> LakeCache[bytes, int]:
    where = lake, SETTINGS.lake, "account_states"
    return LakeCache(*where, ask, statement=NEWEST, most=most, lasts=lasts)


class Asked:
    """Queries the lake, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, connection: DuckDBPyConnection, wanted: set[bytes]) -> Newest:
        self.times += 1
        return ask_newest(connection, wanted)


def ask_anew(lake: Path, wanted: set[bytes]) -> Newest:
    with connect(open_snapshot(lake), statement=NEWEST) as connection:
        return ask_newest(connection, wanted)


@pytest.mark.parametrize(("most", "files"), [(2, 1000), (1000, 1000), (1000, 0)])
def test_it_equals_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, files: int
) -> None:
    monkeypatch.setattr(statecell, "FILES_ADDED", files)
    chain, dice = Chain(most, accounts=8), random.Random(most)  # noqa: S311 - no secret
    accounts = [account for _workchain, account in chain.accounts]
    log = LogReader(tmp_path)
    last = 0
    with closing(remember(tmp_path, ask_newest, most=most)) as memory:
        assert memory.find(set(accounts), LogState()) == {}
        for _ in range(16):
            what = dice.choice(["own", "own", "own", "other", "compact", "undo"])
            if what in {"own", "other"}:
                memory.find(set(dice.sample(accounts, 2)), log.read())
                tables = chain.make(last + 1, last + 2)
                states = tables["account_states"]
                commit = commit_made(tmp_path, last + 1, last + 2, tables, SETTINGS.lake)
                last += 2
                if what == "own":
                    newest = zip(
                        states["account"].to_pylist(), states["mc_seqno"].to_pylist(), strict=True
                    )
                    memory.learn(dict(sorted(newest, key=lambda each: each[1])), commit)
            elif what == "compact" and last:
                compact_lake(tmp_path, SETTINGS.lake)
            elif what == "undo" and last > 4:
                undo_after(
                    tmp_path,
                    last - 2,
                    SETTINGS.lake,
                    max_mc_blocks=1000,
                    source={},
                    reopen=lambda _a, _b: (),
                )
                last = log.read().ranges[-1][1]
            wanted = set(dice.sample(accounts, 3))
            assert memory.find(wanted, log.read()) == (ask_anew(tmp_path, wanted) if last else {})


def test_few_files_are_kept_while_nothing_is_looked_up(tmp_path: Path) -> None:
    commit = commit_chain(tmp_path, Chain(1, accounts=4), 1, 3)
    (file,) = (each for each in commit.added if each.table == "account_states")
    files = [msgspec.structs.replace(file, rows=rows) for rows in range(2 * FILES_ADDED)]
    before = [sys.getrefcount(each) for each in files]
    with closing(remember(tmp_path, ask_newest, most=10)) as memory:
        for each in files:
            memory.learn({}, msgspec.structs.replace(commit, added=(each,)))
        after = [sys.getrefcount(each) for each in files]
    assert sum(map(gt, after, before)) <= FILES_ADDED


def test_a_lake_that_only_this_one_adds_to_is_asked_once(tmp_path: Path) -> None:
    chain, asked = Chain(1, accounts=4), Asked()
    commit_chain(tmp_path, chain, 1, 3)
    accounts = {account for _workchain, account in chain.accounts}
    log = LogReader(tmp_path)
    with closing(remember(tmp_path, asked, most=10)) as memory:
        first = memory.find(accounts, log.read())
        assert memory.find(accounts, log.read()) == first
        assert memory.find(accounts | {bytes(32)}, log.read()) == first
        assert memory.find({bytes(32)}, log.read()) == {}
    assert asked.times == 2


def test_values_that_last_are_asked_once_whoever_commits(tmp_path: Path) -> None:
    chain, asked = Chain(1, accounts=4), Asked()
    accounts = {account for _workchain, account in chain.accounts}
    log = LogReader(tmp_path)
    memory = remember(tmp_path, asked, most=10, lasts=True)
    commit_chain(tmp_path, chain, 1, 3)
    with closing(memory):
        first = memory.find(accounts, log.read())
        commit_chain(tmp_path, chain, 4, 6)
        assert memory.find(set(first), log.read()) == first
        assert asked.times == 1
        assert memory.find(accounts, log.read()).keys() == ask_anew(tmp_path, accounts).keys()
        undo_after(tmp_path, 3, SETTINGS.lake, max_mc_blocks=9, source={}, reopen=lambda _a, _b: ())
        assert memory.find(accounts, log.read()) == ask_anew(tmp_path, accounts)
